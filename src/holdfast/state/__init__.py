"""State: typed column families over an ordered byte store. A cache of the log, never the truth."""

from holdfast.state.api import Store
from holdfast.state.families import EMPTY, Family, PartitionState, Progress
from holdfast.state.writing import Writing

__all__ = ["EMPTY", "Family", "PartitionState", "Progress", "Store", "Writing"]
