"""Processes from a user's program: deploy them, start them, and publish messages to them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.client.codec import Values
from holdfast.client.expecting import Span, expect
from holdfast.client.middleware import Hooks
from holdfast.client.portal import Portal
from holdfast.client.process import (
    ProcessHandle,
    Variables,
    new_instance,
    new_message,
    resource_of,
)
from holdfast.client.views import InstanceDetails, instance_details
from holdfast.gateway.api import Api
from holdfast.gateway.processes.shapes import (
    NewMessage,
    NewProcessInstance,
    ProcessDefinition,
    ProcessDefinitionQuery,
    ProcessInstanceQuery,
    ProcessInstanceReceipt,
    Resource,
)
from holdfast.limits import TASKS_PER_SUBMIT_MAX
from holdfast.model.definition import Definition

if TYPE_CHECKING:
    from holdfast.model.dsl import Process


class ProcessCalls:
    """The part of `Holdfast` that is about processes."""

    portal: Portal
    api: Api
    values: Values
    hooks: Hooks | None

    def begin(self) -> None:
        """Starts to run waiting tasks of this app."""

    # --- definitions --------------------------------------------------------------------------

    def deploy(self, *processes: "Process | Definition | str | Path") -> list[ProcessDefinition]:
        """Deploys processes written in Python, or BPMN files, on every partition.

        What was deployed with the same content before stays as it is: `created` says so.
        """
        return self.portal.call(self.api.processes.deploy(_resources(processes)))

    async def deploy_async(
        self, *processes: "Process | Definition | str | Path"
    ) -> list[ProcessDefinition]:
        """Like `deploy`, for an event loop."""
        # files are read and BPMN is written in a thread: both take longer than a loop may wait
        resources = await asyncio.to_thread(_resources, processes)
        return await self.portal.reach(self.api.processes.deploy(resources))

    def definitions(
        self, process_id: str | None = None, *, latest: bool = False
    ) -> list[ProcessDefinition]:
        """The deployed versions, by id and version."""
        return self.portal.call(self.api.processes.find(ProcessDefinitionQuery(process_id, latest)))

    async def definitions_async(
        self, process_id: str | None = None, *, latest: bool = False
    ) -> list[ProcessDefinition]:
        """Like `definitions`, for an event loop."""
        query = ProcessDefinitionQuery(process_id, latest)
        return await self.portal.reach(self.api.processes.find(query))

    # --- instances ----------------------------------------------------------------------------

    def start(
        self,
        process_id: str,
        variables: Variables | None = None,
        *,
        version: int = 0,
        key: str | None = None,
        keep_result: Span | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ProcessHandle:
        """Starts a process; durable when it returns. The same `key` is the same instance.

        `headers` are for the workers of its jobs, as `current_job().headers`.
        """
        self.begin()
        new = new_instance(self.values, process_id, variables, version, key, keep_result, headers)
        starting, at_once = self.api.instances.start([new]), self.hooks is None
        return self._process_handles(self.portal.call(starting, at_once=at_once))[0]

    async def start_async(
        self,
        process_id: str,
        variables: Variables | None = None,
        *,
        version: int = 0,
        key: str | None = None,
        keep_result: Span | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ProcessHandle:
        """Like `start`, for an event loop."""
        self.begin()
        new = new_instance(self.values, process_id, variables, version, key, keep_result, headers)
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
        new = [
            new_instance(self.values, process_id, each, version, None, keep_result)
            for each in variables
        ]
        return self._process_handles(self.portal.call(self._start_many(new)))

    async def start_many_async(
        self,
        process_id: str,
        variables: Iterable[Variables],
        *,
        version: int = 0,
        keep_result: Span | None = None,
    ) -> list[ProcessHandle]:
        """Like `start_many`, for an event loop."""
        self.begin()
        new: list[NewProcessInstance] = []
        for each in variables:
            new.append(new_instance(self.values, process_id, each, version, None, keep_result))
            if len(new) % _TURN == 0:  # others have their turn meanwhile
                await asyncio.sleep(0)
        return self._process_handles(await self.portal.reach(self._start_many(new)))

    async def _start_many(self, new: list[NewProcessInstance]) -> list[ProcessInstanceReceipt]:
        receipts: list[ProcessInstanceReceipt] = []
        for start in range(0, len(new), TASKS_PER_SUBMIT_MAX):
            receipts += await self.api.instances.start(new[start : start + TASKS_PER_SUBMIT_MAX])
            await asyncio.sleep(0)
        return receipts

    def instance(self, key: str) -> ProcessHandle:
        """A handle on an instance that was started earlier, here or elsewhere."""
        expect("key", key, str)
        return ProcessHandle(self, key)

    def instances(
        self, process_id: str | None = None, *, with_incidents: bool = False, limit: int = 100
    ) -> list[InstanceDetails]:
        """Running instances, without their variables and elements."""
        query = ProcessInstanceQuery(process_id, with_incidents=with_incidents, limit=limit)
        return self.portal.call(self._instances(query))

    async def instances_async(
        self, process_id: str | None = None, *, with_incidents: bool = False, limit: int = 100
    ) -> list[InstanceDetails]:
        """Like `instances`, for an event loop."""
        query = ProcessInstanceQuery(process_id, with_incidents=with_incidents, limit=limit)
        return await self.portal.reach(self._instances(query))

    async def _instances(self, query: ProcessInstanceQuery) -> list[InstanceDetails]:
        page = await self.api.instances.page(query)
        return [instance_details(each, self.values) for each in page.items]

    def _process_handles(self, receipts: list[ProcessInstanceReceipt]) -> list[ProcessHandle]:
        return [
            ProcessHandle(self, receipt.process_instance_key, receipt.created)
            for receipt in receipts
        ]

    # --- messages -----------------------------------------------------------------------------

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
        new = new_message(self.values, name, key, variables, ttl, message_id)
        return self.portal.call(self._publish(new), at_once=True)

    async def publish_async(
        self,
        name: str,
        key: str | int = "",
        variables: Variables | None = None,
        *,
        ttl: Span = 0,
        message_id: str | None = None,
    ) -> str:
        """Like `publish`, for an event loop."""
        new = new_message(self.values, name, key, variables, ttl, message_id)
        return await self.portal.reach(self._publish(new))

    async def _publish(self, new: NewMessage) -> str:
        return (await self.api.messages.publish(new)).message_key


_TURN = 500  # instances that are encoded in one turn of a loop: about a millisecond


def _resources(processes: "Sequence[Process | Definition | str | Path]") -> list[Resource]:
    return [resource_of(each) for each in processes]
