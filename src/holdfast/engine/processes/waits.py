"""Waiting for times and messages: what an element sets up when it becomes active."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.messages import subscribing
from holdfast.engine.processes import ops
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.stuck import Stuck, shown
from holdfast.engine.processes.variables import Seen
from holdfast.engine.processes.walk import Walk
from holdfast.engine.timers.cron import next_cron_ms
from holdfast.errors import InvalidArgument
from holdfast.limits import NAME_CHARS_MAX, WAIT_MOVES, WAIT_MS_MIN
from holdfast.model.definition import TimerKind
from holdfast.model.feel import Expression, YearsMonths, parse_date_time, parse_duration
from holdfast.model.feel.wide import plain

CYCLE_DIGITS_MAX = 9  # of how often a cycle happens, as in the rules for a definition


class Wait(NamedTuple):
    """One event, worked out and not set up yet."""

    node: Node
    due_ms: int = 0
    left: int = 1
    cycle: str = ""
    name: str = ""
    correlation: str = ""


# --- times ------------------------------------------------------------------------------------


def after_ms(span: timedelta | YearsMonths, now_ms: int) -> int:
    """The moment a span after another; months are those of the calendar, in UTC."""
    if isinstance(span, timedelta):
        return now_ms + int(span / timedelta(milliseconds=1))
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    month = now.year * 12 + now.month - 1 + span.months
    year, month = divmod(month, 12)
    day = now.day
    while True:
        try:
            return int(now.replace(year=year, month=month + 1, day=day).timestamp() * 1000)
        except ValueError:  # the 31st of a month that has none: its last day
            day -= 1
            if day < 28:
                raise InvalidArgument(
                    f"Expected a time in the years 1 to 9999, but found the year {year}"
                ) from None


def first_time(kind: TimerKind, value: Any, now_ms: int) -> tuple[int, int, str]:
    """When a timer is due first, how often in all (-1: for ever), and its cycle."""
    value = plain(value)
    match kind:
        case TimerKind.DURATION:
            span = parse_duration(value) if isinstance(value, str) else value
            if isinstance(span, timedelta | YearsMonths):
                return after_ms(span, now_ms), 1, ""
        case TimerKind.DATE:
            moment = parse_date_time(value) if isinstance(value, str) else value
            if isinstance(moment, datetime):
                return _epoch_ms(moment), 1, ""
        case TimerKind.CYCLE if isinstance(value, str):
            return _first_of_cycle(value, now_ms)
    raise InvalidArgument(f"Expected a {kind.name.lower()}, but found {shown(value)}")


def _epoch_ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


def _first_of_cycle(text: str, now_ms: int) -> tuple[int, int, str]:
    if len(text) > NAME_CHARS_MAX:
        raise InvalidArgument(
            f"Expected a cycle of at most {NAME_CHARS_MAX} characters, but found {len(text)}"
        )
    if not text.startswith("R"):
        return next_cron_ms(text, now_ms), -1, text
    count, *rest = text[1:].split("/")
    if not rest or (count and not (count.isdecimal() and len(count) <= CYCLE_DIGITS_MAX)):
        raise InvalidArgument(f"Expected a cycle such as R3/PT10S, but found {text!r}")
    left = int(count) if count else -1
    span = rest[-1]
    if after_ms(parse_duration(span), now_ms) <= now_ms:
        raise InvalidArgument(f"Expected a cycle with a span beyond nothing, but found {text!r}")
    if len(rest) == 2:
        return _epoch_ms(parse_date_time(rest[0])), left, span
    return after_ms(parse_duration(span), now_ms), left, span


def next_of_cycle(cycle: str, due_ms: int) -> int:
    """When a cycle is due after it was due at a moment."""
    if cycle.startswith("P"):
        return after_ms(parse_duration(cycle), due_ms)
    return next_cron_ms(cycle, due_ms)


# --- working out, setting up, taking down -----------------------------------------------------


def prepare(walk: Walk, events: list[Node], seen: Seen) -> list[Wait]:
    """Works out what the events wait for; nothing is changed yet."""
    return [_prepare(walk, event, seen) for event in events]


def _prepare(walk: Walk, event: Node, seen: Seen) -> Wait:
    if event.timer is not None:
        text = event.timer_text
        value = (
            walk.value(text, seen, f"the timer of {event.id!r}")
            if isinstance(text, Expression)
            else text
        )
        try:
            due_ms, left, cycle = first_time(event.timer.kind, value, walk.turn.now_ms)
        except (InvalidArgument, OverflowError, ValueError) as error:
            raise Stuck(
                IncidentReason.EXPRESSION_FAILED, f"The timer of {event.id!r}: {error}"
            ) from error
        return Wait(event, max(due_ms, 0), left, cycle)
    name = walk.text(event.message_name, seen, f"the message name of {event.id!r}")
    assert event.message_key is not None, "an event waits for a message without a key"
    key = walk.value(event.message_key, seen, f"the correlation key of {event.id!r}")
    if isinstance(key, bool) or not isinstance(key, int | str):
        raise Stuck(
            IncidentReason.EXPRESSION_FAILED,
            f"Expected the correlation key {event.message_key.text!r} of {event.id!r} to give a"
            f" string or a whole number, but it gave {shown(key)}",
        )
    correlation = str(key)
    if not correlation or len(correlation) > NAME_CHARS_MAX or "\0" in correlation:
        raise Stuck(
            IncidentReason.LIMIT_REACHED,
            f"Expected a correlation key of 1 to {NAME_CHARS_MAX} characters at {event.id!r},"
            f" but found {len(correlation)}",
        )
    return Wait(event, name=name, correlation=correlation)


def begin(walk: Walk, element: int, prepared: list[Wait]) -> None:
    """The element waits from now on."""
    if not prepared:
        return
    if len(prepared) > 1:
        walk.take_time(len(prepared) - 1)
    soon_ms = walk.turn.now_ms + WAIT_MS_MIN
    for wait in prepared:
        key, node = walk.turn.new_key(), wait.node.index
        if wait.node.timer is not None:
            moves = walk.spent + walk.moves + WAIT_MOVES if wait.due_ms < soon_ms else 0
            timer = ops.TimerSet(key, element, node, wait.due_ms, wait.left, wait.cycle, moves)
            walk.do(timer)
        else:
            subscribing.subscribe(walk, key, element, wait.node, wait.name, wait.correlation)


def end(walk: Walk, element: int, events: list[Node]) -> None:
    """The element waits no longer for any of these."""
    for event in events:
        key = walk.processes.waits.get((element, event.index))
        if key is None:
            continue
        if event.timer is not None:
            walk.do(ops.TimerGone(key, element, event.index))
        else:
            subscribing.unsubscribe(walk, key, element, event.index)
