"""A group in virtual time: members that join, die, pause and split, and a log that loses messages.

Everything random comes from the seed. The shells here do what real ones do: they append one message
after the other, read what is there, run work, and join anew when they are left out.
"""

import random
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

from tests.groups.group_checks import GroupChecks, check_indexes, fingerprint

from holdfast.groups.api import Entry, Generation, MemberId, NewPartition
from holdfast.groups.core import GroupCore
from holdfast.groups.effects import (
    Alarm,
    Checkpoint,
    Durable,
    Effect,
    EpochStarted,
    LeftOut,
    Send,
    StartRun,
    StopRun,
)
from holdfast.groups.messages import (
    Ask,
    AskKind,
    NewEpoch,
    SyncMessage,
    UpdateEpoch,
    asking,
    encode,
)
from holdfast.groups.read_back import read_back
from holdfast.limits import GROUP_TICK_MS

SESSION_MS = 800
COMPARED_EVERY = 797  # messages: all folds there are compared, which takes a ms each
REST_MS = 20_000  # after the last trouble: a rebalance or two; parked ones are resumed


@dataclass(frozen=True)
class Sizes:
    """How much of everything happens."""

    members: int = 32
    partitions: int = 500
    changes: int = 100  # members that join or leave
    families: int = 60  # splits and merges
    pause_ms: int = 400  # from one to the next, on average


SMALL = Sizes(members=6, partitions=24, changes=12, families=10)


class SimulatedLog:
    """One order; an append may be lost, late or doubled."""

    def __init__(self, checks: GroupChecks) -> None:
        self.messages: list[tuple[int, SyncMessage, int]] = []  # offset, message, bytes
        self._entries: list[Entry] = []  # the same, as they are stored
        self.earliest = 0
        self.total_bytes = 0
        self._checks = checks

    @property
    def next(self) -> int:
        return self.messages[-1][0] + 1 if self.messages else 0

    def append(self, message: SyncMessage) -> None:
        offset = self.next + (len(self.messages) % 17 == 3)  # backends leave gaps
        body = encode(message)
        self.total_bytes += len(body)
        self.messages.append((offset, message, len(body)))
        self._entries.append(Entry(offset, 0, body))
        self._checks.appended(offset, message)

    def kept(self) -> list[Entry]:
        """What was not discarded."""
        return self._entries[bisect_left(self._entries, self.earliest, key=attrgetter("offset")) :]


