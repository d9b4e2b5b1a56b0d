"""What is counted and measured of jobs, workers and incidents.

Gauges are read from the state of the partitions, so a restart changes nothing. Histograms and
counters begin with the process, as Prometheus expects it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from holdfast.limits import METRIC_TYPES_MAX
from holdfast.metrics.histogram import histogram_family, job_histogram

OTHER = "other"  # all types beyond so many

ByType = Mapping[str, int]


class WorkGauges(NamedTuple):
    """The jobs and incidents of one partition, read from its state."""

    waiting: ByType
    running: ByType
    oldest_seconds: Mapping[str, float]  # only of types that have waiting jobs
    incidents: Mapping[tuple[str, str], int]  # by reason, and by type of job or process


class WorkerGauges(NamedTuple):
    """The workers that asked this member for jobs lately, by type of job."""

    workers: ByType
    idle: ByType


class Shown:
    """The first so many names are shown; all others together are one more."""

    def __init__(self, names_max: int) -> None:
        self._names_max = names_max
        self._names: dict[str, str] = {}

    def name(self, name: str) -> str:
        """How a name is shown; the same as long as the process runs."""
        shown = self._names.get(name)
        if shown is None:
            if len(self._names) >= self._names_max:
                return OTHER
            shown = self._names[name] = name
        return shown

    def added_up(self, counts: ByType) -> Counter[str]:
        """Counts by the names that are shown."""
        shown: Counter[str] = Counter()
        for name, count in counts.items():
            shown[self.name(name)] += count
        return shown


_REPORTS = ("completed", "failed", "expired")


class EndedJobs(Protocol):
    """What came of jobs of one lease in one step."""

    type: str
    held_ms: int
    waited_ms: int
    completed: int
    failed: int
    expired: int


class TypeNumbers:
    """What is counted and measured of the jobs of one type."""

    __slots__ = ("completed", "expired", "failed", "held", "waited")

    def __init__(self) -> None:
        self.waited = job_histogram()
        self.held = job_histogram()
        self.completed = self.failed = self.expired = 0


class WorkMetrics:
    """What is counted and measured of jobs, workers and incidents."""

    def __init__(self) -> None:
        self.gauges: dict[int, WorkGauges] = {}  # by partition; brought up to date before a scrape
        self.workers: Callable[[], WorkerGauges] = lambda: WorkerGauges({}, {})
        self._types = Shown(METRIC_TYPES_MAX)
        self._numbers: dict[str, TypeNumbers] = {}

    def reported(self, ended: EndedJobs) -> None:
        """Jobs that a worker had got together ended, or their attempts did.

        They are taken to have waited as long as the first of them.
        """
        numbers = self._numbers.get(ended.type) or self._of(ended.type)
        jobs = ended.completed
        numbers.completed += jobs
        if ended.failed or ended.expired:
            numbers.failed += ended.failed
            numbers.expired += ended.expired
            jobs += ended.failed + ended.expired
        if ended.held_ms >= 0 and ended.waited_ms >= 0:
            numbers.waited.add(ended.waited_ms, jobs)
            numbers.held.add(ended.held_ms, jobs)

    def _of(self, type_: str) -> TypeNumbers:
        return self._numbers.setdefault(self._types.name(type_), TypeNumbers())

    def collect(self) -> Iterable[Metric]:
        """All of it as Prometheus' objects."""
        yield from self._jobs()
        yield self._incidents()
        workers = self.workers()
        for name, text, counts in (
            ("workers", "Workers that asked for jobs of a type recently", workers.workers),
            ("workers_idle", "Of these, requests that are waiting for jobs", workers.idle),
        ):
            gauge = GaugeMetricFamily(f"holdfast_{name}", text, labels=["type"])
            for type_, count in self._types.added_up(counts).items():
                gauge.add_metric([type_], count)
            yield gauge
        ended = CounterMetricFamily(
            "holdfast_job_attempts", "Ended attempts at jobs", labels=["type", "outcome"]
        )
        for type_, numbers in self._numbers.items():
            for outcome in _REPORTS:
                ended.add_metric([type_, outcome], getattr(numbers, outcome))
        yield ended
        for name, text, attribute in (
            ("wait", "Time that jobs waited for a worker", "waited"),
            ("run", "Run time of a job, for each attempt", "held"),
        ):
            found = [([type_], getattr(each, attribute)) for type_, each in self._numbers.items()]
            yield histogram_family(f"holdfast_job_{name}_seconds", text, ["type"], found)

    def _jobs(self) -> Iterable[Metric]:
        labels = ["partition", "type"]
        waiting = GaugeMetricFamily("holdfast_jobs_waiting", "Jobs that wait for a worker",
                                    labels=labels)  # fmt: skip
        running = GaugeMetricFamily("holdfast_jobs_running", "Jobs that are leased to a worker",
                                    labels=labels)  # fmt: skip
        oldest = GaugeMetricFamily(
            "holdfast_jobs_oldest_waiting_seconds",
            "The age of the job that has waited longest", labels=labels,
        )  # fmt: skip
        for partition, found in self.gauges.items():
            place = str(partition)
            for gauge, counts in ((waiting, found.waiting), (running, found.running)):
                for type_, count in self._types.added_up(counts).items():
                    gauge.add_metric([place, type_], count)
            ages: dict[str, float] = {}
            for type_, seconds in found.oldest_seconds.items():
                shown = self._types.name(type_)
                ages[shown] = max(ages.get(shown, 0.0), seconds)
            for type_, seconds in ages.items():
                oldest.add_metric([place, type_], seconds)
        yield from (waiting, running, oldest)

    def _incidents(self) -> Metric:
        gauge = GaugeMetricFamily(
            "holdfast_incidents_open",
            "Open incidents by reason, and by the type of the job or the process",
            labels=["partition", "reason", "type"],
        )
        for partition, found in self.gauges.items():
            counts: Counter[tuple[str, str]] = Counter()
            for (reason, of), count in found.incidents.items():
                counts[reason, self._types.name(of)] += count
            for (reason, of), count in counts.items():
                gauge.add_metric([str(partition), reason, of], count)
        return gauge
