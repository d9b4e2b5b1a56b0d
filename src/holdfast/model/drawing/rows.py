"""The heights of a picture: what follows each other is on one line, and nothing overlaps.

Vertices that follow each other become blocks, as Brandes and Köpf have it; a block is straight.
Blocks are as high up as those above them allow, then sink towards what they are connected to.
"""

import itertools
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from holdfast.model.drawing.layers import Layers

GAP = 26.0  # between two elements above each other


class Extent(NamedTuple):
    """How much room a vertex needs, from its own line upwards and downwards."""

    above: float
    below: float


def rows_of(layers: Layers, extents: Sequence[Extent]) -> list[float]:
    """The height of the middle of each vertex, from zero on downwards."""
    blocks = _blocks(layers)
    constraints = _constraints(layers, extents, blocks)
    wished = constraints + _beside(layers, extents, blocks)
    heights = _place(set(blocks), wished)
    if heights is None:  # what a boundary event leads to is above its host by another way
        wished, heights = constraints, _place(set(blocks), constraints) or {}
    _sink(layers, blocks, wished, heights)
    return [heights[blocks[vertex]] for vertex in range(len(layers.rank))]


def _blocks(layers: Layers) -> list[int]:
    """The block of each vertex: what goes on straight shares one; blocks do not cross."""
    block = list(range(len(layers.rank)))
    inward: list[list[int]] = [[] for _ in layers.rank]
    for left, rights in enumerate(layers.outward):
        for right, beside in rights:
            if not beside and layers.rank[right] == layers.rank[left] + 1:
                inward[right].append(left)
    position = {vertex: place for order in layers.orders for place, vertex in enumerate(order)}
    continued: set[int] = set()
    for order in layers.orders:
        last = -1
        for vertex in order:
            for left in sorted(inward[vertex], key=position.__getitem__):
                if left not in continued and position[left] > last:
                    block[vertex] = block[left]
                    continued.add(left)
                    last = position[left]
                    break
    return block


Constraint = tuple[int, int, float]
"""A block, one below it, and how far below at the least."""


def _constraints(layers: Layers, extents: Sequence[Extent], blocks: list[int]) -> list[Constraint]:
    return [
        (blocks[upper], blocks[lower], extents[upper].below + GAP + extents[lower].above)
        for order in layers.orders
        for upper, lower in itertools.pairwise(order)
    ]


def _beside(layers: Layers, extents: Sequence[Extent], blocks: list[int]) -> list[Constraint]:
    """What follows a boundary event is below its host, where the flow comes out."""
    return [
        (blocks[host], blocks[right], extents[host].below + GAP / 2)
        for host, rights in enumerate(layers.outward)
        for right, beside in rights
        if beside and blocks[right] == right
    ]


def _place(names: set[int], constraints: list[Constraint]) -> dict[int, float] | None:
    """Each block as high as those above it allow; nothing when the constraints go in a circle."""
    below: dict[int, list[tuple[int, float]]] = {name: [] for name in names}
    waiting = dict.fromkeys(names, 0)
    for upper, lower, distance in constraints:
        below[upper].append((lower, distance))
        waiting[lower] += 1
    heights = dict.fromkeys(sorted(names), 0.0)
    ready = [name for name in heights if not waiting[name]]
    for upper in ready:
        for lower, distance in below[upper]:
            heights[lower] = max(heights[lower], heights[upper] + distance)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    return heights if len(ready) == len(names) else None


def _sink(
    layers: Layers, blocks: list[int], constraints: list[Constraint], heights: dict[int, float]
) -> None:
    """Blocks come down to the middle of what they are connected to, as far as there is room."""
    connected: dict[int, list[int]] = {}
    for left, rights in enumerate(layers.outward):
        for right, _ in rights:
            if blocks[left] != blocks[right]:
                connected.setdefault(blocks[left], []).append(blocks[right])
                connected.setdefault(blocks[right], []).append(blocks[left])
    below: dict[int, list[tuple[int, float]]] = {}
    for upper, lower, distance in constraints:
        below.setdefault(upper, []).append((lower, distance))
    for block in sorted(heights, key=lambda name: -heights[name]):
        others = connected.get(block)
        if not others:
            continue
        room = min((heights[low] - far for low, far in below.get(block, ())), default=float("inf"))
        wanted = median(heights[other] for other in others)
        heights[block] = max(heights[block], min(wanted, room))
