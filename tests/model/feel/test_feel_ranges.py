"""How points and ranges lie to each other: a row for every line of the table in DMN."""

from tests.model.feel.table import Case, check, table


def rows(*lines: str) -> list[tuple[str, str, bool]]:
    """`name(a, b)` is true, and with `!` before it false."""
    return [
        (("is not so" if line.startswith("!") else "is so"), line.lstrip("!"), line[0] != "!")
        for line in lines
    ]


@table(*rows(
    "before(1, 10)", "!before(10, 1)", "!before(1, 1)", "!before(1, [1..10])",
    "before(1, (1..10])", "before(1, [5..10])", "!before([1..10], 10)", "before([1..10), 10)",
    "before([1..10], 15)", "before([1..10], [15..20])", "!before([1..10], [10..20])",
    "before([1..10), [10..20])", "before([1..10], (10..20])",
    "after(10, 5)", "!after(5, 10)", "after(12, [1..10])", "after(10, [1..10))",
    "!after(10, [1..10])", "after([11..20], 10)", "after((11..20], 11)", "!after([11..20], 12)",
    "after([11..20], [1..10])", "!after([1..10], [11..20])", "!after([10..20], [1..10])",
    "after([10..20], [1..10))", "after((10..20], [1..10])",
    "meets([1..5], [5..10])", "!meets([1..5), [5..10])", "!meets([1..5], (5..10])",
    "!meets([1..5], [6..10])",
    "met by([5..10], [1..5])", "!met by([5..10], [1..5))", "!met by((5..10], [1..5])",
    "overlaps([1..5], [3..8])", "overlaps([3..8], [1..5])", "overlaps([1..8], [3..5])",
    "overlaps([3..5], [1..8])", "!overlaps([1..5], [6..8])", "!overlaps([6..8], [1..5])",
    "overlaps([1..5], [5..8])", "!overlaps([1..5], (5..8])", "!overlaps([1..5), [5..8])",
    "overlaps([5..8], [1..5])", "!overlaps((5..8], [1..5])",
    "overlaps before([1..5], [3..8])", "!overlaps before([1..5], [6..8])",
    "overlaps before([1..5], [5..8])", "!overlaps before([1..5), [5..8])",
    "overlaps before([1..5), (1..5])", "overlaps before([1..5], (1..5])",
    "!overlaps before([1..5], [1..5])", "!overlaps before([1..9], [3..8])",
    "overlaps after([3..8], [1..5])", "!overlaps after([6..8], [1..5])",
    "overlaps after([5..8], [1..5])", "!overlaps after((5..8], [1..5])",
    "overlaps after((1..5], [1..5])", "overlaps after((1..5], [1..5))",
    "!overlaps after([1..5], [1..5])",
    "finishes(10, [1..10])", "!finishes(10, [1..10))", "finishes([5..10], [1..10])",
    "!finishes([5..10), [1..10])", "finishes([5..10), [1..10))", "finishes([1..10], [1..10])",
    "finishes((1..10], [1..10])",
    "finished by([1..10], 10)", "!finished by([1..10), 10)", "finished by([1..10], [5..10])",
    "!finished by([1..10], [5..10))", "finished by([1..10], (1..10])",
    "includes([1..10], 5)", "!includes([1..10], 12)", "includes([1..10], 1)",
    "includes([1..10], 10)", "!includes((1..10], 1)", "!includes([1..10), 10)",
    "includes([1..10], [4..6])", "includes([1..10], [1..5])", "includes((1..10], (1..5])",
    "includes([1..10], (1..10))", "!includes((1..10), [1..10])", "includes([1..10], [1..10])",
    "during(5, [1..10])", "!during(12, [1..10])", "during(1, [1..10])", "!during(1, (1..10])",
    "during([4..6], [1..10])", "during((1..5], (1..10])", "!during([1..10], (1..10))",
    "starts(1, [1..10])", "!starts(1, (1..10])", "!starts(2, [1..10])",
    "starts([1..5], [1..10])", "starts((1..5], (1..10])", "!starts((1..5], [1..10])",
    "!starts([1..5], (1..10])", "starts([1..10], [1..10])", "starts([1..10), [1..10])",
    "started by([1..10], 1)", "!started by((1..10], 1)", "started by([1..10], [1..5])",
    "!started by([1..10], (1..5])", "started by([1..10], [1..10))",
    "coincides(5, 5)", "!coincides(3, 4)", "coincides([1..5], [1..5])",
    "!coincides((1..5), [1..5])", "!coincides([1..5], [2..6])",
))  # fmt: skip
def test_relations(case: Case) -> None:
    check(case)


@table(
    ("dates are points too", 'before(@"2026-01-01", @"2026-01-02")', True),
    ("ranges of dates", 'includes([@"2026-01-01"..@"2026-12-31"], @"2026-07-31")', True),
    ("points of different types", 'before(1, "a")', None),
    ("a point and a range do not meet", "meets(1, [1..2])", None),
    ("a range does not lie in a point", "during([1..2], 1)", None),
    ("a point and a range do not coincide", "coincides(1, [1..1])", None),
    ("null is no point", "before(null, 1)", None),
    ("names of arguments", "before(point1: 1, point2: 2)", True),
)
def test_what_they_compare(case: Case) -> None:
    check(case)
