"""Tables of expressions with their values, one row a fact of the language."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from holdfast.model.feel import parse

NOW_MS = 1_785_490_200_000  # 2026-07-31T09:30:00Z, a Friday
D = Decimal


class Case(NamedTuple):
    """A fact in words, an expression, its value, and the variables that it reads."""

    fact: str
    text: str
    value: Any
    variables: Mapping[str, Any] = MappingProxyType({})


def evaluated(text: str, variables: Mapping[str, Any] | None = None) -> Any:
    return parse(text).evaluate(variables or {}, NOW_MS)


def warned(text: str, variables: dict[str, Any] | None = None) -> list[str]:
    """What an expression that is null warns of."""
    warnings: list[str] = []
    assert parse(text).evaluate(variables or {}, NOW_MS, warnings) is None
    return warnings


def table(*cases: tuple[Any, ...]) -> Callable[..., Any]:
    """A test for each case, named after its fact."""
    rows = [Case(*case) for case in cases]
    ids = [f"{row.fact}: {row.text}" for row in rows]
    return pytest.mark.parametrize("case", rows, ids=ids)


def check(case: Case) -> None:
    """The value is the expected one, and of the very same type: true is not 1, 2 not 2.0."""
    assert repr(evaluated(case.text, case.variables)) == repr(case.value)
