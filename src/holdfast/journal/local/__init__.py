"""The journal on this machine's disk: preallocated segments, checked frames, shared syncs."""

from holdfast.journal.local.copying import JournalCopy
from holdfast.journal.local.damage import Damage
from holdfast.journal.local.disk import Disk, File, RealDisk
from holdfast.journal.local.journal import LocalJournal
from holdfast.journal.local.reader import JournalReader
from holdfast.journal.local.scrub import scrub
from holdfast.journal.local.spread import SpreadReader
from holdfast.journal.local.verify import TopicReport, verify
from holdfast.journal.local.view import WrittenAppend
from holdfast.journal.local.writer import Observer

__all__ = [
    "Damage",
    "Disk",
    "File",
    "JournalCopy",
    "JournalReader",
    "LocalJournal",
    "Observer",
    "RealDisk",
    "SpreadReader",
    "TopicReport",
    "WrittenAppend",
    "scrub",
    "verify",
]
