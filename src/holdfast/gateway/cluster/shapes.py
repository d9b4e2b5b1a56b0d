"""The shapes of the API about the cluster."""

from datetime import datetime
from typing import Literal

import msgspec

from holdfast.gateway.numbers import CutNumber, CutsListed, OrderSpans, TimestampMs
from holdfast.gateway.shapes import Question, Shape
from holdfast.limits import ORDER_SPANS_MAX

MemberState = Literal["UP", "DRAINING", "AWAY"]
PartitionState = Literal["HEALTHY", "UNDER_REPLICATED", "NO_QUORUM", "NO_OWNER"]
EtcdState = Literal["AVAILABLE", "AWAY", "ROLLED_BACK", "NONE"]  # NONE: a broker keeps the log


class ClusterMemberView(Shape, frozen=True):
    """A member of the cluster."""

    member: str
    state: MemberState  # AWAY: the other members do not hear from it
    owned_partitions: list[int]
    address: str = ""  # where other members reach it
    url: str = ""  # where clients reach it
    version: str = ""
    problems: list[str] = msgspec.field(default_factory=list[str])  # reported by the member itself


class ReplicaView(Shape, frozen=True):
    """A member that keeps the log of a partition."""

    member: str
    is_heard: bool
    lag: int | None = None  # entries that it lacks; None: unknown


class ClusterPartitionView(Shape, frozen=True):
    """The owner of a partition, and the members that keep its log."""

    partition_id: int
    state: PartitionState
    owner: str
    epoch: int  # increases with every change of owner or replicas
    replicas: list[ReplicaView]


class ClusterStatus(Shape, frozen=True):
    """The state of the cluster, as one member sees it."""

    cluster_id: str
    member: str  # the one that answers
    etcd: EtcdState
    cut: int  # the number of the last cut that this member has read; 0: none yet
    members: list[ClusterMemberView]
    partitions: list[ClusterPartitionView]
    replication_factor: int
    problems: list[str]  # problems that need attention
    journal: str = ""  # where a broker keeps the log; "": the members do, with etcd


class CutView(Shape, frozen=True):
    """A moment of the whole cluster: how far all logs were acknowledged."""

    number: int
    writer: str
    time: datetime
    logs: int  # logs that grew since the previous cut
    entries: int  # the number of entries that were added


class Cuts(Shape, frozen=True):
    """The latest cuts, the newest first."""

    items: list[CutView]


class CutQuery(Question, frozen=True):
    """How many cuts to list."""

    limit: CutsListed = 20


class LogPosition(Shape, frozen=True):
    """Where a log ended."""

    topic: str
    partition_id: int
    offset: int  # behind the last entry


class CutMoment(Shape, frozen=True):
    """Where all logs ended as of a cut. A log that is not named was empty."""

    number: int
    time: datetime  # by the clock of the member that published it; 1970 if that is not known
    entries: int  # in all logs: the sequence id of the first entry after the cut
    logs: list[LogPosition]


class CutOf(Question, frozen=True):
    """Which cut: by its number, or the last one at a time; the latest without either."""

    cut: CutNumber | None = None
    time_ms: TimestampMs | None = None


class OrderedSpan(Shape, frozen=True):
    """Entries of one log that follow each other in the order of the cluster."""

    sequence_id: int  # of the first
    cut: int
    topic: str
    partition_id: int
    offset: int  # of the first
    entries: int


class OrderPage(Shape, frozen=True):
    """A part of the order, in order."""

    items: list[OrderedSpan]
    next_cut: int  # the cut to continue with
    last_cut: int  # the latest one that this member has


class OrderQuery(Question, frozen=True):
    """Which part of the order to return: whole cuts, up to a number of spans."""

    cut: CutNumber = 0  # 0: the oldest that the member keeps
    limit: OrderSpans = ORDER_SPANS_MAX


class Draining(Question, frozen=True):
    """Whether a member hands over its partitions."""

    is_draining: bool = True


class Removal(Question, frozen=True):
    """How to remove a member."""

    force: bool = False  # even if a partition would lose its quorum of disks


class Move(Question, frozen=True):
    """Where a partition is to go."""

    member: str


class RepairRequest(Question, frozen=True):
    """How to repair etcd."""

    confirm: bool = False  # write the changes; otherwise only list them
    without: tuple[str, ...] = ()  # members that are lost and never return


class ClusterRepair(Shape, frozen=True):
    """What the members know and etcd lacks."""

    is_done: bool  # it was written back
    members: list[str]  # those that answered
    changes: list[str]  # the changes to write, or that were written
    problems: list[str]  # what prevents the repair
