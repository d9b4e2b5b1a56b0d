"""The ways of flows through a picture: along the rows, and up or down between the columns.

A way is known by heights first; the widths follow, when it is clear how many ways go up or down
between two columns. Gateways and boundary events let go of their flows at a corner where nothing is
in the way.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from holdfast.model.drawing.layers import Layers, Link

TRACK = 12.0  # between two ways that go up or down side by side
TRACKS_MAX = 30  # beyond it ways lie on each other: a picture as wide as that shows nothing
GAP_MIN = 50.0
STUB = 16.0  # what a flow goes down from a boundary event before it turns


class Body(NamedTuple):
    """An element as a way sees it."""

    width: float
    height: float
    corners: bool = False  # a gateway, with flows at all its corners
    bare: bool = True  # no boundary events hang below it


class Anchor(NamedTuple):
    """A place from left to right: off the middle of an element, or between two columns."""

    vertex: int = -1
    offset: float = 0.0
    gap: int = -2  # the column to the left of it; -1 is before the first
    link: int = -1


Point = tuple[Anchor, float]


class Run(NamedTuple):
    """A part of a way that goes up or down between two columns."""

    low: float
    high: float
    link: int
    key: int  # runs of one key may lie on each other: they come from or lead to the same element


class Router:
    """Finds the way of each link through rows that are known."""

    def __init__(
        self, layers: Layers, rows: Sequence[float], bodies: Sequence[Body], links: Sequence[Link]
    ) -> None:
        self.layers = layers
        self.rows = rows
        self.bodies = bodies
        self.links = links
        self.runs: dict[int, list[Run]] = {}
        self.leaving = [0] * len(bodies)
        for link in links:
            self.leaving[link.source] += 1

    def way(self, index: int, event: tuple[float, float] | None) -> list[Point]:
        """The points of a link; `event` is the foot of the boundary event that it leaves."""
        if index in self.layers.back:
            return self._way_back(index, event)
        source, target, _ = self.links[index]
        chain = self.layers.chains[index]
        points, height = self._leave(source, self.rows[chain[1]], event)
        for vertex in chain[1:]:
            row = self.rows[vertex]
            if height == row:
                continue
            if vertex == target and self._may_enter_corner(target, height):
                half = self.bodies[target].height / 2
                corner = row + half if height > row else row - half
                return [*points, (Anchor(target), height), (Anchor(target), corner)]
            points += self._turn(index, self.layers.rank[vertex] - 1, height, row)
            height = row
        points.append((Anchor(target, -self.bodies[target].width / 2), height))
        return points

    def _leave(
        self, source: int, row: float, event: tuple[float, float] | None
    ) -> tuple[list[Point], float]:
        """The first points of a way to a row, and the height at which it goes on."""
        body, own = self.bodies[source], self.rows[source]
        if event is not None:
            offset, foot = event
            straight = row > foot + STUB / 2 and self._is_clear(source, row)
            height = row if straight else foot + STUB
            return [(Anchor(source, offset), foot), (Anchor(source, offset), height)], height
        forks = body.corners and self.leaving[source] > 1
        if forks and row != own and self._is_clear(source, row):
            corner = own + body.height / 2 if row > own else own - body.height / 2
            return [(Anchor(source), corner), (Anchor(source), row)], row
        return [(Anchor(source, body.width / 2), own)], own

    def _way_back(self, index: int, event: tuple[float, float] | None) -> list[Point]:
        """Down, to the left below everything, and up again."""
        source, target, _ = self.links[index]
        places = self.layers.chains[index][::-1]
        ends = self.bodies[source], self.bodies[target]
        feet = [self.rows[end] + self.bodies[end].height / 2 for end in (source, target)]
        if not places:  # there were too many ways to give this one a place
            return [(Anchor(source), feet[0]), (Anchor(target), feet[1])]
        first, last = self.rows[places[0]], self.rows[places[-1]]
        if event is not None:
            points, height = self._leave(source, first, event)
            if height != first:
                points += self._turn(index, self.layers.rank[source], height, first)
        elif ends[0].bare and self._is_clear(source, first):
            points = [(Anchor(source), feet[0]), (Anchor(source), first)]
        else:
            own = self.rows[source]
            points = [(Anchor(source, ends[0].width / 2), own)]
            points += self._turn(index, self.layers.rank[source], own, first)
        for before, after in itertools.pairwise(places):
            if self.rows[before] != self.rows[after]:
                gap = self.layers.rank[after]
                points += self._turn(index, gap, self.rows[before], self.rows[after])
        forks = ends[1].corners and self.leaving[target] > 1  # its lower corner is for the way out
        if ends[1].bare and not forks and self._is_clear(target, last):
            return [*points, (Anchor(target), last), (Anchor(target), feet[1])]
        points += self._turn(index, self.layers.rank[target] - 1, last, self.rows[target])
        return [*points, (Anchor(target, -ends[1].width / 2), self.rows[target])]

    def _turn(self, index: int, gap: int, height: float, row: float) -> list[Point]:
        link = self.links[index]
        key = link.source if self.leaving[link.source] > 1 else -1 - link.target
        run = Run(min(height, row), max(height, row), index, key)
        self.runs.setdefault(gap, []).append(run)
        anchor = Anchor(gap=gap, link=len(self.runs[gap]) - 1)
        return [(anchor, height), (anchor, row)]

    def _may_enter_corner(self, target: int, height: float) -> bool:
        joins = self.bodies[target].corners and self.leaving[target] < 2
        return joins and self._is_clear(target, height)

    def _is_clear(self, vertex: int, row: float) -> bool:
        """Whether no other element is in the way from a vertex to a row in its column."""
        own = self.rows[vertex]
        low, high = min(own, row), max(own, row)
        return not any(
            other != vertex
            and other < len(self.bodies)
            and self.rows[other] + self.bodies[other].height / 2 > low
            and self.rows[other] - self.bodies[other].height / 2 < high
            for other in self.layers.orders[self.layers.rank[vertex]]
        )


def tracks_of(runs: Mapping[int, Sequence[Run]]) -> dict[int, list[int]]:
    """The track of each run between two columns: different ways do not lie on each other."""
    found: dict[int, list[int]] = {}
    for gap, here in runs.items():
        ends: list[tuple[float, int]] = []  # how far each track is taken, and by which key
        tracks = [0] * len(here)
        for place in sorted(range(len(here)), key=lambda each: (here[each].low, here[each].high)):
            run = here[place]
            fits = (
                track for track, (end, key) in enumerate(ends) if end < run.low or key == run.key
            )
            track = next(fits, len(ends) if len(ends) < TRACKS_MAX else 0)
            if track == len(ends):
                ends.append((run.high, run.key))
            ends[track] = (max(run.high, ends[track][0]), run.key)
            tracks[place] = track
        found[gap] = tracks
    return found
