"""What is counted and measured of content distribution."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


class DeliveryNumbers(NamedTuple):
    """How far a subscriber is with a publisher."""

    publisher: str
    subscriber: str
    lag: int  # packages that it has not imported yet
    is_blocked: bool
    failed: int  # packages in its error queue


class ImportNumbers(NamedTuple):
    """What a subscriber has taken in since it started."""

    subscriber: str
    packages: int
    bytes: int
    seconds: float


class ContentNumbers(NamedTuple):
    """What is known of publishers and subscribers; of many subscribers, the first by name."""

    published: dict[str, int]  # packages, by publisher
    deliveries: list[DeliveryNumbers]
    imports: list[ImportNumbers]
    alive: int
    dead: int
    published_bytes: int
    held_back_ms: int  # that publishing waited for subscribers


NO_NUMBERS = ContentNumbers({}, [], [], 0, 0, 0, 0)
_PAIR = ["publisher", "subscriber"]


class ContentMetrics:
    """The numbers of content distribution; none where it is not used."""

    def __init__(self) -> None:
        self.numbers: Callable[[], ContentNumbers] = lambda: NO_NUMBERS

    def collect(self) -> Iterable[Metric]:
        """All of it as Prometheus' objects."""
        numbers = self.numbers()
        if numbers is NO_NUMBERS:
            return
        published = CounterMetricFamily(
            "holdfast_content_published_packages", "Packages published", labels=["publisher"]
        )
        for publisher, count in numbers.published.items():
            published.add_metric([publisher], count)
        yield published
        yield CounterMetricFamily(
            "holdfast_content_published_bytes", "Bytes of packages published since the start",
            value=numbers.published_bytes,
        )  # fmt: skip
        yield CounterMetricFamily(
            "holdfast_content_held_back_seconds", "Time that back-pressure delayed publishing",
            value=numbers.held_back_ms / 1_000,
        )  # fmt: skip
        yield from _deliveries(numbers.deliveries)
        yield from _imports(numbers.imports)
        subscribers = GaugeMetricFamily(
            "holdfast_content_subscribers", "Subscribers that are known", labels=["state"]
        )
        subscribers.add_metric(["alive"], numbers.alive)
        subscribers.add_metric(["dead"], numbers.dead)
        yield subscribers


def _deliveries(deliveries: list[DeliveryNumbers]) -> Iterable[Metric]:
    lag = GaugeMetricFamily(
        "holdfast_content_lag_packages", "Packages that a subscriber has not imported yet",
        labels=_PAIR,
    )  # fmt: skip
    blocked = GaugeMetricFamily(
        "holdfast_content_blocked", "Whether the head of the queue failed several times",
        labels=_PAIR,
    )  # fmt: skip
    failed = GaugeMetricFamily(
        "holdfast_content_failed_packages", "Packages in the error queue", labels=_PAIR
    )
    for each in deliveries:
        labels = [each.publisher, each.subscriber]
        lag.add_metric(labels, each.lag)
        blocked.add_metric(labels, each.is_blocked)
        failed.add_metric(labels, each.failed)
    yield from (lag, blocked, failed)


def _imports(imports: list[ImportNumbers]) -> Iterable[Metric]:
    families = [
        CounterMetricFamily(f"holdfast_content_{name}", text, labels=["subscriber"])
        for name, text in (
            ("imported_packages", "Packages imported since the subscriber started"),
            ("imported_bytes", "Bytes imported since the subscriber started"),
            ("import_seconds", "Time spent on imports since the subscriber started"),
        )
    ]
    for each in imports:
        for family, value in zip(families, each[1:], strict=True):
            family.add_metric([each.subscriber], value)
    yield from families
