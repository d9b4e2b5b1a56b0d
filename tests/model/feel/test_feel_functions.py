"""Built-in functions on strings, numbers, lists and contexts."""

import pytest
from tests.model.feel.table import Case, D, check, evaluated, table

from holdfast.model.feel import BUILTINS, Builtin

ROWS = [row for rows in BUILTINS.values() for row in rows]


@pytest.mark.parametrize("row", ROWS, ids=[row.signature for row in ROWS])
def test_the_example_in_the_table_is_true(row: Builtin) -> None:
    assert repr(evaluated(row.example)) == repr(evaluated(row.result))
    assert row.description.endswith(".")


@table(
    ("from a position", 'substring("foobar", 3)', "obar"),
    ("so many from a position", 'substring("foobar", 3, 3)', "oba"),
    ("from the end", 'substring("foobar", -2, 1)', "a"),
    ("more than there is", 'substring("foobar", 5, 9)', "ar"),
    ("there is no position zero", 'substring("foobar", 0)', None),
    ("a character beyond 16 bits is one", 'substring("\\U01F40Eab", 2)', "ab"),
    ("length of a character beyond 16 bits", 'string length("\\U01F40E")', 1),
    ("length of a number is null", "string length(5)", None),
    ("before what is not there", 'substring before("foobar", "xyz")', ""),
    ("after what is not there", 'substring after("", "a")', ""),
    ("after nothing is everything", 'substring after("foobar", "")', "foobar"),
    ("contains", 'contains("foobar", "oba")', True),
    ("starts with not", 'starts with("foobar", "x")', False),
    ("upper case of null is null", "upper case(null)", None),
    ("matches anywhere", 'matches("foobar", "oba")', True),
    ("matches with anchors", 'matches("foobar", "^oba$")', False),
    ("matches in either case", 'matches("FooBar", "foobar", "i")', True),
    ("a pattern that is none is null", 'matches("a", "(")', None),
    ("flags that are none are null", 'matches("a", "a", "z")', None),
    ("replace all", 'replace("abracadabra", "bra", "*")', "a*cada*"),
    ("replace greedy", 'replace("abracadabra", "a.*a", "*")', "*"),
    ("replace reluctant", 'replace("abracadabra", "a.*?a", "*")', "*c*bra"),
    ("replace with a group", 'replace("0123456789", "(\\d{3})(\\d{3})(\\d{4})", "($1) $2-$3")',
     "(012) 345-6789"),
    ("replace with a dollar", 'replace("5", "5", "\\$5")', "$5"),
    ("split at a pattern", 'split("a;b;;c", ";")', ["a", "b", "", "c"]),
    ("split by space", 'split("John  Doe", "\\s+")', ["John", "Doe"]),
    ("split of nothing", 'split("", ",")', [""]),
    ("join", 'string join(["a", "b", "c"], "_and_")', "a_and_b_and_c"),
    ("join leaves out null", 'string join(["a", null, "c"], ",")', "a,c"),
    ("join of nothing", "string join([])", ""),
    ("join of numbers is null", "string join([1, 2])", None),
    ("extract", 'extract("a1b22", "[a-z][0-9]+")', ["a1", "b22"]),
    ("string of a string", 'string("a")', "a"),
    ("string of a number", "string(1.10)", "1.1"),
    ("string of a large number", "string(10 ** 40)", "1E+40"),
    ("string of a boolean", "string(true)", "true"),
    ("string of null is null", "string(null)", None),
    ("string of a list", 'string([1, "a", [true, null]])', '[1, "a", [true, null]]'),
    ("string of a context", 'string({a: "x", "b c": 2})', '{a: "x", "b c": 2}'),
    ("string of a date", 'string(@"2026-07-31")', "2026-07-31"),
    ("string of a range", "string([1..5))", "[1..5)"),
    ("number of a text", 'number("-1.5e2")', -150),
    ("number of no number", 'number("12x")', None),
    ("number with spaces between groups", 'number("1 000", " ", ".")', 1000),
    ("number with a comma as point", 'number("1.000,5", ".", ",")', D("1000.5")),
    ("number with equal separators", 'number("1,000", ",", ",")', None),
    ("number without groups", 'number("1000,5", null, ",")', D("1000.5")),
)  # fmt: skip
def test_strings(case: Case) -> None:
    check(case)


