"""The shapes of the API about distributions."""

from datetime import datetime
from enum import StrEnum

from holdfast.gateway.numbers import Limit, Partition
from holdfast.gateway.shapes import Question, Shape


class TargetState(StrEnum):
    """How a distribution stands at one partition that has not acknowledged it."""

    WAITING = "WAITING"  # others come first
    IN_FLIGHT = "IN_FLIGHT"  # sent, and not answered
    POSTPONED = "POSTPONED"  # the partition is behind and asked for a pause
    REFUSED = "REFUSED"  # the command threw there; it is tried again


class TargetView(Shape, frozen=True):
    """A partition that has not acknowledged a distribution."""

    partition: int
    state: TargetState
    attempts: int  # how often it was sent
    next_attempt: datetime | None = None
    refusal: str | None = None  # the reason of the partition's last refusal
    behind: str | None = None  # the distribution that it waits for


class DistributionView(Shape, frozen=True):
    """A command that has not reached all of its partitions."""

    distribution_key: str
    partition: int  # that started it
    value_type: str
    intent: str
    queue: str | None
    started: datetime
    size_bytes: int  # of the command's value
    targets: list[TargetView]  # that are still pending


class DistributionQuery(Question, frozen=True):
    """Which distributions to list."""

    queue: str | None = None
    target: Partition | None = None  # pending at this partition
    limit: Limit = 100
    after: str | None = None


class DistributionPage(Shape, frozen=True):
    """Distributions in the order of their keys."""

    items: list[DistributionView]
    after: str | None = None


class DistributionSkip(Question, frozen=True):
    """Skip a distribution for one partition."""

    partition: Partition
    by: str  # the person who decided it, for the log
    reason: str = ""


class DistributionCancellation(Question, frozen=True):
    """Cancel a distribution on all partitions where it is pending."""

    by: str
    reason: str = ""


class DistributionResumption(Question, frozen=True):
    """A partition that can be reached again."""

    partition: Partition


class DistributionsResumed(Shape, frozen=True):
    """The number of distributions that are sent again at once."""

    count: int
