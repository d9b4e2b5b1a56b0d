"""What is told of tasks, process instances and incidents that ended recently. None is stored."""

from enum import IntEnum

import msgspec

from holdfast.engine.incidents.values import Incident


class KeptEnded(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """For how long something that ended is known, and how many of a kind on a partition."""

    span_ms: int
    things_max: int


class EndedKind(IntEnum):
    """What something that ended is."""

    TASK = 0  # or the job of an element
    INSTANCE = 1
    INCIDENT = 2


class EndedThing(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A task, a process instance or an incident that has ended."""

    key: int
    state: str  # a JobState, or an IncidentState
    ended_ms: int
    ended_at: int  # the offset of the record that tells so
    type: str = ""  # of a task; "": not known
    created_ms: int = 0  # 0: not known
    created_at: int = -1  # the offset of the record that tells so; -1: not known
    failures: int = 0
    error: str = ""  # the last line of it
    worker: str = ""  # that had the task last
    instance_key: int = 0  # of the job of an element: its process instance
    definition: int = 0  # of an instance
    process_id: str = ""
    version: int = 0
    incident: Incident | None = None
