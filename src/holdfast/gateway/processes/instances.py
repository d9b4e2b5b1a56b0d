"""Process instances: start, show, change and end them."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import count
from typing import Any

import msgspec

from holdfast.config import Config
from holdfast.engine.jobs.values import JobState, Outcome
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.processes.state import Instance
from holdfast.engine.processes.values import (
    Activate,
    InstanceIntent,
    InstanceRef,
    Migration,
    Modification,
    NewInstance,
)
from holdfast.engine.processes.values import NewVariables as Variables
from holdfast.engine.state import EngineState
from holdfast.errors import Code, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.reading import (
    may_be_of_instance,
    may_read_instance,
    may_read_outcome,
)
from holdfast.gateway.processes.elements import instance_view
from holdfast.gateway.processes.shapes import (
    InstanceState,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewVariables,
    ProcessInstancePage,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceView,
)
from holdfast.limits import (
    PAGE_ITEMS_MAX,
    REQUEST_BYTES_MAX,
    SPAN_MS_MAX,
    TASKS_PER_SUBMIT_MAX,
    VARIABLES_BYTES_MAX,
    VERSION_MAX,
)
from holdfast.records import ValueType, partition_for, partition_of
from holdfast.records.keys import NO_KEY

_INSTANCE, _CREATE = ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE
_NOBODY = (1 << 63, 0)  # behind every key, no incidents


class Instances:
    """What can be asked about process instances."""

    def __init__(self, runner: Asked, config: Config) -> None:
        self._runner = runner
        self._config = config
        self._partitions = len(runner.processors)
        self._turn = count()

    # --- starting -----------------------------------------------------------------------------

    async def start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        """Those without a key go to one partition in one append; a key decides its partition."""
        checks.within(len(instances), 1, TASKS_PER_SUBMIT_MAX, "number of instances")
        anywhere = next(self._turn) % self._partitions + 1
        groups: dict[int, tuple[list[int], list[Command]]] = {}
        size_bytes = 0
        for index, instance in enumerate(instances):
            new = self._new_instance(instance)
            size_bytes += len(new.variables)
            key = new.idempotency_key
            partition = partition_for(key, self._partitions) if key else anywhere
            group = groups.setdefault(partition, ([], []))
            group[0].append(index)
            group[1].append(Command(_INSTANCE, _CREATE, NO_KEY, new))
        checks.within(size_bytes, 0, REQUEST_BYTES_MAX, "bytes of variables in one request")
        tickets = self._runner.submit_all(
            {partition: group[1] for partition, group in groups.items()}, size_bytes
        )
        receipts: dict[int, ProcessInstanceReceipt] = {}
        for (indexes, _), ticket in zip(groups.values(), tickets, strict=True):
            for index, reply in zip(indexes, await ticket, strict=True):
                receipts[index] = _receipt(reply)
        return [receipts[index] for index in range(len(instances))]

    def _new_instance(self, new: NewProcessInstance) -> NewInstance:
        config, key, window_ms = self._config, "", 0
        keep_ms = config.keep_result_ms if new.keep_ms is None else new.keep_ms
        checks.within(keep_ms, 0, SPAN_MS_MAX, "keepMs")
        if new.key is not None:
            key = checks.name(new.key, "key")
            window_ms = config.idempotency_window_ms if new.window_ms is None else new.window_ms
            checks.within(window_ms, 1, SPAN_MS_MAX, "windowMs")
            keep_ms = max(keep_ms, window_ms)
        variables = bytes(new.variables)
        checks.within(len(variables), 0, VARIABLES_BYTES_MAX, "bytes of variables")
        checks.within(new.version, 0, VERSION_MAX, "version")
        return NewInstance(
            checks.name(new.process_id, "process id"), new.version, variables, key, window_ms,
            keep_ms,
        )  # fmt: skip

    # --- looking ------------------------------------------------------------------------------

    async def instance(self, instance_key: str) -> ProcessInstanceView:
        key = self._key(instance_key)
        await self._runner.settled()
        state = self._state(key)
        row = state.processes.instances.get(key)
        if row is not None and self._may_read(state, row):
            return instance_view(state, key, row)
        outcome = state.jobs.outcome(key)
        if (
            outcome is not None
            and may_be_of_instance(outcome, state)
            and may_read_outcome(self._runner, outcome, state)
        ):
            return _ended_view(state, instance_key, outcome)
        raise NotFound(
            f"Expected a process instance with key {instance_key},"
            " but it is unknown or no longer kept",
            key=instance_key,
        )

    async def instances(self, query: ProcessInstanceQuery) -> ProcessInstancePage:
        """Running instances in the order of their keys."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        after = checks.key_after(query.after, self._partitions, "process instance")
        await self._runner.settled()
        items: list[ProcessInstanceView] = []
        for partition in range(max(partition_of(after), 1), self._partitions + 1):
            state = self._runner.processors[partition].view
            running = _with_incidents if query.with_incidents else _running
            for key, row, incidents in running(state, after + 1):
                if not self._is_of(state, row, query) or not self._may_read(state, row):
                    continue
                view = instance_view(state, key, row, whole=False)
                items.append(msgspec.structs.replace(view, incidents=incidents))
                if len(items) == limit:
                    return ProcessInstancePage(items, items[-1].process_instance_key)
            after = 0
        return ProcessInstancePage(items)

    @staticmethod
    def _is_of(state: EngineState, row: Instance, query: ProcessInstanceQuery) -> bool:
        stored = state.processes.definitions.get(row.definition)
        assert stored is not None
        return query.process_id in (None, stored.process_id) and query.version in (
            None,
            stored.version,
        )

    def _may_read(self, state: EngineState, row: Instance) -> bool:
        stored = state.processes.definitions.get(row.definition)
        assert stored is not None
        return may_read_instance(self._runner, stored.process_id)

    # --- changing -----------------------------------------------------------------------------

    async def cancel(self, instance_key: str) -> None:
        await self._do(self._key(instance_key), InstanceIntent.CANCEL, InstanceRef())

    async def set_variables(self, scope_key: str, new: NewVariables) -> None:
        raw = bytes(new.variables)
        checks.within(len(raw), 0, VARIABLES_BYTES_MAX, "bytes of variables")
        value = Variables(raw, new.local)
        await self._do(self._key(scope_key), InstanceIntent.SET_VARIABLES, value)

    async def modify(self, instance_key: str, new: NewModification) -> None:
        value = modification_of(new, self._partitions)
        await self._do(self._key(instance_key), InstanceIntent.MODIFY, value)

    async def migrate(self, instance_key: str, new: NewMigration) -> None:
        value = migration_of(new, self._partitions)
        await self._do(self._key(instance_key), InstanceIntent.MIGRATE, value)

    async def _do(self, key: int, intent: IntEnum, value: Any) -> None:
        command = Command(_INSTANCE, intent, key, value)
        (reply,) = await self._runner.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    def _key(self, text: str) -> int:
        return checks.key_from(text, self._partitions, "process instance")

    def _state(self, key: int) -> EngineState:
        return self._runner.processors[partition_of(key)].view


