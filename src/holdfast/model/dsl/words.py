"""The words that stand inside steps: conditions, events, and what an activity is repeated over."""

from holdfast.model.definition import Element, ElementKind, Loop, Message
from holdfast.model.dsl.path import Path
from holdfast.model.dsl.steps import Branch, Catch, Event, Step
from holdfast.model.dsl.values import Duration, cycle_timer, duration_timer, expression


def when(condition: str, then: Path | None = None, *, name: str = "") -> Branch:
    """A path that is taken if a condition holds. Without a path, it does nothing."""
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
    """Repeats an activity for each item of a collection, in parallel or `sequential`.

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
    """In a race: the path for a message with this key."""
    waited = Message(message, expression(key))
    return Catch(Element(id, ElementKind.CATCH, name, message=waited), _steps(then))


def after(id: str, duration: Duration, then: Path | None = None, *, name: str = "") -> Catch:
    """In a race: the path that is taken after a time, if nothing else has happened."""
    timer = duration_timer(duration, id)
    return Catch(Element(id, ElementKind.CATCH, name, timer=timer), _steps(then))


# --- the events beside an activity ----------------------------------------------------------------
#
# Without an id they are called after their host and what they wait for. A path that interrupts its
# host leads to what follows the host, unless it ends; one that does not interrupt ends by itself,
# for the host goes on and what follows it would happen twice.


def error(code: str = "", then: Path | None = None, *, id: str = "", name: str = "") -> Event:
    """Boundary event: the path for an error with this code, or with any code."""
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
    """Boundary event: the path if the activity takes longer; `interrupting` ends it."""
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
    """Boundary event: the path for a message with this key."""
    waited = Message(message, expression(key))
    element = Element(id, ElementKind.BOUNDARY, name, message=waited, interrupting=interrupting)
    return Event(element, f"on-{message}", _steps(then))


def every(cycle: Duration, then: Path | None = None, *, id: str = "", name: str = "") -> Event:
    """Boundary event: a path that is taken repeatedly while the activity is active.

    `R/PT1H` is for ever, `R3/PT1H` three times; a timedelta is for ever.
    """
    timer = cycle_timer(cycle, id or "every")
    element = Element(id, ElementKind.BOUNDARY, name, timer=timer, interrupting=False)
    return Event(element, "every", _steps(then))


def _steps(then: Path | None) -> tuple[Step, ...]:
    return then.steps if then is not None else ()
