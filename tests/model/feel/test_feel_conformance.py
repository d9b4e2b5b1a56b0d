"""What the specification says of edges: names of parameters, counts, ranges, types, times."""

from decimal import Decimal
from typing import Any

import pytest
from tests.model.feel.table import Case, D, check, evaluated, table, warned

from holdfast.model.feel import BUILTINS, FeelError, decode_json, encode_json, parse
from holdfast.model.feel.values import Range

# --- whole numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("xs[n]", "b"),
        ("xs[item = x][n - 1]", "c"),
        ('substring("abcd", n, n)', "bc"),
        ("sublist(xs, n, n)", ["b", "c"]),
        ('insert before(xs, n, "x")', ["a", "x", "b", "c"]),
        ("remove(xs, n)", ["a", "c"]),
        ('list replace(xs, n, "x")', ["a", "x", "c"]),
        ("partition(xs, n)", [["a", "b"], ["c"]]),
        ("decimal(1.555, n)", D("1.56")),
        ("round up(1.551, n)", D("1.56")),
        ("for i in 1..n return i", [1, 2]),
        ("for i in [n..3] return i", [2, 3]),
        ("some i in n..3 satisfies i = 3", True),
        ("date(2026, n, n)", "2026-02-02"),
        ("time(n, n, n)", "02:02:02"),
        ("even(n)", True),
        ("n instance of number", True),
        ("string(n)", "2"),
        ('index of([1, 2], n)', [2]),
        ("n in [1..2]", True),
        ("count(for i in 1..n return i) = n", True),
        ('{a: n}.a', 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("raw", [b"2.0", b"2", b"20e-1", b"0.2E1"])
def test_a_number_of_json_that_is_whole_is_a_whole_number(
    text: str, value: Any, raw: bytes
) -> None:
    given = decode_json(b'{"n": ' + raw + b', "x": "c", "xs": ["a", "b", "c"]}')
    assert parse(text).evaluate(given, 0) == (
        value if not isinstance(value, str) else evaluated(f"{_typed(value)}")
    )
    if isinstance(value, int) and not isinstance(value, bool):
        assert encode_json(parse(text).evaluate(given, 0)) == b"2"


def _typed(text: str) -> str:
    return f'@"{text}"' if text[:1].isdigit() and len(text) > 1 else f'"{text}"'


def test_a_decimal_that_is_whole_is_an_index_too() -> None:
    assert evaluated("xs[n]", {"n": Decimal("2.0"), "xs": [5, 6]}) == 6
    assert warned("xs[n]", {"n": Decimal("1.5"), "xs": [5, 6]})


@table(
    ("a length", 'substring("foobar", 3, 3.8)', "oba"),
    ("a position", 'substring("foobar", 3.8)', "obar"),
    ("a scale", "decimal(1 / 3, 2.5)", D("0.33")),
    ("a place in a list", "list replace([1, 2, 3], 2.5, 4)", [1, 4, 3]),
    ("a place from the end", "list replace([1, 2, 3], -1.5, 4)", [1, 2, 4]),
    ("a part of a list", "sublist([1, 2, 3], 1.9, 2.9)", [1, 2]),
    ("not a half", "remove([1, 2], 0.5)", None),
)
def test_of_a_count_the_whole_part_counts(case: Case) -> None:
    check(case)


@table(
    *(
        ("a scale that is null", f"{name}(1.56, null)", None)
        for name in ("floor", "ceiling", "round up", "round down", "round half up",
                     "round half down", "decimal")
    ),
    ("no scale", "floor(1.56)", 1),
    ("no scale", "ceiling(1.56)", 2),
    ("a named one", "floor(n: 1.56, scale: null)", None),
    ("a named one", "round half up(n: 1.55, scale: 1)", D("1.6")),
)  # fmt: skip
def test_a_scale_is_left_out_or_a_number(case: Case) -> None:
    check(case)


# --- names ------------------------------------------------------------------------------------


@table(
    ("a context", 'get value(m: {a: 1}, key: "a")', 1),
    ("the same by another name", 'get value(context: {a: {b: 1}}, keys: ["a", "b"])', 1),
    ("and another", 'get value(context: {a: 1}, key: "a")', 1),
    ("not mixed", 'get value(m: {a: 1}, keys: ["a"])', None),
    ("entries", "get entries(m: {a: 1})", [{"key": "a", "value": 1}]),
    ("a function that matches", "list replace(list: [1, 2], newItem: 9, "
     "match: function(item, newItem) item = 2)", [1, 9]),
    ("points", "before(point1: 1, point2: 2)", True),
    ("a point and a range", "before(point: 1, range: [2..3])", True),
    ("a range and a point", "before(range: [2..3], point: 9)", True),
    ("ranges", "before(range2: [2..3], range1: [0..1])", True),
    ("a point in a range", "during(point: 2, range: [1..3])", True),
    ("a range around a point", "includes(range: [1..3], point: 2)", True),
    ("a value is left out", 'is(value1: @"2021-02-13")', False),
    ("a range", 'range(from: "[1..3]")', Range(1, 3)),
)  # fmt: skip
def test_parameters_have_the_names_of_the_specification(case: Case) -> None:
    check(case)


def test_every_parameter_can_be_named() -> None:
    """With the names of its signature, a built-in does what it does without them."""
    for row in (row for rows in BUILTINS.values() for row in rows):
        if any(parameter.variadic for parameter in row.parameters):
            continue
        for number in range(max((len(each.names) for each in row.parameters), default=0)):
            names = [each.names[min(number, len(each.names) - 1)] for each in row.parameters]
            assert row.order(names) == list(range(len(names))), row.signature
            if sorted(names) != ["point", "range"]:
                assert row.order(names[::-1]) == list(range(len(names)))[::-1], row.signature


# --- ranges -----------------------------------------------------------------------------------


@table(
    ("closed", 'range("[18..21]")', Range(18, 21)),
    ("open", 'range("(18..21[")', Range(18, 21, False, False)),
    ("the other bracket", 'range("]1.5..2.5)")', Range(D("1.5"), D("2.5"), False, False)),
    ("spaces", 'range(" [ -1 .. 3 ] ")', Range(-1, 3)),
    ("texts", r'range("[\"a\"..\"c\"]")', Range("a", "c")),
    (
        "days",
        r'range("[@\"1970-01-01\"..date(\"1970-01-02\")]") = '
        '[@"1970-01-01"..@"1970-01-02"]',
        True,
    ),
    (
        "moments",
        r'range("[date and time(\"1970-01-01T00:00:00\")..@\"1970-01-02T00:00:00\"]") = '
        '[@"1970-01-01T00:00:00"..@"1970-01-02T00:00:00"]',
        True,
    ),
    ("durations", r'range("[duration(\"P1D\")..@\"P2D\"]") = [@"P1D"..@"P2D"]', True),
    ("what is in it", '2 in range("[1..3]")', True),
    ("a missing end", 'range("[1..]")', None),
    ("two types", r'range("[1..\"b\"]")', None),
    ("no literal", r'range("[date(string(\"1970-01-01\"))..@\"1970-01-02\"]")', None),
    ("down", 'range("[3..1]")', None),
    ("no range", 'range(">=10")', None),
    ("nothing", 'range("")', None),
    ("null", 'range("[null..null]")', None),
)
def test_a_range_is_read_from_its_text(case: Case) -> None:
    check(case)


@table(
    ("below", "5 in (< 10)", True),
    ("the end itself", "10 in (< 10)", False),
    ("with the end", "10 in (<= 10)", True),
    ("a list of them", "5 in [(< 3), (> 4)]", True),
    ("kept under a name", "{small: (< 10), x: 5 in small}.x", True),
    ("the end", "(< 10).end", 10),
    ("no start", "(< 10).start", None),
    ("the start", "(>= 10).start", 10),
    ("included", "(>= 10).start included", True),
    ("not included", "(< 10).start included", False),
    ("the same", "(< 10) = (< 10)", True),
    ("another", "(< 10) = (<= 10)", False),
    ("one value", "(= 10) = (= 10)", True),
    ("one value is no range of one", "(= 10) = [10..10]", False),
    ("all but one", "5 in (!= 10)", True),
    ("its text", "string((<= 10))", "(<= 10)"),
    ("a type", "(< 10) instance of range<number>", True),
    ("a bracket before a dot", "[1..10[.end included", False),
    ("as tests", "x in (< 3, > 7)", True, {"x": 9}),
)
def test_a_comparison_in_brackets_is_a_range(case: Case) -> None:
    check(case)


@table(
    ("brackets go up", "for i in [1..3] return i", [1, 2, 3]),
    ("brackets do not go down", "for i in [2..1] return i", None),
    ("without brackets they do", "for i in 2..1 return i", [2, 1]),
    ("an empty one", "for i in [1..1) return i", []),
)
def test_a_range_is_gone_through_upwards(case: Case) -> None:
    check(case)


# --- types and texts --------------------------------------------------------------------------


@table(
    ("no parameters", "1 instance of function<>->Any", False),
    ("a function", "(function() 1) instance of function<>->Any", True),
    ("a parameter", "(function(a) a) instance of function<number>->Any", True),
    ("too many", "(function(a) a) instance of function<>->Any", False),
    ("of that type", "(function(a: string) a) instance of function<string>->Any", True),
    ("of another type", "(function(a: string) a) instance of function<number>->Any", False),
    ("null is of any type in a context", "{a: null} instance of context<a: string>", True),
    ("what is missing is not", "{} instance of context<a: string>", False),
    ("a name beyond the basic plane", '{\U0001f40e: "bar"}.\U0001f40e', "bar"),
    ("not in a class, either case", 'matches("q", "[^Q]", "i")', False),
    ("spaces for the reader", r'matches("hello world", "hello\ sworld", "x")', True),
    ("a block of Unicode", r'matches("hello", "^\p{IsBasicLatin}+$")', True),
    ("no seconds behind the point", 'string(duration("PT1.S"))', "PT1S"),
    ("no boolean", "list replace([2, 4], function(item, newItem) item, 5)", None),
    ("the end of a day", '@"2021-01-01T24:00:00" = @"2021-01-02T00:00:00"', True),
    ("the end of a day as a time", 'string(time("24:00:00"))', "00:00:00"),
    ("not later", 'time("24:00:01")', None),
    ("a date is a moment in UTC", '@"2021-01-01T00:00:00" - @"2021-01-02"', None),
    ("with a zone", '@"2021-01-02T00:00:00Z" - @"2021-01-01" = @"P1D"', True),
)
def test_an_edge_of_the_language(case: Case) -> None:
    check(case)


# --- assert -----------------------------------------------------------------------------------


def test_a_condition_that_holds_gives_the_value() -> None:
    assert evaluated("assert(x, x > 1)", {"x": 2}) == 2
    assert evaluated("assert(value: x, condition: x > 1)", {"x": 2}) == 2
    assert evaluated('assert(x, true, "why")', {"x": None}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("assert(x, x != null)", "Expected the condition to hold, but it is false, in 'assert' at"),
        ("1 + assert(x, x > 1)", "Expected the condition to hold, but it is null, in 'assert' at"),
        ("[assert(1, 5)]", "Expected the condition to hold, but it is a number, in 'assert' at"),
        ('if true then assert(x, false, "no x") else 1', "no x, in 'assert' at line 1, column 14"),
        ("get or else(assert(x, x != null), 1)", "Expected the condition to hold"),
    ],
)
def test_a_condition_that_does_not_hold_is_an_error(text: str, said: str) -> None:
    with pytest.raises(FeelError) as caught:
        parse(text).evaluate({}, 0)
    assert caught.value.message.startswith(said)
    assert caught.value.message.endswith(f'of the expression "{text}"')
