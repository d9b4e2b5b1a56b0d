"""One partition and its log, driven by hand: what the runner does, without a loop and a disk.

The log leaves gaps between offsets, so nothing passes here that takes an offset for a position.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs

from holdfast.engine.kernel import Command, Processor, Reply, Step, Submission
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.journal import Appended, Entry
from holdfast.records import Codec, Record
from holdfast.state import Progress, Writing
from holdfast.state.memory import MemoryStore

START_MS = 1_767_225_600_000

GAP = 3  # the offset of a record is this times its position, and one more


Open = Callable[[MemoryStore, int], Processor[Any]]


class Driver:
    """Submits commands, lets time pass, and starts again from the store and the log."""

    def __init__(self, open_: Open = open_partition, codec: Codec = DISPATCH.codec) -> None:
        self._open = open_
        self._codec = codec
        self.store = MemoryStore()
        self.log: list[Entry] = []
        self.now_ms = START_MS
        self.processor = open_(self.store, 1)
        self.effects: list[Any] = []
        self.answers: dict[int, list[Reply]] = {}

    @property
    def view(self) -> Any:
        return self.processor.view

    # --- processing ---------------------------------------------------------------------------

    def step(self, submissions: Sequence[Submission] = ()) -> Step:
        """One step that becomes durable."""
        step = self.processor.step(submissions, self.now_ms)
        self.append(step)
        return step

    def append(self, step: Step) -> None:
        assert step.first_position == len(self.log)
        first = GAP * len(self.log) + 1
        for payload in step.entries:
            self.log.append(Entry(GAP * len(self.log) + 1, self.now_ms, payload))
        appended = Appended(first, GAP * len(self.log)) if step.entries else None
        self.processor.commit(step, appended)
        self.effects += step.effects
        self.answers |= {id(ticket): replies for ticket, replies in step.replies}

    def submit(self, *commands: Command) -> list[Reply]:
        """Submits commands together and runs steps until they are answered."""
        ticket = object()
        self.step([Submission(commands, ticket)])
        while id(ticket) not in self.answers:
            self.step()
        return self.answers.pop(id(ticket))

    def do(self, command: Command) -> Reply:
        """Submits one command, which must not be a bug."""
        (reply,) = self.submit(command)
        assert reply.rejection is None or reply.rejection.code != "INTERNAL", reply.rejection
        return reply

    def advance(self, milliseconds: int, at_each_stop: Callable[[], None] = lambda: None) -> None:
        """Lets time pass, stopping wherever something is due."""
        until = self.now_ms + milliseconds
        while (due_ms := self.processor.next_due_ms()) is not None and due_ms <= until:
            self.now_ms = max(self.now_ms, due_ms)
            step = self.step()
            assert not step.bugs, step.bugs
            at_each_stop()
        self.now_ms = until

    # --- state and log ------------------------------------------------------------------------

    def write_state(self) -> None:
        """Gives the store what it does not have yet."""
        Writing(self.store, [(self.processor.state, self.processor.progress)]).finish()

    def dump(self) -> list[tuple[bytes, bytes]]:
        return self.processor.state.dump()

    def records(self) -> list[Record]:
        return self._codec.decode_many([entry.payload for entry in self.log])

    def replayed(
        self, store: MemoryStore | None = None, until: int | None = None, batch: int = 1_000
    ) -> Processor[Any]:
        """A new processor over a store, which has read the log up to a position."""
        processor = self._open(store or MemoryStore(), 1)
        log = self.log[: len(self.log) if until is None else until]
        read = bisect_left(log, processor.next_offset, key=lambda entry: entry.offset)
        for start in range(read, len(log), batch):
            processor.replay(log[start : start + batch])
        return processor

    def restart(self, *, with_store: bool = True) -> None:
        """The process ends and another begins: memory is gone, the store and the log are there."""
        if not with_store:
            self.store = MemoryStore()
        self.processor = self.replayed(self.store)


def counted(processor: Processor[Any]) -> Progress:
    """How far a processor is; where its log is read on depends on who read or wrote it."""
    return structs.replace(processor.progress, replay_offset=0)
