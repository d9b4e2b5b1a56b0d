"""A random run of the pure protocol in virtual time, with every fault, checked all the time.

A tick is a second. Members decide with the package's own functions; the store, the network, clocks
and pauses are models here, all driven by one seed: the same seed gives the same trace.
"""

import heapq
import random
from collections import deque
from collections.abc import Callable
from hashlib import sha256

import msgspec
from tests.sequence.small_scope import Rules

from holdfast.limits import CUT_SHARES
from holdfast.sequence import cuts, ticks
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.order import Ordered
from holdfast.sequence.ring import Ring
from holdfast.sequence.ticks import RingTurn, TickPace

PACE = TickPace(tick_seconds=1.0, delay_ticks=3)
LOGS = [LogKey(topic, number) for topic in ("content", "records") for number in (1, 2, 3)]
HISTORY = 2 * CUT_SHARES  # cuts that the store keeps
ANSWER_TICKS = 4.0  # a member waits so long for an answer
STORM_TICKS, CALM_TICKS = 60.0, 40.0
SETTLED_TICKS = 20.0  # a calm that has lasted so long shows whether cuts come again


class Faults(msgspec.Struct, frozen=True):
    """How likely things go wrong in a storm; in a calm nothing does."""

    loss: float = 0.15  # of a message
    doubled: float = 0.1
    slow: float = 0.1  # it takes ticks instead of a part of one
    pause: float = 0.02  # of a member, at a tick
    crash: float = 0.01
    clock: float = 0.02  # a member's wall clock jumps
    outage: float = 0.02  # the store is away, or starts again


