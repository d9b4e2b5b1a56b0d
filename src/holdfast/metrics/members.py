"""The numbers of several members as those of one node."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

# What is not added up over the members of a node: the worst of them counts.
_WORST = frozenset(
    {
        "holdfast_clock_ahead_seconds", "holdfast_pipeline_lag_seconds",
        "holdfast_transactions_oldest_seconds",
    }
)  # fmt: skip


class _Merged:
    """Several expositions as one."""

    def __init__(self, expositions: Iterable[bytes]) -> None:
        self._metrics: dict[str, Metric] = {}
        self._values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for exposition in expositions:
            for family in text_string_to_metric_families(exposition.decode()):
                self._add(family)

    def _add(self, family: Metric) -> None:
        self._metrics.setdefault(
            family.name, Metric(family.name, family.documentation, family.type)
        )
        values = self._values.setdefault(family.name, {})
        for sample in family.samples:
            place = sample.name, tuple(sorted(sample.labels.items()))
            if place not in values:
                values[place] = sample.value
            elif family.name in _WORST:
                values[place] = max(values[place], sample.value)
            else:
                values[place] += sample.value

    def collect(self) -> Iterable[Metric]:
        for name, metric in self._metrics.items():
            for (sample, labels), value in self._values[name].items():
                metric.add_sample(sample, dict(labels), value)
            yield metric


def merged(expositions: Iterable[bytes]) -> bytes:
    """The numbers of several members as those of one node."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Merged(expositions))
    return generate_latest(registry)
