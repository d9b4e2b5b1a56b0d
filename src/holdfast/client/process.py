"""Processes from a user's program: deploy, start, publish, and a handle on an instance."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.client.codec import decode, encode
from holdfast.client.handle import wait_for_outcome
from holdfast.client.portal import Portal
from holdfast.client.task import Span, span_ms
from holdfast.engine.jobs.values import JobState
from holdfast.errors import InvalidArgument, NotFound, TaskFailed
from holdfast.gateway.api import Api
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
    ProcessDefinitionQuery,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    ProcessInstanceView,
    Resource,
)
from holdfast.limits import TASKS_PER_SUBMIT_MAX
from holdfast.model.definition import Definition

if TYPE_CHECKING:
    from holdfast.model.dsl import Process

Variables = Mapping[str, Any]


class ProcessHandle:
    """A process instance that is durable. It can be had from anywhere: `app.instance(key)`."""

    def __init__(self, app: "ProcessCalls", key: str, created: bool = True) -> None:
        self.key = key
        self.created = created  # False: its idempotency key named an instance that was there
        self._app = app

    def __repr__(self) -> str:
        return f"ProcessHandle(key={self.key!r})"

    def result(self, timeout: float | None = None) -> dict[str, Any]:
        """The variables at the instance's end, waiting for it; TaskFailed if it was canceled."""
        self._app.begin()
        return self._app.portal.call(self._result(timeout))

    async def result_async(self, timeout: float | None = None) -> dict[str, Any]:
        """Like `result`, for an event loop."""
        self._app.begin()
        return await self._app.portal.reach(self._result(timeout))

    async def _result(self, timeout: float | None) -> dict[str, Any]:
        outcome = await wait_for_outcome(self._app.api, self.key, timeout)
        if outcome.state == JobState.COMPLETED and isinstance(outcome.result, msgspec.Raw):
            return decode(outcome.result)
        if outcome.state is None:
            raise NotFound(
                f"Expected process instance {self.key}, but it is unknown or no longer kept"
            )
        raise TaskFailed(
            f"Expected process instance {self.key} to complete, but it is {outcome.state}",
            key=self.key,
            state=str(outcome.state),
        )

    def view(self) -> ProcessInstanceView:
        """All that is known of the instance: its variables and the tree of its elements."""
        return self._app.portal.call(self._app.api.instances.get(self.key))

    def cancel(self) -> None:
        """Ends the instance and everything in it."""
        self._app.portal.call(self._app.api.instances.cancel(self.key))

    def set_variables(
        self, variables: Variables, *, scope: str | None = None, local: bool = False
    ) -> None:
        """Sets variables, as seen from the instance or from an element instance in it."""
        new = NewVariables(_json(variables), local)
        self._app.portal.call(self._app.api.instances.set_variables(scope or self.key, new))

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
        ended = list(terminate)
        new = NewModification(
            [ActivateElement(each) if isinstance(each, str) else each for each in activate],
            [each for each in ended if each.isdecimal()],
            [each for each in ended if not each.isdecimal()],
            [MoveTokens(source, target) for source, target in (move or {}).items()],
            _json(variables or {}),
        )
        self._app.portal.call(self._app.api.instances.modify(self.key, new))

    def migrate(
        self, definition: ProcessDefinition | str, elements: Mapping[str, str] | None = None
    ) -> None:
        """Moves the instance to another version, all or nothing.

        `elements` says which element becomes which; without it, each active one keeps its id.
        """
        key = definition if isinstance(definition, str) else definition.process_definition_key
        if elements is None:
            elements = {id_: id_ for id_ in active_ids(self.view())}
        mapped = [MapElement(source, target) for source, target in elements.items()]
        self._app.portal.call(self._app.api.instances.migrate(self.key, NewMigration(key, mapped)))


