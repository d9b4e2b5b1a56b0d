"""A handle on a process instance, and what a program sends to start and change one."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.client.codec import Values
from holdfast.client.expecting import Span, expect, span_ms
from holdfast.client.handle import wait_for_outcome
from holdfast.client.views import InstanceDetails, instance_details
from holdfast.engine.jobs.values import JobState
from holdfast.errors import InvalidArgument, NotFound, TaskFailed
from holdfast.gateway.processes.shapes import (
    ActivateElement,
    MapElement,
    MoveTokens,
    NewMessage,
    NewMigration,
    NewModification,
    NewProcessInstance,
    NewVariables,
    ProcessDefinition,
    ProcessInstanceView,
    Resource,
)
from holdfast.model.definition import Definition

if TYPE_CHECKING:
    from holdfast.client.process_calls import ProcessCalls
    from holdfast.model.dsl import Process

Variables = Mapping[str, Any]


class ProcessHandle:
    """A durable process instance; `app.instance(key)` gives a handle in any program."""

    def __init__(self, app: "ProcessCalls", key: str, created: bool = True) -> None:
        self.key = key
        self.created = created  # False: its idempotency key named an instance that was there
        self._app = app

    def __repr__(self) -> str:
        return f"ProcessHandle(key={self.key!r})"

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the end and returns the variables; TaskFailed if it was canceled."""
        self._app.begin()
        return self._app.portal.call(self._result(timeout), waits=True)

    async def result_async(self, timeout: float | None = None) -> dict[str, Any]:
        """Like `result`, for an event loop."""
        self._app.begin()
        return await self._app.portal.reach(self._result(timeout))

    async def _result(self, timeout: float | None) -> dict[str, Any]:
        outcome = await wait_for_outcome(self._app.api, self.key, timeout)
        if outcome.state == JobState.COMPLETED and isinstance(outcome.result, msgspec.Raw):
            return self._app.values.fields(outcome.result)
        if outcome.state is None:
            raise NotFound(f"Process instance {self.key} is unknown or no longer kept")
        raise TaskFailed(
            f"Process instance {self.key} did not complete: it is {outcome.state}",
            key=self.key,
            state=str(outcome.state),
        )

    def view(self) -> InstanceDetails:
        """The instance's state, its variables and the tree of its elements."""
        return self._app.portal.call(self._view())

    async def view_async(self) -> InstanceDetails:
        """Like `view`, for an event loop."""
        return await self._app.portal.reach(self._view())

    async def _view(self) -> InstanceDetails:
        return instance_details(await self._app.api.instances.get(self.key), self._app.values)

    def cancel(self) -> None:
        """Ends the instance and everything in it."""
        self._app.portal.call(self._app.api.instances.cancel(self.key))

    async def cancel_async(self) -> None:
        """Like `cancel`, for an event loop."""
        await self._app.portal.reach(self._app.api.instances.cancel(self.key))

    def set_variables(
        self, variables: Variables, *, scope: str | None = None, local: bool = False
    ) -> None:
        """Sets variables, as seen from the instance or from an element instance in it."""
        self._app.portal.call(self._set_variables(variables, scope, local))

    async def set_variables_async(
        self, variables: Variables, *, scope: str | None = None, local: bool = False
    ) -> None:
        """Like `set_variables`, for an event loop."""
        await self._app.portal.reach(self._set_variables(variables, scope, local))

    async def _set_variables(self, variables: Variables, scope: str | None, local: bool) -> None:
        new = NewVariables(self._app.values.variables(variables), local)
        await self._app.api.instances.set_variables(scope or self.key, new)

    def modify(
        self,
        *,
        activate: Iterable[str | ActivateElement] = (),
        terminate: Iterable[str] = (),
        move: Mapping[str, str] | None = None,
        variables: Variables | None = None,
    ) -> None:
        """Adds, removes and moves tokens, all or nothing.

        `terminate` takes element ids, which end all their instances, or element instance keys.
        """
        self._app.portal.call(self._modify(activate, terminate, move, variables))

    async def modify_async(
        self,
        *,
        activate: Iterable[str | ActivateElement] = (),
        terminate: Iterable[str] = (),
        move: Mapping[str, str] | None = None,
        variables: Variables | None = None,
    ) -> None:
        """Like `modify`, for an event loop."""
        await self._app.portal.reach(self._modify(activate, terminate, move, variables))

    async def _modify(
        self,
        activate: Iterable[str | ActivateElement],
        terminate: Iterable[str],
        move: Mapping[str, str] | None,
        variables: Variables | None,
    ) -> None:
        ended = list(terminate)
        new = NewModification(
            [ActivateElement(each) if isinstance(each, str) else each for each in activate],
            [each for each in ended if each.isdecimal()],
            [each for each in ended if not each.isdecimal()],
            [MoveTokens(source, target) for source, target in (move or {}).items()],
            self._app.values.variables(variables or {}),
        )
        await self._app.api.instances.modify(self.key, new)

    def migrate(
        self, definition: ProcessDefinition | str, elements: Mapping[str, str] | None = None
    ) -> None:
        """Moves the instance to another version, all or nothing.

        `elements` says which element becomes which; without it, each active one keeps its id.
        """
        self._app.portal.call(self._migrate(definition, elements))

    async def migrate_async(
        self, definition: ProcessDefinition | str, elements: Mapping[str, str] | None = None
    ) -> None:
        """Like `migrate`, for an event loop."""
        await self._app.portal.reach(self._migrate(definition, elements))

    async def _migrate(
        self, definition: ProcessDefinition | str, elements: Mapping[str, str] | None
    ) -> None:
        key = definition if isinstance(definition, str) else definition.process_definition_key
        if elements is None:
            elements = {id_: id_ for id_ in active_ids(await self._view())}
        mapped = [MapElement(source, target) for source, target in elements.items()]
        await self._app.api.instances.migrate(self.key, NewMigration(key, mapped))


