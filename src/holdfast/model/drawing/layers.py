"""The columns of a picture: how far each element is from the start, and what is above what.

This is the method of Sugiyama: cycles are turned round, each element gets the column behind those
that lead to it, flows that pass columns get a place in each, and the columns are sorted until few
flows cross.
"""

import itertools
from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import NamedTuple

PLACES_MAX = 20_000
"""Places for flows that pass columns. Beyond it they are drawn over what is there: nobody can read
such a picture, but it has to end."""

SWEEPS = 6  # orders hardly change after four


class Link(NamedTuple):
    """A flow between two elements of one scope, by their numbers."""

    source: int
    target: int
    beside: bool = False  # it leaves a boundary event of the source


class Layers(NamedTuple):
    """Vertices in columns. The first are the elements, the others places that flows pass."""

    rank: list[int]  # the column of each vertex
    orders: list[list[int]]  # the vertices of each column, from top to bottom
    chains: list[list[int]]  # the vertices of each link, from the left to the right
    back: frozenset[int]  # the links that lead to the left
    outward: list[list[tuple[int, bool]]]  # what follows a vertex to the right; whether beside


def layers_of(count: int, links: Sequence[Link]) -> Layers:
    """The columns of so many elements and their links."""
    back = _back_links(count, links)
    rank = _ranks(count, links, back)
    chains = _chains(links, rank, back)
    outward: list[list[tuple[int, bool]]] = [[] for _ in rank]
    for index, chain in enumerate(chains):
        for left, right in itertools.pairwise(chain):
            beside = links[index].beside and left == links[index].source
            outward[left].append((right, beside))
    lowest = {vertex for index in back for vertex in chains[index]}  # ways back run below all
    orders = _sorted(_first_orders(count, rank, outward, lowest), rank, outward, lowest)
    return Layers(rank, orders, chains, back, outward)


def _back_links(count: int, links: Sequence[Link]) -> frozenset[int]:
    """The links that close a cycle when elements are visited from the starts on."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    entered = [False] * count
    for index, link in enumerate(links):
        leaving[link.source].append(index)
        entered[link.target] = entered[link.target] or link.source != link.target
    back: set[int] = set()
    state = [0] * count  # 1: on the way, 2: done
    for root in sorted(range(count), key=lambda vertex: entered[vertex]):
        stack = [] if state[root] else [(root, iter(leaving[root]))]
        state[root] = state[root] or 1
        while stack:
            vertex, rest = stack[-1]
            index = next(rest, None)
            if index is None:
                state[vertex] = 2
                stack.pop()
                continue
            target = links[index].target
            if state[target] == 1:
                back.add(index)
            elif not state[target]:
                state[target] = 1
                stack.append((target, iter(leaving[target])))
    return frozenset(back)


def _ranks(count: int, links: Sequence[Link], back: frozenset[int]) -> list[int]:
    """Each element one column behind the last of those that lead to it."""
    rank = [0] * count
    waiting = [0] * count
    leaving: list[list[int]] = [[] for _ in range(count)]
    for index, link in enumerate(links):
        if index not in back:
            leaving[link.source].append(link.target)
            waiting[link.target] += 1
    ready = [vertex for vertex in range(count) if not waiting[vertex]]
    for vertex in ready:
        for target in leaving[vertex]:
            rank[target] = max(rank[target], rank[vertex] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return rank


def _chains(links: Sequence[Link], rank: list[int], back: frozenset[int]) -> list[list[int]]:
    """The vertices of each link; adds the places that it passes to the ranks.

    A way back has places in the columns of its ends too, for it runs below both of them.
    """
    chains: list[list[int]] = []
    elements = len(rank)
    for index, (source, target, _) in enumerate(links):
        is_back = index in back
        passed = (
            range(rank[target], rank[source] + 1)
            if is_back
            else range(rank[source] + 1, rank[target])
        )
        if len(rank) - elements + len(passed) > PLACES_MAX:
            passed = range(0)
        places = list(range(len(rank), len(rank) + len(passed)))
        rank += passed
        chains.append(places if is_back else [source, *places, target])
    return chains


def _first_orders(
    count: int, rank: list[int], outward: list[list[tuple[int, bool]]], lowest: set[int]
) -> list[list[int]]:
    """Columns in the order in which a walk along the flows comes by: the main way on top."""
    orders: list[list[int]] = [[] for _ in range(max(rank, default=-1) + 1)]
    seen = set(lowest)
    entered = {right for rights in outward for right, _ in rights}
    roots = sorted(range(count), key=lambda vertex: vertex in entered)
    for root in roots:
        stack = [root]
        while stack:
            vertex = stack.pop()
            if vertex in seen:
                continue
            seen.add(vertex)
            orders[rank[vertex]].append(vertex)
            following = sorted(outward[vertex], key=lambda pair: pair[1])  # boundary events last
            stack += [right for right, _ in reversed(following)]
    for vertex in sorted(lowest):
        orders[rank[vertex]].append(vertex)
    return orders


def _sorted(
    orders: list[list[int]],
    rank: list[int],
    outward: list[list[tuple[int, bool]]],
    lowest: set[int],
) -> list[list[int]]:
    """Columns sorted by where their neighbours are, back and forth; the best order that came up."""
    inward: list[list[tuple[int, bool]]] = [[] for _ in rank]
    for left, rights in enumerate(outward):
        for right, beside in rights:
            inward[right].append((left, beside))
    position = [0.0] * len(rank)
    best, fewest = [list(order) for order in orders], _crossings(orders, outward)
    for sweep in range(SWEEPS if fewest else 0):
        to_the_right = sweep % 2 == 0
        neighbours = inward if to_the_right else outward
        for order in orders if to_the_right else reversed(orders):
            for place, vertex in enumerate(order):
                position[vertex] = float(place)
            order.sort(
                key=lambda vertex: (vertex in lowest, _mean(vertex, neighbours[vertex], position))
            )
            for place, vertex in enumerate(order):
                position[vertex] = float(place)
        crossings = _crossings(orders, outward)
        if crossings < fewest:
            best, fewest = [list(order) for order in orders], crossings
    return best


def _mean(vertex: int, neighbours: list[tuple[int, bool]], position: list[float]) -> float:
    """Where the neighbours of a vertex are on average; a boundary event is below its host."""
    if not neighbours:
        return position[vertex]
    return sum(position[each] + beside / 2 for each, beside in neighbours) / len(neighbours)


def _crossings(orders: list[list[int]], outward: list[list[tuple[int, bool]]]) -> int:
    """How many pairs of links cross between neighbouring columns."""
    position = {vertex: place for order in orders for place, vertex in enumerate(order)}
    total = 0
    for order in orders:
        passed: list[int] = []
        for vertex in order:
            ends = [position[right] for right, _ in outward[vertex]]
            total += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return total