class Store:
    """etcd: one guarded write, linearizable reads, a short history."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.log: deque[Cut] = deque(maxlen=HISTORY)
        self.at = CutPositions()
        self.away_until = 0.0

    @property
    def number(self) -> int:
        return self.log[-1].number if self.log else 0

    def publish(self, cut: Cut, acknowledged: dict[LogKey, int]) -> bool:
        if not self._rules.follows(self.number, cut):
            return False
        assert cut.number == self.number + 1, f"two cuts with the number {cut.number}"
        assert cut.time_ms >= self.at.time_ms, f"time goes back with cut {cut.number}"
        assert all(count > 0 for count in cut.grown.values()), f"positions go back: {cut}"
        self.at = cuts.follow(self.at, cut)
        beyond = [key for key, at in self.at.offsets.items() if at > acknowledged[key]]
        assert not beyond, f"cut {cut.number} orders what was not acknowledged: {beyond}"
        self.log.append(cut)
        return True


class Peer:
    """One member."""

    def __init__(self, name: str, now: float) -> None:
        self.name = name
        self.turn = ticks.begin(now)
        self.at: CutPositions | None = None  # None: it has no cuts yet
        self.marks = dict.fromkeys(LOGS, 0)
        self.is_up = True
        self.starts = 0  # what was sent to a former start of it is not for this one
        self.paused_until = 0.0
        self.wall_ms = 1_000
        self.is_reading = False


class RandomRun:
    """Runs for so many ticks; raises AssertionError with what is wrong."""

    def __init__(self, seed: int, rules: Rules | None = None, members: int = 4) -> None:
        self._dice = random.Random(seed)
        self._rules = rules or Rules()
        self._faults = Faults()
        self._store = Store(self._rules)
        self._acknowledged = dict.fromkeys(LOGS, 0)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._now = 0.0
        self._calm_since: float | None = None
        self._calm_number = 0
        self._orders: dict[int, list[Ordered]] = {}  # as the first derived them, of late cuts
        self._trace = sha256()
        names = [f"m{each}" for each in range(members)]
        self._ring = Ring({name: sha256(name.encode()).hexdigest() for name in names})
        self._peers = [Peer(name, 0.0) for name in names]
        self.outcomes = dict.fromkeys(("written", "beaten", "unknown", "late", "restored"), 0)

    @property
    def trace(self) -> str:
        """A digest of all that happened."""
        return self._trace.hexdigest()

    @property
    def cuts(self) -> int:
        return self._store.number

    def run(self, ticks_count: int) -> None:
        for peer in self._peers:
            self._after(0.0, self._wake, peer)
        self._after(0.5, self._weather)
        while self._now < ticks_count:
            self._now, _, happen = heapq.heappop(self._events)
            happen()

    # --- the world ---

    def _after(self, seconds: float, what: Callable[..., None], *args: object) -> None:
        self._count += 1
        event = (self._now + seconds, self._count, lambda: what(*args))
        heapq.heappush(self._events, event)

    def _tell(self, *what: object) -> None:
        self._trace.update(repr((round(self._now, 9), *what)).encode())

    def _chance(self, chance: float) -> bool:
        return self._calm_since is None and self._dice.random() < chance

    def _weather(self) -> None:
        """Once a tick: logs grow, marks are heard, and in a storm things go wrong."""
        dice, faults = self._dice, self._faults
        for key in dice.sample(LOGS, 3):
            self._acknowledged[key] += dice.randrange(4)
        for peer in self._peers:
            peer.wall_ms += 62
            if not self._chance(0.3):  # owners are not always heard
                key = dice.choice(LOGS)
                peer.marks[key] = self._acknowledged[key]
            if self._chance(faults.pause):
                peer.paused_until = self._now + dice.expovariate(1 / 8)
            if self._chance(faults.clock):
                peer.wall_ms += dice.randrange(-100_000, 100_000)
            if peer.is_up and self._chance(faults.crash):
                self._crash(peer)
        if self._chance(faults.outage):
            self._store.away_until = self._now + dice.expovariate(1 / 6)
        self._calm_or_storm()
        self._after(1.0, self._weather)

    def _calm_or_storm(self) -> None:
        phase = self._now % (STORM_TICKS + CALM_TICKS)
        if self._calm_since is None and phase >= STORM_TICKS:
            self._calm_since = self._now
            self._store.away_until = self._now
            for peer in self._peers:
                peer.paused_until = min(peer.paused_until, self._now)
        elif self._calm_since is not None:
            spent = self._now - self._calm_since
            if spent == SETTLED_TICKS:
                self._calm_number = self.cuts
            elif spent >= CALM_TICKS - 1:
                fresh = self.cuts - self._calm_number
                expected = CALM_TICKS - SETTLED_TICKS - 2
                assert fresh >= expected, f"{fresh} cuts in {expected + 1} ticks of calm"
                writers = {cut.writer for cut in list(self._store.log)[-int(expected) :]}
                assert len(writers) == 1, f"{writers} take turns, and nothing is wrong"
                self._calm_since = None

    def _crash(self, peer: Peer) -> None:
        self._tell("crash", peer.name)
        peer.is_up, peer.starts = False, peer.starts + 1
        self._after(self._dice.expovariate(1 / 10), self._start, peer)

    def _start(self, peer: Peer) -> None:
        peer.is_up, peer.turn, peer.is_reading = True, ticks.begin(self._now), False
        if self._dice.random() < 0.5:
            peer.at = None  # its disk has no cuts
        peer.marks = dict.fromkeys(LOGS, 0)
        self._wake(peer)

    def _send(self, what: Callable[..., None], *args: object) -> None:
        """A message: lost, doubled, slow, or as it should be."""
        for _ in range(2 if self._chance(self._faults.doubled) else 1):
            if not self._chance(self._faults.loss):
                slow = self._chance(self._faults.slow)
                seconds = self._dice.expovariate(1 / 6) if slow else self._dice.uniform(0.01, 0.06)
                self._after(seconds, what, *args)

    # --- what members do ---

    def _is_awake(self, peer: Peer, start: int, again: Callable[..., None], *args: object) -> bool:
        """Whether it can act now. What comes in a pause is handled when it is over."""
        if not peer.is_up or peer.starts != start:
            return False
        if peer.paused_until > self._now:
            self._after(peer.paused_until - self._now, again, *args)
            return False
        return True

    def _wake(self, peer: Peer, start: int | None = None) -> None:
        start = peer.starts if start is None else start
        if not self._is_awake(peer, start, self._wake, peer, start):
            return
        due = ticks.due(peer.turn, self._ring, peer.name, PACE)
        if due is None:
            return  # a try is under way, and wakes it
        if peer.turn.must_read or peer.at is None or peer.at.number != peer.turn.number:
            self._read(peer)
        elif due <= self._now + 1e-9:
            self._try(peer, due)
        else:
            self._after(due - self._now, self._wake, peer, start)

    def _read(self, peer: Peer) -> None:
        if not peer.is_reading:
            peer.is_reading = True
            self._send(self._answer_read, peer, peer.starts)
            self._after(ANSWER_TICKS, self._give_up_reading, peer, peer.starts)

    def _give_up_reading(self, peer: Peer, start: int) -> None:
        if peer.starts == start and peer.is_reading:
            peer.is_reading = False
            self._wake(peer)

    def _answer_read(self, peer: Peer, start: int) -> None:
        if self._store.away_until <= self._now:
            self._send(self._learn, peer, start, tuple(self._store.log))

    def _learn(self, peer: Peer, start: int, log: tuple[Cut, ...]) -> None:
        if not self._is_awake(peer, start, self._learn, peer, start, log):
            return
        was_reading, peer.is_reading = peer.is_reading, False
        latest = (log[-1].number, log[-1].writer, log[-1].nonce) if log else (0, None, None)
        if latest[0] >= peer.turn.number:  # else it was overtaken by a newer answer
            peer.turn = ticks.read(peer.turn, self._now, *latest)
            self._follow(peer, log)
        if was_reading:
            self._wake(peer)

    def _follow(self, peer: Peer, log: tuple[Cut, ...]) -> None:
        first = log[0].number if log else 1
        if peer.at is None and first == 1:
            peer.at = cuts.START
        if peer.at is None or peer.at.number + 1 < first:
            self.outcomes["restored"] += 1
            peer.at = cuts.restore(log)
            assert peer.at is not None
            return
        for cut in self._rules.missed(peer.at.number - first + 1, log):
            spans = list(self._rules.ordered(peer.at, cut))
            known = self._orders.setdefault(cut.number, spans)
            assert spans == known, f"two orders of cut {cut.number}: {spans} and {known}"
            peer.at = cuts.follow(peer.at, cut)
            self._orders.pop(cut.number - 4 * HISTORY, None)

    def _try(self, peer: Peer, due: float) -> None:
        assert peer.at is not None
        nonce = f"{peer.name}-{self._count}"
        cut = self._rules.make_cut(peer.at, peer.marks, peer.name, nonce, peer.wall_ms)
        peer.turn = ticks.tried(peer.turn, self._now, due, nonce)
        self._send(self._write, peer, peer.starts, cut)
        self._after(ANSWER_TICKS, self._no_answer, peer, peer.starts, nonce)

    def _write(self, peer: Peer, start: int, cut: Cut) -> None:
        """A write reaches the store, perhaps for the second time, perhaps from the dead."""
        if self._store.away_until > self._now:
            return
        done = self._store.publish(cut, self._acknowledged)
        self._tell("write", cut.number, cut.nonce, done)
        self._send(self._answered, peer, start, cut.nonce, done)
        if done:
            for each in self._peers:
                self._send(self._hint, each, each.starts)

    def _hint(self, peer: Peer, start: int) -> None:
        if self._is_awake(peer, start, self._hint, peer, start):
            self._read(peer)

    def _answered(self, peer: Peer, start: int, nonce: str, done: bool) -> None:
        if not self._is_awake(peer, start, self._answered, peer, start, nonce, done):
            return
        attempt = peer.turn.trying
        if attempt is None or attempt.nonce != nonce:
            return  # too late: it was given up, or this is the second answer
        self.outcomes["written" if done else "beaten"] += 1
        self.outcomes["late"] += done and ticks.is_late(attempt, self._now, PACE)
        if done:
            peer.turn = ticks.written(peer.turn, self._now, peer.name, PACE)
        else:
            peer.turn = ticks.beaten(peer.turn, self._now)
        self._wake(peer)

    def _no_answer(self, peer: Peer, start: int, nonce: str) -> None:
        attempt = peer.turn.trying
        if peer.starts == start and attempt is not None and attempt.nonce == nonce:
            self.outcomes["unknown"] += 1
            peer.turn = self._rules.unknown(peer.turn, self._now)
            assert isinstance(peer.turn, RingTurn)
            self._believes(peer)
            self._wake(peer)

    def _believes(self, peer: Peer) -> None:
        nonces = {cut.number: cut.nonce for cut in self._store.log}
        at = peer.turn.number
        is_real = at == 0 or (
            at <= self.cuts and nonces.get(at, peer.turn.nonce) == peer.turn.nonce
        )
        assert is_real, f"{peer.name} believes in a cut that is not: {peer.turn}"
