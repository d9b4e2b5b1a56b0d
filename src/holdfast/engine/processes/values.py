"""The words of processes: what the records of a definition and of an instance say."""

from enum import IntEnum

import msgspec

from holdfast.engine.processes.ops import Op
from holdfast.records import Value


class ProcessIntent(IntEnum):
    """Commands and events of a definition. The numbers are on disk."""

    DEPLOY = 0
    DEPLOYED = 1
    FIRE = 2  # the timer of a start event is due
    FIRED = 3


class InstanceIntent(IntEnum):
    """Commands and events of an instance. The numbers are on disk."""

    CREATE = 0
    CREATED = 1
    ADVANCED = 2  # tokens moved, variables changed
    COMPLETED = 3
    CANCEL = 4
    CANCELED = 5
    CONTINUE = 6  # work that did not fit one step continues
    TRIGGER = 7  # a timer is due
    RETURN = 8  # a called process ended
    CATCH = 9  # an error that a called process did not catch
    SET_VARIABLES = 10
    MODIFY = 11
    MODIFIED = 12
    MIGRATE = 13
    MIGRATED = 14
    DELETE = 15  # deletes the outcome of an ended instance
    DELETED = 16
    PROCEED = 17  # the deferred work of a tree of calls continues


class StartTimer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """When the timer of a start event is due."""

    node: int
    due_ms: int
    left: int  # how many times more, this one included; -1: for ever
    cycle: str = ""


class Deployment(Value, frozen=True, tag=48):
    """A definition: the value of DEPLOY and DEPLOYED. Its key names this version for ever."""

    process_id: str
    body: bytes  # the definition, encoded
    digest: bytes  # of the body: the same content is the same version
    version: int = 0  # 0 with DEPLOY: the partition that decides gives it
    source: bytes = b""  # the BPMN file it came from, if it did
    timers: tuple[StartTimer, ...] = ()  # with DEPLOYED, on the partition that fires them
    deployed_ms: int = 0
    # Of a process with calls that are bound to what was deployed together with it:
    together: tuple[tuple[str, bytes], ...] = ()  # with DEPLOY: process ids and digests
    bound: tuple[tuple[str, int], ...] = ()  # with DEPLOYED: the versions that these are


class StartFiring(Value, frozen=True, tag=49):
    """The start timer that is due, and with FIRED when it is due next."""

    node: int
    due_ms: int
    next: StartTimer | None = None


class NewInstance(Value, frozen=True, tag=50):
    """An instance to create: the value of CREATE."""

    process_id: str
    version: int = 0  # 0: the latest
    variables: bytes = b"{}"  # JSON
    idempotency_key: str = ""
    window_ms: int = 0  # how long the idempotency key is remembered
    keep_ms: int = 0  # how long the outcome is kept
    parent: int = 0  # the element of the calling instance
    depth: int = 0  # how many calls deep
    node: int = -1  # the start event; -1: the one without a trigger
    lock: str = ""  # message starts: one instance at a time for a correlation key
    root: int = 0  # the instance at the root of the tree of calls; 0: itself
    moves: int = 0  # made by its callers since they last waited


class HeadedInstance(NewInstance, frozen=True, tag=58):
    """An instance to create with headers for its jobs: in the place of a `NewInstance`."""

    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Advance(Value, frozen=True, tag=51):
    """What happened in one step of an instance: the value of all its events."""

    definition: int
    ops: tuple[Op, ...]
    last_key: int  # the last key that the step gave out


class InstanceRef(Value, frozen=True, tag=52):
    """Only the instance, element or timer itself: CANCEL, CONTINUE, PROCEED, TRIGGER, DELETE(D)."""

    due_ms: int = 0


class Return(Value, frozen=True, tag=53):
    """A called process ended: the value of RETURN. Its key is the calling element's."""

    called: int
    variables: bytes
    moves: int = 0  # made since the last wait


class ThrownError(Value, frozen=True, tag=54):
    """An error on its way to the event that catches it: the value of CATCH. Its key: the host's."""

    node: int  # the boundary event that catches it
    code: str
    message: str
    variables: bytes = b"{}"
    moves: int = 0  # made since the last wait


class NewVariables(Value, frozen=True, tag=55):
    """Variables to set: the value of SET_VARIABLES. Its key is the instance's or an element's."""

    variables: bytes  # JSON
    local: bool = False  # set them in exactly this scope, not in the scope that defines them


class Activate(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An element that gets a token."""

    element_id: str
    ancestor: int = 0  # the scope, if there are several
    variables: bytes = b"{}"  # JSON; local to the element's scope


class Modification(Value, frozen=True, tag=56):
    """Tokens to add, remove and move: the value of MODIFY."""

    activate: tuple[Activate, ...] = ()
    terminate: tuple[int, ...] = ()  # element instances
    terminate_ids: tuple[str, ...] = ()  # all instances of these elements
    move: tuple[tuple[str, str], ...] = ()  # every token of an element goes to another
    variables: bytes = b"{}"  # JSON; of the instance


class Migration(Value, frozen=True, tag=57):
    """Another version, and which element becomes which: the value of MIGRATE."""

    definition: int
    elements: tuple[tuple[str, str], ...]


PROCESS_VALUES: dict[ProcessIntent, type[msgspec.Struct]] = {
    ProcessIntent.DEPLOY: Deployment,
    ProcessIntent.DEPLOYED: Deployment,
    ProcessIntent.FIRE: StartFiring,
    ProcessIntent.FIRED: StartFiring,
}

INSTANCE_VALUES: dict[InstanceIntent, type[msgspec.Struct]] = {
    InstanceIntent.CREATE: NewInstance,
    InstanceIntent.CREATED: Advance,
    InstanceIntent.ADVANCED: Advance,
    InstanceIntent.COMPLETED: Advance,
    InstanceIntent.CANCEL: InstanceRef,
    InstanceIntent.CANCELED: Advance,
    InstanceIntent.CONTINUE: InstanceRef,
    InstanceIntent.TRIGGER: InstanceRef,
    InstanceIntent.RETURN: Return,
    InstanceIntent.CATCH: ThrownError,
    InstanceIntent.SET_VARIABLES: NewVariables,
    InstanceIntent.MODIFY: Modification,
    InstanceIntent.MODIFIED: Advance,
    InstanceIntent.MIGRATE: Migration,
    InstanceIntent.MIGRATED: Advance,
    InstanceIntent.DELETE: InstanceRef,
    InstanceIntent.DELETED: InstanceRef,
    InstanceIntent.PROCEED: InstanceRef,
}
