"""A hypothesis state machine: the local journal against lists in a dict."""

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from holdfast.journal import Append, Appended, Bounds
from holdfast.journal.local import JournalReader, LocalJournal, verify
from holdfast.limits import KIB, SEGMENT_BYTES_MIN
from holdfast.testing.disk import DiskOutcome, SimulatedDisk

ROOT = "/journal"
PARTITIONS = st.integers(1, 3)
ENTRIES = st.lists(
    st.tuples(st.binary(max_size=20), st.sampled_from([0, 1, 100, 3 * KIB, 9 * KIB])),
    min_size=1,
    max_size=5,
).map(lambda pairs: [head + bytes(size_bytes) for head, size_bytes in pairs])


class JournalMachine(RuleBasedStateMachine):
    """Appends, discards, crashes and restarts in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = SimulatedDisk()
        self.loop = asyncio.new_event_loop()
        self.model: dict[int, list[bytes]] = {1: [], 2: [], 3: []}
        self.earliest = {1: 0, 2: 0, 3: 0}

    @initialize()
    def start(self) -> None:
        self.journal = LocalJournal.open(ROOT, disk=self.disk, segment_bytes=SEGMENT_BYTES_MIN)
        self.journal.create_topic("t", 3)
        self.reader = JournalReader.open(ROOT, disk=self.disk)

    @rule(appends=st.lists(st.tuples(PARTITIONS, ENTRIES), min_size=1, max_size=6))
    def append(self, appends: list[tuple[int, list[bytes]]]) -> None:
        offsets = self.loop.run_until_complete(
            self.journal.append_many([Append("t", *each) for each in appends])
        )
        for (partition, entries), offset in zip(appends, offsets, strict=True):
            assert isinstance(offset, Appended)
            assert offset.first == len(self.model[partition])
            self.model[partition] += entries

    @rule(partition=PARTITIONS, share=st.floats(0, 1))
    def discard(self, partition: int, share: float) -> None:
        before = int(share * len(self.model[partition]))
        self.journal.discard("t", partition, before)
        self.earliest[partition] = max(before, self.earliest[partition])

    @rule(partition=PARTITIONS, share=st.floats(0, 1), bytes_max=st.integers(1, 20 * KIB))
    def read(self, partition: int, share: float, bytes_max: int) -> None:
        next_offset, earliest = len(self.model[partition]), self.earliest[partition]
        offset = earliest + int(share * (next_offset - earliest))
        entries = self.journal.read_now("t", partition, offset, bytes_max)
        assert entries == self.reader.read_now("t", partition, offset, bytes_max)
        expected = self.model[partition][offset : offset + len(entries)]
        assert [entry.payload for entry in entries] == expected
        assert entries or offset == next_offset
        assert sum(map(len, expected[1:])) <= bytes_max

    @rule()
    def close_and_open(self) -> None:
        self.loop.run_until_complete(self.journal.close())
        self.start()

    @rule(outcome=st.sampled_from(DiskOutcome), seed=st.integers(0, 1000))
    def crash_and_open(self, outcome: DiskOutcome, seed: int) -> None:
        self.disk = self.disk.after_crash(outcome, seed=seed)
        self.start()
        for partition in self.earliest:  # what was discarded may be back, never more is gone
            earliest = self.journal.bounds("t", partition).earliest
            assert earliest <= self.earliest[partition]
            self.earliest[partition] = earliest

    @invariant()
    def bounds_agree(self) -> None:
        if hasattr(self, "journal"):
            for partition, entries in self.model.items():
                bounds = Bounds(self.earliest[partition], len(entries))
                assert self.journal.bounds("t", partition) == bounds
                assert self.reader.bounds("t", partition).next == bounds.next

    def teardown(self) -> None:
        self.loop.run_until_complete(self.journal.close())
        self.loop.close()
        assert [report.damage for report in verify(ROOT, disk=self.disk)] == [[]]


TestJournalMachine: Any = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
