"""The messages of the sync log: four kinds, msgpack arrays with a tag each.

Each names the epoch that its sender is in, the sender, and the sender's own count of its messages.
The tags and the order of fields are on disk: fields are added at the end, with a default.
"""

from enum import IntEnum
from typing import TypeAlias

import msgspec

from holdfast.groups.api import MemberId, NewPartition, Offset

# --- changes: what a member says of partitions, in the order in which they happened -----------


class Picked(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The sender takes a partition that is shared with it."""

    token: str


class RunStarted(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The work on an own partition has begun."""

    token: str


class Committed(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The work on an own partition came so far."""

    token: str
    offset: Offset = None
    watermark: int | None = None  # None: as it was


class Finished(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The work on an own partition is done; its children follow."""

    token: str
    offset: Offset = None
    watermark: int | None = None
    children: tuple[NewPartition, ...] = ()


class Parked(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The work on an own partition failed, or was held by hand: it waits alone."""

    token: str
    offset: Offset = None
    watermark: int | None = None
    error: str = ""
    attempts: int = 0  # consecutive failures


class Proposed(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The sender wants to hand over an own partition, and drains it once this is read."""

    token: str
    target: MemberId


class Released(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """An own partition is drained: its target may pick it."""

    token: str
    offset: Offset = None
    watermark: int | None = None


class Declared(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Partitions that are to exist; those that exist or existed are left as they are."""

    partitions: tuple[NewPartition, ...]


Change: TypeAlias = (
    Picked | RunStarted | Committed | Finished | Parked | Proposed | Released | Declared
)


class AskKind(IntEnum):
    """What people ask of a partition, regardless of its owner."""

    MOVE = 1  # to the member of a name, and keep it there; without a name: keep it nowhere
    PARK = 2  # stop, and stay parked
    RESUME = 3  # run again, at once


class Ask(msgspec.Struct, frozen=True, array_like=True):
    """A wish by hand: noted with the partition, and done by its owner."""

    kind: AskKind
    token: str
    member: str = ""  # a name, without incarnation


# --- all of a group's state, as NEW_EPOCH and a checkpoint carry it ---------------------------


class MemberRow(msgspec.Struct, frozen=True, array_like=True):
    """A member as the fold knows it."""

    member: MemberId
    status: int = 1
    counter: int | None = None  # of its last message in the epoch
    has_gap: bool = False


class PartitionRow(msgspec.Struct, frozen=True, array_like=True):
    """A partition as the fold knows it; members are positions in the snapshot's table of names."""

    token: str
    status: int
    owner: int
    target: int = -1
    flags: int = 0  # 1: released, 2: held by hand
    parents: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    offset: Offset = None
    watermark: int | None = None
    error: str = ""
    attempts: int = 0
    pin: str = ""


class RebalanceRow(msgspec.Struct, frozen=True, array_like=True):
    """A rebalance under way: its generation, and who has answered."""

    generation: int
    leader: MemberId
    members: tuple[MemberId, ...]
    answered: tuple[MemberId, ...] = ()


class GroupSnapshot(msgspec.Struct, frozen=True, array_like=True):
    """All that the fold knows after the message at an offset."""

    as_of: int  # the last offset that is in it
    epoch: int
    generation: int  # the newest that was seen
    leader: MemberId
    members: tuple[MemberRow, ...]
    names: tuple[MemberId, ...]
    partitions: tuple[PartitionRow, ...]
    gone: tuple[str, ...] = ()  # declared once, finished and removed
    announced: tuple[NewPartition, ...] = ()  # merges whose smallest parent is not finished
    watermark: int | None = None
    rebalance: RebalanceRow | None = None  # under way; of NEW_EPOCH the one that it ends


# --- the messages -----------------------------------------------------------------------------


class Regular(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Changes since the sender's message before; their bytes do not depend on all partitions.

    A whole one does not build on the messages before it: it has everything in which the sender
    differs from what it has read. The first of a member in an epoch is whole, and so is the one
    that follows a gap.
    """

    epoch: int
    member: MemberId
    counter: int
    whole: bool = False
    changes: tuple[Change, ...] = ()
    asks: tuple[Ask, ...] = ()


class RebalanceAnswer(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The sender takes part in a rebalance, and this is what is not yet known of it."""

    epoch: int
    member: MemberId
    counter: int
    generation: int
    changes: tuple[Change, ...] = ()


class UpdateEpoch(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """By the leader, within an epoch: begins a rebalance, or carries a checkpoint."""

    epoch: int
    member: MemberId
    counter: int
    generation: int
    members: tuple[MemberId, ...] = ()  # who is asked to answer; none: a checkpoint
    snapshot: GroupSnapshot | None = None


class NewEpoch(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """By the leader, ends a rebalance: everything starts from its snapshot."""

    epoch: int  # the one that it begins
    member: MemberId
    counter: int
    generation: int
    snapshot: GroupSnapshot


SyncMessage: TypeAlias = Regular | RebalanceAnswer | UpdateEpoch | NewEpoch

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(SyncMessage)


def encode(message: SyncMessage) -> bytes:
    return _encoder.encode(message)


def decode(body: bytes) -> SyncMessage:
    """Raises msgspec.DecodeError for what is no message of ours, or a newer version's."""
    return _decoder.decode(body)


def asking(sender: MemberId, asks: tuple[Ask, ...]) -> Regular:
    """A message of somebody who is no member, such as an operator: only its asks count."""
    return Regular(0, sender, 0, asks=asks)
