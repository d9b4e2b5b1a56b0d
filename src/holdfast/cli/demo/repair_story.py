"""The demo's third act: a sale breaks by the thousands, and one batch operation repairs it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.cli.demo.children import Child, holdfast
from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.log_walk import ends_of
from holdfast.cli.demo.order_story import UntilOpen
from holdfast.cli.demo.repair_verdict import (
    Repair,
    RepairAudit,
    RepairVerdict,
    reach_repair_verdict,
)
from holdfast.cli.demo.sale_tasks import BROKEN, FIXED, LEDGER, RELEASE, SALE
from holdfast.cli.demo.stage import Stage
from holdfast.client.process import resource_of
from holdfast.engine.batch.values import BatchOperationType
from holdfast.errors import DeadlineExceeded
from holdfast.gateway.api import Api
from holdfast.gateway.batch.shapes import NewBatchOperation
from holdfast.gateway.processes.shapes import NewProcessInstance
from holdfast.gateway.tasks.shapes import IncidentQuery

_LOOK_SECONDS = 0.05  # how often the journal is looked at
_STALL_SECONDS = 60  # no step in this time: something is stuck
_SHARE = 20, 3  # for so many tasks of the first act, so many orders
_ORDERS_MIN = 30
_BATCH_ORDERS = 50  # started together: on one partition, so many batches are shared evenly
_WATCHED_SECONDS = 2  # what the repair is to take, so that one sees it; alone it is faster
_BROKEN_WORKER, _FIXED_WORKER = "worker-5", "worker-6"
_WHERE = b'{"processId": "sale", "error": {"$like": "*could not convert*"}}'


class RepairStory:
    """Orders that all come to an incident, and what is done about them at once."""

    def __init__(self, folder: Path, tasks: int, stage: Stage) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._count = max(_ORDERS_MIN, tasks * _SHARE[1] // _SHARE[0])
        self._stage = stage
        self._ledger = Ledger(folder / "sale.sqlite")
        self._audit: RepairAudit | None = None
        self._repair: Repair | None = None

    async def run(self, api: Api, node: Child, url: str, until_open: UntilOpen) -> None:
        """From the deployment to the last order's end; no worker is left behind."""
        self._audit = audit = RepairAudit(self._data, ends_of(self._data))
        await api.processes.deploy([resource_of(SALE)])
        worker = self._worker(_BROKEN_WORKER, BROKEN, url)
        try:
            await asyncio.gather(asyncio.to_thread(worker.first_line), self._start(api))
            await self._until((node, worker), lambda: len(audit.incidents) == self._count)
        finally:
            await asyncio.to_thread(worker.stop)
        await self._show(api)
        await until_open(self._count)
        previewed = await self._preview(api)
        began = time.monotonic()
        key = await self._begin(api)
        await self._until((node,), lambda: self._is_repaired(audit, time.monotonic() - began))
        await self._tell_end(api, key, time.monotonic() - began)
        worker = self._worker(_FIXED_WORKER, FIXED, url)
        try:
            await asyncio.to_thread(worker.first_line)
            self._stage.say(f"{_FIXED_WORKER} with release {FIXED} at work: the orders go on")
            opened = time.monotonic()
            await self._until(
                (node, worker), lambda: self._is_completed(audit, time.monotonic() - opened)
            )
        finally:
            await asyncio.to_thread(worker.stop)
        self._repair = Repair(key, previewed, time.monotonic() - began)
        self._stage.say(
            f"[green]{self._count:,} orders completed[/], {self._repair.seconds:.1f} s after the"
            " command"
        )

    def _worker(self, name: str, release: str, url: str) -> Child:
        command = holdfast(
            "worker", "holdfast.cli.demo.sale_tasks:app", "--name", name, "--concurrency", "8"
        )
        ledger = str(self._folder / "sale.sqlite")
        environment = {"HOLDFAST_URL": url, LEDGER: ledger, RELEASE: release}
        return Child(self._folder, name, command, **environment)

    def verdict(self) -> RepairVerdict | None:
        """When the node is stopped; None if there was nothing to select from."""
        if self._audit is None or self._repair is None:
            return None
        self._audit.read_on()
        return reach_repair_verdict(self._count, self._repair, self._audit, self._ledger)

    async def _start(self, api: Api) -> None:
        orders = range(1, self._count + 1)
        for first in range(0, self._count, _BATCH_ORDERS):
            batch = orders[first : first + _BATCH_ORDERS]
            await api.instances.start([_new_instance(order) for order in batch])
        self._stage.say(
            f"a sale: {self._count:,} orders at once, and release {BROKEN} of {_BROKEN_WORKER} has"
            " a bug"
        )

    async def _until(self, children: tuple[Child, ...], is_done: Callable[[], bool]) -> None:
        """Follows the journal until it says so."""
        audit = self._audit
        assert audit is not None
        last_step, last_records = time.monotonic(), 0
        while not is_done():
            await asyncio.sleep(_LOOK_SECONDS)
            audit.read_on()
            for child in children:
                child.check()
            if audit.records > last_records:
                last_step, last_records = time.monotonic(), audit.records
            elif time.monotonic() - last_step > _STALL_SECONDS:
                raise DeadlineExceeded(
                    f"Expected {self._count} orders of the sale to go on, but nothing moves at"
                    f" {len(audit.incidents)} incidents and {len(audit.completed)} ends;"
                    f" see the logs in {self._folder}"
                )

    async def _show(self, api: Api) -> None:
        """One of many, as a person finds it."""
        (incident,) = (await api.incidents.page(IncidentQuery(process_id=SALE.id, limit=1))).items
        error = incident.error.splitlines()[-1]
        self._stage.say(
            f"[bold red]{self._count:,} orders are stuck[/] at {incident.element_id},"
            f" each with an incident: {error}"
        )

    async def _preview(self, api: Api) -> int:
        receipt = await api.batches.create(self._operation(dry_run=True))
        assert receipt.preview is not None, "a dry run tells what it would do"
        self._stage.say_command(f"holdfast batch resolve --where '{_WHERE.decode()}' --dry-run")
        shares = ", ".join(f"{each.items:,}" for each in receipt.preview.partitions)
        self._stage.say(
            f"dry run: {receipt.preview.items:,} incidents would be resolved"
            f" ({shares} by partition); nothing was done"
        )
        return receipt.preview.items

    async def _begin(self, api: Api) -> str:
        operation = self._operation()
        receipt = await api.batches.create(operation)
        assert receipt.batch_operation_key is not None, "an operation has a key"
        self._stage.say(f"{_BROKEN_WORKER} is stopped; one batch operation for all of them:")
        self._stage.say_command(
            f"holdfast batch resolve --where '{_WHERE.decode()}' --throttle {operation.throttle}"
        )
        return receipt.batch_operation_key

    def _operation(self, *, dry_run: bool = False) -> NewBatchOperation:
        return NewBatchOperation(
            type=BatchOperationType.RESOLVE_INCIDENT,
            filter=msgspec.Raw(_WHERE),
            throttle=self._count // _WATCHED_SECONDS,
            dry_run=dry_run,
        )

    def _is_repaired(self, audit: RepairAudit, seconds: float) -> bool:
        repaired = audit.repaired.total()
        self._stage.repairing("incidents resolved", repaired, self._count, seconds)
        return repaired >= self._count

    def _is_completed(self, audit: RepairAudit, seconds: float) -> bool:
        completed = len(audit.completed)
        self._stage.repairing("orders completed", completed, self._count, seconds)
        return completed == self._count

    async def _tell_end(self, api: Api, key: str, seconds: float) -> None:
        view = await api.batches.get(key)
        self._stage.say(
            f"[green]batch operation {key} {view.state}[/] in {seconds:.1f} s:"
            f" {view.operations_completed_count:,} of {view.operations_total_count:,} incidents"
            f" resolved, {view.operations_failed_count:,} failed"
        )


def _new_instance(order: int) -> NewProcessInstance:
    variables = {"sale": order, "price": f"{9 + order % 90},90"}
    return NewProcessInstance(SALE.id, variables=msgspec.Raw(msgspec.json.encode(variables)))
