"""Process instances: start, show, change and end them."""

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from holdfast.config import Config
from holdfast.engine.ended.values import EndedKind
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.processes.queries import FindInstance, ListInstances
from holdfast.engine.processes.values import (
    Activate,
    HeadedInstance,
    InstanceIntent,
    InstanceRef,
    Migration,
    Modification,
    NewInstance,
)
from holdfast.engine.processes.values import NewVariables as Variables
from holdfast.errors import Code, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.ended import OLDER, EndedPage, EndedThings, page_of
from holdfast.gateway.processes.api import InstanceApi
from holdfast.gateway.processes.elements import ended_view, instance_view
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
from holdfast.gateway.shapes import ListScope
from holdfast.gateway.walk import walk
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


class InstanceService(InstanceApi):
    """What can be asked about process instances."""

    def __init__(self, asked: Asked, config: Config) -> None:
        self._asked = asked
        self._ended = EndedThings(asked, config)
        self._config = config

    # --- starting -----------------------------------------------------------------------------

    async def start(self, instances: Sequence[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        """Those without a key go to one partition in one append; a key decides its partition."""
        checks.within(len(instances), 1, TASKS_PER_SUBMIT_MAX, "number of instances")
        anywhere = self._asked.anywhere(len(instances))
        groups: dict[int, tuple[list[int], list[Command]]] = {}
        size_bytes = 0
        for index, instance in enumerate(instances):
            new = instance_of(instance, self._config)
            size_bytes += len(new.variables)
            if instance.headers:
                size_bytes += checks.headers_bytes(instance.headers)
            key = new.idempotency_key
            partition = partition_for(key, self._asked.count) if key else anywhere
            group = groups.setdefault(partition, ([], []))
            group[0].append(index)
            group[1].append(Command(_INSTANCE, _CREATE, NO_KEY, new))
        checks.within(size_bytes, 0, REQUEST_BYTES_MAX, "bytes of variables in one request")
        tickets = self._asked.submit_all(
            {partition: group[1] for partition, group in groups.items()}, size_bytes
        )
        receipts: dict[int, ProcessInstanceReceipt] = {}
        answers = [await tickets[0]] if len(tickets) == 1 else await asyncio.gather(*tickets)
        for (indexes, _), replies in zip(groups.values(), answers, strict=True):
            for index, reply in zip(indexes, replies, strict=True):
                receipts[index] = _receipt(reply)
        return [receipts[index] for index in range(len(instances))]

    # --- looking ------------------------------------------------------------------------------

    async def get(self, instance_key: str) -> ProcessInstanceView:
        key = self._key(instance_key)
        found = await self._asked.ask(partition_of(key), FindInstance(key))
        if found is not None:
            return instance_view(found)
        ended = await self._ended.find(EndedKind.INSTANCE, key)
        if ended is None:
            raise NotFound(
                f"Expected a process instance with key {instance_key},"
                f" but it is unknown or no longer kept; {OLDER}",
                key=instance_key,
            )
        return ended_view(ended.thing, ended.result)

    async def page(self, query: ProcessInstanceQuery) -> ProcessInstancePage:
        """Running ones are asked for one partition after the other, ended ones all at once."""
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        scope, state = query.scope, query.state
        if query.with_incidents or state in (InstanceState.ACTIVE, InstanceState.TERMINATING):
            scope = ListScope.OPEN
        elif state is not None:
            scope = ListScope.ENDED
        is_ending = None if state is None else state is InstanceState.TERMINATING

        async def list_open(after: str | None, left: int) -> tuple[list[ProcessInstanceView], int]:
            start = checks.key_after(after, self._asked.count, "process instance")
            found, last = await walk(
                self._asked, start, left,
                lambda after, left: ListInstances(
                    after, left, query.process_id, query.version, query.with_incidents, is_ending
                ),
            )  # fmt: skip
            return [instance_view(each, whole=False) for each in found], last

        async def list_ended(after: str | None, left: int) -> EndedPage:
            return await self._ended.page(
                EndedKind.INSTANCE, after, left, state=query.state, process_id=query.process_id,
                version=query.version,
            )  # fmt: skip

        page = await page_of(scope, query.after, limit, list_open, list_ended, ended_view)
        return ProcessInstancePage(page.items, page.after, page.ended_since)

    # --- changing -----------------------------------------------------------------------------

    async def cancel(self, instance_key: str) -> None:
        await self._do(self._key(instance_key), InstanceIntent.CANCEL, InstanceRef())

    async def set_variables(self, element_key: str, new: NewVariables) -> None:
        raw = bytes(new.variables)
        checks.within(len(raw), 0, VARIABLES_BYTES_MAX, "bytes of variables")
        value = Variables(raw, new.local)
        await self._do(self._key(element_key), InstanceIntent.SET_VARIABLES, value)

    async def modify(self, instance_key: str, new: NewModification) -> None:
        value = modification_of(new, self._asked.count)
        await self._do(self._key(instance_key), InstanceIntent.MODIFY, value)

    async def migrate(self, instance_key: str, new: NewMigration) -> None:
        value = migration_of(new, self._asked.count)
        await self._do(self._key(instance_key), InstanceIntent.MIGRATE, value)

    async def _do(self, key: int, intent: IntEnum, value: Any) -> None:
        command = Command(_INSTANCE, intent, key, value)
        (reply,) = await self._asked.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    def _key(self, text: str) -> int:
        return checks.key_from(text, self._asked.count, "process instance")


def _receipt(reply: Reply) -> ProcessInstanceReceipt:
    rejection = reply.rejection
    if rejection is None:
        return ProcessInstanceReceipt(str(reply.key), True)
    if rejection.code == Code.ALREADY_EXISTS:
        return ProcessInstanceReceipt(str(reply.key), False)
    error = reply.error()
    assert error is not None
    raise error


def instance_of(new: NewProcessInstance, config: Config) -> NewInstance:
    """A new instance as the engine has it."""
    key, window_ms = "", 0
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
    process_id = checks.name(new.process_id, "process id")
    if new.headers:
        return HeadedInstance(
            process_id, new.version, variables, key, window_ms, keep_ms,
            headers=checks.headers(new.headers),
        )  # fmt: skip
    return NewInstance(process_id, new.version, variables, key, window_ms, keep_ms)


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
