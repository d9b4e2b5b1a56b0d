"""Literals, arithmetic, logic and comparison, as DMN's text on expressions states them."""

from datetime import date, time, timedelta

from tests.model.feel.table import Case, D, check, table

from holdfast.model.feel import YearsMonths

EPSILON = D("0.3333333333333333333333333333333333")  # 34 digits


@table(
    ("a whole number is exact", "42", 42),
    ("a number may begin with its point", ".5", D("0.5")),
    ("a number may have an exponent", "1.2e3", 1200),
    ("an exponent may be negative", "25E-2", D("0.25")),
    ("zeros at the end say nothing", "1.500", D("1.5")),
    ("an integral decimal is whole", "2.0", 2),
    ("a minus makes a number negative", "-7", -7),
    ("strings are in double quotes", '"a b"', "a b"),
    ("a string may be empty", '""', ""),
    ("a quote in a string is escaped", r'"say \"hi\""', 'say "hi"'),
    ("control characters are escaped", r'"a\tb\nc\rd"', "a\tb\nc\rd"),
    ("a backslash is escaped", r'"a\\b"', r"a\b"),
    ("a character may be written by its number", r'"\u00e4"', "ä"),
    ("six digits reach every character", r'"\U01F40E"', "🐎"),
    ("two surrogates are one character", r'"\uD83D\uDC0E"', "🐎"),
    ("an escape that is none stays", r'"\d+"', r"\d+"),
    ("true is true", "true", True),
    ("false is false", "false", False),
    ("null is null", "null", None),
    ("an at sign makes a date", '@"2026-07-31"', date(2026, 7, 31)),
    ("an at sign makes a time", '@"10:30:00"', time(10, 30)),
    ("an at sign makes a duration of days", '@"P1DT2H"', timedelta(days=1, hours=2)),
    ("an at sign makes a duration of months", '@"P1Y2M"', YearsMonths(14)),
    ("a bad literal after an at sign is null", '@"2026-02-30"', None),
    ("a comment reaches to the end of the line", "1 // one\n+ 2", 3),
    ("a comment may be inside", "1 /* and * so / on */ + 2", 3),
    ("an empty list is a list", "[ ]", []),
    ("a list may mix types", '[1, "a", true, null]', [1, "a", True, None]),
    ("an empty context is a context", "{}", {}),
    ("spaces around do not matter", "  \n 1 \t", 1),
)
def test_literals(case: Case) -> None:
    check(case)


@table(
    ("addition", "1 + 2", 3),
    ("subtraction is from left to right", "10 - 3 - 2", 5),
    ("multiplication comes before addition", "1 + 2 * 3", 7),
    ("brackets come first", "(1 + 2) * 3", 9),
    ("an exact quotient is whole", "4 / 2", 2),
    ("a quotient has 34 digits", "1 / 3", EPSILON),
    ("division is from left to right", "8 / 4 / 2", 1),
    ("division by zero is null", "1 / 0", None),
    ("a power", "2 ** 10", 1024),
    ("a power of a fraction", "2 ** -1", D("0.5")),
    ("a power is from left to right", "2 ** 3 ** 2", 64),
    ("a power comes before multiplication", "3 * 2 ** 2", 12),
    ("a minus belongs to its operand", "-2 ** 2", 4),
    ("two minuses are none", "--5", 5),
    ("a minus of a variable", "-x", -3, {"x": 3}),
    ("decimals add exactly", "0.1 + 0.2", D("0.3")),
    ("a sum of decimals may be whole", "0.5 + 0.5", 1),
    ("large ints stay exact up to 34 digits", "9999999999999999999999999999999998 + 1",
     9999999999999999999999999999999999),
    ("beyond 34 digits a number is rounded", "9999999999999999999999999999999999 * 10 + 4",
     D("9.999999999999999999999999999999999E+34")),
    ("a number beyond the largest is null", "10 ** 7000", None),
    ("a root of a negative number is null", "(-1) ** 0.5", None),
    ("zero has no sign", "0 * -1.5", 0),
    ("a float from outside is a decimal", "x + 0.2", D("0.3"), {"x": 0.1}),
    ("a float inside a context is a decimal", "x.y", D("0.1"), {"x": {"y": 0.1}}),
    ("a float inside a list is a decimal", "xs[1] = 0.1", True, {"xs": [0.1]}),
    ("an integral float is whole", "x", 2, {"x": 2.0}),
    ("strings are joined by plus", '"foo" + "bar"', "foobar"),
    ("strings are not subtracted", '"foo" - "o"', None),
    ("a string and a number are not added", '"a" + 1', None),
    ("a number and null are not added", "1 + null", None),
    ("booleans are no numbers", "true + 1", None),
    ("lists are not added", "[1] + [2]", None),
)  # fmt: skip
def test_arithmetic(case: Case) -> None:
    check(case)


