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


def duration_timer(duration: Duration) -> Timer:
    return Timer(TimerKind.DURATION, _duration_text(duration))


def cycle_timer(cycle: Duration) -> Timer:
    """A cycle as it is written, a cron rule, or a timedelta for ever again."""
    text = _duration_text(cycle)
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
    return Timer(TimerKind.DATE, moment)


def _duration_text(duration: Duration) -> str:
    return text_of_duration(duration) if isinstance(duration, timedelta) else duration
