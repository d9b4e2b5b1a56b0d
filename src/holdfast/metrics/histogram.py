"""Histograms whose buckets double: a value finds its bucket by the number of its bits."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily

Labels = Sequence[str]


class Doubling:
    """Counts whole numbers of a unit, of which a second has so many."""

    def __init__(self, per_second: int, first_bits: int, last_bits: int) -> None:
        self.per_second = per_second
        self.first_bits = first_bits  # what has fewer is counted with it
        self.last_bits = last_bits  # what has more is counted without a bound
        self._counts = [0] * 65  # by number of bits
        self._sum = 0

    def add(self, value: int, times: int = 1) -> None:
        """Counts a value, so many times."""
        self._counts[value.bit_length()] += times
        self._sum += value * times

    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus has them: each counts everything up to its bound."""
        totals = list(accumulate(self._counts))
        shown = range(self.first_bits, self.last_bits + 1)
        bounded = [(str((1 << bits) / self.per_second), totals[bits]) for bits in shown]
        return [*bounded, ("+Inf", totals[-1])]

    @property
    def sum_seconds(self) -> float:
        return self._sum / self.per_second


def job_histogram() -> Doubling:
    """For how long jobs wait or are done, in milliseconds: from 1 ms to 70 minutes."""
    return Doubling(1_000, 0, 22)


def command_histogram() -> Doubling:
    """How soon commands are answered, in microseconds: from 128 us to 17 s."""
    return Doubling(1_000_000, 7, 24)


def histogram_family(
    name: str, text: str, label: Labels, found: Iterable[tuple[Labels, Doubling]]
) -> HistogramMetricFamily:
    """Histograms as Prometheus' object."""
    family = HistogramMetricFamily(name, text, labels=label)
    for labels, each in found:
        family.add_metric(labels, each.buckets(), each.sum_seconds)
    return family
