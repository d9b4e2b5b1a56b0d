"""The words of distribution."""

from enum import IntEnum
from typing import Any

import msgspec

from holdfast.engine.kernel import Command
from holdfast.records import Value, partition_of


class DistributionIntent(IntEnum):
    """Commands and events of distributions. The numbers are on disk."""

    STARTED = 0  # and sent to the partitions it names
    ENQUEUED = 1  # it waits for earlier commands to these partitions
    DISTRIBUTING = 2  # it is sent to these partitions
    ACKNOWLEDGE = 3
    ACKNOWLEDGED = 4
    FINISHED = 5  # it is finished everywhere
    REDISTRIBUTE = 6  # no acknowledgement came in time
    REDISTRIBUTED = 7
    RESUME = 8  # a partition can be reached again: what it missed is due at once
    RESUMED = 9
    REFUSE = 10  # the command failed on a partition
    REFUSED = 11
    POSTPONE = 12  # a partition is behind
    POSTPONED = 13
    SKIP = 14  # an operator skips it for some partitions
    SKIPPED = 15
    CANCEL = 16  # an operator cancels it for all partitions that have not acknowledged it
    CANCELED = 17
    CONTINUATION_REQUESTED = 18  # a command waits until a queue has drained
    CONTINUE = 19
    CONTINUED = 20
    RECEIVED = 21  # on the receiving partition: how far a queue has come


class Distribution(Value, frozen=True, tag=80):
    """A command that is distributed: STARTED. Its key is the record's."""

    queue: str  # "" for none
    value_type: int
    intent: int
    value: bytes  # encoded
    claims: dict[str, Any] | None  # of the user or client that issued it
    partitions: tuple[int, ...]  # that it is sent to at once


class Targets(Value, frozen=True, tag=81):
    """Partitions of one distribution: ENQUEUED, DISTRIBUTING, ACKNOWLEDGE(D), FINISHED."""

    partitions: tuple[int, ...] = ()


class Resending(Value, frozen=True, tag=82):
    """What is sent again to one partition: REDISTRIBUTE(D), RESUME(D)."""

    partition: int
    keys: tuple[int, ...] = ()
    attempts: tuple[int, ...] = ()  # REDISTRIBUTED: which sending this is, for each key


class Refusal(Value, frozen=True, tag=83):
    """A partition cannot execute it: REFUSE(D). It is resent with growing pauses."""

    partition: int
    reason: str


class Postponement(Value, frozen=True, tag=84):
    """A partition has no room for these: POSTPONE(D). Nothing is sent to it until then."""

    partition: int
    keys: tuple[int, ...]
    pause_ms: int  # what the partition asks for
    until_ms: int = 0  # POSTPONED


class Decision(Value, frozen=True, tag=85):
    """A decision of an operator: SKIP(PED), CANCEL(ED)."""

    by: str
    reason: str = ""
    partitions: tuple[int, ...] = ()  # the partitions that it is skipped for


class Continuation(Value, frozen=True, tag=86):
    """A command that is written once a queue has drained: CONTINUATION_REQUESTED."""

    queue: str
    value_type: int
    intent: int
    key: int
    value: bytes  # encoded
    claims: dict[str, Any] | None = None  # of the user or client that issued it


class ContinuationRef(Value, frozen=True, tag=87):
    """Which queue has drained: CONTINUE(D)."""

    queue: str


class QueueReceipt(Value, frozen=True, tag=88):
    """The receiving partition has taken the queue of another up to this record's key: RECEIVED."""

    queue: str


_I = DistributionIntent
DISTRIBUTION_VALUES: dict[DistributionIntent, type[msgspec.Struct]] = {
    _I.STARTED: Distribution,
    _I.ENQUEUED: Targets,
    _I.DISTRIBUTING: Targets,
    _I.ACKNOWLEDGE: Targets,
    _I.ACKNOWLEDGED: Targets,
    _I.FINISHED: Targets,
    _I.REDISTRIBUTE: Resending,
    _I.REDISTRIBUTED: Resending,
    _I.RESUME: Resending,
    _I.RESUMED: Resending,
    _I.REFUSE: Refusal,
    _I.REFUSED: Refusal,
    _I.POSTPONE: Postponement,
    _I.POSTPONED: Postponement,
    _I.SKIP: Decision,
    _I.SKIPPED: Decision,
    _I.CANCEL: Decision,
    _I.CANCELED: Decision,
    _I.CONTINUATION_REQUESTED: Continuation,
    _I.CONTINUE: ContinuationRef,
    _I.CONTINUED: ContinuationRef,
    _I.RECEIVED: QueueReceipt,
}


# --- effects ----------------------------------------------------------------------------------


class Sending(msgspec.Struct, frozen=True, gc=False):
    """A command is to be handed to these partitions."""

    partitions: tuple[int, ...]
    command: Command
    size_bytes: int


class CommandTaken(msgspec.Struct, frozen=True, gc=False):
    """The origin of a distributed command is to be told that this partition is done with it."""

    key: int
    partition: int


class DistributionFinished(msgspec.Struct, frozen=True, gc=False):
    """Every partition has it, or it was given up where not."""

    key: int

    @property
    def about(self) -> int:
        return self.key

    @property
    def partition(self) -> int:
        return partition_of(self.key)
