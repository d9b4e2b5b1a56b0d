"""Values as text, the way `string()` writes them: what an expression could have been."""

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.model.feel.bounds import TEXT_CHARS_MAX
from holdfast.model.feel.compare import Spender, nested
from holdfast.model.feel.numeric import text_of as number_text
from holdfast.model.feel.problems import FeelError, Problem
from holdfast.model.feel.temporal import text_of_temporal
from holdfast.model.feel.values import Function, Range, YearsMonths, clean, kind_of


def bounded(text: str) -> str:
    """A text that was made, unless it is too long."""
    if len(text) > TEXT_CHARS_MAX:
        raise FeelError(f"The evaluation makes a string of more than {TEXT_CHARS_MAX} characters")
    return text


def quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def text_of(run: Spender, value: Any, depth: int = 0) -> str:
    """The text of a value; a string inside another value is in quotes."""
    match clean(value):
        case None:
            return "null"
        case bool() as truth:
            return "true" if truth else "false"
        case int() | Decimal() as number:
            return number_text(number)
        case str() as text:
            return quoted(text) if depth else text
        case list() as items:
            run.spend(1 + len(items))
            deeper = nested(depth)
            return bounded(f"[{', '.join([text_of(run, item, deeper) for item in items])}]")
        case dict() as entries:
            run.spend(1 + len(entries))
            deeper = nested(depth)
            inside = [f"{_key(key)}: {text_of(run, item, deeper)}" for key, item in entries.items()]
            return bounded(f"{{{', '.join(inside)}}}")
        case date() | time() | timedelta() | YearsMonths() as moment:
            return text_of_temporal(moment)
        case Range() as found:
            ends = f"{text_of(run, found.start, 1)}..{text_of(run, found.end, 1)}"
            opening, closing = "(["[found.start_included], ")]"[found.end_included]
            return f"{opening}{ends}{closing}"
        case Function() as function:
            return str(function)
        case other:
            raise Problem(f"No text for {kind_of(other)}")


def _key(key: Any) -> str:
    return key if isinstance(key, str) and key.isidentifier() else quoted(str(key))
