"""`bench/recorded.json`: what a unit cost when it was recorded, and whether it costs more now.

Processor time differs from machine to machine, so it is kept as a multiple of a yardstick: a fixed
piece of Python that is measured beside every round. Rounds of the same code differ too. How far
apart they are is the null run: if that is beyond half the tolerance, the machine is too busy to
tell, and nothing is said.
"""

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.places import ROOT

RECORDED = ROOT / "bench" / "recorded.json"
TOLERANCE = 0.10  # a unit may cost so much more than recorded before it counts as slower
_YARDSTICK_ROUNDS = 2_000
_ROWS = 20

SLOWER, QUICKER, SAME = "slower", "quicker", "as recorded"
NOISY, NEW = "too noisy to tell", "not recorded"


class _Row(msgspec.Struct):
    key: int
    name: str
    due: int
    payload: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Row]).decode


def yardstick_us() -> float:
    """The processor time of a piece of Python that does what a node does most: rows, bytes, dicts.

    It is part of every recorded number: a change of it makes them worthless.
    """
    begun = time.process_time()
    table: dict[int, _Row] = {}
    heap: list[tuple[int, int]] = []
    for number in range(_YARDSTICK_ROUNDS):
        rows = [_Row(number * _ROWS + n, f"row-{n}", n ^ number, b"x" * n) for n in range(_ROWS)]
        for row in _decode(_encode(rows)):
            table[row.key] = row
            heappush(heap, (row.due, row.key))
        for _ in range(_ROWS):
            _, key = heappop(heap)
            del table[key]
    assert not table, "every row that was put in is taken out"
    return (time.process_time() - begun) * 1e6


class Comparison(NamedTuple):
    """A unit's cost now by what was recorded, and how far rounds of the same code are apart."""

    word: str
    ratio: float | None
    null: float | None

    def row(self) -> dict[str, Any]:
        return {
            "word": self.word, "ratio": self.ratio, "null": self.null, "tolerance": TOLERANCE
        }  # fmt: skip


def compare(yardsticks: Sequence[float], recorded: float | None) -> Comparison:
    """A cost of each round, in yardsticks, by the recorded one."""
    null = null_of(yardsticks)
    if recorded is None:
        return Comparison(NEW, None, null)
    ratio = statistics.median(yardsticks) / recorded
    if 1 - TOLERANCE <= ratio <= 1 + TOLERANCE:
        return Comparison(SAME, ratio, null)
    if null is None or null > 1 + TOLERANCE / 2:
        return Comparison(NOISY, ratio, null)
    return Comparison(SLOWER if ratio > 1 else QUICKER, ratio, null)


def null_of(yardsticks: Sequence[float]) -> float | None:
    """The same code twice: how far a round is from the one before it, at the median, from 1 on."""
    apart = [max(one / other, other / one) for one, other in pairwise(yardsticks)]
    return statistics.median(apart) if apart else None


def load(path: Path = RECORDED) -> dict[str, float]:
    """Yardsticks by `benchmark · figure`; none if nothing was ever recorded."""
    if not path.exists():
        return {}
    return {name: float(value) for name, value in json.loads(path.read_text()).items()}


def save(costs: Mapping[str, float], path: Path = RECORDED) -> None:
    """Records new costs; what was not measured stays as it is."""
    merged = load(path) | {name: round(value, 6) for name, value in costs.items()}
    path.write_text(json.dumps(dict(sorted(merged.items())), indent=2, ensure_ascii=False) + "\n")


def name_of(benchmark: str, figure: str) -> str:
    return f"{benchmark} · {figure}"
