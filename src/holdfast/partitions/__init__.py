"""The partitions, wherever they live: one port, and what stands behind it."""

from holdfast.partitions.api import ANYWHERE, Partitions, Placement, Tell, Topic, Waiting

__all__ = ["ANYWHERE", "Partitions", "Placement", "Tell", "Topic", "Waiting"]