def new_instance(
    values: Values,
    process_id: str,
    variables: Variables | None,
    version: int,
    key: str | None,
    keep_result: Span | None,
    headers: Mapping[str, str] | None = None,
) -> NewProcessInstance:
    """A process to start, as it goes to the node."""
    expect("process_id", process_id, str)
    keep_ms = None if keep_result is None else span_ms(keep_result, "keep_result")
    sent = values.variables(variables or {})
    return NewProcessInstance(process_id, version, sent, key, None, keep_ms, dict(headers or {}))


def new_message(
    values: Values,
    name: str,
    key: str | int,
    variables: Variables | None,
    ttl: Span,
    message_id: str | None,
) -> NewMessage:
    """A message to publish, as it goes to the node."""
    expect("name", name, str)
    expect("key", key, str, int)
    sent = values.variables(variables or {})
    return NewMessage(name, str(key), sent, message_id, span_ms(ttl, "ttl"))


def resource_of(process: "Process | Definition | str | Path") -> Resource:
    """A process as the BPMN that goes over the wire."""
    if isinstance(process, str | Path):
        path = Path(process)
        try:
            return Resource(path.name, path.read_text())
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InvalidArgument(f"Cannot read the BPMN file {path}: {reason}") from error
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"The BPMN file {path} is not UTF-8 text") from error
    from holdfast.model.bpmn import write_bpmn  # an XML writer is needed to deploy only

    definition = process if isinstance(process, Definition) else process.definition()
    return Resource(f"{definition.id}.bpmn", write_bpmn(definition).decode())


def active_ids(view: ProcessInstanceView) -> list[str]:
    """The ids of all active elements."""
    found: dict[str, None] = {}
    todo = list(view.elements)
    while todo:
        element = todo.pop()
        found[element.element_id] = None
        todo += element.children
    return list(found)
