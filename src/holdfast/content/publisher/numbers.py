"""What is measured of content distribution, with a bounded number of series."""

from heapq import nsmallest

from holdfast.content.publisher.state import ContentState
from holdfast.limits import CONTENT_SUBSCRIBERS_MEASURED_MAX
from holdfast.metrics import ContentNumbers, DeliveryNumbers, ImportNumbers


def numbers_of(
    state: ContentState, now_ms: int, published_bytes: int, held_back_ms: int
) -> ContentNumbers:
    """The numbers of all publishers, and of the first subscribers by name."""
    known = state.topology.known
    shown = [known[name] for name in nsmallest(CONTENT_SUBSCRIBERS_MEASURED_MAX, known)]
    dead = sum(each.is_dead(now_ms) for each in known.values())
    deliveries: list[DeliveryNumbers] = []
    for each in shown:
        for name, progress in each.of.items():
            publisher = state.publishers.get(name)
            lag = max(publisher.number - progress.number, 0) if publisher is not None else 0
            failed = len(state.errors.of(each.name, name))
            deliveries.append(DeliveryNumbers(name, each.name, lag, each.is_blocked(name), failed))
    return ContentNumbers(
        {name: each.number for name, each in state.publishers.items()},
        deliveries[:CONTENT_SUBSCRIBERS_MEASURED_MAX],
        [
            ImportNumbers(
                each.name, said.imported, said.imported_bytes, said.import_ms / 1_000
            )
            for each, said in ((each, each.discovery) for each in shown)
        ],
        len(known) - dead, dead, published_bytes, held_back_ms,
    )  # fmt: skip