TRUTHS = {True: "true", False: "false", None: "null"}
AND = {
    (True, True): True, (True, False): False, (True, None): None,
    (False, True): False, (False, False): False, (False, None): False,
    (None, True): None, (None, False): False, (None, None): None,
}  # fmt: skip
OR = {
    (True, True): True, (True, False): True, (True, None): True,
    (False, True): True, (False, False): False, (False, None): None,
    (None, True): True, (None, False): None, (None, None): None,
}  # fmt: skip


@table(
    *(("the table of and", f"{TRUTHS[a]} and {TRUTHS[b]}", value) for (a, b), value in AND.items()),
    *(("the table of or", f"{TRUTHS[a]} or {TRUTHS[b]}", value) for (a, b), value in OR.items()),
    ("not of true", "not(true)", False),
    ("not of false", "not(false)", True),
    ("not of null", "not(null)", None),
    ("not of anything else", "not(1)", None),
    ("and comes before or", "true or false and false", True),
    ("brackets change that", "(true or false) and false", False),
    ("a number counts as null in and", "1 and true", None),
    ("a number counts as null beside false", '"a" and false', False),
    ("a number counts as null in or", "1 or false", None),
    ("a number counts as null beside true", "1 or true", True),
    ("many may be joined", "true and true and true and false", False),
    ("what is false decides, even behind null", "x and y and false", False),
)
def test_logic(case: Case) -> None:
    check(case)


@table(
    ("numbers are equal by value", "1 = 1.0", True),
    ("strings are equal by their characters", '"a" = "A"', False),
    ("null equals null", "null = null", True),
    ("nothing else equals null", "0 = null", False),
    ("null is not a number", "null != 0", True),
    ("values of different types have no equality", '1 = "1"', None),
    ("nor inequality", "true != 1", None),
    ("lists are equal item by item", "[1, 2] = [1, 2]", True),
    ("the order of items matters", "[1, 2] = [2, 1]", False),
    ("the length of lists matters", "[1, 2] = [1]", False),
    ("items of different types are different", '[1] = ["1"]', False),
    ("true inside a list is not one", "[true] = [1]", False),
    ("contexts are equal entry by entry", "{a: 1, b: 2} = {b: 2, a: 1}", True),
    ("contexts with other keys are different", "{a: 1} = {b: 1}", False),
    ("contexts are compared in depth", "{a: [1, {b: 2}]} = {a: [1, {b: 3}]}", False),
    ("ranges are equal by their ends", "[1..2] = [1..2]", True),
    ("the ends of ranges matter", "[1..2] = [1..2)", False),
    ("less than", "1 < 2", True),
    ("less or equal", "2 <= 2", True),
    ("greater than", "1 > 2", False),
    ("greater or equal", "2.5 >= 2.4", True),
    ("not equal", "1 != 2", True),
    ("strings have an order", '"abc" < "abd"', True),
    ("booleans have none", "true > false", None),
    ("lists have none", "[1] < [2]", None),
    ("null has none", "null < 1", None),
    ("different types have none", '1 < "2"', None),
    ("dates have an order", '@"2026-01-01" < @"2026-01-02"', True),
    ("times have an order", '@"10:00:00" > @"09:59:59"', True),
    ("durations have an order", '@"PT1H" < @"P1D"', True),
    ("months have an order", '@"P1Y" = @"P12M"', True),
    ("months and days have none", '@"P1M" < @"P31D"', None),
    ("moments are equal by their instant", '@"2026-01-01T10:00:00Z" = @"2026-01-01T11:00:00+01:00"',
     True),
    ("a zone's name gives its offset",
     '@"2026-07-01T12:00:00@Europe/Paris" = @"2026-07-01T10:00:00Z"', True),
    ("with and without a zone have no order", '@"2026-01-01T10:00:00Z" < @"2026-01-01T11:00:00"',
     None),
    ("a comparison may be compared", "1 < 2 = true", True),
    ("arithmetic comes before comparison", "1 + 1 = 2", True),
    ("comparison comes before logic", "1 < 2 and 3 > 2", True),
)  # fmt: skip
def test_comparison(case: Case) -> None:
    check(case)


