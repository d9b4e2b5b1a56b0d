"""What can be asked of a node about distributions."""

from typing import Protocol

from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionSkip,
    DistributionView,
)


class DistributionApi(Protocol):
    """The part of the Api that is about distributions."""

    async def distributions(self, query: DistributionQuery) -> DistributionPage:
        """Those that have not finished."""
        ...

    async def distribution(self, distribution_key: str) -> DistributionView: ...

    async def skip_distribution(self, distribution_key: str, skip: DistributionSkip) -> None: ...

    async def cancel_distribution(
        self, distribution_key: str, cancellation: DistributionCancellation
    ) -> None: ...

    async def resume_distributions(self, partition: int) -> int:
        """Sends all that is in flight to a partition again, at once; says how many that are."""
        ...
