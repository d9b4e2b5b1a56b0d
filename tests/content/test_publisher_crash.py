"""Power loss at any write or sync of a node that distributes content.

What was acknowledged is there, numbers have no gaps, and every event is said once. A failure names
the operation: call `check_crash_at(operation, Outcome.TEAR)` to see it again.
"""

import asyncio

import pytest
from publishing import discovery, package, status

from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.messages import (
    ImportOutcome,
    PackageDistributed,
    decode_event,
    decode_package,
)
from holdfast.content.ports import Published
from holdfast.content.publisher import ContentService
from holdfast.content.topics import ContentTopic
from holdfast.errors import HoldfastError
from holdfast.journal.local import LocalJournal
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.testing import DiskOutcome, SimulatedCrash, SimulatedDisk, run

ROUNDS = 6


async def opened(disk: SimulatedDisk) -> tuple[LocalJournal, ContentService]:
    clock = asyncio.get_running_loop().clock  # type: ignore[attr-defined]
    journal = LocalJournal.open("/journal", clock=clock, disk=disk, segment_bytes=SEGMENT_BYTES_MIN)
    service = ContentService(journal, MemoryBlobs, clock)
    await service.start()
    return journal, service


async def work(
    service: ContentService, done: dict[str, Published], cleared: list[int], first: int = 0
) -> None:
    """Publishes, announces, fails, clears; notes what was acknowledged."""
    for round_ in range(first, first + ROUNDS):
        sent = [package(10 * round_ + each, size_bytes=3_000) for each in range(3)]
        for each, published in zip(
            sent, await asyncio.gather(*map(service.publish, sent)), strict=True
        ):
            done[each.package_id] = published
        last = published
        await service.announce(discovery("a", last.offset, last.number, editable=True))
        await service.report([status("a", last.offset)])
        await service.clear("site", "a", last.offset)
        cleared.append(last.offset)
        await asyncio.sleep(1)
        if round_ % 3 == 2:
            await (await service.running()).upkeep.remember()


async def until_crash(disk: SimulatedDisk) -> tuple[dict[str, Published], list[int]]:
    done: dict[str, Published] = {}
    cleared: list[int] = []
    service: ContentService | None = None
    try:
        journal, service = await opened(disk)
        await work(service, done, cleared)
        await service.stop()
        await journal.close()
    except (SimulatedCrash, HoldfastError):
        if service is not None:
            service.abandon()
    return done, cleared


async def check(disk: SimulatedDisk, done: dict[str, Published], cleared: list[int]) -> None:
    """A service that starts on what is left, and works on."""
    journal, service = await opened(disk)
    for package_id, published in done.items():
        again = await service.publish(package(int(package_id.removeprefix("site-"))))
        assert again._replace(waited_ms=0) == published._replace(waited_ms=0)
    if cleared:
        running = await service.running()
        assert running.state.cleared_to("a", "site") >= cleared[-1]
        assert set(running.state.errors.of("a", "site")) >= set(cleared)
    await work(service, done, cleared, first=100)
    await service.report([status("a", cleared[-1], ImportOutcome.IMPORTED, at_ms=9)])
    numbers = [
        decode_package(each.payload).number for each in await everything(service, "PACKAGES")
    ]
    assert numbers == list(range(1, len(numbers) + 1))
    events = [decode_event(each.payload) for each in await everything(service, "EVENTS")]
    assert [event.number for event in events if isinstance(event, PackageDistributed)] == numbers, (
        "each one once, in order"
    )
    await service.stop()
    await journal.close()


async def everything(service: ContentService, topic: str) -> list:
    found, offset = [], 0
    while True:
        some = await service.read(ContentTopic[topic], 1, offset, bytes_max=10**6, wait_ms=0)
        found += some.entries
        offset = some.next
        if offset >= some.end:
            return found


def check_crash_at(operation: int, *outcomes: DiskOutcome) -> None:
    disk = SimulatedDisk(crash_at=operation)
    done, cleared = run(until_crash(disk))
    for outcome in outcomes:
        survivor = disk.after_crash(outcome, seed=operation)
        try:
            run(check(survivor, dict(done), list(cleared)))
        except Exception as error:
            raise AssertionError(f"crash at operation {operation}, {outcome.value}") from error


def operations() -> int:
    disk = SimulatedDisk()
    run(until_crash(disk))
    return disk.operations


@pytest.mark.parametrize("part", range(3))
def test_what_was_acknowledged_is_there_after_a_crash_at_any_operation(part: int) -> None:
    count = operations()
    assert count > 100
    for operation in range(1 + part, count + 1, 9):
        check_crash_at(operation, DiskOutcome.DROP, DiskOutcome.TEAR)


@pytest.mark.soak
def test_a_crash_at_every_operation() -> None:
    for operation in range(1, operations() + 1):
        check_crash_at(operation, *DiskOutcome)
