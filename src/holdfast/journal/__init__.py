"""The log: topics with partitions, appended to, synced in groups, read from any offset."""

from holdfast.journal.api import (
    Append,
    Appended,
    AtOnceJournal,
    Bounds,
    DiskJournal,
    Entry,
    Journal,
    Needed,
    Outcome,
    Refused,
    Retention,
    Start,
    Taken,
)

__all__ = [
    "Append",
    "Appended",
    "AtOnceJournal",
    "Bounds",
    "DiskJournal",
    "Entry",
    "Journal",
    "Needed",
    "Outcome",
    "Refused",
    "Retention",
    "Start",
    "Taken",
]
