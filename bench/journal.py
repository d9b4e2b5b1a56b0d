"""The journal's append against the bare disk, and what many partitions cost."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import uvloop

from bench.harness import Figure, Run, benchmark, remove
from bench.limits import MIB, RawFile, raw_append
from holdfast.journal import Journal
from holdfast.journal.local import LocalJournal
from holdfast.limits import EAGER_COMMIT_BYTES

PARTITIONS = 16
PARTITIONS_MANY = 256
APPENDERS = 48  # three a partition: while one append is written, the next ones gather
APPENDERS_PLAIN = 16  # one a partition: nothing can be prepared while an append is written
ENTRIES_PLAIN = 64
SEGMENT_BYTES = 256 * MIB  # a journal that is set up for throughput, not for a small disk
MEASURE_BYTES = 1536 * MIB
TOPIC = "bench"


class Appending:
    """A journal with one topic, and appenders that each wait for their own append.

    The log is cut behind what was appended, as a node's snapshots do: its files are used again, as
    the raw file is that it is compared with.
    """

    def __init__(self, loop: asyncio.Runner, folder: Path, partitions: int) -> None:
        self._loop = loop
        self._partitions = partitions
        self._journal: Journal = LocalJournal.open(folder, segment_bytes=SEGMENT_BYTES)
        self._journal.create_topic(TOPIC, partitions)

    def bytes_per_second(
        self, entry_bytes: int, entries: int, bytes_total: int, appenders: int = APPENDERS
    ) -> float:
        """Payload bytes made durable each second."""
        append_bytes = entry_bytes * entries
        appends_each = max(1, bytes_total // (append_bytes * appenders))
        payload = [os.urandom(entry_bytes) for _ in range(entries)]
        seconds = self._loop.run(self._run(payload, appends_each, appenders))
        return append_bytes * appends_each * appenders / seconds

    def microseconds_per_entry(self, entry_bytes: int, entries: int, bytes_total: int) -> float:
        """The cost of an entry."""
        return 1e6 * entry_bytes / self.bytes_per_second(entry_bytes, entries, bytes_total)

    async def _run(self, payload: list[bytes], appends_each: int, appenders: int) -> float:
        round_bytes = sum(map(len, payload)) * appenders
        cut_every = max(1, SEGMENT_BYTES // 2 // round_bytes)

        async def appender(number: int) -> None:
            partition = number
            for done in range(appends_each):
                await self._journal.append(TOPIC, partition % self._partitions + 1, payload)
                partition += appenders  # so that each of 256 partitions gets its share
                if number == 0 and done % cut_every == 0:
                    self._cut()

        begun = time.perf_counter()
        await asyncio.gather(*(appender(number) for number in range(appenders)))
        return time.perf_counter() - begun

    def _cut(self) -> None:
        for partition in range(1, self._partitions + 1):
            self._journal.discard(TOPIC, partition, self._journal.bounds(TOPIC, partition).next)

    def close(self) -> None:
        self._loop.run(self._journal.close())


@benchmark("journal")
def journal(run: Run) -> Iterator[Figure]:
    folder = run.folder("journal")
    bytes_total = run.scaled(MEASURE_BYTES)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        raw = RawFile(folder)
        opened: list[Appending] = []

        def appending(partitions: int) -> Appending:
            opened.append(Appending(loop, folder / f"partitions-{partitions}", partitions))
            return opened[-1]

        try:
            sixteen = appending(PARTITIONS)
            yield _against_raw("1 KB", 1024, 512, ">= 0.85", sixteen, raw, bytes_total)
            yield _against_raw("256 B", 256, 1024, ">= 0.5", sixteen, raw, bytes_total // 2)
            yield _plain("1 KB", 1024, ">= 0.6", sixteen, raw, bytes_total // 2)
            yield _plain("256 B", 256, ">= 0.5", sixteen, raw, bytes_total // 8)
            one, many = appending(1), appending(PARTITIONS_MANY)
            yield Figure(
                name=f"cost of an append, {PARTITIONS_MANY} partitions",
                against="1 partition",
                goal="<= 1.2",
                unit="µs/entry",
                ours=lambda: many.microseconds_per_entry(1024, 64, bytes_total // 2),
                peer=lambda: one.microseconds_per_entry(1024, 64, bytes_total // 2),
            )
        finally:
            for each in opened:
                each.close()
            raw.close()
            remove(folder)


def _against_raw(
    size: str,
    entry_bytes: int,
    entries: int,
    goal: str,
    ours: Appending,
    raw: RawFile,
    bytes_total: int,
) -> Figure:
    """Raw writes get the largest batch that the journal commits at once with these appends."""
    batch_bytes = EAGER_COMMIT_BYTES + entry_bytes * entries
    return Figure(
        name=f"append of {size} entries, {PARTITIONS} partitions",
        against=f"pwrite + fdatasync of {batch_bytes // 1024} KiB each",
        goal=goal,
        unit="MiB/s",
        ours=lambda: ours.bytes_per_second(entry_bytes, entries, bytes_total) / MIB,
        peer=lambda: raw_append(raw, batch_bytes, max(1, bytes_total // batch_bytes)) / MIB,
    )


def _plain(
    size: str, entry_bytes: int, goal: str, ours: Appending, raw: RawFile, bytes_total: int
) -> Figure:
    """Small appends, one in flight a partition: nothing of our own work can be hidden."""
    batch_bytes = entry_bytes * ENTRIES_PLAIN * APPENDERS_PLAIN
    return Figure(
        name=f"append of {ENTRIES_PLAIN} x {size}, one in flight a partition",
        against=f"pwrite + fdatasync of {batch_bytes // 1024} KiB each",
        goal=goal,
        unit="MiB/s",
        ours=lambda: (
            ours.bytes_per_second(entry_bytes, ENTRIES_PLAIN, bytes_total, APPENDERS_PLAIN) / MIB
        ),
        peer=lambda: raw_append(raw, batch_bytes, max(1, bytes_total // batch_bytes)) / MIB,
    )
