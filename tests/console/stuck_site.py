"""A node with the stuck orders of the demo's sale, other work, and batch operations."""

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.gateway.distribution.dark_partitions import go_dark
from tests.gateway.fake_tables import FakeTables

from holdfast.cli.demo.sale_tasks import SALE
from holdfast.config import Config
from holdfast.engine.batch.values import BatchOperationType
from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.batch.shapes import NewBatchOperation
from holdfast.gateway.batch.tables import BatchTables
from holdfast.gateway.content.shapes import NewAnnouncement, NewPackage, ProgressNote
from holdfast.gateway.groups.shapes import NewSession
from holdfast.gateway.identity import service
from holdfast.gateway.identity.shapes import (
    Member,
    NewAuthorization,
    NewGroup,
    NewToken,
    NewUser,
)
from holdfast.gateway.processes.shapes import NewMessage
from holdfast.gateway.rest.tables import FoundRows, Row, TablesMissing
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    IncidentQuery,
    JobCompletion,
    JobFailure,
    NewSchedule,
    NewTask,
)
from holdfast.model.dsl import Process
from holdfast.node import LocalNode

from .conftest import ConsoleSite

WAIT_SECONDS = 20


class ChoosingNode(LocalNode):
    """A node on disk whose batch operations choose from a list of keys."""

    chosen: FakeTables | None = None

    async def _open_tables(self) -> BatchTables:
        if self.chosen is None:
            self.chosen = FakeTables()
        return await self.chosen.open()


class BatchTablesAlone:
    """Tables of batch operations and of nothing else: lists come from the state of the node."""

    async def search(self, table: str, filter: Any, sort: Any, page: Any) -> FoundRows:
        if table != "batch_operations":
            raise TablesMissing("There are no tables")
        return FoundRows([], 0, False)

    async def rows(self, table: str, keys: Any) -> dict[int, Row]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


