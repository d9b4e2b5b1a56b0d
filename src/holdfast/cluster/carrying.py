"""States of partitions go to members that lack them, and come from those that have them."""

from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.cluster.member import ClusterMember
from holdfast.cluster.transfer import TRANSFER, TransferSource, TransferTarget
from holdfast.errors import Unavailable
from holdfast.node import LocalNode


class Carrying:
    """Fetches what this member's standbys lack, and answers members whose standbys do."""

    def __init__(self, member: ClusterMember, node: LocalNode, folder: Path) -> None:
        self._member = member
        self._source = TransferSource(node.upkeep, member.journal, SystemClock())
        self._target = TransferTarget(
            folder, node.upkeep, self._ask, self._sources, member.journal.begin_at
        )
        self.answer = self._source.answer
        node.runner.standbys.on_missing.append(self._fetch)
        member.journal.on_cut.append(node.runner.standbys.lacks)

    def _fetch(self, partition: int) -> None:
        self._target.fetch(partition)

    async def close(self) -> None:
        await self._target.close()
        await self._source.close()

    async def _ask(self, member: str, body: bytes) -> bytes:
        links = self._member.links
        if member not in links:
            raise Unavailable(f"Member {member!r} is no longer in the cluster")
        return await links[member].call(TRANSFER, body)

    def _sources(self, partition: int) -> list[str]:
        """The members that may have a partition: its owner first, then those with all of it."""
        member = self._member
        last = member.journal.chain(partition).last
        if last is None:
            return []
        others = [each.member for each in last.replicas if each.member != last.owner]
        has = [each for each in others if member.standings.has_all(partition, each)]
        return [each for each in (last.owner, *has) if each in member.peers.heard()]
