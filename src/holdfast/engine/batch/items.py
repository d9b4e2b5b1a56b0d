"""What each type of operation does with an item: a command that a person could have given."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from holdfast.engine.batch.values import BatchOperation, BatchOperationType
from holdfast.engine.incidents.values import IncidentIntent, JobIncident, Resolution
from holdfast.engine.kernel import Turn
from holdfast.engine.kernel.turn import FROM_OUTSIDE
from holdfast.engine.processes.values import InstanceIntent, InstanceRef
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, RecordKind, Rejection, ValueType

_T = BatchOperationType
_INSTANCE, _INCIDENT = ValueType.PROCESS_INSTANCE, ValueType.INCIDENT


class ItemKind(NamedTuple):
    """How the items of a type are done."""

    value_type: ValueType
    intent: IntEnum
    value: Callable[[BatchOperation], Any]  # the same for every item
    is_task: bool = False  # items are tasks, the command is about their incidents
    is_heavy: bool = False  # what it leads to may carry variables of any size


KINDS: dict[BatchOperationType, ItemKind] = {
    _T.CANCEL_PROCESS_INSTANCE: ItemKind(_INSTANCE, InstanceIntent.CANCEL, lambda _: InstanceRef()),
    _T.MODIFY_PROCESS_INSTANCE: ItemKind(
        _INSTANCE, InstanceIntent.MODIFY, lambda op: op.modification, is_heavy=True
    ),
    _T.MIGRATE_PROCESS_INSTANCE: ItemKind(
        _INSTANCE, InstanceIntent.MIGRATE, lambda op: op.migration
    ),
    _T.DELETE_PROCESS_INSTANCE: ItemKind(_INSTANCE, InstanceIntent.DELETE, lambda _: InstanceRef()),
    _T.RESOLVE_INCIDENT: ItemKind(
        _INCIDENT, IncidentIntent.RESOLVE, lambda op: Resolution(op.retries), is_heavy=True
    ),
    _T.RETRY_TASK: ItemKind(
        _INCIDENT, IncidentIntent.RESOLVE, lambda op: Resolution(op.retries), is_task=True
    ),
    _T.DISCARD_TASK: ItemKind(
        _INCIDENT, IncidentIntent.DISCARD, lambda _: JobIncident(), is_task=True
    ),
}


class Items:
    """Does the items of one operation, one by one, with the claims of its creator."""

    def __init__(self, turn: Turn[EngineState], operation: BatchOperation) -> None:
        self._turn = turn
        self._kind = KINDS[operation.type]
        self._value = self._kind.value(operation)
        self._claims = operation.claims

    def fetch(self, keys: tuple[int, ...]) -> None:
        """Has the rows at hand that the items need: one look into the store instead of many."""
        state = self._turn.state
        if self._kind.is_task:
            jobs = state.jobs.jobs.get_many(list(keys))
            state.incidents.open.get_many([job.incident_key for job in jobs if job is not None])
        elif self._kind.value_type is _INCIDENT:
            incidents = state.incidents.open.get_many(list(keys))
            state.jobs.jobs.get_many([each.job_key for each in incidents if each is not None])
        elif self._kind.intent is InstanceIntent.CANCEL:
            state.jobs.fetch(state.processes.fetch(list(keys)))
        else:
            state.processes.instances.get_many(list(keys))

    def do(self, key: int) -> Rejection | None:
        """Does an item, or tells why it cannot be done: then nothing of it has happened."""
        kind, turn, target = self._kind, self._turn, key
        if kind.is_task:
            job = turn.state.jobs.jobs.get(key)
            if job is None or not job.incident_key:
                return _no_dead_letter(key, is_there=job is not None)
            target = job.incident_key
        command = Record(
            turn.next_position, RecordKind.COMMAND, kind.value_type, kind.intent, target,
            FROM_OUTSIDE, turn.now_ms, self._value, self._claims,
        )  # fmt: skip
        return turn.attempt(command)

    def weight_bytes(self, first: int) -> int:
        """How much the records from a place on hold, where that can be much."""
        if not self._kind.is_heavy:
            return 0
        encode = self._turn.tables.codec.encode
        return sum(len(encode(record)) for record in self._turn.records[first:])

    def is_gone(self, key: int) -> bool:
        """Whether there is nothing any more that an item could be done with."""
        state = self._turn.state
        if self._kind.is_task:
            return state.jobs.jobs.get(key) is None
        if self._kind.value_type is _INCIDENT:
            return state.incidents.open.get(key) is None
        return state.processes.instances.get(key) is None


def _no_dead_letter(key: int, *, is_there: bool) -> Rejection:
    if not is_there:
        reason = f"There is no task with key {key}"
        return Rejection(Code.NOT_FOUND, reason)
    reason = f"Expected task {key} to wait for a person, but it does not"
    return Rejection(Code.INVALID_STATE, reason)
