"""Built-in functions that say how points and ranges lie to each other.

A point is taken as the range from itself to itself, both ends included: then one rule serves all.
"""

from collections.abc import Callable
from typing import Any

from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import order
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.values import Range, an, kind_of

Relation = Callable[[Range, Range], bool]


def _before(a: Range, b: Range) -> bool:
    side = order(a.end, b.start)
    return side < 0 or (side == 0 and not (a.end_included and b.start_included))


def _meets(a: Range, b: Range) -> bool:
    return a.end_included and b.start_included and order(a.end, b.start) == 0


def _starts_first(a: Range, b: Range) -> bool:
    """Whether a starts where b does, or before."""
    side = order(a.start, b.start)
    return side < 0 or (side == 0 and (a.start_included or not b.start_included))


def _ends_last(a: Range, b: Range) -> bool:
    """Whether a ends where b does, or after."""
    side = order(a.end, b.end)
    return side > 0 or (side == 0 and (a.end_included or not b.end_included))


def _overlaps(a: Range, b: Range) -> bool:
    return not _before(a, b) and not _before(b, a)


def _overlaps_before(a: Range, b: Range) -> bool:
    starts_earlier = _starts_first(a, b) and not _starts_first(b, a)
    return starts_earlier and not _before(a, b) and _ends_last(b, a)


def _finishes(a: Range, b: Range) -> bool:
    same_end = order(a.end, b.end) == 0 and a.end_included == b.end_included
    return same_end and _starts_first(b, a)


def _includes(a: Range, b: Range) -> bool:
    return _starts_first(a, b) and _ends_last(a, b)


def _starts(a: Range, b: Range) -> bool:
    same_start = order(a.start, b.start) == 0 and a.start_included == b.start_included
    return same_start and _ends_last(b, a)


def _coincides(a: Range, b: Range) -> bool:
    return _includes(a, b) and _includes(b, a)


def _flipped(relation: Relation) -> Relation:
    return lambda a, b: relation(b, a)


# What the two may be: points, or the first one a point, or the second one, or both ranges.
POINTS, FIRST, SECOND, RANGES = "points", "first", "second", "ranges"
ALL = {POINTS, FIRST, SECOND, RANGES}
RELATIONS: list[tuple[str, Relation, set[str], str, str]] = [
    ("before", _before, ALL, "Whether the first ends before the second starts.", "[1..5], 10"),
    ("after", _flipped(_before), ALL, "Whether the first starts after the second ends.",
     "[5..8], 1"),
    ("meets", _meets, {RANGES}, "Whether the first ends where the second starts.",
     "[1..5], [5..9]"),
    ("met by", _flipped(_meets), {RANGES}, "Whether the first starts where the second ends.",
     "[5..9], [1..5]"),
    ("overlaps", _overlaps, {RANGES}, "Whether two ranges have a point in common.",
     "[1..5], [3..9]"),
    ("overlaps before", _overlaps_before, {RANGES},
     "Whether the first starts before the second and ends in it.", "[1..5], [3..9]"),
    ("overlaps after", _flipped(_overlaps_before), {RANGES},
     "Whether the first starts in the second and ends after it.", "[3..9], [1..5]"),
    ("finishes", _finishes, {FIRST, RANGES}, "Whether the first is the end of the second.",
     "5, [1..5]"),
    ("finished by", _flipped(_finishes), {SECOND, RANGES},
     "Whether the second is the end of the first.", "[1..5], 5"),
    ("includes", _includes, {SECOND, RANGES}, "Whether the second lies in the first.",
     "[1..9], 5"),
    ("during", _flipped(_includes), {FIRST, RANGES}, "Whether the first lies in the second.",
     "5, [1..9]"),
    ("starts", _starts, {FIRST, RANGES}, "Whether the first is the start of the second.",
     "1, [1..5]"),
    ("started by", _flipped(_starts), {SECOND, RANGES},
     "Whether the second is the start of the first.", "[1..5], 1"),
    ("coincides", _coincides, {POINTS, RANGES}, "Whether both are the same.", "[1..5], [1..5]"),
]  # fmt: skip
SHAPES = {
    (False, False): POINTS,
    (False, True): FIRST,
    (True, False): SECOND,
    (True, True): RANGES,
}  # by which of the two are ranges


NAMES = {
    POINTS: ("point1", "point2"),
    FIRST: ("point", "range"),
    SECOND: ("range", "point"),
    RANGES: ("range1", "range2"),
}  # of the two, as the specification calls them


def _names(shapes: set[str]) -> tuple[str, str]:
    """What the two parameters are called, by each of the shapes."""
    pairs = [names for shape, names in NAMES.items() if shape in shapes]
    return "/".join(first for first, _ in pairs), "/".join(second for _, second in pairs)


def _function(name: str, relation: Relation, shapes: set[str]) -> Callable[[Run, Any, Any], bool]:
    def relate(run: Run, a: Any, b: Any) -> bool:
        if SHAPES[type(a) is Range, type(b) is Range] not in shapes:
            raise Problem(f"'{name}' does not compare {an(kind_of(a))} with {an(kind_of(b))}")
        return relation(_ranged(a), _ranged(b))

    return relate


def _ranged(value: Any) -> Range:
    return value if type(value) is Range else Range(value, value)


for _name, _relation, _shapes, _description, _example in RELATIONS:
    _first, _second = _names(_shapes)
    _row = builtin(
        f"{_name}({_first}: any, {_second}: any)", _description, f"{_name}({_example})", "true", 60
    )
    _row(_function(_name, _relation, _shapes))
