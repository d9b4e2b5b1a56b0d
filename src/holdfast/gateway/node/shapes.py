"""The shapes of what a node says about itself."""

import msgspec

from holdfast.gateway.shapes import Question, Shape


class PartitionView(Shape, frozen=True):
    """One partition as the node sees it."""

    partition_id: int
    next_position: int
    processed_position: int
    member: str = ""  # the process that runs it, if the node has several
    is_reached: bool = True  # False: its process does not answer, and its progress is unknown


class MemberView(Shape, frozen=True):
    """A member of a cluster, and the partitions whose log it keeps."""

    member: str
    url: str
    version: str
    owns: list[int]
    stands_by: list[int]
    is_up: bool = True


class Topology(Shape, frozen=True):
    """What the node is."""

    version: str
    partitions: list[PartitionView]
    host: str = "localhost"
    port: int = 0
    members: list[MemberView] = msgspec.field(default_factory=list["MemberView"])  # of a cluster
    cluster_id: str | None = None
    replication_factor: int = 1


class Health(Shape, frozen=True, omit_defaults=True):
    """The state of the node: UP, CHECKING, DEGRADED, or an error.

    CHECKING: it works; not all of its state was read since it started. DEGRADED: files are damaged,
    and all work is readable; or a partition has stopped, and the others work.
    """

    status: str
    damage: list[str] = msgspec.field(default_factory=list)  # what is damaged, by its file
    # problems that need attention but do not stop work
    warnings: list[str] = msgspec.field(default_factory=list)


class SettingView(Shape, frozen=True):
    """A setting of the node, without secrets: logins in URLs and passwords are ***."""

    name: str
    value: str | int | bool | None
    source: str  # default, file, environment or option
    place: str  # where it is changed: a file, or an environment variable


class NodeSettings(Shape, frozen=True):
    """All settings of the process that answers."""

    items: list[SettingView]


class BackupRequest(Question, frozen=True):
    """Where a backup goes."""

    target: str  # a folder of the node's machine by its whole path, or s3://BUCKET/PREFIX


class BackupView(Shape, frozen=True):
    """The last backup since the node started, and its progress."""

    state: str  # NONE, RUNNING, DONE or FAILED
    target: str = ""
    generation: int = 0  # when it is DONE
    taken_ms: int = 0  # the moment of which it is a snapshot
    total_bytes: int = 0
    done_bytes: int = 0
    sent_bytes: int = 0  # of these, bytes that the target did not have yet
    held_ms: float = 0.0  # how long the processes of the node paused for a common moment
    code: str = ""  # the error code, if it is FAILED
    error: str = ""
