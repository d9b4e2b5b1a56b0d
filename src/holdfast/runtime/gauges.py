"""Numbers that are read from the state of the partitions when somebody asks for the metrics."""

from collections import Counter

from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.metrics import DistributionGauges, TransactionGauges


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