@table(
    ("a third with two decimals", "decimal(1 / 3, 2)", D("0.33")),
    ("a half goes to the even neighbour down", "decimal(2.5, 0)", 2),
    ("a half goes to the even neighbour up", "decimal(1.5, 0)", 2),
    ("a negative scale", "decimal(1234, -2)", 1200),
    ("a scale out of range is null", "decimal(1, 7000)", None),
    ("of a scale the whole part counts", "decimal(1.5, 0.5)", 2),
    ("floor", "floor(1.5)", 1),
    ("floor of a negative number", "floor(-1.5)", -2),
    ("ceiling", "ceiling(1.5)", 2),
    ("ceiling of a negative number", "ceiling(-1.5)", -1),
    ("round up", "round up(5.5, 0)", 6),
    ("round up with a scale", "round up(1.121, 2)", D("1.13")),
    ("round up of a negative number", "round up(-1.126, 2)", D("-1.13")),
    ("round down", "round down(5.5, 0)", 5),
    ("round down of a negative number", "round down(-1.126, 2)", D("-1.12")),
    ("round half up", "round half up(5.5, 0)", 6),
    ("round half up of a negative number", "round half up(-5.5, 0)", -6),
    ("round half down", "round half down(5.5, 0)", 5),
    ("round half down of a negative number", "round half down(-5.5, 0)", -5),
    ("abs", "abs(-10.5)", D("10.5")),
    ("modulo", "modulo(12, 5)", 2),
    ("modulo of a negative dividend", "modulo(-12, 5)", 3),
    ("modulo of a negative divisor", "modulo(12, -5)", -3),
    ("modulo of both negative", "modulo(-12, -5)", -2),
    ("modulo of fractions", "modulo(10.1, 4.5)", D("1.1")),
    ("modulo of a negative fraction", "modulo(-10.1, 4.5)", D("3.4")),
    ("modulo of a negative divisor with a fraction", "modulo(10.1, -4.5)", D("-3.4")),
    ("modulo by zero", "modulo(1, 0)", None),
    ("sqrt", "sqrt(2)", D("1.414213562373095048801688724209698")),
    ("sqrt of a negative number", "sqrt(-1)", None),
    ("log of zero", "log(0)", None),
    ("exp of zero", "exp(0)", 1),
    ("exp beyond the largest number", "exp(100000)", None),
    ("odd of an even number", "odd(2)", False),
    ("odd of a negative number", "odd(-3)", True),
    ("even of zero", "even(0)", True),
    ("even of a fraction is null", "even(1.5)", None),
)
def test_numbers(case: Case) -> None:
    check(case)


