"""Every run of three members over four ticks: writes, losses, crashes, deafness, in any order.

The members decide with the package's own pure functions, handed in as `Rules` so that a test can
plant a fault. A state is a value; states that were reached before are not explored again.
"""

from collections.abc import Callable, Iterator
from itertools import product
from typing import NamedTuple

import msgspec

from holdfast.sequence import cuts, ticks
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.order import Ordered, ordered
from holdfast.sequence.ring import Ring
from holdfast.sequence.ticks import RingTurn, TickPace

LOGS = (LogKey("a", 1), LogKey("b", 1))
MEMBERS = "PQR"
PACE = TickPace(tick_seconds=1.0, delay_ticks=1)
RING = Ring({member: f"{each:064x}" for each, member in enumerate(MEMBERS)})


class Rules(msgspec.Struct, frozen=True):
    """What decides, each replaceable by a planted fault."""

    follows: Callable[[int, Cut], bool] = cuts.follows
    make_cut: Callable[..., Cut] = cuts.make_cut
    unknown: Callable[[RingTurn, float], RingTurn] = ticks.unknown
    ordered: Callable[[CutPositions, Cut], Iterator[Ordered]] = ordered
    missed: Callable[[int, tuple["Sent", ...]], tuple["Sent", ...]] = lambda number, log: log[
        number:
    ]


class Violation(AssertionError):
    """An invariant does not hold in a state that can be reached."""


class Seat(NamedTuple):
    """One member."""

    turn: RingTurn
    applied: tuple[str, ...] = ()  # nonces of the cuts that it has read back, in order
    order: tuple[tuple[LogKey, int], ...] = ()  # entries, in the order that it derived
    at: tuple[int, ...] = (0, 0)  # where the logs stand as of them
    is_up: bool = True
    is_deaf: bool = False  # to what owners say, in this tick: its marks are two ticks old


class Sent(NamedTuple):
    """A cut as it is on its way or published: a value that can be compared and hashed."""

    number: int
    writer: str
    nonce: str
    grown: tuple[tuple[LogKey, int], ...]  # in the order in which it was made
    positions: tuple[tuple[LogKey, int], ...]

    @property
    def cut(self) -> Cut:
        grown, positions = dict(self.grown), dict(self.positions)
        return Cut(self.number, self.writer, self.nonce, 0, grown, positions)


def sent(cut: Cut) -> Sent:
    grown, positions = tuple(cut.grown.items()), tuple(cut.positions.items())
    return Sent(cut.number, cut.writer, cut.nonce, grown, positions)


class World(NamedTuple):
    """All there is. What every member has read back is no longer in it, but for where it led."""

    tick: int
    waiting: str  # members that have something to do in this tick
    seats: tuple[Seat, ...]
    number: int = 0  # of the last cut that everybody has
    at: tuple[int, ...] = (0, 0)  # where it led
    log: tuple[Sent, ...] = ()  # what is published behind it
    late: tuple[Sent, ...] = ()  # writes that may still arrive
    crashes: int = 0

    @property
    def latest(self) -> int:
        return self.number + len(self.log)


def start() -> World:
    turn = ticks.read(ticks.begin(0.0), 0.0, 0, None, None)
    return _begin_tick(World(0, "", tuple(Seat(turn) for _ in MEMBERS)))


