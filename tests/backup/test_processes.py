"""A node of several processes: its backup is one moment of all of them."""

import asyncio
import secrets
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.engine.transaction_logs import check_logs, check_state

from holdfast import backup_pins
from holdfast.backup_life import BackupLife
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.errors import Code, HoldfastError, InvalidState, Unavailable
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.gateway.transactions.shapes import (
    TransactionQuery,
    TransactionRequest,
    TransactionStep,
)
from holdfast.journal.memory import MemoryJournal
from holdfast.layout import Layout, divide, layout_of
from holdfast.members.member import Member

from .working import CONFIG, backed_up, restored

PARTITIONS = 4
PASSING = (Code.UNAVAILABLE, Code.UNKNOWN, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED)


async def opened(folder: Path) -> tuple[Layout, list[Member]]:
    """Two members of a node, in this process."""
    layout = divide(folder, 2, PARTITIONS, PARTITIONS)
    config = msgspec.structs.replace(CONFIG, partitions=PARTITIONS)
    members = list(await asyncio.gather(*(Member.open(layout, n, config) for n in (1, 2))))
    assert await members[0].reached(10)
    return layout, members


async def closed(members: list[Member]) -> None:
    for member in members:
        await member.close()


class Clients:
    """Transactions over all partitions, through both members, until they are told to end."""

    def __init__(self, members: list[Member], transactions_max: int = 1_000_000) -> None:
        self.members = members
        self.transactions_max = transactions_max
        self.committed: dict[str, list[str]] = {}  # the keys that a transaction's tasks got
        self.over = False

    async def run(self, name: str) -> None:
        number = 0
        while not self.over and number < self.transactions_max:
            number += 1
            text = f"tx-{name}-{number}"
            steps = [
                TransactionStep(
                    submit=NewTask("work", msgspec.Raw(f'"{text}-{n}"'.encode()), _key())
                )
                for n in range(3)
            ]
            request = TransactionRequest(steps, text, timeout_ms=20_000)
            gateway = self.members[number % 2].node.gateway
            try:
                done = await gateway.transactions.commit(request)
            except HoldfastError as error:
                assert error.code in PASSING, error
                continue
            if done.state == "COMMITTED":
                self.committed[text] = done.keys


def _key() -> str:
    """One that is on any partition: keys that differ in a digit only are on neighbours."""
    return secrets.token_hex(8)


async def logs_of(members: list[Member]) -> dict[int, list[Any]]:
    """All records of all partitions."""
    found: dict[int, list[Any]] = {}
    for member in members:
        journal = member.node.journal
        for partition in member.node.runner.open_partitions():
            bounds, records = journal.bounds(TOPIC, partition), list[Any]()
            assert bounds.earliest == 0
            at = 0
            while at < bounds.next:
                entries = await journal.read(TOPIC, partition, at)
                records += DISPATCH.codec.decode_many([entry.payload for entry in entries])
                at = entries[-1].offset + 1
            found[partition] = records
    return found


def test_transactions_over_processes_are_whole_in_every_backup(tmp_path: Path) -> None:
    told: list[dict[str, list[str]]] = []

    async def story() -> None:
        _, members = await opened(tmp_path / "data")
        clients = Clients(members)
        running = [asyncio.create_task(clients.run(f"c{n}")) for n in range(4)]
        for count in (20, 40, 60):
            while len(clients.committed) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            told.append(dict(clients.committed))
            # Whichever process is asked, the one with partition 1 makes it.
            made = await backed_up(members[len(told) % 2].node.gateway, tmp_path / "backups")
            assert 0 < made.held_ms < 2_000
        clients.over = True
        await asyncio.gather(*running)
        await closed(members)

    asyncio.run(story())
    for generation, committed in enumerate(told, 1):
        folder = tmp_path / f"restored-{generation}"
        manifest = restored(tmp_path / "backups", folder, generation)
        assert (manifest.members, manifest.partitions) == (2, PARTITIONS)
        assert layout_of(folder).members == 2
        asyncio.run(finished_and_checked(folder, committed))


async def quiet(gateway: Any) -> None:
    """No transaction is under way: the partitions have done what was decided."""
    async with asyncio.timeout(60):
        while (await gateway.transactions.page(TransactionQuery())).items:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def finished_and_checked(folder: Path, committed: dict[str, list[str]]) -> None:
    """Recovery ends what was under way: all of a transaction or nothing of it."""
    _, members = await opened(folder)
    gateway = members[0].node.gateway
    await quiet(gateway)
    for keys in committed.values():
        for key in keys:
            assert (await gateway.tasks.get(key)).type == "work"
    # A parcel that a partition sends now must not have the number of one that another has taken.
    later = Clients(members, 4)
    async with asyncio.timeout(30):
        await asyncio.gather(*(later.run(f"later-{n}") for n in range(4)))
    assert len(later.committed) == 16
    await quiet(gateway)
    known = check_logs(await logs_of(members))
    assert sum(each.state.name == "COMMITTED" for each in known) >= len(committed)
    for member in members:
        await member.node.runner.settled()
        for processor in member.node.runner.processors.values():
            check_state(processor.view, processor.state.dump())
    await closed(members)


def test_a_process_that_is_held_does_nothing_until_it_goes_on_or_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_pins, "BACKUP_HOLD_MS_MAX", 300)

    async def story() -> None:
        _, members = await opened(tmp_path / "data")
        node = members[0].node
        cuts = members[0].node.backups._backups._near  # pyright: ignore
        await cuts.prepare("one")
        await cuts.hold("one")
        ends = [node.journal.bounds(TOPIC, each).next for each in (1, 3)]
        submitting = node.gateway.tasks.submit([NewTask("t") for _ in range(9)])
        asked = asyncio.get_running_loop().create_task(submitting)
        await asyncio.sleep(0.05)
        assert [node.journal.bounds(TOPIC, each).next for each in (1, 3)] == ends
        cut = await cuts.cut("one", True)
        await cuts.go_on("one")
        await asked
        assert [sum(s.end for s in each.segments) for each in cut.topics.values()]
        with pytest.raises(Unavailable, match="more than 300 ms"):  # nobody said go on in time
            await cuts.prepare("two")
            await cuts.hold("two")
            await node.gateway.tasks.submit([NewTask("t")])  # it goes on by itself
            await cuts.cut("two", True)
        assert await cuts.keep("one")
        await cuts.release("one")
        assert not await cuts.keep("one")
        await closed(members)

    asyncio.run(story())


def test_a_backup_is_not_made_while_a_process_is_away_and_the_node_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        _, members = await opened(tmp_path / "data")
        await members[1].close()
        gateway = members[0].node.gateway
        with pytest.raises(Unavailable):
            await backed_up(gateway, tmp_path / "backups")
        await gateway.tasks.submit([NewTask("t", key=None)])  # to a partition that is here
        await members[0].close()

    asyncio.run(story())


def test_a_member_whose_log_is_not_its_own_refuses_and_says_what_to_do(tmp_path: Path) -> None:
    for disk, text in ((None, "Kafka"), (object(), "--as-of-cut latest")):
        nothing: Any = None
        is_shared: Any = disk
        life = BackupLife(
            tmp_path, tmp_path, MemoryJournal(), nothing, nothing, nothing, nothing, is_shared
        )
        gateway: Any = _Asked()
        assert life.serve(gateway) == {}
        with pytest.raises(InvalidState, match=text):
            asyncio.run(gateway.home.start("s3://key:secret@bucket"))


class _Asked:
    """A gateway, as far as backups need one."""

    def serve_backups(self, home: Any) -> None:
        self.home = home