class SimulatedMember:
    """The shell of one member."""

    def __init__(self, group: "SimulatedGroup", name: str, incarnation: int) -> None:
        self.group = group
        self.id: MemberId = f"{name}/{incarnation}"
        self.name = name
        self.core = GroupCore(self.id, group.declared)
        self.core.leading.checkpoint_bytes = group.checkpoint_bytes
        self.position = 0  # of the next message in the log's list
        self.is_alive = True
        self.is_paused = False
        self.is_sending = False
        self.is_reading = False
        self.queue: deque[SyncMessage] = deque()
        self.late: list[tuple[Callable[..., None], tuple[Any, ...]]] = []  # while it is paused
        self.stopping: set[str] = set()
        self.slow = 1

    def later(self, delay_ms: float, call: Callable[..., None], *args: Any) -> None:
        """Something that this process does; a dead one does nothing, a paused one does it late."""
        self.group.later(delay_ms, self._now, call, *args)

    def _now(self, call: Callable[..., None], *args: Any) -> None:
        if self.is_paused:
            self.late.append((call, args))
        elif self.is_alive:
            call(*args)

    # --- reading ------------------------------------------------------------------------------

    def start(self) -> None:
        self.restore()
        self.later(self.group.rng.uniform(0, GROUP_TICK_MS), self.tick)
        self.group.hub_changed(self.id, is_there=True)

    def restore(self) -> None:
        log = self.group.log
        self.do(self.core.tick(int(self.group.now)))
        self.do(self.core.restore(log.kept(), is_complete=log.earliest == 0))
        self.position = len(log.messages)
        assert fingerprint(self.core.state) == fingerprint(self.group.checks.state), "read back"

    def wake(self) -> None:
        if not self.is_reading:
            self.is_reading = True
            self.later(self.group.rng.uniform(1, 6) * self.slow, self.read)

    def read(self) -> None:
        self.is_reading = False
        messages = self.group.log.messages
        if self.position < len(messages) and messages[self.position][0] < self.group.log.earliest:
            self.restore()  # it fell behind what is kept
        while self.position < len(messages) and self.is_alive:
            offset, message, size = messages[self.position]
            self.position += 1
            self.do(self.core.fold(offset, message, size))
            if offset % COMPARED_EVERY == 0:
                self.group.checks.compare(offset, self.core.state)
        if self.is_alive:
            self.do(self.core.flush())

    def tick(self) -> None:
        self.group.work(self)
        self.do(self.core.tick(int(self.group.now)))
        self.later(GROUP_TICK_MS, self.tick)

    def joined(self, generation: Generation) -> None:
        if self.core.generation is None or generation.number > self.core.generation.number:
            self.do(self.core.joined(generation))
            self.do(self.core.flush())

    # --- effects ------------------------------------------------------------------------------

    def do(self, effects: list[Effect]) -> None:
        rng, checks = self.group.rng, self.group.checks
        for effect in effects:
            match effect:
                case Send():
                    self.queue.append(effect.message)
                    self.send()
                case StartRun():
                    checks.runs(self.id, self.core.state, effect.token, effect.offset)
                    assert effect.epoch == self.core.epoch
                    self.later(rng.uniform(1, 20), self.started, effect.token)
                case StopRun():
                    self.stopping.add(effect.token)
                    self.later(rng.uniform(1, 40), self.released, effect.token)
                case Durable():
                    durable = checks.durable.get(effect.token, 0)
                    checks.durable[effect.token] = max(durable, effect.offset or 0)
                case EpochStarted():
                    kept = [each for each in self.core.running if self.core.owns(each)]
                    checks.renewed(self.id, kept, effect.epoch)
                case LeftOut():
                    self.group.rejoin(self)
                case Checkpoint():
                    self.group.log.earliest = max(self.group.log.earliest, effect.offset)
                case Alarm():
                    raise AssertionError(f"alarm at {self.id}: {effect.text}")

    def send(self) -> None:
        if self.is_sending or not self.queue:
            return
        self.is_sending = True
        self.later(self.group.rng.uniform(0.5, 3), self.append)

    def append(self) -> None:
        """Appends the next message: known, or unknown and tried again or dropped."""
        self.is_sending = False
        rng, group = self.group.rng, self.group
        message = self.queue.popleft()
        fate = rng.random() if group.is_stormy else 1.0
        if fate < 0.01:  # lost, and the shell goes on
            pass
        elif fate < 0.02:  # lost, and the shell tries again
            self.queue.appendleft(message)
        elif fate < 0.04:  # it gets there later, and the shell may try again
            group.later(rng.uniform(10, 2_500), group.append, message)
            if rng.random() < 0.5:
                self.queue.appendleft(message)
        elif fate < 0.05:  # it gets there right after the next epoch has begun
            group.held.append(message)
        elif fate < 0.06:  # doubled
            group.append(message)
            group.later(rng.uniform(0, 500), group.append, message)
        else:
            group.append(message)
        self.send()

    # --- work ---------------------------------------------------------------------------------

    def started(self, token: str) -> None:
        now = int(self.group.now)
        self.do(self.core.started(token))
        self.do(self.core.committed(token, now, watermark=now))

    def released(self, token: str) -> None:
        if token in self.stopping:
            self.stopping.discard(token)
            self.end(token)
            self.do(self.core.released(token))
            self.do(self.core.flush())

    def end(self, token: str) -> None:
        self.stopping.discard(token)
        self.group.checks.ended(self.id, token)


