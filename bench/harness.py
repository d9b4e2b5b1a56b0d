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

from bench import recorded
from bench.costs import Sample, instructions_of, medians
from bench.instructions import missing
from bench.places import SCRATCH

ROUNDS = 5
Measure = Callable[[], float | Sample]
ALONE = "measured alone, without its peers"


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
    cost_of: str = ""  # what a Sample's cost is of, as in "task"; empty: it has none

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
    alone: bool = False  # only what has a cost, without peers

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
    cost: Mapping[str, Any] = field(default_factory=dict)  # of a unit, see `_cost`

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
        extras = {
            "peers": self.peers,
            "skipped": self.skipped,
            "left_out": self.left_out,
            "cost": self.cost,
        }
        return row | {name: extra for name, extra in extras.items() if extra}


class Progress(Protocol):
    """Somebody who watches the run."""

    def begin(self, name: str, figure: str, measurements: int) -> None: ...

    def measuring(self, what: str) -> None: ...

    def end(self, result: Result) -> None: ...


def measure(
    name: str, figure: Figure, rounds: int, progress: Progress, *, alone: bool = False
) -> Result:
    """Ours, peer, ours, peer, ...: so that a change of the machine's mood hits both."""
    goal = Goal(figure.goal)
    warm_ups = int(figure.warm_up)
    rounds = rounds if figure.rounds_max is None else min(rounds, figure.rounds_max)
    labels = () if alone else tuple(figure.peers)
    progress.begin(name, figure.name, (rounds + warm_ups) * (1 + len(labels)))
    ours: list[float | Sample] = []
    peers: dict[str, list[float | Sample]] = {label: [] for label in labels}
    yardsticks: list[float] = []  # beside each round, where there is a cost
    left_out: dict[str, str] = {}
    skipped = ALONE if alone else None
    try:
        for number in range(rounds + warm_ups):
            progress.measuring("ours")
            value = figure.ours()
            yardstick = recorded.yardstick_us() if figure.cost_of else 0.0
            theirs = {} if alone else _measure_peers(figure, left_out, progress)
            if number < warm_ups:
                continue
            ours.append(value)
            yardsticks.append(yardstick)
            for label, measured in theirs.items():
                peers[label].append(measured)
    except UnmeasurableError as unavailable:
        skipped = str(unavailable)
    whole = {label: values for label, values in peers.items() if label not in left_out}
    values = {label: list(map(value_of, each)) for label, each in whole.items()}
    counts = bool(ours) and skipped is None
    result = Result(
        name,
        figure.name,
        figure.against,
        figure.goal,
        figure.unit,
        list(map(value_of, ours)) if counts else [],
        [goal.best(each) for each in zip(*values.values(), strict=True)] if counts else [],
        {label: statistics.median(each) for label, each in values.items()}
        if counts and len(peers) > 1
        else {},
        skipped,
        left_out,
        _cost(name, figure, ours, whole, yardsticks) if figure.cost_of and ours else {},
    )
    progress.end(result)
    return result


def value_of(measured: float | Sample) -> float:
    """A measurement without what it cost."""
    return measured.value if isinstance(measured, Sample) else measured


def _samples(measured: Sequence[float | Sample]) -> list[Sample]:
    return [each for each in measured if isinstance(each, Sample)]


def _cost(
    name: str,
    figure: Figure,
    measured: Sequence[float | Sample],
    peers: Mapping[str, Sequence[float | Sample]],
    yardsticks: Sequence[float],
) -> dict[str, Any]:
    """What a unit cost ours and the peers, and by what was recorded."""
    ours = _samples(measured)
    theirs = {label: each for label, every in peers.items() if (each := _samples(every))}
    best = [min(each.all_us for each in round_) for round_ in zip(*theirs.values(), strict=True)]
    in_yardsticks = [each.all_us / us for each, us in zip(ours, yardsticks, strict=True)]
    before = recorded.load().get(recorded.name_of(name, figure.name))
    counted = {label: instructions_of(each) for label, each in {"ours": ours, **theirs}.items()}
    return {
        "of": figure.cost_of,
        "ours": medians(ours),
        "peers": {label: medians(each) for label, each in theirs.items()},
        "ratio": statistics.median(
            each.all_us / other for each, other in zip(ours, best, strict=False)
        )
        if best
        else None,
        "instructions": counted if counted["ours"] else f"none: {missing()}",
        "yardsticks": statistics.median(in_yardsticks),
        "recorded": recorded.compare(in_yardsticks, before).row(),
    }


def _measure_peers(
    figure: Figure, left_out: dict[str, str], progress: Progress
) -> dict[str, float | Sample]:
    """Each peer's value; one that fails is left out from then on, unless it was the last one."""
    values: dict[str, float | Sample] = {}
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
            if run.wants(figure.name) and (figure.cost_of or not run.alone):
                yield measure(name, figure, run.rounds, progress, alone=run.alone)
    finally:
        close = getattr(figures, "close", None)
        if close is not None:
            close()
