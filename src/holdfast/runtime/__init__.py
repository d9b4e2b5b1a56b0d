"""What lives beside the partitions of a member: it acts on their effects and drives their work."""

from holdfast.runtime.runtime import Runtime

__all__ = ["Runtime"]
