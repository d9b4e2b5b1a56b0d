"""The shapes of the API about groups that share partitions."""

from typing import Literal

import msgspec

from holdfast.gateway.numbers import Count, Limit, ReadBytes, SessionMs, SyncOffset, WaitMs
from holdfast.gateway.shapes import Question, Shape
from holdfast.limits import GROUP_SESSION_MS, READ_BYTES_MAX

PartitionStateWord = Literal[
    "CREATED", "READY", "SCHEDULED", "RUNNING", "PARKED", "FINISHED", "REMOVED"
]

# --- members ----------------------------------------------------------------------------------


class NewSession(Question, frozen=True):
    """A member that joins: its name, its incarnation and its card."""

    member: str  # NAME/INCARNATION
    card: bytes = b""  # for the other members, in base64
    generation: Count = 0  # the newest generation that it has seen
    session_ms: SessionMs = GROUP_SESSION_MS  # without a heartbeat for this long it is removed


class MemberCard(Shape, frozen=True):
    """A member, and what it says of itself."""

    member: str
    card: bytes


class GenerationView(Shape, frozen=True):
    """The members of the group."""

    number: int
    leader: str
    members: list[MemberCard]


class SessionView(Shape, frozen=True):
    """The member has joined; a generation with it follows."""

    session_id: str


class Heartbeat(Question, frozen=True):
    """The member is alive, and waits for a newer generation than the one it knows."""

    generation: Count = 0
    wait_ms: WaitMs = 0


class HeartbeatView(Shape, frozen=True):
    """The new generation; None if there is none."""

    generation: GenerationView | None = None


class SyncQuery(Question, frozen=True):
    """What to read of the sync log; -1 asks for its bounds."""

    offset: SyncOffset
    bytes_max: ReadBytes = READ_BYTES_MAX
    wait_ms: WaitMs = 0


# --- operators --------------------------------------------------------------------------------


class GroupMemberView(Shape, frozen=True):
    """A member of a group."""

    member: str
    owned: int = 0  # partitions that it runs, is about to run, or has parked
    running: int = 0
    parked: int = 0
    shared: int = 0  # partitions that it offers to others
    is_leader: bool = False
    is_away: bool = False  # it has left or sends no heartbeats; its partitions no longer run there


class PartitionGroupView(Shape, frozen=True):
    """A group, with its numbers."""

    group: str
    epoch: int
    generation: int
    leader: str
    is_rebalancing: bool
    members: list[GroupMemberView]
    partitions: int = 0  # without removed ones
    running: int = 0
    shared: int = 0
    parked: int = 0
    finished: int = 0
    watermark: int | None = None  # the minimum over all unfinished partitions


class PartitionGroupViews(Shape, frozen=True):
    """All groups that the caller may see."""

    items: list[PartitionGroupView]


class GroupPartitionQuery(Question, frozen=True):
    """Which partitions of a group to show; all by default."""

    state: PartitionStateWord | None = None
    member: str | None = None
    after: str | None = None  # the last token of the previous page
    limit: Limit = 100


class GroupPartitionView(Shape, frozen=True):
    """A partition of a group."""

    token: str
    state: str  # a PartitionStateWord
    member: str  # the owner; empty: none
    offset: int | str | None = None  # the committed offset
    watermark: int | None = None
    target: str | None = None  # the member that it is offered to
    parents: list[str] = msgspec.field(default_factory=list)
    error: str | None = None  # why it is parked
    attempts: int = 0  # consecutive failures
    pinned_to: str | None = None  # the member that it was moved to by request
    is_held: bool = False  # parked by request: it stays parked until it is resumed


class GroupPartitionPage(Shape, frozen=True):
    """Some partitions, by token."""

    items: list[GroupPartitionView]
    after: str | None = None  # the cursor of the next page; None: this is the last page


class PartitionMove(Question, frozen=True):
    """The partition to move, and its new owner."""

    token: str
    to: str  # the name of a member, or NAME/INCARNATION


class PartitionToken(Question, frozen=True):
    """A partition, by its token."""

    token: str
