"""Numbers that are read from the state of the partitions when somebody asks for the metrics."""

from collections import Counter
from heapq import nlargest

from holdfast.engine.kernel.others import others
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.limits import METRIC_TYPES_MAX
from holdfast.metrics import DistributionGauges, TransactionGauges, WorkGauges, WorkMetrics


def distribution_gauges(runner: Runner[EngineState]) -> DistributionGauges:
    """How much is on its way, by partition."""
    processors = runner.processors
    active = {each: known.view.distributions.count() for each, known in processors.items()}
    pending, in_flight = Counter(dict.fromkeys(active, 0)), Counter(dict.fromkeys(active, 0))
    for processor in processors.values():
        for target, line in processor.view.distributions.lines():
            pending[target] += line.pending
            in_flight[target] += line.in_flight
    return DistributionGauges(active, dict(pending), dict(in_flight))


def transaction_gauges(runner: Runner[EngineState], now_ms: int) -> TransactionGauges:
    """How many transactions are undecided, by partition, and for how long at the most."""
    known = {each: found.view.transactions for each, found in runner.processors.items()}
    began = [since for each in known.values() if (since := each.oldest_ms()) is not None]
    return TransactionGauges(
        {partition: each.counts.open for partition, each in known.items()},
        {partition: each.counts.prepared for partition, each in known.items()},
        max(now_ms - min(began, default=now_ms), 0) / 1_000,
    )


async def refresh_work(runner: Runner[EngineState], now_ms: int, metrics: WorkMetrics) -> None:
    """Reads how many jobs and incidents there are; others have a turn between two partitions."""
    found: dict[int, WorkGauges] = {}
    for partition in list(runner.processors):
        if (processor := runner.processors.get(partition)) is not None:  # it may have moved
            found[partition] = work_gauges(processor.view, now_ms)
            await others()
    metrics.gauges = found


def work_gauges(state: EngineState, now_ms: int) -> WorkGauges:
    """The jobs and incidents of a partition; costs a look for each type and each lease."""
    jobs = state.jobs
    waiting = jobs.waiting.counts
    oldest: dict[str, float] = {}
    for type_ in nlargest(METRIC_TYPES_MAX, waiting, key=waiting.__getitem__):
        since_ms = jobs.longest_waiting_ms(type_) if waiting[type_] else None
        oldest[type_] = 0.0 if since_ms is None else max(now_ms - since_ms, 0) / 1_000
    incidents = {(reason, of): count for reason, of, count in state.incidents.counts()}
    return WorkGauges(dict(waiting), jobs.held_counts(), oldest, incidents)
