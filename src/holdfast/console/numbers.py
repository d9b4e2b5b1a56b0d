"""The node's numbers as its metrics have them, read for people.

The metrics are what every kind of node can tell: one process, several, a member of a cluster. They
are counted as things happen, so that reading them scans nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_SAMPLE = re.compile(r"(\w+)(?:{(.*)})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)",?')

Labels = dict[str, str]


class NumberSamples:
    """All samples of one reading, by the name of their family."""

    def __init__(self, exposition: bytes) -> None:
        self._by_name: dict[str, list[tuple[str, float]]] = {}
        for line in exposition.decode().splitlines():
            if line.startswith("#") or "_bucket{" in line:
                continue
            found = _SAMPLE.match(line)
            if found is not None:
                self._by_name.setdefault(found[1], []).append((found[2] or "", float(found[3])))

    def each(self, name: str) -> Iterator[tuple[Labels, float]]:
        """The samples of a family with their labels."""
        for labels, value in self._by_name.get(name, ()):
            yield {label: _plain(text) for label, text in _LABEL.findall(labels)}, value

    def total(self, name: str, **wanted: str) -> float:
        """The sum of the samples of a family, of those with some labels."""
        if not wanted:
            return sum(value for _, value in self._by_name.get(name, ()))
        return sum(value for labels, value in self.each(name) if wanted.items() <= labels.items())

    def highest(self, name: str) -> float | None:
        """The highest of a family; None where it has none."""
        return max((value for _, value in self._by_name.get(name, ())), default=None)

    def by(self, name: str, label: str) -> "Counter[str]":
        """The samples of a family added up by a label, the largest first."""
        found: Counter[str] = Counter()
        for labels, value in self.each(name):
            found[labels.get(label, "")] += int(value)
        return found

    def has(self, name: str) -> bool:
        return name in self._by_name


def _plain(text: str) -> str:
    return text.replace(r"\"", '"').replace(r"\n", "\n").replace("\\\\", "\\")


class NodeNumbers(NamedTuple):
    """What the overview shows of one reading."""

    waiting: int
    running: int
    incidents: int
    oldest_seconds: float
    completed: float  # these three since the process started
    failed: float
    records: float
    lag_records: int  # commands that are not processed yet
    tables_behind: int | None  # None: there are no tables
    tables_seconds: float | None
    distributions: int
    stopped_partitions: int
    transactions: int
    in_flight: int


def numbers_of(samples: NumberSamples) -> NodeNumbers:
    """One reading, added up."""
    whole, is_kept = samples.total, samples.has("holdfast_pipeline_lag_records")
    partitions = list(samples.each("holdfast_partition_open"))
    return NodeNumbers(
        waiting=int(whole("holdfast_jobs_waiting")),
        running=int(whole("holdfast_jobs_running")),
        incidents=int(whole("holdfast_incidents_open")),
        oldest_seconds=samples.highest("holdfast_jobs_oldest_waiting_seconds") or 0.0,
        completed=whole("holdfast_job_attempts_total", outcome="completed"),
        failed=whole("holdfast_job_attempts_total", outcome="failed"),
        records=whole("holdfast_appended_records_total"),
        lag_records=int(whole("holdfast_lag_records")),
        tables_behind=int(whole("holdfast_pipeline_lag_records")) if is_kept else None,
        tables_seconds=samples.highest("holdfast_pipeline_lag_seconds") if is_kept else None,
        distributions=int(whole("holdfast_distributions_active")),
        stopped_partitions=sum(1 for _, value in partitions if value == 0),
        transactions=int(whole("holdfast_transactions_open")),
        in_flight=int(whole("holdfast_commands_in_flight")),
    )
