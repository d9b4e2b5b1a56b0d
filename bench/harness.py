"""How a figure is measured: ours and the peer in turn, round by round, and only the ratio counts.

A benchmark is a generator of figures. While the harness measures a figure the generator is
suspended, so whatever it holds open around its `yield` is alive, and is closed when it ends.
"""

import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.places import SCRATCH

ROUNDS = 5
Measure = Callable[[], float]


class UnmeasurableError(Exception):
    """A peer or limit cannot be measured here; the message says why."""


class Goal:
    """What a ratio has to reach, as in `>= 0.85` or `<= 1.2`."""

    def __init__(self, text: str) -> None:
        sign, _, number = text.partition(" ")
        if sign not in (">=", "<="):
            raise ValueError(f"expected a goal such as '>= 0.85' or '<= 1.2', found {text!r}")
        self.text = text
        self.at_least = sign == ">="
        self.ratio = float(number)

    def met_by(self, ratio: float) -> bool:
        return ratio >= self.ratio if self.at_least else ratio <= self.ratio

    def best(self, values: Sequence[float]) -> float:
        """The value that is hardest to beat: the highest rate, or the lowest cost."""
        return max(values) if self.at_least else min(values)


@dataclass(frozen=True)
class Figure:
    """One ratio to measure: what `ours` returns by what `peer` returns.

    Of several peers, all are measured in each round and the best one of the round counts.
    """

    name: str
    against: str
    goal: str
    unit: str
    ours: Measure
    peer: Measure | Mapping[str, Measure]
    warm_up: bool = True  # one round before the first that counts
    rounds_max: int | None = None  # fewer than usual, where one takes minutes

    @property
    def peers(self) -> Mapping[str, Measure]:
        return self.peer if isinstance(self.peer, Mapping) else {self.against: self.peer}


def fixed(value: float) -> Measure:
    """A peer that is a number, such as a budget of bytes or a rate that must be reached."""
    return lambda: value


@dataclass(frozen=True)
class Run:
    """What a benchmark is told about the run that it is part of."""

    quick: bool = False
    rounds: int = ROUNDS
    figures: Sequence[str] = ()  # only those are measured that have one of these in their names

    def wants(self, figure: str) -> bool:
        """Whether the figure of this name is measured."""
        return not self.figures or any(text in figure for text in self.figures)

    def scaled(self, count: int) -> int:
        """How much to do in a measurement: a tenth of it in a quick run."""
        return max(1, count // 10) if self.quick else count

    def folder(self, name: str) -> Path:
        """A new, empty folder on the repository's disk; `remove` it in a `finally`."""
        SCRATCH.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=SCRATCH))


def remove(folder: Path) -> None:
    """Removes what a measurement wrote."""
    shutil.rmtree(folder, ignore_errors=True)


Benchmark = Callable[[Run], Iterator[Figure]]
BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(name: str) -> Callable[[Benchmark], Benchmark]:
    """Registers a generator of figures under the name that `--only` knows it by."""

    def register(function: Benchmark) -> Benchmark:
        if name in BENCHMARKS:
            raise ValueError(f"expected one benchmark named {name!r}, found a second")
        BENCHMARKS[name] = function
        return function

    return register


@dataclass(frozen=True)
class Result:
    """A measured figure, or the reason why it was skipped."""

    name: str
    figure: str
    against: str
    goal: str
    unit: str
    ours: Sequence[float] = ()
    peer: Sequence[float] = ()
    peers: Mapping[str, float] = field(default_factory=dict)  # each one's median, if several
    skipped: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)  # peers that could not be measured

    @property
    def ratios(self) -> list[float]:
        return [ours / peer for ours, peer in zip(self.ours, self.peer, strict=True)]

    @property
    def ratio(self) -> float | None:
        return statistics.median(self.ratios) if self.ours else None

    @property
    def spread(self) -> tuple[float, float] | None:
        return (min(self.ratios), max(self.ratios)) if self.ours else None

    @property
    def met(self) -> bool | None:
        return None if self.ratio is None else Goal(self.goal).met_by(self.ratio)

    def row(self) -> dict[str, Any]:
        """The figure as `build/bench.json` keeps it."""
        row: dict[str, Any] = {
            "name": self.name,
            "figure": self.figure,
            "against": self.against,
            "ratio": self.ratio,
            "goal": self.goal,
            "met": self.met,
            "spread": self.spread and list(self.spread),
            "ours": statistics.median(self.ours) if self.ours else None,
            "peer": statistics.median(self.peer) if self.peer else None,
            "unit": self.unit,
            "rounds": len(self.ours),
        }
        extras = {"peers": self.peers, "skipped": self.skipped, "left_out": self.left_out}
        return row | {name: extra for name, extra in extras.items() if extra}


class Progress(Protocol):
    """Somebody who watches the run."""

    def begin(self, name: str, figure: str, measurements: int) -> None: ...

    def measuring(self, what: str) -> None: ...

    def end(self, result: Result) -> None: ...


def measure(name: str, figure: Figure, rounds: int, progress: Progress) -> Result:
    """Ours, peer, ours, peer, ...: so that a change of the machine's mood hits both."""
    goal = Goal(figure.goal)
    warm_ups = int(figure.warm_up)
    rounds = rounds if figure.rounds_max is None else min(rounds, figure.rounds_max)
    progress.begin(name, figure.name, (rounds + warm_ups) * (1 + len(figure.peers)))
    ours: list[float] = []
    peers: dict[str, list[float]] = {label: [] for label in figure.peers}
    left_out: dict[str, str] = {}
    skipped: str | None = None
    try:
        for number in range(rounds + warm_ups):
            progress.measuring("ours")
            value = figure.ours()
            theirs = _measure_peers(figure, left_out, progress)
            if number < warm_ups:
                continue
            ours.append(value)
            for label, measured in theirs.items():
                peers[label].append(measured)
    except UnmeasurableError as unavailable:
        skipped, ours = str(unavailable), []
    whole = {label: values for label, values in peers.items() if label not in left_out}
    result = Result(
        name,
        figure.name,
        figure.against,
        figure.goal,
        figure.unit,
        ours,
        [goal.best(values) for values in zip(*whole.values(), strict=True)] if ours else [],
        {label: statistics.median(values) for label, values in whole.items()}
        if ours and len(peers) > 1
        else {},
        skipped,
        left_out,
    )
    progress.end(result)
    return result


def _measure_peers(
    figure: Figure, left_out: dict[str, str], progress: Progress
) -> dict[str, float]:
    """Each peer's value; one that fails is left out from then on, unless it was the last one."""
    values: dict[str, float] = {}
    for label, peer in figure.peers.items():
        if label in left_out:
            continue
        progress.measuring(label)
        try:
            values[label] = peer()
        except UnmeasurableError as unavailable:
            left_out[label] = str(unavailable)
    if not values:
        raise UnmeasurableError("; ".join(f"{label}: {why}" for label, why in left_out.items()))
    return values


def run_benchmark(name: str, run: Run, progress: Progress) -> Iterator[Result]:
    """The figures of one benchmark; what it opened is closed whatever happens."""
    figures = BENCHMARKS[name](run)
    try:
        for figure in figures:
            if run.wants(figure.name):
                yield measure(name, figure, run.rounds, progress)
    finally:
        close = getattr(figures, "close", None)
        if close is not None:
            close()