class StuckSite(ConsoleSite):
    """Its orders cannot be charged: prices have a comma."""

    def __init__(self, folder: Path, **config: Any) -> None:
        config = {"partitions": 2, "log_level": "critical"} | config
        super().__init__(folder, Config(**config), ChoosingNode)
        self.api.show_tables(BatchTablesAlone())
        self.deploy(SALE)

    def get_stuck(self, count: int) -> list[str]:
        """Orders that fail as they do in the demo; the keys of their instances."""
        keys = [self.start(SALE.id, {"sale": each, "price": "9,90"}) for each in range(count)]
        failed = 0
        while failed < count:
            asked = ActivationRequest(["charge_sale"], "worker-5", 100, 60_000, wait_ms=5_000)
            jobs = self.call(self.api.jobs.activate(asked))
            trace = _trace()
            lost = [JobFailure(each.job_key, each.lease, trace, final=True) for each in jobs]
            self.call(self.api.jobs.fail(lost))
            failed += len(jobs)
        self._choose_incidents()
        return keys

    def _choose_incidents(self) -> None:
        open_ones = self.call(self.api.incidents.page(IncidentQuery(process_id=SALE.id))).items
        self.call(self.api.batches.open_tables())
        assert isinstance(self.node, ChoosingNode) and self.node.chosen is not None
        self.node.chosen.keys = [int(each.incident_key) for each in open_ones]

    def charge(self, count: int) -> None:
        """A worker with the fixed release."""
        done = 0
        while done < count:
            asked = ActivationRequest(["charge_sale"], "worker-6", 100, 60_000, wait_ms=5_000)
            jobs = self.call(self.api.jobs.activate(asked))
            assert jobs, "the orders are to be charged again"
            charged = [JobCompletion(each.job_key, each.lease) for each in jobs]
            self.call(self.api.jobs.complete(charged))
            done += len(jobs)

    def do_other_work(self) -> None:
        """Something for every page: two versions of a process, tasks in all states."""
        for steps in (("reserve", "ship"), ("reserve", "ship", "mail")):
            process = Process("order", name="An order")
            for each in steps:
                process = process.task(each)
            self.deploy(process)
            self.start("order", {"customer": "Ann", "lines": [1, 2, 3]})
        for number in range(60):  # more than a page
            self.submit("resize", {"picture": number})
        jobs = self.call(self.api.jobs.activate(ActivationRequest(["resize"], "w", 2, 60_000)))
        self.call(self.api.jobs.complete([JobCompletion(jobs[0].job_key, jobs[0].lease)]))
        lost = [JobFailure(each.job_key, each.lease, _trace(), final=True) for each in jobs[1:]]
        self.call(self.api.jobs.fail(lost))

    def begin_batch(self, throttle: int = 0) -> str:
        """A batch operation that resolves all incidents of the sale; its key."""
        operation = NewBatchOperation(
            type=BatchOperationType.RESOLVE_INCIDENT, filter=msgspec.Raw(b'{"processId": "sale"}'),
            throttle=throttle,
        )  # fmt: skip
        receipt = self.call(self.api.batches.create(operation))
        assert receipt.batch_operation_key is not None, "an operation has a key"
        return receipt.batch_operation_key

    def finish_batch(self, key: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while self.call(self.api.batches.get(key)).state != "COMPLETED":
            assert time.monotonic() < deadline, "it does not end"

    def fill_the_house(self) -> None:
        """Something on every page that is not about work: access, messages, schedules, content."""
        identity = self.api.identity
        self.call(identity.create_user(NewUser("ann", name="Ann")))
        self.call(identity.create_group(OwnerType.ROLE, NewGroup("ops", description="on call")))
        self.call(identity.create_group(OwnerType.GROUP, NewGroup("team")))
        for type_, id_ in ((OwnerType.ROLE, "ops"), (OwnerType.GROUP, "team")):
            self.call(identity.add_member(type_, id_, Member(OwnerType.USER, "ann")))
        may = [Permission.READ, Permission.UPDATE]
        task = ResourceType.TASK
        for owner in ((OwnerType.ROLE, "ops"), (OwnerType.USER, "ann")):
            self.call(identity.create_authorization(NewAuthorization(*owner, task, "*", may)))
        self.call(identity.create_token(NewToken("worker-1")))
        nightly = NewSchedule(NewTask("resize"), cron="0 3 * * *")
        self.call(self.api.schedules.put("nightly", nightly))
        paid = Process("parcel").wait("paid", message="payment", key="order").task("send")
        self.deploy(paid)
        self.start("parcel", {"order": "A-1"})
        self.call(self.api.messages.publish(NewMessage("payment", "A-2", ttl_ms=600_000)))
        self.call(self.api.groups.join("feeds", NewSession("ann/1")))
        self.call(self.api.content.publish(NewPackage("site", "p-0", "DELETE", ["/pages"])))
        edge = NewAnnouncement("edge", "store", True, 3, [ProgressNote("site")])
        self.call(self.api.content.announce(edge))


@contextmanager
def full_site(folder: Path, **config: Any) -> Iterator[StuckSite]:
    """A node that has something for every page; a distribution is stuck meanwhile."""
    made = StuckSite(folder, **config)
    made.do_other_work()
    made.get_stuck(4)
    made.finish_batch(made.begin_batch())
    made.get_stuck(2)
    made.call(made.api.batches.suspend(made.begin_batch(throttle=1)))
    made.fill_the_house()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "DEPLOYMENT_WAIT_MS", 0)
        go_dark(patch, 2)
        made.call(made.api.identity.create_group(OwnerType.GROUP, NewGroup("on-call")))
        yield made
    made.close()


def _trace() -> str:
    """What a worker of the broken release reports."""
    try:
        exec(compile("total = float(price)", "shop/sale.py", "exec"), {"price": "9,90"})
    except ValueError as error:
        assert error.__traceback__ is not None
        error.__traceback__ = error.__traceback__.tb_next  # without this module
        return "".join(traceback.format_exception(error))
    raise AssertionError("a comma is no point")
