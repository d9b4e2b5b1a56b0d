"""The journal's append against the bare disk, and what many partitions cost."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Figure, Run, benchmark, remove
from bench.limits import MIB, RawFile, raw_append
from holdfast.journal import Journal
from holdfast.journal.local import LocalJournal

PARTITIONS = 16
PARTITIONS_MANY = 256
APPENDERS = 16
ENTRIES_PER_APPEND = 64
MEASURE_BYTES = 1024 * MIB  # about a second of a disk that syncs 1 GiB/s
TOPIC = "bench"


class Appending:
    """A journal with one topic, and 16 appenders that each wait for their own append."""

    def __init__(self, loop: asyncio.Runner, folder: Path, partitions: int) -> None:
        self._loop = loop
        self._partitions = partitions
        self._journal: Journal = LocalJournal.open(folder)
        self._journal.create_topic(TOPIC, partitions)

    def bytes_per_second(self, entry_bytes: int, bytes_total: int) -> float:
        """Payload bytes made durable each second."""
        append_bytes = entry_bytes * ENTRIES_PER_APPEND
        appends_each = max(1, bytes_total // (append_bytes * APPENDERS))
        entries = [os.urandom(entry_bytes) for _ in range(ENTRIES_PER_APPEND)]
        seconds = self._loop.run(self._run(entries, appends_each))
        self._discard()
        return append_bytes * appends_each * APPENDERS / seconds

    def microseconds_per_entry(self, entry_bytes: int, bytes_total: int) -> float:
        """The cost of an entry."""
        return 1e6 * entry_bytes / self.bytes_per_second(entry_bytes, bytes_total)

    async def _run(self, entries: list[bytes], appends_each: int) -> float:
        async def appender(number: int) -> None:
            partition = number
            for _ in range(appends_each):
                await self._journal.append(TOPIC, partition % self._partitions + 1, entries)
                partition += APPENDERS  # so that each of 256 partitions gets its share

        begun = time.perf_counter()
        await asyncio.gather(*(appender(number) for number in range(APPENDERS)))
        return time.perf_counter() - begun

    def _discard(self) -> None:
        """Gives the space back between measurements, outside of the measured time."""
        for partition in range(1, self._partitions + 1):
            self._journal.discard(TOPIC, partition, self._journal.bounds(TOPIC, partition).next)

    def close(self) -> None:
        self._loop.run(self._journal.close())


@benchmark("journal")
def journal(run: Run) -> Iterator[Figure]:
    folder = run.folder("journal")
    bytes_total = run.scaled(MEASURE_BYTES)
    with asyncio.Runner() as loop:
        raw = RawFile(folder)
        opened: list[Appending] = []

        def appending(partitions: int) -> Appending:
            opened.append(Appending(loop, folder / f"partitions-{partitions}", partitions))
            return opened[-1]

        try:
            sixteen = appending(PARTITIONS)
            yield _against_raw("1 KB", 1024, ">= 0.85", sixteen, raw, bytes_total)
            yield _against_raw("256 B", 256, ">= 0.5", sixteen, raw, bytes_total // 4)
            one, many = appending(1), appending(PARTITIONS_MANY)
            yield Figure(
                name=f"cost of an append, {PARTITIONS_MANY} partitions",
                against="1 partition",
                goal="<= 1.2",
                unit="µs/entry",
                ours=lambda: many.microseconds_per_entry(1024, bytes_total // 2),
                peer=lambda: one.microseconds_per_entry(1024, bytes_total // 2),
            )
        finally:
            for each in opened:
                each.close()
            raw.close()
            remove(folder)


def _against_raw(
    size: str, entry_bytes: int, goal: str, ours: Appending, raw: RawFile, bytes_total: int
) -> Figure:
    """Raw writes get the largest batch that the journal can form: one append of every appender."""
    batch_bytes = entry_bytes * ENTRIES_PER_APPEND * APPENDERS
    return Figure(
        name=f"append of {size} entries, {PARTITIONS} partitions",
        against=f"pwrite + fdatasync of {batch_bytes // 1024} KiB each",
        goal=goal,
        unit="MiB/s",
        ours=lambda: ours.bytes_per_second(entry_bytes, bytes_total) / MIB,
        peer=lambda: raw_append(raw, batch_bytes, max(1, bytes_total // batch_bytes)) / MIB,
    )
