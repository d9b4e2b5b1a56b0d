"""The group of a cluster's members, for operators that ask about groups."""

from holdfast.groups.messages import Ask
from holdfast.groups.observing import GroupObserver
from holdfast.groups.operators import operators_message
from holdfast.groups.running import Group


class OwnGroup:
    """Keeps the port `ClusterGroup` of the gateway: as this member has read the sync log."""

    def __init__(self, name: str, group: Group) -> None:
        self.name = name
        self._group = group

    def observer(self) -> GroupObserver:
        observer = GroupObserver()
        if self._group.core is not None:
            observer.state = self._group.core.state
        return observer

    async def ask(self, ask: Ask) -> None:
        await self._group.log.append(operators_message(self.name, self.observer().state, ask))
