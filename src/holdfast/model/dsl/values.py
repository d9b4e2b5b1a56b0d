"""What Python says more shortly than a definition: durations, moments, expressions, mappings."""

from collections.abc import Mapping as Dict
from datetime import datetime, timedelta

from holdfast.model.check import ModelError
from holdfast.model.definition import Mapping, Timer, TimerKind
from holdfast.model.feel.temporal import text_of_duration

Duration = str | timedelta
"""A text like `PT5M`, a timedelta, or an expression that begins with `=`."""
Moment = str | datetime
"""A text like `2030-01-01T00:00:00Z`, a datetime with a zone, or an expression with `=`."""
Mappings = Dict[str, str]
"""Targets with the expressions that give their values: `{"amount": "order.total"}`."""


def expression(text: str) -> str:
    """An expression as definitions keep it: without the `=` that people may write before it."""
    return text.strip().removeprefix("=").strip()


def mappings(given: Mappings | None) -> tuple[Mapping, ...]:
    return tuple(Mapping(expression(source), target) for target, source in (given or {}).items())


def duration_timer(duration: Duration, element: str) -> Timer:
    return Timer(TimerKind.DURATION, _duration_text(duration, element))


def cycle_timer(cycle: Duration, element: str) -> Timer:
    """A cycle as it is written, a cron rule, or a timedelta for ever again."""
    text = _duration_text(cycle, element)
    return Timer(TimerKind.CYCLE, f"R/{text}" if isinstance(cycle, timedelta) else text)


def date_timer(moment: Moment, element: str) -> Timer:
    """A moment; one without a zone would be another one on each machine."""
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ModelError(
                f"Expected the moment of '{element}' to have a time zone, but {moment} has none",
                element=element,
            )
        moment = moment.isoformat()
    elif not isinstance(moment, str):
        raise _wrong_type("moment", moment, element, "a datetime with a time zone, or a text")
    return Timer(TimerKind.DATE, moment)


def _duration_text(duration: Duration, element: str) -> str:
    if isinstance(duration, timedelta):
        return text_of_duration(duration)
    if isinstance(duration, str):
        return duration
    raise _wrong_type("duration", duration, element, "a timedelta, or a text like 'PT5M'")


def _wrong_type(what: str, value: object, element: str, wanted: str) -> ModelError:
    return ModelError(
        f"Expected the {what} of '{element}' to be {wanted}, but found {value!r}"
        f" ({type(value).__name__})",
        element=element,
    )
