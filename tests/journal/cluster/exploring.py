"""Every order of events at small scope, over the rules that the journal of a cluster runs.

One partition with one topic. What replicas, owners and takers decide is asked of `ReplicaRules`,
`OwnerRange`, `TakeOver` and the functions of chains and cuts; only the world around them is played
here: contents of disks, messages that come late, twice or never, writes to the store that land at
any moment, disks that are lost. A process that stops is one whose next step never comes.

A state is a tuple of numbers; states that differ only in the names of like disks are one. An entry
is (process, number of it), so that contents can be compared. Invariants are looked at in every
state as if owners had acknowledged at once whatever a quorum has reported.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from holdfast.journal.cluster.chain import (
    EntryPlace,
    Opening,
    closed_count,
    offset_of,
    place_of,
)
from holdfast.journal.cluster.owner import OwnerRange
from holdfast.journal.cluster.replica import Again, Keep, Promise, ReplicaRules
from holdfast.journal.cluster.taker import TakeOver, TakePhase
from holdfast.sequence.api import Chain, LogKey, Range, Replica
from holdfast.sequence.cuts import CutPositions, follow, follows, make_cut

TOPIC = "records"
KEY = LogKey(TOPIC, 1)
GONE = 99  # the promise of a lost disk: it takes part in nothing any more
IDLE = "idle"
FENCING, COPYING, CLOSING = "fencing", "copying", "closing"
OWNER, BEATEN = "won", "beaten"

Entry: TypeAlias = tuple[int, int]
Log: TypeAlias = tuple[Entry, ...]
What: TypeAlias = tuple[Any, ...]


class Scope(NamedTuple):
    """How much may happen."""

    sets: tuple[tuple[int, ...], ...]  # the replica set of each epoch, from 1 on
    appends: tuple[int, ...]  # how many entries the first owner and each taker may append
    lost_disks: int = 0
    cuts: int = 0  # how many are published
    writes: int = 0  # how many publications are under way at once
    moves: bool = False  # whether the first owner may hand its range over


class Disk(NamedTuple):
    """A disk, and what others have heard from it."""

    promise: int
    logs: tuple[Log, ...]  # by epoch
    reported: tuple[int, ...]  # by process, how many of its entries
    told: tuple[Any, ...]  # by taker: its answer to the fence; later, whether it has all the tail
    writing: tuple[Any, ...] = ()  # what is on its way to the disk, see `late_syncs.py`


class Taker(NamedTuple):
    """A process that takes over once, if ever."""

    read: int = 0  # how many ranges the chain had
    phase: str = IDLE
    tail: Log = ()


class State(NamedTuple):
    chain: tuple[tuple[int, int], ...]  # (process, start) of each range
    takers: tuple[Taker, ...]
    disks: tuple[Disk, ...]
    restarts: int = 0  # only faults make them more than a delay
    lost: int = 0
    stopped: int = -1  # how many entries the first owner sent before it stopped to hand over
    cuts: tuple[Log, ...] = ()  # each: all entries below its position
    writes: tuple[tuple[int, Log], ...] = ()  # publications under way: number, cut
    beliefs: tuple[tuple[int, Log], ...] = ()  # numbers and cuts that somebody acted on


Next: TypeAlias = Iterator[tuple[What, State]]


def put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def with_disk(s: State, r: int, disk: Disk) -> State:
    return s._replace(disks=put(s.disks, r, disk))


def with_taker(s: State, t: int, taker: Taker) -> State:
    return s._replace(takers=put(s.takers, t, taker))


class Exploration:
    """The rules within a scope. Faults are subclasses, see `planted.py`."""

    replica_rules: type[ReplicaRules] = ReplicaRules
    owner_rules: type[OwnerRange] = OwnerRange
    taker_rules: type[TakeOver] = TakeOver
    is_faulty = False
    owner_disk_is_special = False

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.processes = len(scope.appends)
        self.sets = ((), *scope.sets)
        self.names = [Replica(f"m{r}", f"d{r}") for r in sorted(set().union(*scope.sets))]
        roles: dict[Any, list[int]] = {}
        for r in range(len(self.names)):
            alike = tuple(r in each for each in scope.sets)
            special = self.owner_disk_is_special and r == 0
            roles.setdefault((special, alike), []).append(r)
        self.roles = list(roles.values())
        self._known: dict[Any, Any] = {}
        self._numbers: dict[Any, int] = {}
        self._things: list[Any] = []

    def first(self) -> State:
        takers, epochs = self.processes - 1, len(self.sets)
        blank = Disk(0, ((),) * epochs, (0,) * (self.processes + 1), (None,) * takers)
        return State(((0, 0),), (Taker(),) * takers, (blank,) * len(self.names))

    def once(self, key: tuple[Any, ...], make: Callable[..., Any]) -> Any:
        """The rules are pure: the same question has the same answer, so it is asked once."""
        found = self._known.get(key, self)
        if found is self:
            found = self._known[key] = make(*key[1:])
        return found

    # --- the rules, as the state has them ---

    def rules(self, r: int, promise: int, logs: tuple[Log, ...]) -> ReplicaRules:
        counts = {epoch: {TOPIC: len(log)} for epoch, log in enumerate(logs) if log}
        return self.replica_rules(promise, counts)

    def opening(self, process: int, epoch: int) -> Opening:
        replicas = tuple(self.names[r] for r in self.sets[epoch])
        return Opening(str(process), f"start of {process}", replicas)

    def chain(self, ranges: tuple[tuple[int, int], ...]) -> Chain:
        return self.once(("chain", ranges), self._chain)

    def _chain(self, ranges: tuple[tuple[int, int], ...]) -> Chain:
        opened = (
            Range(epoch, *self.opening(process, epoch), {TOPIC: start})
            for epoch, (process, start) in enumerate(ranges, 1)
        )
        return Chain(1, tuple(opened), len(ranges))

    def take_over(self, s: State, t: int) -> TakeOver:
        """The take-over of a taker, led to where it is."""
        taker = s.takers[t]
        take = self.taker_rules(
            self.chain(s.chain[: taker.read]), self.opening(t + 1, taker.read + 1)
        )
        for replica in take.replicas:
            told = s.disks[self.names.index(replica)].told[t]
            if taker.phase == FENCING:
                if told is not None:
                    take.promised(replica, {TOPIC: len(told)})
            elif taker.phase == CLOSING or told:
                take.promised(replica, {TOPIC: len(taker.tail)})
            else:
                take.promised(replica, {})
        if taker.phase in (COPYING, CLOSING):
            take.choose()
        if taker.phase == CLOSING:
            take.close()
        return take

    def owner(self, process: int, epoch: int, reported: tuple[int, ...], sent: int) -> OwnerRange:
        owner = self.owner_rules(Range(epoch, *self.opening(process, epoch), {}))
        owner.append(TOPIC, sent)
        for r, count in zip(self.sets[epoch], reported, strict=True):
            owner.reported(self.names[r], TOPIC, count)
        return owner

    def reports(self, s: State, process: int, epoch: int) -> tuple[int, ...]:
        return tuple(s.disks[r].reported[process] for r in self.sets[epoch])

    def limit(self, s: State, process: int) -> int:
        if process == 0 and s.stopped >= 0:
            return s.stopped
        return self.scope.appends[process % self.processes]

    def acknowledged(self, s: State, process: int, epoch: int) -> int:
        """How many entries of a range its owner may have acknowledged."""
        key = ("acknowledged", process, epoch, self.reports(s, process, epoch))
        return self.once(key, self._acknowledged)

    def _acknowledged(self, process: int, epoch: int, reported: tuple[int, ...]) -> int:
        sent = self.scope.appends[process % self.processes]
        return self.owner(process, epoch, reported, sent).acknowledged(TOPIC)

    def marked(self, s: State, process: int, epoch: int) -> int:
        """How many entries of a range a cut may name."""
        return self.acknowledged(s, process, epoch)

    def owners(self, s: State) -> list[tuple[int, int]]:
        """(process, epoch) of each process that takes itself for an owner."""
        taken = [(p, each.read + 1) for p, each in enumerate(s.takers, 1) if each.phase == OWNER]
        return [(0, 1), *taken]

    # --- what can happen next ---

    def successors(self, s: State) -> Next:
        yield from self.appends(s)
        for t, taker in enumerate(s.takers):
            if taker.phase != IDLE:
                yield from self.fences(s, t, taker)
                yield from self.copies(s, t, taker)
                yield from self.closes(s, t, taker)
            elif t == 0 or s.takers[t - 1].phase != IDLE:  # takers are named as they begin
                begun = with_taker(s, t, Taker(len(s.chain), FENCING))
                yield ("taker", t + 1, "reads the chain"), begun
        if self.scope.moves:
            yield from self.moves(s)
        yield from self.failures(s)
        if self.scope.cuts:
            yield from self.publishes(s)

    def appends(self, s: State) -> Next:
        for p, epoch in self.owners(s):
            limit = self.limit(s, p)
            for r in self.sets[epoch]:
                disk = s.disks[r]
                if disk.reported[p] < limit:
                    after = self.once(("append", r, disk, p, epoch), self._append)
                    if after is not None and after != disk:
                        what = ("disk", r, "stores entry", disk.reported[p], "of process", p)
                        yield what, with_disk(s, r, after)

    def _append(self, r: int, disk: Disk, p: int, epoch: int) -> Disk | None:
        rules, index = self.rules(r, disk.promise, disk.logs), disk.reported[p]
        decided = rules.append(epoch, TOPIC, index, 1)
        if isinstance(decided, Keep):
            log = disk.logs[epoch] + ((p, index),)[decided.skip :]
            disk = disk._replace(logs=put(disk.logs, epoch, log))
            report = rules.stored(epoch, TOPIC, len(log))
        elif isinstance(decided, Again):
            report = index + 1 if rules.may_report(epoch) else None  # it may be an older report
        else:
            return None
        return self._settled(rules, disk, p, report)

    def _settled(self, rules: ReplicaRules, disk: Disk, p: int, report: int | None) -> Disk:
        """The disk as the rules have it, with what it reported to a process."""
        reported = disk.reported
        if report is not None:
            reported = put(reported, p, max(reported[p], report))
        logs = tuple(log[: rules.counts(e).get(TOPIC, 0)] for e, log in enumerate(disk.logs))
        return disk._replace(promise=rules.durable_promise, logs=logs, reported=reported)

    def fences(self, s: State, t: int, taker: Taker) -> Next:
        targets = self.once(("targets", s.chain[: taker.read], t), self._targets)
        for r in targets:
            disk = s.disks[r]
            answered = self.once(("fence", r, disk, taker.read), self._fence)
            if answered is None:
                continue
            after, newest = answered
            if after.promise != disk.promise:
                yield (
                    ("disk", r, "promises", taker.read + 1, "and is not heard"),
                    with_disk(s, r, after),
                )
            answer = self.answer(s, r, taker.read)
            if taker.phase == FENCING and disk.told[t] != answer:
                heard = with_disk(s, r, after._replace(told=put(after.told, t, answer)))
                if self.is_late(s, t, r, answer, newest):
                    heard = self.ended(heard, t, BEATEN)
                yield ("disk", r, "promises", taker.read + 1, "to taker", t + 1, answer), heard

    def _targets(self, chain: tuple[tuple[int, int], ...], t: int) -> list[int]:
        take = self.taker_rules(self.chain(chain), self.opening(t + 1, len(chain) + 1))
        return [self.names.index(each) for each in take.replicas]

    def _fence(self, r: int, disk: Disk, epoch: int) -> tuple[Disk, int] | None:
        rules = self.rules(r, disk.promise, disk.logs)
        if not isinstance(rules.fence(epoch, epoch + 1), Promise):
            return None
        rules.promised(epoch + 1)
        return self._settled(rules, disk, 0, None), rules.newest

    def answer(self, s: State, r: int, epoch: int) -> Log:
        disk = s.disks[r]
        count = self.rules(r, disk.promise, disk.logs).counts(epoch).get(TOPIC, 0)
        return disk.logs[epoch][:count]

    def is_late(self, s: State, t: int, r: int, answer: Log, newest: int) -> bool:
        """Whether the taker learns from the answer that the range was opened already."""
        if newest <= s.takers[t].read:
            return False
        take = self.take_over(s, t)
        take.promised(self.names[r], {TOPIC: len(answer)}, newest)
        return take.phase is TakePhase.BEATEN

    def copies(self, s: State, t: int, taker: Taker) -> Next:
        if taker.phase == FENCING:
            return
        for r in self.sets[taker.read]:  # late ones too
            disk = s.disks[r]
            key = ("copy", r, disk, taker.read, taker.tail, s.chain[taker.read - 1][0])
            after = self.once(key, self._copy)
            if after is None:
                continue
            if after != disk:
                yield (
                    ("disk", r, "stores the tail of taker", t + 1, "unheard"),
                    with_disk(s, r, after),
                )
            if taker.phase == COPYING and not disk.told[t]:
                heard = after._replace(told=put(after.told, t, True))
                yield ("disk", r, "stores the tail and tells taker", t + 1), with_disk(s, r, heard)

    def _copy(self, r: int, disk: Disk, epoch: int, tail: Log, owner: int) -> Disk | None:
        rules = self.rules(r, disk.promise, disk.logs)
        decided, report = rules.copy(epoch, epoch + 1, TOPIC, 0, len(tail)), None
        if isinstance(decided, Keep):
            log = disk.logs[epoch] + tail[decided.skip :]
            disk = disk._replace(logs=put(disk.logs, epoch, log))
            report = rules.stored(epoch, TOPIC, len(log))
        elif not isinstance(decided, Again):
            return None
        rules.promised(epoch + 1)
        return self._settled(rules, disk, owner, report)

    def closes(self, s: State, t: int, taker: Taker) -> Next:
        """The taker's own steps: choosing, writing the chain, and finding out what became of it."""
        if taker.phase == FENCING:
            yield from self.chooses(s, t, taker)
        elif taker.phase == COPYING:
            take = self.take_over(s, t)
            if take.can_close:
                closing = self.ended(s, t, CLOSING)
                yield ("taker", t + 1, "writes the chain"), closing
        elif taker.phase == CLOSING:
            take = self.take_over(s, t)
            wanted = take.close()
            if self.is_guarded(s, wanted):
                ranges = tuple((int(each.owner), each.starts[TOPIC]) for each in wanted.ranges)
                yield ("the write of taker", t + 1, "lands"), s._replace(chain=ranges)
            phase = take.read_back(self.chain(s.chain))
            if phase is not TakePhase.CLOSING:
                yield (
                    ("taker", t + 1, "reads the chain back:", phase.value),
                    with_taker(s, t, taker._replace(phase=phase.value)),
                )

    def chooses(self, s: State, t: int, taker: Taker) -> Next:
        take = self.take_over(s, t)
        if not take.can_choose:
            return
        count = take.choose().get(TOPIC, 0)
        answers = {r: each.told[t] for r, each in enumerate(s.disks) if each.told[t] is not None}
        tails = sorted({each[:count] for each in answers.values() if len(each) >= count})
        for tail in tails:
            after = with_taker(s, t, taker._replace(phase=COPYING, tail=tail))
            for r, disk in enumerate(s.disks):
                has = r in answers and not take.lacks(self.names[r])
                after = with_disk(after, r, disk._replace(told=put(disk.told, t, has)))
            yield ("taker", t + 1, "chooses", tail), after

    def ended(self, s: State, t: int, phase: str) -> State:
        """The taker needs nothing any more of what disks told it."""
        disks = tuple(each._replace(told=put(each.told, t, None)) for each in s.disks)
        return with_taker(s._replace(disks=disks), t, s.takers[t]._replace(phase=phase))

    def is_guarded(self, s: State, wanted: Chain) -> bool:
        return wanted.revision == self.chain(s.chain).revision

    def moves(self, s: State) -> Next:
        for count in range(self.sent(s), self.scope.appends[0] + 1) if s.stopped < 0 else ():
            yield ("process 0 stops after entry", count), s._replace(stopped=count)
        target = next((t for t, each in enumerate(s.takers) if each.phase == IDLE), None)
        if s.stopped < 0 or target is None:
            return
        ours = self.owner(0, 1, self.reports(s, 0, 1), s.stopped)
        ours.stop()
        if not ours.is_drained:
            return
        planned = TakeOver.by_owner(self.chain(s.chain[:1]), ours, self.opening(target + 1, 2))
        wanted = planned.close()
        if self.is_guarded(s, wanted):
            ranges = (*s.chain, (target + 1, wanted.ranges[-1].starts.get(TOPIC, 0)))
            opened = with_taker(s._replace(chain=ranges), target, Taker(1, OWNER))
            yield ("process 0 hands over to process", target + 1), opened

    def sent(self, s: State) -> int:
        """How many entries the first owner has certainly sent."""
        return max(len(each.logs[1]) for each in s.disks)

    def failures(self, s: State) -> Next:
        for r, disk in enumerate(s.disks):
            if s.lost < self.scope.lost_disks and disk.promise != GONE:
                blank = disk._replace(logs=((),) * len(disk.logs), promise=self.blank_promise)
                yield ("disk", r, "is lost"), with_disk(s, r, blank)._replace(lost=s.lost + 1)

    blank_promise = GONE  # a new disk has another identity: for old ranges this one is gone

    # --- cuts ---

    def publishes(self, s: State) -> Next:
        number = len(s.cuts)
        if number < self.scope.cuts and len(s.writes) < self.scope.writes:
            for cut in sorted(self.possible_cuts(s)):
                writes = tuple(sorted((*s.writes, (number, cut))))
                yield ("a writer sends cut", number, cut), s._replace(writes=writes)
        for index, (expected, cut) in enumerate(s.writes):
            rest = s._replace(writes=s.writes[:index] + s.writes[index + 1 :])
            yield from self.published(s, rest, expected, cut)

    def published(self, s: State, rest: State, expected: int, cut: Log) -> Next:
        before = CutPositions(expected, 0, {KEY: len(s.cuts[expected - 1]) if expected else 0})
        made = make_cut(before, {KEY: len(cut)}, "writer", "nonce", 0)
        if follows(len(s.cuts), made):
            assert follow(before, made).offsets[KEY] == len(cut)
            yield ("cut", expected, "is published:", cut), rest._replace(cuts=(*s.cuts, cut))
        else:
            yield ("cut", expected, "is refused:", cut), rest

    def possible_cuts(self, s: State) -> set[Log]:
        """All that marks of any age and closed ends allow, beyond the last cut."""
        found: set[Log] = set()
        chain = self.chain(s.chain)
        before = CutPositions(len(s.cuts), 0, {KEY: len(s.cuts[-1]) if s.cuts else 0})
        for epoch, (process, _) in enumerate(s.chain, 1):
            for count in range(self.marked(s, process, epoch) + 1):
                start = chain.ranges[epoch - 1].starts[TOPIC]
                cut = make_cut(before, {KEY: start + count}, "writer", "nonce", 0)
                if cut.grown:
                    found.add(self.named(s, epoch, start + count))
        return found

    def named(self, s: State, epoch: int, end: int) -> Log:
        """The entries below an offset, as a reader of the log finds them."""
        chain, log = self.chain(s.chain[:epoch]), []
        for offset in range(end):
            place = place_of(chain, TOPIC, offset)
            assert place is not None
            if offset_of(chain, TOPIC, EntryPlace(*place)) is None:
                continue
            if place.epoch < epoch:
                log.append(self.closed(s, place.epoch)[0][place.number])
            else:
                log.append((s.chain[epoch - 1][0], place.number))
        return tuple(log)

    # --- what must hold ---

    def closed(self, s: State, epoch: int) -> list[Log]:
        """A closed range as each replica has it that has all of it."""
        count = closed_count(self.chain(s.chain), epoch, TOPIC)
        assert count is not None
        logs = [s.disks[r].logs[epoch] for r in self.sets[epoch]]
        return [log[:count] for log in logs if len(log) >= count]

    def violation(self, s: State) -> str | None:
        acknowledged: list[dict[int, int]] = [{} for _ in self.sets]
        for p, epoch in self.owners(s):
            for number in range(self.acknowledged(s, p, epoch)):
                if acknowledged[epoch].setdefault(number, p) != p:
                    return "two acknowledged entries have the same position"
        last, log = len(s.chain), ()
        needed = len(self.sets[last]) // 2 + 1 - s.lost
        for epoch in range(1, last):
            copies = self.closed(s, epoch)
            if len(copies) < needed or len(set(copies)) > 1:
                return "a closed range is not complete, and the same, on a quorum"
            log += copies[0]
            for number, p in acknowledged[epoch].items():
                if copies[0][number : number + 1] != ((p, number),):
                    return "an acknowledged entry is not in its closed range"
        return self._open_violation(s, acknowledged[last], needed) or self._cut_violation(
            s, log, acknowledged[last]
        )

    def _open_violation(self, s: State, acknowledged: dict[int, int], needed: int) -> str | None:
        """With a fault only what a later owner or reader notices counts."""
        if self.is_faulty:
            return None
        last = len(s.chain)
        for number, p in acknowledged.items():
            entry = ((p, number),)
            has = [s.disks[r].logs[last][number : number + 1] == entry for r in self.sets[last]]
            if sum(has) < needed:
                return "an acknowledged entry is not on a quorum"
        return None

    def _cut_violation(self, s: State, log: Log, acknowledged: dict[int, int]) -> str | None:
        # A fault's cut of the open range is wrong as soon as it names an entry of another owner.
        end = 9 if self.is_faulty else len(acknowledged)
        log += tuple((s.chain[-1][0], number) for number in range(end))
        if any(log[: len(cut)] != cut for cut in s.cuts):
            return "a cut names an entry that is not in the log"
        if any(number < len(s.cuts) and s.cuts[number] != cut for number, cut in s.beliefs):
            return "a number has two cuts"
        lengths = [len(cut) for cut in s.cuts]
        return "a cut does not grow" if lengths != sorted(set(lengths)) else None

    # --- states as numbers ---

    def packed(self, s: State) -> tuple[int, ...]:
        disks = [self._number(each) for each in s.disks]
        for role in self.roles:
            for r, number in zip(role, sorted(disks[r] for r in role), strict=True):
                disks[r] = number
        return (self._number(s[:2]), self._number(s[3:]), *disks)

    def unpacked(self, packed: tuple[int, ...]) -> State:
        head, rest, *disks = (self._things[each] for each in packed)
        return State(*head, tuple(disks), *rest)

    def _number(self, thing: Any) -> int:
        number = self._numbers.get(thing)
        if number is None:
            number = self._numbers[thing] = len(self._things)
            self._things.append(thing)
        return number


class Found(NamedTuple):
    """What an exploration came to."""

    states: int
    depth: int
    violation: str | None
    steps: list[What]  # a shortest way to it

    def story(self) -> str:
        return "\n".join(" ".join(map(str, each)) for each in self.steps)


def explore(exploration: Exploration, states_max: int = 5_000_000) -> Found:
    """Breadth first through all states, or up to a first violation."""
    level = [exploration.packed(exploration.first())]
    parents: dict[tuple[int, ...], Any] = dict.fromkeys(level)
    depth = 0
    while level:
        following: list[tuple[int, ...]] = []
        for packed in level:
            for what, state in exploration.successors(exploration.unpacked(packed)):
                after = exploration.packed(state)
                if after in parents:
                    continue
                parents[after] = packed, what
                following.append(after)
                if violation := exploration.violation(state):
                    steps = []
                    while parents[after]:
                        after, step = parents[after]
                        steps.insert(0, step)
                    return Found(len(parents), depth + 1, violation, steps)
        assert len(parents) < states_max, "the scope is too large"
        level, depth = following, depth + 1
    return Found(len(parents), depth - 1, None, [])
