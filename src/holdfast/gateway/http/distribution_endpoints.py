"""The endpoints about distributions."""

from holdfast.gateway.api import Api
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionResumption,
    DistributionSkip,
    DistributionsResumed,
    DistributionView,
)
from holdfast.gateway.http.endpoint import Endpoint, endpoint


@endpoint("POST", "/v2/distributions/search")
async def search_distributions(api: Api, body: DistributionQuery) -> DistributionPage:
    """List commands that have not reached all of their partitions."""
    return await api.distributions(body)


@endpoint("GET", "/v2/distributions/{distribution_key}")
async def get_distribution(api: Api, distribution_key: str) -> DistributionView:
    """Show a distribution and the partitions that have not acknowledged it."""
    return await api.distribution(distribution_key)


@endpoint("POST", "/v2/distributions/{distribution_key}/skip")
async def skip_distribution(api: Api, distribution_key: str, body: DistributionSkip) -> None:
    """Give a distribution up for one partition."""
    await api.skip_distribution(distribution_key, body)


@endpoint("POST", "/v2/distributions/{distribution_key}/cancellation")
async def cancel_distribution(
    api: Api, distribution_key: str, body: DistributionCancellation
) -> None:
    """Give a distribution up wherever it is pending."""
    await api.cancel_distribution(distribution_key, body)


@endpoint("POST", "/v2/distributions/resumption")
async def resume_distributions(api: Api, body: DistributionResumption) -> DistributionsResumed:
    """Send all that is in flight to a partition again, at once."""
    return DistributionsResumed(await api.resume_distributions(body.partition))


DISTRIBUTION_ENDPOINTS: tuple[Endpoint, ...] = (
    search_distributions, get_distribution, skip_distribution, cancel_distribution,
    resume_distributions,
)  # fmt: skip
