"""Values as text, the way `string()` writes them: what an expression could have been."""

from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.model.feel.bounds import TEXT_CHARS_MAX
from holdfast.model.feel.compare import nested
from holdfast.model.feel.numeric import text_of as number_text
from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.run import CHARS_PER_STEP, Run
from holdfast.model.feel.temporal import text_of_temporal
from holdfast.model.feel.values import Function, Range, YearsMonths, clean, kind_of
from holdfast.model.feel.wide import Wide

ITEM_STEPS = 10  # an item, or an entry, that is written


def joined(run: Run, parts: Sequence[str], between: str = "") -> str:
    """Texts as one, unless that gets too long; paid for before it is made."""
    chars = sum(map(len, parts)) + len(between) * max(len(parts) - 1, 0)
    if chars > TEXT_CHARS_MAX:
        raise Spent(f"The evaluation makes a string of more than {TEXT_CHARS_MAX} characters")
    plain = between.isascii() and all(map(str.isascii, parts))
    run.spend(len(parts) + chars // CHARS_PER_STEP, chars if plain else 4 * chars)
    return between.join(parts)


def quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def text_of(run: Run, value: Any, depth: int = 0) -> str:
    """The text of a value; a string inside another value is in quotes."""
    match clean(value):
        case None:
            return "null"
        case bool() as truth:
            return "true" if truth else "false"
        case int() | Decimal() as number:
            return number_text(number)
        case str() as text:
            run.make(text, len(text))
            return quoted(text) if depth else text
        case list() as items:
            run.spend(1 + ITEM_STEPS * len(items))
            deeper = nested(depth)
            inside = joined(run, [text_of(run, item, deeper) for item in items], ", ")
            return f"[{inside}]"
        case dict() as entries:
            run.spend(1 + 2 * ITEM_STEPS * len(entries))
            deeper = nested(depth)
            inside = [f"{_key(key)}: {text_of(run, item, deeper)}" for key, item in entries.items()]
            return f"{{{joined(run, inside, ', ')}}}"
        case date() | time() | timedelta() | YearsMonths() | Wide() as moment:
            return text_of_temporal(moment)
        case Range() as found:
            if found.symbol or found.start is None or found.end is None:
                return _unary(run, found)
            ends = f"{text_of(run, found.start, 1)}..{text_of(run, found.end, 1)}"
            opening, closing = "(["[found.start_included], ")]"[found.end_included]
            return f"{opening}{ends}{closing}"
        case Function() as function:
            return str(function)
        case other:
            raise Problem(f"No text for {kind_of(other)}")


def _unary(run: Run, found: Range) -> str:
    """A range with one end, as it was written."""
    if found.start is None:
        symbol, end = ("<=" if found.end_included else "<"), found.end
    else:
        symbol, end = found.symbol or (">=" if found.start_included else ">"), found.start
    return f"({symbol} {text_of(run, end, 1)})"


def _key(key: Any) -> str:
    return key if isinstance(key, str) and key.isidentifier() else quoted(str(key))
