"""The demo's second act: a process is deployed, orders run through it, a bank is repaired."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from holdfast.cli.demo.children import Child, holdfast
from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.order_tasks import DOWN, LEDGER, ORDER
from holdfast.cli.demo.order_verdict import OrderAudit, OrderVerdict, reach_order_verdict
from holdfast.cli.demo.orders import Order, Orders
from holdfast.cli.demo.stage import Stage
from holdfast.cli.processes.picture import instance_svg
from holdfast.cli.processes.tree import instance_tree
from holdfast.client.process import resource_of
from holdfast.errors import DeadlineExceeded
from holdfast.gateway.api import Api
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.tasks.shapes import IncidentQuery
from holdfast.model.drawing import draw_png

_LOOK_SECONDS = 0.05  # how often the journal is looked at
_STALL_SECONDS = 60  # no step in this time: something is stuck
_BATCH_ORDERS = 200
_SENDERS = 16  # payments that are on their way at a time
_KEPT_MS = 3_600_000  # a payment may come before its order waits for it
_WORKER = "worker-4"

UntilOpen = Callable[[int], Awaitable[None]]


class OrderStory:
    """One run of the order process on a node that is up."""

    def __init__(self, folder: Path, picture: Path, orders: Orders, stage: Stage) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._picture = picture
        self._orders = orders
        self._stage = stage
        self._ledger = Ledger(folder / "orders.sqlite")
        self._seconds = 0.0

    async def run(self, api: Api, node: Child, url: str, until_open: UntilOpen) -> None:
        """From the deployment to the last order's end; the worker is stopped whatever happens.

        Orders that are stuck are repaired when `until_open` has waited for their incidents.
        """
        await api.processes.deploy([resource_of(ORDER)])
        self._stage.say(
            "process [bold]order[/], written in Python: charge → review if large"
            " → invoice and payment → done"
        )
        environment = {"HOLDFAST_URL": url, LEDGER: str(self._folder / "orders.sqlite")}
        command = holdfast(
            "worker", "holdfast.cli.demo.order_tasks:app", "--name", _WORKER, "--concurrency", "8"
        )
        worker = Child(self._folder, _WORKER, command, **environment)
        try:
            await asyncio.to_thread(worker.first_line)
            began, audit = time.monotonic(), OrderAudit(self._data)
            await self._send(api)
            await self._until(audit, self._orders.count - self._orders.stuck, node, worker)
            stuck = time.monotonic()
            await until_open(self._orders.stuck)
            repaired = time.monotonic()
            await self._resume(api)
            await self._until(audit, self._orders.count, node, worker)
            self._seconds = time.monotonic() - repaired + stuck - began
        finally:
            await asyncio.to_thread(worker.stop)

    def verdict(self) -> OrderVerdict:
        """When the node is stopped."""
        return reach_order_verdict(
            self._orders, self._data, self._ledger, self._seconds, self._picture
        )

    async def _send(self, api: Api) -> None:
        """Orders and payments at once, as they come to a shop."""
        places = asyncio.Semaphore(_SENDERS)

        async def pay(order: Order) -> None:
            paid = msgspec.Raw(msgspec.json.encode({"paid": order.total}))
            message = NewMessage("payment", str(order.order), paid, ttl_ms=_KEPT_MS)
            async with places:
                await api.messages.publish(message)

        async def start() -> None:
            for first in range(0, self._orders.count, _BATCH_ORDERS):
                batch = self._orders.all[first : first + _BATCH_ORDERS]
                await api.instances.start([_new_instance(order) for order in batch])

        payments = self._orders.charged
        await asyncio.gather(start(), *(pay(order) for order in payments))
        self._stage.say(
            f"{self._orders.count:,} orders started, {len(payments):,} payments published;"
            f" {_WORKER} at work"
        )

    async def _until(self, audit: OrderAudit, completed: int, node: Child, worker: Child) -> None:
        """Follows the journal until so many orders have ended."""
        last_step, last_records = time.monotonic(), 0
        while len(audit.completed) < completed or len(audit.incidents) < self._orders.stuck:
            await asyncio.sleep(_LOOK_SECONDS)
            audit.read_on()
            for child in (node, worker):
                child.check()
            if audit.records > last_records:
                last_step, last_records = time.monotonic(), audit.records
            elif time.monotonic() - last_step > _STALL_SECONDS:
                raise DeadlineExceeded(
                    f"Expected {completed} orders to end, but nothing moves at"
                    f" {len(audit.completed)}; see the logs in {self._folder}"
                )

    async def _resume(self, api: Api) -> None:
        """Shows one of the orders that are stuck, as a person would look at it; resolves all."""
        incidents = (await api.incidents.page(IncidentQuery(process_id=ORDER.id))).items
        key = incidents[0].process_instance_key
        assert key is not None, "an incident of a process names its instance"
        view = await api.instances.get(key)
        assert view.process_definition_key is not None, "a running instance has a definition"
        source = (await api.processes.source(view.process_definition_key)).content
        self._picture.write_bytes(draw_png(instance_svg(view, source)))
        self._stage.say(f"{len(incidents)} orders need a person; [bold]holdfast show {key}[/]:")
        self._stage.show_tree(instance_tree(view, incidents))
        self._stage.say(f"drawn, with its incident: [bold]{self._picture}[/]")
        self._ledger.repair(DOWN)
        for incident in incidents:
            await api.incidents.resolve(incident.incident_key, 3)
        self._stage.say("the bank works again and the incidents are resolved: the orders go on")


def _new_instance(order: Order) -> NewProcessInstance:
    return NewProcessInstance(ORDER.id, variables=msgspec.Raw(msgspec.json.encode(order)))