def marks(tick: int) -> dict[LogKey, int]:
    """How far the logs are acknowledged: one moves at every tick, the other at each second."""
    return dict(zip(LOGS, (tick, tick // 2), strict=True))


class Explorer:
    """Goes through all states; `count` of them when it is done."""

    def __init__(self, rules: Rules, ticks_max: int, crashes_max: int) -> None:
        self._rules = rules
        self._ticks_max = ticks_max
        self._crashes_max = crashes_max
        self._known: set[int] = set()  # hashes: a million states do not meet in 64 bits
        self.cuts_max = 0

    @property
    def count(self) -> int:
        return len(self._known)

    def explore(self) -> None:
        todo = [start()]
        while todo:
            world = todo.pop()
            if (known := hash(world)) not in self._known:
                self._known.add(known)
                self.cuts_max = max(self.cuts_max, world.latest)
                todo.extend(map(_forget, self._next(world)))

    def _next(self, world: World) -> Iterator[World]:
        for which, cut in enumerate(world.late):
            rest = world.late[:which] + world.late[which + 1 :]
            yield self._arrive(world._replace(late=rest), cut)[0]
        for member in world.waiting:
            left = world._replace(waiting=world.waiting.replace(member, ""))
            yield from self._act(left, MEMBERS.index(member))
        if not world.waiting and world.tick < self._ticks_max:
            yield from self._pass(world)

    # --- a member's turn ---

    def _act(self, world: World, who: int) -> Iterator[World]:
        if not world.seats[who].is_up:
            yield world
            fresh = Seat(ticks.begin(float(world.tick)), at=world.at)  # it starts with nothing
            yield _put(world, who, fresh)
            return
        if world.seats[who].turn.must_read:
            yield world  # the read is not answered
            world = self._hear(world, who)
        seat = world.seats[who]
        due = ticks.due(seat.turn, RING, MEMBERS[who], PACE)
        if due is None or due > world.tick or seat.turn.number != world.number + len(seat.applied):
            yield world
        else:
            yield from self._try(world, who, due)

    def _try(self, world: World, who: int, due: float) -> Iterator[World]:
        seat, now = world.seats[who], float(world.tick)
        nonce = f"{MEMBERS[who]}{world.tick}"
        at = CutPositions(seat.turn.number, 0, dict(zip(LOGS, seat.at, strict=True)))
        known = marks(max(world.tick - 2, 0) if seat.is_deaf else world.tick)
        cut = sent(self._rules.make_cut(at, known, MEMBERS[who], nonce, 0))
        trying = ticks.tried(seat.turn, now, due, nonce)
        doubtful = seat._replace(turn=self._rules.unknown(trying, now))
        arrived, won = self._arrive(world, cut)
        turn = ticks.written(trying, now, MEMBERS[who], PACE) if won else ticks.beaten(trying, now)
        answered = _put(arrived, who, seat._replace(turn=turn))
        yield self._hear(answered, who) if won else answered
        # Done or refused, but the answer is lost; never done; done later; and a crash after each.
        for after in (arrived, world, world._replace(late=(*world.late, cut))):
            yield self._checked(_put(after, who, doubtful))
            if world.crashes < self._crashes_max:
                yield _crash(after, who)

    def _arrive(self, world: World, cut: Sent) -> tuple[World, bool]:
        """A write reaches the store."""
        if not self._rules.follows(world.latest, cut.cut):
            return world, False
        if cut.number != world.latest + 1:
            raise Violation(f"two cuts with the number {cut.number}: {world.log} and {cut}")
        return world._replace(log=(*world.log, cut)), True

    # --- what it learns ---

    def _hear(self, world: World, who: int) -> World:
        """A member reads what is published, and everything in between."""
        seat = world.seats[who]
        number = world.number + len(seat.applied)
        positions = CutPositions(number, 0, dict(zip(LOGS, seat.at, strict=True)))
        applied, order = list(seat.applied), list(seat.order)
        for each in self._rules.missed(len(seat.applied), world.log):
            at = msgspec.structs.replace(positions, number=each.number - 1)
            for span in self._rules.ordered(at, each.cut):
                order += [(span.key, span.offset + past) for past in range(span.entries)]
            before, positions = positions, cuts.follow(at, each.cut)
            if any(positions.offsets[key] < before.offsets[key] for key in LOGS):
                raise Violation(f"positions go back with {each}")
            applied.append(each.nonce)
        turn = msgspec.structs.replace(seat.turn, must_read=False)
        if world.log:
            last = world.log[-1]
            turn = ticks.read(turn, float(world.tick), last.number, last.writer, last.nonce)
        standing = tuple(positions.offsets[key] for key in LOGS)
        heard = seat._replace(turn=turn, applied=tuple(applied), order=tuple(order), at=standing)
        return self._checked(_put(world, who, heard))

    def _pass(self, world: World) -> Iterator[World]:
        """The tick ends: each member hears the news and the owners' marks, or not, or crashes."""
        options = ["hears", "hears no marks", "is deaf"]
        if world.crashes < self._crashes_max:
            options.append("crashes")
        fates = [options if seat.is_up else ["is down"] for seat in world.seats]
        for fate in product(*fates):
            if fate.count("crashes") + world.crashes <= self._crashes_max:
                after = world
                for who, what in enumerate(fate):
                    if what == "crashes":
                        after = _crash(after, who)
                        continue
                    if what.startswith("hears"):
                        after = self._hear(after, who)
                    deaf = what != "hears"
                    after = _put(after, who, after.seats[who]._replace(is_deaf=deaf))
                yield _begin_tick(after)

    # --- what must hold ---

    def _checked(self, world: World) -> World:
        published = tuple(cut.nonce for cut in world.log)
        acknowledged = tuple(marks(world.tick)[key] for key in LOGS)
        orders = [seat.order for seat in world.seats if seat.is_up]
        for seat in world.seats:
            if seat.applied != published[: len(seat.applied)]:
                raise Violation(f"{seat.applied} was read back, but {published} is published")
            behind = seat.turn.number - world.number
            if behind > len(published) or (behind > 0 and seat.turn.nonce != published[behind - 1]):
                raise Violation(f"{seat.turn} believes in a cut that is not: {published}")
            if any(at > end for at, end in zip(seat.at, acknowledged, strict=True)):
                raise Violation(f"{seat.at} is more than was acknowledged: {acknowledged}")
        longest = max(orders, key=len)
        if any(order != longest[: len(order)] for order in orders):
            raise Violation(f"two orders: {orders}")
        return world


def _put(world: World, who: int, seat: Seat) -> World:
    return world._replace(seats=(*world.seats[:who], seat, *world.seats[who + 1 :]))


def _crash(world: World, who: int) -> World:
    """Nothing is left of a member; one that is down has what everybody has."""
    gone = Seat(RingTurn(0.0), is_up=False)
    return _put(world, who, gone)._replace(crashes=world.crashes + 1)


def _begin_tick(world: World) -> World:
    tick = world.tick + 1
    waiting = [
        member
        for member, seat in zip(MEMBERS, world.seats, strict=True)
        if not seat.is_up
        or seat.turn.must_read
        or (ticks.due(seat.turn, RING, member, PACE) or 0.0) <= tick
    ]
    return world._replace(tick=tick, waiting="".join(waiting))


def _forget(world: World) -> World:
    """The same state in the fewest words: without what can have no effect any more."""
    late = tuple(sorted(cut for cut in world.late if cut.number > world.latest))
    up = [seat for seat in world.seats if seat.is_up]
    first = min(up, key=lambda seat: len(seat.applied), default=world.seats[0])
    had, entries = len(first.applied), len(first.order)
    number = world.number + had
    seats = tuple(
        Seat(
            turn=msgspec.structs.replace(seat.turn, nonce=None)
            if seat.turn.number <= number
            else seat.turn,
            applied=seat.applied[had:],
            order=seat.order[entries:],
            at=seat.at,
            is_deaf=seat.is_deaf and member in world.waiting,
        )
        if seat.is_up
        else seat
        for member, seat in zip(MEMBERS, world.seats, strict=True)
    )
    at = first.at if up else world.at
    return world._replace(late=late, seats=seats, number=number, at=at, log=world.log[had:])
