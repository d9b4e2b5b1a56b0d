"""Texts with a grammar of their own: every expression and every timer can be read."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

from holdfast.limits import SCHEDULE_INTERVAL_MS_MIN
from holdfast.model.definition import Definition, Element, Timer, TimerKind
from holdfast.model.feel import (
    FeelError,
    YearsMonths,
    parse,
    parse_date_time,
    parse_duration,
)
from holdfast.model.graph import Graph
from holdfast.model.rules.problem import Problem

_CYCLE = re.compile(r"R\d{0,9}/(.+)", re.ASCII | re.DOTALL)
CRON_FIELDS = (5, 6)  # minute hour day month weekday, and seconds where somebody wants them


def expressions(graph: Graph) -> Iterator[Problem]:
    """Every expression is FEEL, wherever it stands."""
    for id_, what, text in _expressions(graph.definition):
        found = _complaint(parse, text)
        if found:
            yield Problem(
                id_, f"Expected the {what} of '{id_}' to be a FEEL expression, but {found}"
            )


def _expressions(definition: Definition) -> Iterator[tuple[str, str, str]]:
    """The id, the name of the field and the text of each expression of a definition."""
    for element in definition.elements:
        for what, text in _always(element):
            if text:
                yield element.id, what, text
        for what, text in _perhaps(element):
            if text.startswith("="):
                yield element.id, what, text[1:]
        for mapping in element.inputs:
            yield element.id, f"source of input '{mapping.target}'", mapping.source
        for mapping in element.outputs:
            yield element.id, f"source of output '{mapping.target}'", mapping.source
    for flow in definition.flows:
        if flow.condition:
            yield flow.id, "condition", flow.condition


def _always(element: Element) -> Iterator[tuple[str, str]]:
    """What is an expression without saying so; other rules tell where one is missing."""
    yield "expression", element.expression
    if element.message is not None:
        yield "message key", element.message.key
    if element.loop is not None:
        yield "collection", element.loop.collection
        yield "output item", element.loop.output_item
        yield "until condition", element.loop.until


def _perhaps(element: Element) -> Iterator[tuple[str, str]]:
    """What is an expression when it begins with `=`."""
    yield "called process", element.called
    if element.error is not None:
        yield "error code", element.error
    if element.job is not None:
        yield "job type", element.job.type
        yield "retries", element.job.retries
    if element.message is not None:
        yield "message name", element.message.name
    if element.timer is not None:
        yield "timer", element.timer.value


def timers(graph: Graph) -> Iterator[Problem]:
    """A timer that is not an expression says now when it happens."""
    for element in graph.definition.elements:
        timer = element.timer
        if timer is not None and not timer.value.startswith("="):
            wanted, found = _WANTED[timer.kind], _wrong_timer(timer)
            if found:
                yield Problem(
                    element.id,
                    f"Expected the timer of '{element.id}' to be {wanted}, but {found}",
                )


_WANTED = {
    TimerKind.DURATION: "a duration like 'P3D' or 'PT5M'",
    TimerKind.DATE: "a date and time like '2030-01-01T00:00:00Z'",
    TimerKind.CYCLE: "a cycle like 'R3/PT10S' or 'R/PT1H', or a cron rule",
}


def _wrong_timer(timer: Timer) -> str:
    match timer.kind:
        case TimerKind.DURATION:
            return _complaint(_waiting, timer.value)
        case TimerKind.DATE:
            return _complaint(_moment, timer.value)
        case TimerKind.CYCLE:
            cycle = _CYCLE.fullmatch(timer.value)
            if cycle:
                return _complaint(_interval, cycle[1])
            # Which cron rules there are is the engine's knowledge: it has the library that runs
            # them and refuses the others at deployment.
            is_cron = len(timer.value.split()) in CRON_FIELDS
            return "" if is_cron else f"it is '{timer.value}'"


def _waiting(text: str) -> None:
    if _is_less(parse_duration(text), timedelta()):
        raise FeelError("it lies in the past")


def _moment(text: str) -> None:
    if parse_date_time(text).tzinfo is None:
        raise FeelError("without an offset or a zone it is another moment on each machine")


def _interval(text: str) -> None:
    if _is_less(parse_duration(text), timedelta(milliseconds=SCHEDULE_INTERVAL_MS_MIN)):
        raise FeelError(f"less than {SCHEDULE_INTERVAL_MS_MIN} ms would be polling")


def _is_less(duration: timedelta | YearsMonths, least: timedelta) -> bool:
    if isinstance(duration, YearsMonths):
        return duration.months < (1 if least else 0)
    return duration < least


def _complaint(read: Callable[[str], object], text: str) -> str:
    """What a reader has to say against a text; nothing where it can be read."""
    try:
        read(text)
    except FeelError as error:
        return f"'{text}' is not: {error.message}"
    return ""
