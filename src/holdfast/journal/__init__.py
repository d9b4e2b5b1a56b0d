"""The log: topics with partitions, appended to, synced in groups, read from any offset."""

from holdfast.journal.api import Append, Bounds, Entry, Journal, Retention, Start

__all__ = ["Append", "Bounds", "Entry", "Journal", "Retention", "Start"]
