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
from holdfast.cli.demo.sale_tasks import LEDGER, PAYMENTS, SALE
from holdfast.cli.demo.stage import Stage
from holdfast.client.process import resource_of
from holdfast.engine.batch.values import BatchOperationType
from holdfast.errors import DeadlineExceeded
from holdfast.gateway.api import Api
from holdfast.gateway.batch_shapes import NewBatchOperation
from holdfast.gateway.process_shapes import NewProcessInstance
from holdfast.gateway.shapes import IncidentQuery

_LOOK_SECONDS = 0.05  # how often the journal is looked at
_STALL_SECONDS = 60  # no step in this time: something is stuck
_SHARE = 20, 3  # for so many tasks of the first act, so many orders
_ORDERS_MIN = 30
_BATCH_ORDERS = 200
_WATCHED_SECONDS = 3  # what the repair is to take, so that one sees it; alone it is faster
_WORKER = "worker-5"
_WHERE = b'{"processId": "sale", "error": {"$like": "*is down*"}}'


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
        """From the deployment to the last order's end; the worker is stopped whatever happens."""
        self._audit = audit = RepairAudit(self._data, ends_of(self._data))
        await api.deploy([resource_of(SALE)])
        command = holdfast(
            "worker", "holdfast.cli.demo.sale_tasks:app", "--name", _WORKER, "--concurrency", "8"
        )
        environment = {"HOLDFAST_URL": url, LEDGER: str(self._folder / "sale.sqlite")}
        worker = Child(self._folder, _WORKER, command, **environment)
        children = (node, worker)
        try:
            await asyncio.gather(asyncio.to_thread(worker.first_line), self._start(api))
            await self._until(audit, children, lambda: len(audit.incidents) == self._count)
            await self._show(api)
            await until_open(self._count)
            previewed = await self._preview(api)
            self._ledger.mend(PAYMENTS)
            key = await self._begin(api)
            began = time.monotonic()
            await self._until(audit, children, lambda: self._is_repaired(audit, began))
            self._repair = Repair(key, previewed, time.monotonic() - began)
            await self._tell_end(api, key)
        finally:
            await asyncio.to_thread(worker.stop)

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
            await api.start([_new_instance(order) for order in batch])
        self._stage.say(f"a sale: {self._count:,} orders at once, and the {PAYMENTS} is down")

    async def _until(
        self, audit: RepairAudit, children: tuple[Child, ...], is_done: Callable[[], bool]
    ) -> None:
        """Follows the journal until it says so."""
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
        (incident,) = (await api.incidents(IncidentQuery(process_id=SALE.id, limit=1))).items
        error = incident.error.splitlines()[-1]
        self._stage.say(
            f"[bold red]{self._count:,} orders are stuck[/] at {incident.element_id},"
            f" each with an incident: {error}"
        )

    async def _preview(self, api: Api) -> int:
        receipt = await api.create_batch_operation(self._operation(dry_run=True))
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
        receipt = await api.create_batch_operation(operation)
        assert receipt.batch_operation_key is not None, "an operation has a key"
        self._stage.say(f"the {PAYMENTS} is mended; one batch operation repairs all of them")
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

    def _is_repaired(self, audit: RepairAudit, began: float) -> bool:
        repaired, completed = audit.repaired.total(), len(audit.completed)
        self._stage.repaired(repaired, completed, self._count, time.monotonic() - began)
        return repaired >= self._count and completed == self._count

    async def _tell_end(self, api: Api, key: str) -> None:
        assert self._repair is not None
        view = await api.batch_operation(key)
        self._stage.say(
            f"[green]batch operation {key} {view.state}[/]:"
            f" {view.operations_completed_count:,} of {view.operations_total_count:,} incidents"
            f" resolved, {view.operations_failed_count:,} failed; every order has gone on,"
            f" {self._repair.seconds:.1f} s after the command"
        )


def _new_instance(order: int) -> NewProcessInstance:
    return NewProcessInstance(SALE.id, variables=msgspec.Raw(msgspec.json.encode({"sale": order})))