@table(
    ("between includes its ends", "5 between 1 and 5", True),
    ("between is false outside", "6 between 1 and 5", False),
    ("between is null for null", "null between 1 and 5", None),
    ("between needs both ends", "3 between null and 5", None),
    ("between goes with and", "5 between 1 and 5 and true", True),
    ("between takes sums", "5 between 1 + 1 and 2 * 3", True),
    ("a closed range includes its ends", "5 in [1..5]", True),
    ("an open end is not included", "5 in [1..5)", False),
    ("an open start is not included", "1 in (1..5]", False),
    ("a bracket turned away is open too", "5 in ]1..5[", False),
    ("inside an open range", "3 in ]1..5[ and true", True),
    ("a range of strings", '"b" in ["a".."c"]', True),
    ("a range of dates", '@"2026-01-15" in [@"2026-01-01"..@"2026-01-31"]', True),
    ("a range needs ends of one type", '1 in [1.."a"]', None),
    ("another type is not in a range", '"a" in [1..5]', None),
    ("an operator as a test", "5 in > 3", True),
    ("an operator as a test may fail", "5 in <= 3", False),
    ("one of several tests", "5 in (> 9, < 6)", True),
    ("none of several tests", "5 in (> 9, < 3)", False),
    ("values as tests", '"b" in ("a", "b")', True),
    ("ranges and values as tests", "7 in (1, [5..8])", True),
    ("a list as a test", "2 in [1, 2, 3]", True),
    ("not in a list", "4 in [1, 2, 3]", False),
    ("a list of ranges as a test", "7 in [[1..2], [5..8]]", True),
    ("a single value in brackets", "1 in (1)", True),
    ("a list from a variable", "x in xs", True, {"x": 2, "xs": [1, 2]}),
    ("null in a list with null", "null in [1, null]", True),
    ("an equals sign as a test", "3 in (= 3)", True),
    ("a test that is null and one that is true", '3 in (< "a", 3)', True),
    ("a test that is null and none that is true", '3 in (< "a", 4)', None),
)
def test_membership(case: Case) -> None:
    check(case)


@table(
    ("a number", "1 instance of number", True),
    ("a string is no number", '"1" instance of number', False),
    ("a boolean", "true instance of boolean", True),
    ("a list", "[] instance of list", True),
    ("a list of numbers", "[1, 2] instance of list<number>", True),
    ("a list of numbers with a string", '[1, "a"] instance of list<number>', False),
    ("a context", "{} instance of context", True),
    ("a context with types", '{a: 1, b: "x"} instance of context<a: number, b: string>', True),
    ("a context that lacks a key", "{a: 1} instance of context<a: number, b: string>", False),
    ("a date", '@"2026-01-01" instance of date', True),
    ("a date is no date and time", '@"2026-01-01" instance of date and time', False),
    ("a date and time", '@"2026-01-01T00:00:00" instance of date and time', True),
    ("a time", '@"00:00:00" instance of time', True),
    ("a duration of days", '@"P1D" instance of days and time duration', True),
    ("a duration of months", '@"P1M" instance of years and months duration', True),
    ("a range", "[1..2] instance of range<number>", True),
    ("a function", "(function(a) a) instance of function", True),
    ("null is of its own type", "null instance of Null", True),
    ("null is not anything", "null instance of Any", False),
    ("anything else is", "1 instance of Any", True),
)
def test_types(case: Case) -> None:
    check(case)
