"""What a member's core asks of the shell around it."""

from typing import NamedTuple, TypeAlias

from holdfast.groups.api import Offset
from holdfast.groups.messages import SyncMessage


class Send(NamedTuple):
    """Append this message to the sync log, in the order of these effects.

    After an unknown outcome the same bytes may be appended again, or dropped: duplicates are
    ignored, and what is lost is noticed and sent anew.
    """

    message: SyncMessage


class StartRun(NamedTuple):
    """Run a partition, from an offset on; answer with `started`, later `finished` or `failed`."""

    token: str
    epoch: int
    offset: Offset


class StopRun(NamedTuple):
    """Let go of a partition; answer with `released` (or `finished`, `failed`) once nothing runs."""

    token: str
    why: str


class Durable(NamedTuple):
    """A commit of this member, or its finish, has been read back."""

    token: str
    offset: Offset
    is_finished: bool = False


class EpochStarted(NamedTuple):
    """What this member runs, it runs in this epoch from now on."""

    epoch: int


class LeftOut(NamedTuple):
    """The group goes on without this member: leave, and join anew with another incarnation."""

    why: str


class Checkpoint(NamedTuple):
    """The log before this offset is not needed any more: discard it."""

    offset: int


class Alarm(NamedTuple):
    """Something happened that must not happen; for people."""

    text: str


Effect: TypeAlias = (
    Send | StartRun | StopRun | Durable | EpochStarted | LeftOut | Checkpoint | Alarm
)
