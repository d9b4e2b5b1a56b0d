"""What a remote node is asked about distributions."""

from holdfast.client.wire import Wire, quoted
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionPage,
    DistributionQuery,
    DistributionResumption,
    DistributionSkip,
    DistributionsResumed,
    DistributionView,
)


class RemoteDistributions:
    """The part of the remote Api that is about distributions."""

    async def distributions(self: Wire, query: DistributionQuery) -> DistributionPage:
        return await self._post("/v2/distributions/search", query, DistributionPage)

    async def distribution(self: Wire, distribution_key: str) -> DistributionView:
        return await self._get(f"/v2/distributions/{quoted(distribution_key)}", DistributionView)

    async def skip_distribution(self: Wire, distribution_key: str, skip: DistributionSkip) -> None:
        await self._send("POST", f"/v2/distributions/{quoted(distribution_key)}/skip", skip)

    async def cancel_distribution(
        self: Wire, distribution_key: str, cancellation: DistributionCancellation
    ) -> None:
        path = f"/v2/distributions/{quoted(distribution_key)}/cancellation"
        await self._send("POST", path, cancellation)

    async def resume_distributions(self: Wire, partition: int) -> int:
        body, path = DistributionResumption(partition), "/v2/distributions/resumption"
        return (await self._post(path, body, DistributionsResumed)).count
