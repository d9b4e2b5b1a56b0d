"""When a member tries to publish a cut, and what it does after each outcome. Times are handed in.

    since ──── one tick ────► the last writer tries
          ──── one tick, and 3 more for each place in the ring behind it ────► the others try

Every cut that is seen starts the wait anew, from the moment it was seen by the member's own
monotonic clock. No clock is ever compared with that of another member. A member that was beaten,
or does not know, reads before it tries again. The guard of the write alone keeps two members from
publishing the same number, so a member that is slow, deaf or paused does no harm.
"""

from typing import NamedTuple

import msgspec

from holdfast.limits import RING_DELAY_TICKS, TICKS_PER_SECOND
from holdfast.sequence.ring import Ring


class TickPace(msgspec.Struct, frozen=True):
    """How often cuts are published, and how long members of the ring wait for one another."""

    tick_seconds: float = 1 / TICKS_PER_SECOND
    delay_ticks: int = RING_DELAY_TICKS


class Try(NamedTuple):
    """An attempt to publish that has no outcome yet."""

    number: int
    nonce: str
    due: float
    began: float


class RingTurn(msgspec.Struct, frozen=True):
    """What a member knows of the order: the last cut that it saw, and what it is doing about it."""

    since: float  # when that cut was seen, or the member began
    number: int = 0
    writer: str | None = None  # None: nobody has written yet, as far as is known
    nonce: str | None = None
    trying: Try | None = None
    must_read: bool = True  # before the next attempt


def begin(now: float) -> RingTurn:
    """A member starts: it reads what there is before it tries anything."""
    return RingTurn(since=now)


def due(turn: RingTurn, ring: Ring, member: str, pace: TickPace) -> float | None:
    """When to try next; None while a try is under way, and for a member outside the ring."""
    delay = ring.delay_ticks(member, turn.writer, pace.delay_ticks)
    if turn.trying is not None or delay is None:
        return None
    return turn.since + (1 + delay) * pace.tick_seconds


def tried(turn: RingTurn, now: float, due: float, nonce: str) -> RingTurn:
    """An attempt is on its way."""
    assert turn.trying is None and not turn.must_read
    return msgspec.structs.replace(turn, trying=Try(turn.number + 1, nonce, due, now))


def written(turn: RingTurn, now: float, member: str, pace: TickPace) -> RingTurn:
    """It was published. The next tick is counted from when it was due, so that none is lost.

    Ticks that passed meanwhile are not made up for: the next one is due at once, once.
    """
    assert turn.trying is not None
    if turn.number > turn.trying.number:  # the answer came later than the next cut
        return msgspec.structs.replace(turn, trying=None)
    since = max(turn.trying.due, now - pace.tick_seconds)
    return RingTurn(since, turn.trying.number, member, turn.trying.nonce, must_read=False)


def beaten(turn: RingTurn, now: float) -> RingTurn:
    """Somebody else was first. Who, and with what, is read before the next attempt."""
    assert turn.trying is not None
    return msgspec.structs.replace(turn, since=now, trying=None, must_read=True)


def unknown(turn: RingTurn, now: float) -> RingTurn:
    """The answer was lost: it may be published, now or later, or never. A read tells what is."""
    assert turn.trying is not None
    return msgspec.structs.replace(turn, since=now, trying=None, must_read=True)


def read(
    turn: RingTurn, now: float, number: int, writer: str | None, nonce: str | None
) -> RingTurn:
    """What is published as of now (0: nothing) was read; the wait starts anew if it is news."""
    turn = seen(turn, now, number, writer, nonce)
    return msgspec.structs.replace(turn, must_read=False)


def seen(
    turn: RingTurn, now: float, number: int, writer: str | None, nonce: str | None
) -> RingTurn:
    """A cut was heard of, however late, or again: only a newer one counts."""
    if number <= turn.number:
        return turn
    return msgspec.structs.replace(turn, since=now, number=number, writer=writer, nonce=nonce)


def is_rolled_back(turn: RingTurn, number: int, nonce: str | None) -> bool:
    """Whether a read contradicts what was seen before: the store was put back to an older copy."""
    return number < turn.number or (number == turn.number and nonce != turn.nonce)


def lateness(attempt: Try, now: float) -> float:
    """How long after its due time an attempt ended, in seconds."""
    return max(now - attempt.due, 0.0)


def is_late(attempt: Try, now: float, pace: TickPace) -> bool:
    """Whether the order came later than a whole tick after it was due. It is counted, no more."""
    return lateness(attempt, now) > pace.tick_seconds
