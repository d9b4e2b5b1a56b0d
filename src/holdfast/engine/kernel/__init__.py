"""The processor loop that every domain shares: commands in, records and effects out."""

from holdfast.engine.kernel.domain import (
    Applier,
    CommandHandler,
    Distributed,
    Domain,
    DueCommand,
    Need,
    Required,
    WhenDue,
)
from holdfast.engine.kernel.processor import Processor
from holdfast.engine.kernel.step import Step
from holdfast.engine.kernel.turn import Command, CommandRefused, Reply, Submission, Turn

__all__ = [
    "Applier",
    "Command",
    "CommandHandler",
    "CommandRefused",
    "Distributed",
    "Domain",
    "DueCommand",
    "Need",
    "Processor",
    "Reply",
    "Required",
    "Step",
    "Submission",
    "Turn",
    "WhenDue",
]