class ProcessCalls:
    """The part of `Holdfast` that is about processes."""

    portal: Portal
    api: Api

    def begin(self) -> None:
        """Begins to run what is waiting for this app's tasks."""

    def deploy(self, *processes: "Process | Definition | str | Path") -> list[ProcessDefinition]:
        """Deploys processes written in Python, or BPMN files, on every partition.

        What was deployed with the same content before stays as it is: `created` says so.
        """
        resources = [resource_of(each) for each in processes]
        return self.portal.call(self.api.processes.deploy(resources))

    def definitions(
        self, process_id: str | None = None, *, latest: bool = False
    ) -> list[ProcessDefinition]:
        """The deployed versions, by id and version."""
        return self.portal.call(self.api.processes.find(ProcessDefinitionQuery(process_id, latest)))

    def start(
        self,
        process_id: str,
        variables: Variables | None = None,
        *,
        version: int = 0,
        key: str | None = None,
        keep_result: Span | None = None,
    ) -> ProcessHandle:
        """Starts a process; durable when it returns. The same `key` is the same instance."""
        self.begin()
        new = new_instance(process_id, variables, version, key, keep_result)
        return self._process_handles(self.portal.call(self.api.instances.start([new])))[0]

    async def start_async(
        self,
        process_id: str,
        variables: Variables | None = None,
        *,
        version: int = 0,
        key: str | None = None,
        keep_result: Span | None = None,
    ) -> ProcessHandle:
        """Like `start`, for an event loop."""
        self.begin()
        new = new_instance(process_id, variables, version, key, keep_result)
        return self._process_handles(await self.portal.reach(self.api.instances.start([new])))[0]

    def start_many(
        self,
        process_id: str,
        variables: Iterable[Variables],
        *,
        version: int = 0,
        keep_result: Span | None = None,
    ) -> list[ProcessHandle]:
        """Starts a process once for each set of variables: one append for every 10,000."""
        self.begin()
        new = [new_instance(process_id, each, version, None, keep_result) for each in variables]
        return self._process_handles(self.portal.call(self._start_many(new)))

    async def _start_many(self, new: list[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        receipts: list[ProcessInstanceReceipt] = []
        for start in range(0, len(new), TASKS_PER_SUBMIT_MAX):
            receipts += await self.api.instances.start(new[start : start + TASKS_PER_SUBMIT_MAX])
            await asyncio.sleep(0)
        return receipts

    def instance(self, key: str) -> ProcessHandle:
        """A handle on an instance that was started earlier, here or elsewhere."""
        return ProcessHandle(self, key)

    def instances(
        self, process_id: str | None = None, *, with_incidents: bool = False, limit: int = 100
    ) -> list[ProcessInstanceView]:
        """Running instances."""
        query = ProcessInstanceQuery(process_id, with_incidents=with_incidents, limit=limit)
        return self.portal.call(self.api.instances.page(query)).items

    def publish(
        self,
        name: str,
        key: str | int = "",
        variables: Variables | None = None,
        *,
        ttl: Span = 0,
        message_id: str | None = None,
    ) -> str:
        """Publishes a message to instances that wait for its name and key; returns its own key.

        It is kept for `ttl`, for instances that begin to wait later.
        """
        new = new_message(name, key, variables, ttl, message_id)
        return self.portal.call(self.api.messages.publish(new)).message_key

    def _process_handles(self, receipts: list[ProcessInstanceReceipt]) -> list[ProcessHandle]:
        return [
            ProcessHandle(self, receipt.process_instance_key, receipt.created)
            for receipt in receipts
        ]


def new_instance(
    process_id: str,
    variables: Variables | None,
    version: int,
    key: str | None,
    keep_result: Span | None,
) -> NewProcessInstance:
    """A process to start, as it goes to the node."""
    keep_ms = None if keep_result is None else span_ms(keep_result)
    return NewProcessInstance(process_id, version, _json(variables or {}), key, None, keep_ms)


def new_message(
    name: str, key: str | int, variables: Variables | None, ttl: Span, message_id: str | None
) -> NewMessage:
    """A message to publish, as it goes to the node."""
    return NewMessage(name, str(key), _json(variables or {}), message_id, span_ms(ttl))


def _json(variables: Variables) -> msgspec.Raw:
    return msgspec.Raw(encode(variables, place="variables"))


def resource_of(process: "Process | Definition | str | Path") -> Resource:
    """A process as the BPMN that goes over the wire."""
    if isinstance(process, str | Path):
        path = Path(process)
        try:
            return Resource(path.name, path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgument(f"Expected a BPMN file at {path}, but {error}") from error
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
