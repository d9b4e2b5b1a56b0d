"""One process of a node that has several: it serves HTTP beside the others until it is stopped."""

from holdfast.config import Config
from holdfast.layout import Layout
from holdfast.members.place import MemberPlace
from holdfast.node import LocalNode


class Member:
    """A running member: its node, and its ways to the others."""

    def __init__(self, node: LocalNode, place: MemberPlace) -> None:
        self.node = node
        self._place = place

    @classmethod
    async def open(cls, layout: Layout, number: int, config: Config) -> "Member":
        """Opens a member of a folder; its partitions serve when this returns."""
        place = MemberPlace(layout, number)
        node = await LocalNode.open(layout.member_folder(number), config, place=place)
        try:
            place.colleagues.own_health = node.health
            place.colleagues.own_metrics = node.gateway.join(place.colleagues)
            place.colleagues.own_content = node.answer_call
            node.backups.share(place.ways())
            await place.start()
        except BaseException:
            await node.close()
            raise
        return cls(node, place)

    async def reached(self, seconds: float) -> bool:
        """Waits until all others are reached, for so long; whether they are."""
        return await self._place.colleagues.reached(seconds)

    async def close(self) -> None:
        """Leaves the others and closes the node."""
        await self._place.close()
        await self.node.close()
