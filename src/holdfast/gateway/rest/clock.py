"""The node's clock, pinned and let go: for tests, where the node's settings allow it."""

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway import checks
from holdfast.gateway.access.needs import one
from holdfast.gateway.endpoint import Endpoint, endpoint
from holdfast.gateway.numbers import TimestampMs
from holdfast.gateway.rest.common import RestApi
from holdfast.gateway.shapes import Question

PINNED_MS_MAX = 7_258_118_400_000  # the year 2200: what is kept for long beyond it has a date still


class Pin(Question, frozen=True):
    """The time that the node's clock is set to."""

    timestamp: TimestampMs  # ms since 1970


@endpoint("PUT", "/v2/clock", one(ResourceType.SYSTEM, Permission.UPDATE))
async def pin_clock(api: RestApi, body: Pin) -> None:
    """Pin the node's clock, where its settings allow that."""
    api.look.pin(checks.within(body.timestamp, 0, PINNED_MS_MAX, "timestamp"))


@endpoint("POST", "/v2/clock/reset", one(ResourceType.SYSTEM, Permission.UPDATE))
async def reset_clock(api: RestApi) -> None:
    """Let the node's clock go on from the time that it is."""
    api.look.pin(None)


CLOCK_ENDPOINTS: tuple[Endpoint, ...] = (pin_clock, reset_clock)
