"""Lists, contexts, paths, filters, conditions, loops and functions."""

from datetime import date, timedelta

from tests.model.feel.table import Case, D, check, evaluated, table

from holdfast.model.feel import YearsMonths

ORDERS = {
    "orders": [
        {"id": 1, "status": "open", "total": 10, "lines": [{"sku": "a"}, {"sku": "b"}]},
        {"id": 2, "status": "done", "total": 20, "lines": []},
        {"id": 3, "status": "open", "total": 30, "lines": [{"sku": "c"}]},
    ],
    "status": "done",
    "limit": 15,
}


@table(
    ("an entry of a context", "{a: 1}.a", 1),
    ("an entry of an entry", "{a: {b: {c: 5}}}.a.b.c", 5),
    ("later entries see earlier ones", "{a: 1, b: a + 1, c: b * 2}.c", 4),
    ("an inner context sees the outer", "{a: 1, b: {c: a + 1}}.b.c", 2),
    ("an entry hides a variable", "{x: 1, y: x}.y", 1, {"x": 9}),
    ("a key may be a string", '{"a b": 1}.`a b`', 1),
    ("a key may be several words", "{full name: 1}", {"full name": 1}),
    ("a key may be a word of the language", "{in: 1, if: 2}.if", 2),
    ("an entry that is missing is null", "{a: 1}.b", None),
    ("a path into null is null", "null.a", None),
    ("a path into a missing variable is null", "x.y.z", None),
    ("a path into a number is null", "(1).a", None),
    ("a path over a list goes into each item", "[{a: 1}, {a: 2}].a", [1, 2]),
    ("an item without the entry gives null", "[{a: 1}, {b: 2}].a", [1, None]),
    ("a path may follow a path over a list", "orders.lines", [[{"sku": "a"}, {"sku": "b"}], [],
     [{"sku": "c"}]], ORDERS),
    ("a name in backticks", "`my var` + 1", 3, {"my var": 2}),
    ("a name with letters of any language", "größe", 5, {"größe": 5}),
    ("a variable that is missing is null", "nobody", None),
    ("a variable that is null is null", "x", None, {"x": None}),
)  # fmt: skip
def test_contexts_and_paths(case: Case) -> None:
    check(case)


@table(
    ("the first item has index one", "[10, 20, 30][1]", 10),
    ("the last item has index minus one", "[10, 20, 30][-1]", 30),
    ("minus the length is the first", "[10, 20, 30][-3]", 10),
    ("there is no item zero", "[10, 20, 30][0]", None),
    ("there is nothing behind the last", "[10, 20, 30][4]", None),
    ("an index may be computed", "[10, 20, 30][1 + 1]", 20),
    ("an index may be a variable", "[10, 20, 30][i]", 30, {"i": 3}),
    ("an index is whole", "[10, 20][1.5]", None),
    ("a filter keeps what is true", "[1, 2, 3, 4][item > 2]", [3, 4]),
    ("a filter may keep nothing", "[1, 2][item > 5]", []),
    ("null drops an item", '[1, "a", 3][item > 2]', [3]),
    ("a filter of true keeps all", "[1, 2][true]", [1, 2]),
    ("a filter of false keeps none", "[1, 2][false]", []),
    ("a filter of null keeps none", "[1, 2][null]", []),
    ("entries of an item are names", 'orders[status = "open"].total', [10, 30], ORDERS),
    ("entries hide variables", 'orders[status = "done"].id', [2], ORDERS),
    ("variables are seen inside", "orders[total > limit].id", [2, 3], ORDERS),
    ("item is the item", "orders[item.total > 15].id", [2, 3], ORDERS),
    ("an entry called item comes first", "[{item: 1}, {item: 5}][item > 2]", [{"item": 5}]),
    ("filters may follow each other", 'orders[status = "open"][1].id', 1, ORDERS),
    ("a filter in a filter", 'orders[count(lines[sku = "c"]) = 1].id', [3], ORDERS),
    ("a value is a list of itself", "5[1]", 5),
    ("a value may be filtered", "5[item > 9]", []),
    ("null has no items", "null[1]", None),
    ("a filter of an empty list is empty", "[][item > 1]", []),
    ("logic in a filter", "[1, 2, 3, 4][item > 1 and item < 4]", [2, 3]),
    ("a filter with in", "[1, 2, 3, 4][item in [2..3]]", [2, 3]),
)
def test_filters(case: Case) -> None:
    check(case)


