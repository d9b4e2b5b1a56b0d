"""Numbers that are read from the state of the partitions when somebody asks for the metrics."""

from collections import Counter

from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.metrics import DistributionGauges


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
