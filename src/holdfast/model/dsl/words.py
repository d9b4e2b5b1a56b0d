"""The words that stand inside steps: conditions, events, and what an activity is repeated over."""

from holdfast.model.definition import Element, ElementKind, Loop, Message
from holdfast.model.dsl.path import Path
from holdfast.model.dsl.steps import Branch, Catch, Event, Step
from holdfast.model.dsl.values import Duration, cycle_timer, duration_timer, expression


def when(condition: str, then: Path | None = None, *, name: str = "") -> Branch:
    """A path that is taken if a condition holds. Without a path nothing is done there."""
    return Branch(_steps(then), expression(condition), name=name)


def otherwise(then: Path | None = None, *, name: str = "") -> Branch:
    """The path that is taken if no condition holds."""
    return Branch(_steps(then), otherwise=True, name=name)


def over(
    collection: str,
    *,
    item: str = "item",
    sequential: bool = False,
    collect: str = "",
    result: str = "",
    until: str = "",
) -> Loop:
    """Once for each item of a collection: at the same time, or `sequential` one after the other.

    Each has its `item` and its number, `loopCounter`. `collect` is the variable that gets the list
    of results, and `result` the expression that gives each of them. When `until` holds after an
    item, the rest is left out.
    """
    return Loop(
        expression(collection), item, sequential, collect, expression(result), expression(until)
    )


# --- the events of a race -------------------------------------------------------------------------


def on_message(
    id: str, message: str, key: str, then: Path | None = None, *, name: str = ""
) -> Catch:
    """In a race: what happens when a message with this key is the first."""
    waited = Message(message, expression(key))
    return Catch(Element(id, ElementKind.CATCH, name, message=waited), _steps(then))


def after(id: str, duration: Duration, then: Path | None = None, *, name: str = "") -> Catch:
    """In a race: what happens when nothing else came within a time."""
    timer = duration_timer(duration, id)
    return Catch(Element(id, ElementKind.CATCH, name, timer=timer), _steps(then))


# --- the events beside an activity ----------------------------------------------------------------
#
# Without an id they are called after their host and what they wait for. A path that interrupts its
# host leads to what follows the host, unless it ends; one that does not interrupt ends by itself,
# for the host goes on and what follows it would happen twice.


def error(code: str = "", then: Path | None = None, *, id: str = "", name: str = "") -> Event:
    """Beside an activity: what happens when it fails with an error code; with any, if none."""
    element = Element(id, ElementKind.BOUNDARY, name, error=code)
    return Event(element, f"on-{code or 'error'}", _steps(then))


def timeout(
    duration: Duration,
    then: Path | None = None,
    *,
    interrupting: bool = True,
    id: str = "",
    name: str = "",
) -> Event:
    """Beside an activity: what happens when it takes longer, and whether that ends it."""
    element = Element(
        id, ElementKind.BOUNDARY, name, timer=duration_timer(duration, id or "timeout"),
        interrupting=interrupting,
    )  # fmt: skip
    return Event(element, "timeout", _steps(then))


def message(
    message: str,
    then: Path | None = None,
    *,
    key: str,
    interrupting: bool = True,
    id: str = "",
    name: str = "",
) -> Event:
    """Beside an activity: what happens when a message with this key comes meanwhile."""
    waited = Message(message, expression(key))
    element = Element(id, ElementKind.BOUNDARY, name, message=waited, interrupting=interrupting)
    return Event(element, f"on-{message}", _steps(then))


def every(cycle: Duration, then: Path | None = None, *, id: str = "", name: str = "") -> Event:
    """Beside an activity: what happens again and again while it is under way.

    `R/PT1H` is for ever, `R3/PT1H` three times; a timedelta is for ever.
    """
    timer = cycle_timer(cycle, id or "every")
    element = Element(id, ElementKind.BOUNDARY, name, timer=timer, interrupting=False)
    return Event(element, "every", _steps(then))


def _steps(then: Path | None) -> tuple[Step, ...]:
    return then.steps if then is not None else ()