class SimulatedGroup:
    """All of it: time, the membership, the log, trouble, and the checks."""

    def __init__(self, seed: int, sizes: Sizes = SMALL) -> None:
        self.rng = random.Random(seed)
        self.sizes = sizes
        self.now = 0.0
        self.checks = GroupChecks()
        self.log = SimulatedLog(self.checks)
        self.is_stormy = True
        self.checkpoint_bytes = self.rng.choice((1_000, 256_000))
        self.declared = [NewPartition(f"p{number:03}") for number in range(sizes.partitions)]
        self.checks.expected |= {each.token for each in self.declared}
        self.members: dict[MemberId, SimulatedMember] = {}
        self.generation = Generation(0, "", ())
        self.counts = dict.fromkeys(
            ("join", "leave", "kill", "pause", "leader", "split", "merge", "fail", "ask", "sum"), 0
        )
        self.held: list[SyncMessage] = []  # late messages
        self._there: list[MemberId] = []  # the membership's own list, in the order of joining
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0
        self._incarnation = 0
        self._is_hub_due = False
        self._ending: dict[str, list[NewPartition]] = {}  # parents that end soon, their children

    # --- time ---------------------------------------------------------------------------------

    def later(self, delay_ms: float, call: Callable[..., None], *args: Any) -> None:
        self._number += 1
        heappush(self._queue, (self.now + delay_ms, self._number, call, args))

    def run_for(self, span_ms: float) -> None:
        end = self.now + span_ms
        while self._queue and self._queue[0][0] <= end:
            self.now, _, call, args = heappop(self._queue)
            call(*args)
        self.now = end

    def run(self) -> None:
        """Trouble, then rest, then what must hold at rest."""
        sizes = self.sizes
        for _ in range(max(2, sizes.members * 3 // 4)):
            self.join()
        self.run_for(1_500)
        done = families = 0
        while done < sizes.changes:
            self.run_for(self.rng.expovariate(1 / sizes.pause_ms))
            done += self.trouble()
            while families * sizes.changes < done * sizes.families:
                families += 1
                self.family()
        self.calm()
        self.run_for(REST_MS)
        self.at_rest()

    def calm(self) -> None:
        """No more trouble: paused members go on, and what operators asked for is taken back."""
        self.is_stormy = False
        for member in list(self.members.values()):
            self.resume(member)
        self.run_for(5_000)
        for token in list(self.checks.state.partitions):
            for kind in (AskKind.MOVE, AskKind.RESUME):
                self.append(asking("people/1", (Ask(kind, token),)))

    def at_rest(self) -> None:
        state = self.checks.state
        running = {each.id: set(each.core.running) for each in self.members.values()}
        self.checks.at_rest(running)
        expected = fingerprint(state)
        for member in self.members.values():
            assert fingerprint(member.core.state) == expected, f"{member.id} has another state"
            check_indexes(member.core.state)
        log = self.log
        kept = [(at, message) for at, message, _ in log.messages if at >= log.earliest]
        replayed = read_back(kept, is_complete=log.earliest == 0)
        assert fingerprint(replayed) == expected, "replay from the last epoch gives another state"

    # --- log and membership -------------------------------------------------------------------

    def append(self, message: SyncMessage) -> None:
        self.log.append(message)
        if isinstance(message, NewEpoch):
            held, self.held = self.held, []
            for each in held:
                self.log.append(each)
        is_update = isinstance(message, UpdateEpoch)
        self.counts["sum"] += is_update and not message.members
        if self.is_stormy and is_update and self.rng.random() < 0.1:
            self.later(self.rng.uniform(0, 30), self.kill_leader, message.member)
        for member in self.members.values():
            member.wake()

    def hub_changed(self, member: MemberId, is_there: bool) -> None:
        if (member in self._there) == is_there:
            return
        if is_there:
            self._there.append(member)
        else:
            self._there.remove(member)
        if not self._is_hub_due:
            self._is_hub_due = True
            self.later(self.rng.uniform(5, 100), self.generate)

    def generate(self) -> None:
        """A new generation; the one that is there longest leads."""
        self._is_hub_due = False
        if not self._there:
            return
        number = self.generation.number + self.rng.choice((1, 1, 2))
        self.generation = Generation(number, self._there[0], tuple(self._there))
        for each in self._there:
            if each in self.members:
                member = self.members[each]
                member.later(self.rng.uniform(1, 30), member.joined, self.generation)

    # --- trouble ------------------------------------------------------------------------------

    def trouble(self) -> int:
        """One thing that happens to a member; 1 if it joins or leaves."""
        awake = [each for each in self.members.values() if not each.is_paused]
        kind = self.rng.random()
        if len(self.members) >= self.sizes.members and kind < 0.45:
            kind = 0.5
        if kind < 0.45 or len(awake) < 3:
            self.join()
        elif kind < 0.60:
            self.leave(self.rng.choice(awake))
        elif kind < 0.80:
            self.kill(self.rng.choice(awake))
        elif kind < 0.90:
            self.pause(self.rng.choice(awake))
        else:
            member = self.rng.choice(awake)
            member.slow = self.rng.choice((1, 20, 60))
            self.ask(member)
            return 0
        return 1

    def join(self) -> None:
        self.counts["join"] += 1
        self._incarnation += 1
        name = f"m{self.rng.randrange(self.sizes.members):02}"
        self.add(SimulatedMember(self, name, self._incarnation))

    def add(self, member: SimulatedMember) -> None:
        self.members[member.id] = member
        member.start()

    def rejoin(self, member: SimulatedMember) -> None:
        """A member that was left out starts again, as another incarnation."""
        self.gone(member)
        self.hub_changed(member.id, is_there=False)
        self._incarnation += 1
        self.later(
            self.rng.uniform(1, 50),
            self.add,
            SimulatedMember(self, member.name, self._incarnation),
        )

    def leave(self, member: SimulatedMember) -> None:
        """Ends in order: its work ends first."""
        self.counts["leave"] += 1
        self.gone(member)
        self.hub_changed(member.id, is_there=False)

    def kill(self, member: SimulatedMember) -> None:
        """Ends at once; it is missed when its session has run out."""
        self.counts["kill"] += 1
        self.gone(member)
        self.later(SESSION_MS, self.expire, member)

    def expire(self, member: SimulatedMember) -> None:
        """A session has run out, unless its member is back."""
        if member.is_paused or not member.is_alive:
            self.hub_changed(member.id, is_there=False)

    def kill_leader(self, leader: MemberId) -> None:
        member = self.members.get(leader)
        if member is not None and not member.is_paused and len(self.members) > 2:
            self.counts["leader"] += 1
            self.kill(member)

    def gone(self, member: SimulatedMember) -> None:
        member.is_alive = False
        self.members.pop(member.id, None)
        for token in list(self.checks.runners):
            self.checks.ended(member.id, token)

    def pause(self, member: SimulatedMember) -> None:
        """A process that stands still: its session runs out if it does so for long."""
        self.counts["pause"] += 1
        member.is_paused = True
        span = self.rng.choice((200, 1_500, 4_000, 9_000))
        self.later(SESSION_MS, self.expire, member)
        self.later(span, self.resume, member)

    def resume(self, member: SimulatedMember) -> None:
        """It goes on where it stood: what it wanted to write is written first, late."""
        if not member.is_paused:
            return
        member.is_paused = False
        late, member.late = member.late, []
        late.sort(key=lambda each: each[0] != member.append)
        for call, args in late:
            if member.is_alive:
                call(*args)
        if member.is_alive and member.id not in self._there:
            self.rejoin(member)

    # --- work ---------------------------------------------------------------------------------

    def work(self, member: SimulatedMember) -> None:
        """What the work of a member does in a tick: commits, and now and then an error."""
        if not self.is_stormy or not (running := member.core.running):
            return
        if self.rng.random() < 1.5 / self.sizes.members:
            token = self.rng.choice(running)
            offset = int(self.now)
            member.do(member.core.committed(token, offset, watermark=offset))
        if self.rng.random() < 0.002:
            token = self.rng.choice(running)
            self.counts["fail"] += 1
            member.end(token)
            member.do(member.core.failed(token, "it is stuck"))

    def ask(self, member: SimulatedMember) -> None:
        self.counts["ask"] += 1
        tokens = sorted(self.checks.state.partitions)
        target = self.rng.choice([each.name for each in self.members.values()])
        for _ in range(min(3, len(tokens))):
            kind = self.rng.choice(list(AskKind))
            token = self.rng.choice(tokens)
            member.do(member.core.ask(Ask(kind, token, target if kind is AskKind.MOVE else "")))

    def family(self) -> None:
        """A partition splits, or two of them merge."""
        live = sorted(
            each.token
            for each in self.checks.state.partitions.values()
            if each.is_live and each.token not in self._ending
        )
        if len(live) > 2 and self.rng.random() < 0.5:
            self.counts["merge"] += 1
            parents = tuple(sorted(self.rng.sample(live, 2)))
            child = NewPartition(
                f"{'+'.join(each[:4] for each in parents)}@{self._number}", parents
            )
            for parent in parents:
                self._ending[parent] = [child]
                self.later(self.rng.uniform(0, 3_000), self.finish, parent)
        elif live:
            self.counts["split"] += 1
            parent = self.rng.choice(live)
            token = f"{parent[:4]}.{self._number}"
            self._ending[parent] = [NewPartition(token + each) for each in "ab"]
            self.finish(parent)

    def finish(self, token: str) -> None:
        """The work on a partition ends, wherever it runs, as soon as it does."""
        if token not in self._ending:
            return
        for member in self.members.values():
            is_here = token in member.core.running and not member.is_paused
            if is_here and member.core.owns(token):
                member.end(token)
                member.do(member.core.finished(token, self._ending[token]))
                member.do(member.core.flush())
                break
        self.later(200, self.check_finished, token)

    def check_finished(self, token: str) -> None:
        """An end that was read counts; if its owner died before that, it has to come again."""
        if token in self.checks.finished:
            self.checks.expected.discard(token)
            children = self._ending.pop(token)
            self.checks.expected |= {each.token for each in children}
        else:
            self.finish(token)
