"""A group without trouble, in virtual time: members, and a log with a fixed latency."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from holdfast.groups.api import Entry, Generation, MemberId, NewPartition
from holdfast.groups.core import GroupCore
from holdfast.groups.effects import Effect, Send, StartRun, StopRun
from holdfast.groups.messages import NewEpoch, SyncMessage, encode
from holdfast.limits import GROUP_TICK_MS

APPEND_MS = 10  # until a message is in the log: a write to three replicas
READ_MS = 10  # until a member has read it


class VirtualGroup:
    """Members whose work starts and ends at once; the bytes and the moments are real."""

    def __init__(self, partitions: int, members: int) -> None:
        width = len(str(partitions))
        self.declared = [NewPartition(f"part-{n:0{max(4, width)}}") for n in range(partitions)]
        self.log: list[bytes] = []
        self.messages: list[SyncMessage] = []
        self.cores: dict[MemberId, GroupCore] = {}
        self.now_ms = 0.0
        self.epoch_ms = 0.0  # when the last NEW_EPOCH was in the log
        self.started_ms = 0.0  # when a partition was started last
        self.on_message: Callable[[SyncMessage, GroupCore], None] | None = None
        self._positions: dict[MemberId, int] = {}
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._generation = 0
        for number in range(members):
            self.join(f"member-{number}/4f2a9c")
        self.generation()
        self.run(2_000)

    # --- members ------------------------------------------------------------------------------

    def join(self, member: MemberId) -> None:
        core = GroupCore(member, self.declared)
        entries = [Entry(at, 0, body) for at, body in enumerate(self.log)]
        self.cores[member], self._positions[member] = core, len(self.log)
        self._do(member, core.restore(entries))
        self._later(GROUP_TICK_MS * len(self.cores) % 61, self._tick, member)

    def leave(self, member: MemberId) -> None:
        del self.cores[member]

    def generation(self) -> None:
        self._generation += 1
        members = tuple(self.cores)
        for each in members:
            self._do(
                each, self.cores[each].joined(Generation(self._generation, members[0], members))
            )
            self._do(each, self.cores[each].flush())

    def owner(self, token: str) -> GroupCore:
        """The member that owns a partition."""
        return next(each for each in self.cores.values() if each.owns(token))

    # --- time ---------------------------------------------------------------------------------

    def run(self, span_ms: float) -> None:
        end = self.now_ms + span_ms
        while self._queue[0][0] <= end:
            self.now_ms, _, call, args = heappop(self._queue)
            call(*args)
        self.now_ms = end

    def _later(self, delay_ms: float, call: Callable[..., None], *args: Any) -> None:
        self._number += 1
        heappush(self._queue, (self.now_ms + delay_ms, self._number, call, args))

    def _tick(self, member: MemberId) -> None:
        if member in self.cores:
            self._do(member, self.cores[member].tick(int(self.now_ms)))
            self._later(GROUP_TICK_MS, self._tick, member)

    # --- the log ------------------------------------------------------------------------------

    def _append(self, sender: MemberId, message: SyncMessage) -> None:
        if sender not in self.cores:
            return
        self.log.append(encode(message))
        self.messages.append(message)
        if self.on_message is not None:
            self.on_message(message, self.cores[sender])
        if isinstance(message, NewEpoch):
            self.epoch_ms = self.now_ms
        for member in self.cores:
            self._later(READ_MS, self._read, member)

    def _read(self, member: MemberId) -> None:
        core = self.cores.get(member)
        if core is None or self._positions[member] == len(self.log):
            return
        while self._positions[member] < len(self.log):
            at = self._positions[member]
            self._positions[member] = at + 1
            self._do(member, core.read(Entry(at, 0, self.log[at])))
        self._do(member, core.flush())

    def _do(self, member: MemberId, effects: list[Effect]) -> None:
        core = self.cores[member]
        for effect in effects:
            if isinstance(effect, Send):
                self._later(APPEND_MS, self._append, member, effect.message)
            elif isinstance(effect, StartRun):
                self.started_ms = self.now_ms
                core.started(effect.token)
            elif isinstance(effect, StopRun):
                self._do(member, core.released(effect.token))
