"""A node in memory whose tables are a list of keys, with a console before it."""

import time
from typing import Any

import httpx
from tests.gateway.fake_tables import FakeTables

from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.console import Console
from holdfast.gateway.batch.shapes import BatchOperationView
from holdfast.gateway.http import HttpServer
from holdfast.gateway.rest.tables import FoundRows, Row
from holdfast.gateway.tasks.shapes import ActivationRequest, JobFailure, NewTask
from holdfast.testing import MemoryNode

from .conftest import SeenPage


class EmptyTables:
    """Tables that are there and have no rows."""

    async def search(self, table: str, filter: Any, sort: Any, page: Any) -> FoundRows:
        return FoundRows([], 0, False)

    async def rows(self, table: str, keys: Any) -> dict[int, Row]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


class BatchSite:
    """Its services, the tables, and a browser's session."""

    def __init__(self, **config: Any) -> None:
        self.portal = Portal("batch console")
        self.tables = FakeTables()
        self.node = self.call(self._open(Config(log_level="critical", **config)))
        self.api = self.node.gateway
        self.api.show_tables(EmptyTables())
        self.console = Console(self.api)
        self.server = HttpServer(self.api, console=self.console)
        self.call(self.server.start())
        self.browser = httpx.Client(base_url=self.server.url, timeout=30)

    async def _open(self, config: Config) -> MemoryNode:
        node = MemoryNode(partitions=3, open_tables=self.tables.open, config=config)
        return await node.start()

    def call(self, work: Any) -> Any:
        return self.portal.call(work)

    def dead_letters(self, count: int) -> list[str]:
        """Tasks that failed for good: what the tables choose."""
        keys: list[str] = []
        for _ in range(count):
            self.call(self.api.tasks.submit([NewTask("send", retries=0)]))
        while len(keys) < count:
            asked = ActivationRequest(["send"], "worker", 100, 60_000)
            jobs = self.call(self.api.jobs.activate(asked))
            failed = [JobFailure(job.job_key, job.lease, "broken") for job in jobs]
            self.call(self.api.jobs.fail(failed))
            keys += [job.job_key for job in jobs]
        self.tables.keys += [int(key) for key in keys]
        return keys

    def get(self, path: str, **headers: str) -> SeenPage:
        return SeenPage(self.browser.get(path, headers=headers, follow_redirects=True))

    def post(self, path: str, **fields: str) -> SeenPage:
        token = self.get("/console").csrf
        data = {"csrf": token, **fields}
        return SeenPage(self.browser.post(path, data=data, follow_redirects=True))

    def until(self, key: str, *states: str) -> BatchOperationView:
        deadline = time.monotonic() + 30
        while True:
            view = self.call(self.api.batches.get(key))
            if view.state in states:
                return view
            assert time.monotonic() < deadline, f"it stays {view}"

    def close(self) -> None:
        self.browser.close()
        self.call(self.server.close())
        self.call(self.node.close())
        self.portal.close()