@table(
    ("then when true", 'if 1 < 2 then "a" else "b"', "a"),
    ("else when false", 'if 1 > 2 then "a" else "b"', "b"),
    ("else when null", 'if null then "a" else "b"', "b"),
    ("else when no boolean", 'if 1 then "a" else "b"', "b"),
    ("else reaches as far as it can", "if true then 1 else 2 + 3", 1),
    ("an if in an else", "if false then 1 else if false then 2 else 3", 3),
    ("an if as an operand", "1 + if true then 1 else 2", 2),
    ("for makes a list", "for i in [1, 2, 3] return i * i", [1, 4, 9]),
    ("for counts up", "for i in 1..4 return i", [1, 2, 3, 4]),
    ("for counts down", "for i in 3..1 return i", [3, 2, 1]),
    ("for counts from below zero", "for i in -1..1 return i", [-1, 0, 1]),
    ("the last name changes fastest", "for x in [1, 2], y in [10, 20] return x + y",
     [11, 21, 12, 22]),
    ("a list may depend on a name before", "for x in [[1, 2], [3]], y in x return y * 2",
     [2, 4, 6]),
    ("for over nothing is an empty list", "for i in [] return i", []),
    ("for over a value goes over it alone", "for i in 5 return i + 1", [6]),
    ("for over null is null", "for i in null return i", None),
    ("for over a range", "for i in [1..4) return i", [1, 2, 3]),
    ("for over days", 'for d in @"2026-02-27"..@"2026-03-01" return d.day', [27, 28, 1]),
    ("partial is the list so far", "for i in 1..5 return "
     "if i < 3 then 1 else partial[-1] + partial[-2]", [1, 1, 2, 3, 5]),
    ("partial itself may be kept", "for i in 1..3 return partial", [[], [[]], [[], [[]]]]),
    ("a name of for hides a variable", "for x in [1] return x", [1], {"x": 9}),
    ("some is true for one", "some x in [1, 2, 3] satisfies x > 2", True),
    ("some is false for none", "some x in [1, 2, 3] satisfies x > 3", False),
    ("some of nothing is false", "some x in [] satisfies true", False),
    ("some may be null", 'some x in [1, "a"] satisfies x > 2', None),
    ("some is true beside null", 'some x in ["a", 3] satisfies x > 2', True),
    ("every is true for all", "every x in [1, 2, 3] satisfies x > 0", True),
    ("every is false for one", "every x in [1, 2, 3] satisfies x > 1", False),
    ("every of nothing is true", "every x in [] satisfies false", True),
    ("every may be null", "every x in [1, null] satisfies x > 0", None),
    ("several names", "some x in [1, 2], y in [2, 3] satisfies x = y", True),
    ("each name may use those before", "every x in [[1], [2]], y in x satisfies y < 3", True),
    ("some behind and", "true and some x in [1] satisfies x = 1", True),
    ("some over null is null", "some x in null satisfies x", None),
)  # fmt: skip
def test_conditions_and_loops(case: Case) -> None:
    check(case)


@table(
    ("a function is called", "(function(a, b) a + b)(1, 2)", 3),
    ("a function in a context", "{f: function(x) x * 2, y: f(4)}.y", 8),
    ("a function by path", "{f: function(x) x * 2}.f(4)", 8),
    ("named arguments in any order", "{f: function(a, b) a - b, y: f(b: 1, a: 5)}.y", 4),
    ("a function sees where it was made", "{n: 10, f: function(x) x + n, y: f(1)}.y", 11),
    ("a function keeps what it saw", "for f in (for i in 1..3 return function(x) x * i) "
     "return f(10)", [10, 20, 30]),
    ("a function without parameters", "(function() 7)()", 7),
    ("a function of a function", "(function(f, x) f(f(x)))(function(x) x + 1, 1)", 3),
    ("a function may call what it is given", "(function(f, n) f(f, n))(function(f, n) "
     "if n < 2 then 1 else n * f(f, n - 1), 5)", 120),
    ("too few arguments are null", "(function(a, b) a)(1)", None),
    ("a wrong type is null", '(function(a: number) a)("x")', None),
    ("a right type is fine", "(function(a: number) a + 1)(1)", 2),
    ("what is no function is not called", "x(1)", None, {"x": 5}),
    ("what is not there is not called", "nobody(1)", None),
    ("built-ins take positions", 'substring("foobar", 3)', "obar"),
    ("built-ins take names", 'substring(start position: 3, string: "foobar")', "obar"),
    ("optional names may be left out", 'string join(list: ["a", "b"])', "ab"),
    ("wrong names are null", 'substring(text: "foobar", start position: 3)', None),
    ("a missing argument is null", "substring()", None),
    ("an argument too many is null", "count([1], 2)", None),
    ("a list of one stands for its item", "abs([-1])", 1),
    ("a value stands for a list of it", "count(5)", 1),
    ("null stands for nothing", "count(null)", None),
    ("a name that is given hides a built-in", "{count: function(x) 99, y: count([1])}.y", 99),
)  # fmt: skip
def test_functions(case: Case) -> None:
    check(case)


@table(
    ("year", '@"2026-07-31".year', 2026),
    ("month", '@"2026-07-31".month', 7),
    ("day", '@"2026-07-31".day', 31),
    ("weekday from Monday", '@"2026-07-31".weekday', 5),
    ("hour", '@"2026-07-31T10:20:30".hour', 10),
    ("minute", '@"10:20:30".minute', 20),
    ("second", '@"10:20:30".second', 30),
    ("second with a fraction", '@"10:20:30.5".second', D("30.5")),
    ("time offset", '@"10:20:30+02:00".time offset', timedelta(hours=2)),
    ("no time offset", '@"10:20:30".time offset', None),
    ("offset of a zone", '@"2026-07-31T10:20:30@Europe/Paris".time offset', timedelta(hours=2)),
    ("timezone", '@"2026-07-31T10:20:30@Europe/Paris".timezone', "Europe/Paris"),
    ("days", '@"P2DT20H14M5S".days', 2),
    ("hours", '@"P2DT20H14M5S".hours', 20),
    ("minutes", '@"P2DT20H14M5S".minutes', 14),
    ("seconds", '@"P2DT20H14M5S".seconds', 5),
    ("parts of a negative duration", '@"-P1DT2H".hours', -2),
    ("years", '@"P1Y14M".years', 2),
    ("months", '@"P1Y14M".months', 2),
    ("a date has no hour", '@"2026-07-31".hour', None),
    ("of each in a list", '[@"2026-07-31", @"2027-01-01"].year', [2026, 2027]),
    ("start of a range", "[1..5].start", 1),
    ("whether the end is included", "[1..5).end included", False),
)
def test_properties(case: Case) -> None:
    check(case)


def test_values_of_every_kind_come_through_variables() -> None:
    given = {"d": date(2026, 1, 31), "m": YearsMonths(1), "t": timedelta(hours=1)}
    assert evaluated("d + m", given) == date(2026, 2, 28)
    assert evaluated("t * 3", given) == timedelta(hours=3)
