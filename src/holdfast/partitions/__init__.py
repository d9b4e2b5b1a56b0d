"""The partitions, wherever they live: one port, and what stands behind it."""

from holdfast.partitions.api import ANYWHERE, EffectTopic, Partitions, Placement, Tell, Waiting

__all__ = ["ANYWHERE", "EffectTopic", "Partitions", "Placement", "Tell", "Waiting"]
