"""Which disk a folder is: counted starts, wiped folders and folders put back from a copy."""

import copy
from collections.abc import Awaitable, Callable, Iterator
from itertools import count

import pytest

from holdfast.errors import DataLoss, InvalidState
from holdfast.journal.cluster.identity import DiskIdentity, begin_identity, load_identity
from holdfast.sequence.memory import MemoryCluster, MemoryCoordination, WriteFate
from holdfast.testing import run
from holdfast.testing.disk import SimulatedDisk

Begin = Callable[[SimulatedDisk], Awaitable[DiskIdentity]]


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def begin(cluster: MemoryCluster) -> Begin:
    numbers: Iterator[int] = count(1)
    return lambda disk: begin_identity(
        disk, "/m", "a", MemoryCoordination(cluster, "a"), lambda: f"d{next(numbers)}"
    )


def test_a_disk_keeps_its_id_and_counts_its_starts(begin: Begin) -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        for boots in (1, 2, 3):
            assert await begin(disk) == DiskIdentity("d1", boots)
        assert (await begin(SimulatedDisk())).disk == "d2", "a wiped folder is another disk"

    run(story())


def test_a_disk_that_was_put_back_from_a_copy_starts_as_an_empty_one(begin: Begin) -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        await begin(disk)
        disk.make_folder("/m/journal")
        disk.make_folder("/m/journal/t")
        disk.create("/m/journal/t/file", 1)
        older = copy.deepcopy(disk)
        await begin(disk)
        found = await begin(older)
        assert found == DiskIdentity("d2", 1)
        assert load_identity(older, "/m") == found
        assert older.list("/m/journal") == []
        assert older.list("/m/journal.rolled-back-2/t") == ["file"]
        assert await begin(older) == DiskIdentity("d2", 2)

    run(story())


@pytest.mark.parametrize("fate", [WriteFate.LOST, WriteFate.DROPPED])
def test_a_start_whose_note_is_unknown_is_noted_again(
    begin: Begin, cluster: MemoryCluster, fate: WriteFate
) -> None:
    async def story() -> None:
        fates = [fate, fate, WriteFate.ANSWERED, WriteFate.ANSWERED]
        cluster.fate = lambda member, write: fates.pop(0)
        disk = SimulatedDisk()
        assert await begin(disk) == DiskIdentity("d1", 3)
        assert await begin(disk) == DiskIdentity("d1", 4)

    run(story())


def test_a_folder_without_identity_but_with_a_journal_is_refused(begin: Begin) -> None:
    async def story() -> None:
        disk = SimulatedDisk()
        disk.make_folder("/m/journal")
        disk.create("/m/journal/.lock", 0)
        with pytest.raises(InvalidState, match="empty folder"):
            await begin(disk)
        damaged = SimulatedDisk()
        damaged.make_folder("/m")
        damaged.create("/m/replica.json", 0).write(0, b'{"disk": 7')
        with pytest.raises(DataLoss, match=r"replica\.json"):
            await begin(damaged)

    run(story())
