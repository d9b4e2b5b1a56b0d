"""The group of a cluster's members, for operators that ask about groups, and for metrics."""

from collections.abc import Sequence

from holdfast.groups.effects import Effect, EpochStarted
from holdfast.groups.home import numbers_of
from holdfast.groups.messages import Ask
from holdfast.groups.observing import GroupObserver
from holdfast.groups.operators import operators_message
from holdfast.groups.running import Group
from holdfast.metrics import GroupNumbers


class OwnGroup:
    """Keeps the port `ClusterGroup` of the gateway: as this member has read the sync log."""

    def __init__(self, name: str, group: Group, alarms: Sequence[str] = ()) -> None:
        """`alarms` are those that were seen elsewhere than in the sync log."""
        self.name = name
        self._group = group
        self._alarms = alarms
        self._rebalances = 0  # that came to their end: each begins an epoch
        group.on_effect.append(self._note)

    def observer(self) -> GroupObserver:
        observer = GroupObserver()
        observer.rebalances = self._rebalances
        observer.alarms = [*self._group.alarms, *self._alarms]
        if self._group.core is not None:
            observer.state = self._group.core.state
        return observer

    def numbers(self) -> GroupNumbers:
        """What is counted of it."""
        return numbers_of(self.name, self.observer())

    async def ask(self, ask: Ask) -> None:
        await self._group.log.append(operators_message(self.name, self.observer().state, ask))

    def _note(self, effect: Effect) -> None:
        self._rebalances += isinstance(effect, EpochStarted)
