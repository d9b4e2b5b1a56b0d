"""For any text and any variables: a value or a FeelError, and nothing else."""

from decimal import Decimal
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.model.feel import (
    BUILTINS,
    FeelError,
    Function,
    Range,
    decode_json,
    encode_json,
    parse,
    to_json,
)

KEYS = st.sampled_from(["a", "b", "item", "key", "value", "x y"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["2026-01-31", "P1D", "10:00:00Z", "[a-z]+", "1e3"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
VARIABLES = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), JSON)
WORDS = [
    *"()[]{}.,:+-*/<>=@`\"'\\?", "**", "..", "!=", "<=", ">=", "//", "/*", "*/", " ", "\n", "a",
    "b", "c", "item", "partial", "if", "then", "else", "for", "in", "return", "some", "every",
    "satisfies", "and", "or", "not(", "between", "instance of", "function(", "number", "list<",
    "true", "false", "null", "1", "0", "2.5", "1e99", '"x"', '@"P1D"', '@"2026-01-31"', "[]",
]  # fmt: skip

LITERALS = st.sampled_from([
    "a", "b", "c", "d", "1", "0", "-3", "2.5", "1e6000", '"x"', '"2026-01-31"', "true", "null",
    '@"P1D"', '@"P1M"', '@"2026-01-31"', '@"10:00:00"', '@"2026-01-31T10:00:00@Europe/Paris"',
    "[]", "[1, 2, 3]", '["a", "b"]', "{a: 1, b: [2]}", "[1..5]", "function(x, y) x < y", "item",
    '@"9999-12-31T23:59:59-08:00"', '@"0001-01-01T00:00:00+08:00"', "9999999999999999999999999999",
])  # fmt: skip
NAMES = st.sampled_from(sorted(BUILTINS))


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions of expressions: nearly all of them can be read."""
    symbols = st.sampled_from([*"+-*/<>=", "**", "!=", "<=", ">=", "and", "or", "in"])
    return (
        st.tuples(inner, symbols, inner).map(" ".join)
        | st.tuples(NAMES, st.lists(inner, max_size=4)).map(lambda p: f"{p[0]}({', '.join(p[1])})")
        | st.tuples(inner, inner).map(lambda p: f"({p[0]})[{p[1]}]")
        | st.tuples(inner, KEYS).map(lambda p: f"({p[0]}).`{p[1]}`")
        | st.tuples(inner, inner, inner).map(lambda p: f"if {p[0]} then {p[1]} else {p[2]}")
        | st.tuples(inner, inner).map(lambda p: f"for b in {p[0]} return {p[1]}")
        | st.tuples(inner, inner, inner).map(lambda p: f"some b in {p[0]}..{p[1]} satisfies {p[2]}")
        | st.tuples(inner, inner, inner).map(lambda p: f"({p[0]}) between ({p[1]}) and ({p[2]})")
        | st.tuples(inner, inner).map(lambda p: f"[({p[0]})..({p[1]})]")
        | st.lists(inner, max_size=3).map(lambda p: f"[{', '.join(p)}]")
        | st.tuples(inner, inner).map(lambda p: f"{{a: {p[0]}, c: {p[1]}}}")
        | inner.map(lambda p: f"-({p})")
        | st.tuples(
            inner, st.sampled_from(["year", "days", "months", "time offset", "second", "start"])
        ).map(lambda p: f"({p[0]}).{p[1]}")
    )


EXPRESSIONS = st.recursive(LITERALS, grown, max_leaves=8)


def ordinary(value: Any) -> bool:
    """Whether a value can be written as JSON: it is no function and no range, nor contains any."""
    if isinstance(value, list):
        return all(map(ordinary, value))
    if isinstance(value, dict):
        return all(map(ordinary, value.values()))
    return not isinstance(value, Function | Range)


@given(st.text() | st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join), VARIABLES)
@example('"\ud800"', {})
@example("\x00", {})
def test_any_text_is_an_expression_or_an_error(text: str, variables: dict[str, Any]) -> None:
    try:
        parse(text).evaluate(variables, 0, [])
    except FeelError as error:
        assert error.message


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, VARIABLES)
def test_any_expression_has_a_value(text: str, variables: dict[str, Any]) -> None:
    """Of the language's own types, the same every time, and JSON unless there is a function."""
    expression = parse(text)
    warnings: list[str] = []
    try:
        value = expression.evaluate(variables, 0, warnings)
    except FeelError as error:
        bounds = ("steps", "levels")
        assert any(each in error.message for each in bounds) or "assert" in text
        return
    if ordinary(value):
        assert encode_json(value) == encode_json(expression.evaluate(variables, 0))
    assert all("(line " in warning for warning in warnings)


@settings(deadline=None)
@given(EXPRESSIONS, VARIABLES)
def test_the_names_are_all_that_is_read(text: str, variables: dict[str, Any]) -> None:
    expression = parse(text)

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            assert key in expression.names
            return super().get(key, default)

        def __getitem__(self, key: str) -> Any:
            assert key in expression.names
            return super().__getitem__(key)

    try:
        expression.evaluate(Watched(variables), 0)
    except FeelError:
        return


@given(JSON)
def test_json_reads_back_as_the_same_value(value: Any) -> None:
    read = decode_json(encode_json(value))  # numbers to 34 digits, without zeros at their end
    data = encode_json(read)
    assert encode_json(decode_json(data)) == data
    assert to_json(decode_json(data)) == to_json(read)


@given(st.integers(), st.integers())
def test_ints_are_exact(a: int, b: int) -> None:
    for text, value in (("a + b", a + b), ("a - b", a - b), ("a * b", a * b), ("a < b", a < b)):
        found = parse(text).evaluate({"a": a, "b": b}, 0)
        assert found == value or (isinstance(found, Decimal) and abs(value) >= 10**34)