def _running(state: EngineState, start: int) -> Iterator[tuple[int, Instance, int]]:
    """Running instances from a key on, in order, and how many incidents each has."""
    stopped = state.incidents.by_instance(start)
    at, incidents = next(stopped, _NOBODY)
    for key, row in state.processes.instances.scan(start=start):
        while at < key:
            at, incidents = next(stopped, _NOBODY)
        yield key, row, incidents if at == key else 0


def _with_incidents(state: EngineState, start: int) -> Iterator[tuple[int, Instance, int]]:
    """Those that have some."""
    for key, incidents in state.incidents.by_instance(start):
        row = state.processes.instances.get(key)
        assert row is not None, f"process instance {key} has incidents and is not in the state"
        yield key, row, incidents


def _ended_view(state: EngineState, instance_key: str, outcome: Outcome) -> ProcessInstanceView:
    completed = outcome.state == JobState.COMPLETED
    # Outcomes of an earlier release do not name the version.
    stored = state.processes.definitions.get(outcome.definition) if outcome.definition else None
    return ProcessInstanceView(
        instance_key, outcome.type,
        InstanceState.COMPLETED if completed else InstanceState.CANCELED,
        stored.version if stored else 0,
        str(outcome.definition) if stored else None,
        created=checks.moment(outcome.created_ms),
        finished=checks.moment(outcome.finished_ms),
        variables=checks.raw(outcome.result) if completed else checks.raw(b"{}"),
    )  # fmt: skip


def _receipt(reply: Reply) -> ProcessInstanceReceipt:
    rejection = reply.rejection
    if rejection is None:
        return ProcessInstanceReceipt(str(reply.key), True)
    if rejection.code == Code.ALREADY_EXISTS:
        return ProcessInstanceReceipt(str(reply.key), False)
    error = reply.error()
    assert error is not None
    raise error


def modification_of(new: NewModification, partitions: int) -> Modification:
    """Tokens to add, remove and move, as the engine has it."""

    def element(text: str) -> int:
        return checks.key_from(text, partitions, "element instance")

    return Modification(
        tuple(
            Activate(
                each.element_id,
                0 if each.ancestor_key is None else element(each.ancestor_key),
                bytes(each.variables),
            )
            for each in new.activate
        ),
        tuple(map(element, new.terminate)),
        tuple(new.terminate_ids),
        tuple((each.source_id, each.target_id) for each in new.move),
        bytes(new.variables),
    )


def migration_of(new: NewMigration, partitions: int) -> Migration:
    """Another version, as the engine has it."""
    definition = checks.key_from(new.process_definition_key, partitions, "process definition")
    return Migration(definition, tuple((each.source_id, each.target_id) for each in new.elements))
