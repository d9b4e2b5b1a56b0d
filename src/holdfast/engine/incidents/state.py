"""The open incidents of a partition."""

from holdfast.engine.families import Tag
from holdfast.engine.incidents.values import Incident
from holdfast.state import PartitionState
from holdfast.state.keys import U64


class Incidents:
    """Incidents that nobody has resolved or discarded yet."""

    def __init__(self, state: PartitionState) -> None:
        self.open = state.family(Tag.INCIDENTS, U64, Incident)