@table(
    ("contains null", "list contains([1, null], null)", True),
    ("does not contain a text for a number", 'list contains([1, 2], "1")', False),
    ("contains a context", "list contains([{a: 1}], {a: 1})", True),
    ("in null nothing is", "list contains(null, 1)", None),
    ("count of nothing", "count([])", 0),
    ("min of strings", 'min(["b", "a"])', "a"),
    ("max of dates", 'max(@"2026-01-01", @"2026-02-01")', None),
    ("min of nothing", "min([])", None),
    ("max of mixed types", 'max(1, "a")', None),
    ("sum of nothing", "sum([])", None),
    ("sum of decimals", "sum([0.1, 0.2, 0.3])", D("0.6")),
    ("sum with a text", 'sum([1, "2"])', None),
    ("product", "product([2, 0.5])", 1),
    ("mean", "mean([1, 2])", D("1.5")),
    ("mean of nothing", "mean([])", None),
    ("median of an even count", "median([6, 1, 2, 3])", D("2.5")),
    ("median of nothing", "median([])", None),
    ("stddev of one", "stddev([47])", None),
    ("mode of one", "mode([6, 3, 9, 6, 6])", [6]),
    ("mode of nothing", "mode([])", []),
    ("all of true", "all([true, true])", True),
    ("all of nothing", "all([])", True),
    ("all with null", "all([true, null])", None),
    ("all with false and null", "all([false, null])", False),
    ("any of nothing", "any([])", False),
    ("any with null", "any([false, null])", None),
    ("any with true and null", "any(true, null)", True),
    ("and as a function", "and([true, false])", False),
    ("or as a function", "or([true, false])", True),
    ("sublist to the end", "sublist([4, 5, 6], 2)", [5, 6]),
    ("sublist of a length", "sublist([4, 5, 6], 1, 2)", [4, 5]),
    ("sublist from the end", "sublist([4, 5, 6], -2)", [5, 6]),
    ("sublist from nowhere", "sublist([4, 5, 6], 0)", None),
    ("append to a value", "append(1, 2)", [1, 2]),
    ("append null", "append([1], null)", [1, None]),
    ("concatenate", "concatenate([1], [], [2, 1])", [1, 2, 1]),
    ("insert at the front", "insert before([1, 3], 1, 0)", [0, 1, 3]),
    ("insert behind the end", "insert before([1], 2, 9)", [1, 9]),
    ("insert far behind the end", "insert before([1], 5, 9)", None),
    ("remove the last", "remove([1, 2, 3], -1)", [1, 2]),
    ("replace an item", "list replace([1, 2, 3], 2, 9)", [1, 9, 3]),
    ("reverse", "reverse([])", []),
    ("index of null", "index of([1, null, null], null)", [2, 3]),
    ("index of nothing", "index of([1], 5)", []),
    ("union", "union([1, 2], [2, 3], [3, 4])", [1, 2, 3, 4]),
    ("distinct keeps the first", "distinct values([1, 1.0, 2])", [1, 2]),
    ("distinct knows true from one", "distinct values([true, 1])", [True, 1]),
    ("distinct of contexts", "distinct values([{a: 1, b: 2}, {b: 2, a: 1}])", [{"a": 1, "b": 2}]),
    ("duplicates", "duplicate values([3, 1, 3, 1, 2])", [3, 1]),
    ("flatten", "flatten([[[1, 2]], [[3]], [[[4]]], 5])", [1, 2, 3, 4, 5]),
    ("sort", "sort([3, 1, 4, 5, 2], function(x, y) x < y)", [1, 2, 3, 4, 5]),
    ("sort without a function", 'sort(["b", "a"])', ["a", "b"]),
    ("sort keeps equals in place", "sort([[2, 1], [1, 1], [2, 0]], function(x, y) x[1] < y[1])",
     [[1, 1], [2, 1], [2, 0]]),
    ("sort of mixed types", '[sort([1, "a"])]', [None]),
    ("sort by a function of one", "sort([1, 2], function(x) x)", None),
    ("partition", "partition([1, 2, 3], 2)", [[1, 2], [3]]),
    ("partition of nothing size", "partition([1], 0)", None),
    ("is empty of a value", "is empty([1])", False),
)  # fmt: skip
def test_lists(case: Case) -> None:
    check(case._replace(value=LATEST) if case.fact == "max of dates" else case)


LATEST = evaluated('@"2026-02-01"')


@table(
    ("get value", 'get value({a: 1}, "a")', 1),
    ("get value that is missing", 'get value({a: 1}, "b")', None),
    ("get value by a path", 'get value({a: {b: {c: 3}}}, ["a", "b", "c"])', 3),
    ("get entries of nothing", "get entries({})", []),
    ("get entries", "get entries({a: 1, b: 2})[2].value", 2),
    ("put a new entry", 'context put({x: 1}, "y", 2)', {"x": 1, "y": 2}),
    ("put another value", 'context put({x: 1}, "x", 2)', {"x": 2}),
    ("put at a path", 'context put({x: 1}, ["y", "z"], 2)', {"x": 1, "y": {"z": 2}}),
    ("put into what is no context", 'context put({x: 1}, ["x", "z"], 2)', None),
    ("merge", "context merge([{x: 1}, {y: 2}])", {"x": 1, "y": 2}),
    ("merge of what is no context", "context merge([1])", None),
    ("context from entries", "context(get entries({a: 1, b: 2}))", {"a": 1, "b": 2}),
    ("context with a key twice", 'context([{key: "a", value: 1}, {key: "a", value: 2}])', None),
    ("is defined", "is defined(x)", True, {"x": 1}),
    ("is defined of what is not there", "is defined(nobody.name)", False),
    ("get or else of something", "get or else(x, 5)", 1, {"x": 1}),
    ("get or else of nothing", "get or else(nobody, 5)", 5),
    ("is of different zones", 'is(@"2026-01-01T10:00:00Z", @"2026-01-01T11:00:00+01:00")', False),
    ("is of the same", "is([1], [1])", True),
)
def test_contexts(case: Case) -> None:
    check(case)
