"""What can be asked of a node about distributions."""

from typing import Protocol

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.gateway.access.needs import one
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionResumption,
    DistributionSkip,
    DistributionsResumed,
    DistributionView,
)
from holdfast.gateway.operation import Namespace, operation

_READ = one(ResourceType.DISTRIBUTION, Permission.READ)
_UPDATE = one(ResourceType.DISTRIBUTION, Permission.UPDATE)
_ONE = "/v2/distributions/{distribution_key}"


class DistributionApi(Namespace, Protocol):
    """Commands that go to every partition, while they have not reached all of them."""

    @operation("search_distributions", "POST", "/v2/distributions/search", _READ)
    async def page(self, query: DistributionQuery) -> DistributionPage:
        """List commands that have not reached all of their partitions."""
        ...

    @operation("get_distribution", "GET", _ONE, _READ)
    async def get(self, distribution_key: str) -> DistributionView:
        """Show a distribution and the partitions that have not acknowledged it."""
        ...

    @operation("skip_distribution", "POST", f"{_ONE}/skip", _UPDATE)
    async def skip(self, distribution_key: str, skip: DistributionSkip) -> None:
        """Skip a distribution for one partition."""

    @operation("cancel_distribution", "POST", f"{_ONE}/cancellation", _UPDATE)
    async def cancel(self, distribution_key: str, cancellation: DistributionCancellation) -> None:
        """Cancel a distribution on all partitions where it is pending."""

    @operation(
        "resume_distributions", "POST", "/v2/distributions/resumption", _UPDATE,
        body=DistributionResumption, answer=DistributionsResumed,
    )  # fmt: skip
    async def resume(self, partition: int) -> int:
        """Send everything in flight to a partition again, at once.

        Says how many that are.
        """
        ...
