"""The FastAPI application of the documents: served by uvicorn, beside a node and a worker."""

import asyncio
import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import httpx
import pytest
import uvicorn
from documents import DOCS, blocks_of
from fastapi import FastAPI
from tests.cli.shell import Shell
from tests.client.watchdog import Watchdog

SECONDS = 30.0
MODULES = ("invoicing", "web")


class Served:
    """An application in a thread with an event loop of its own, which a watchdog watches."""

    def __init__(self, application: FastAPI) -> None:
        self.blocked: list[str] = []
        self._server = uvicorn.Server(
            uvicorn.Config(application, port=0, log_level="error", loop="asyncio")
        )
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._started.wait(SECONDS)

    async def _serve(self) -> None:
        with Watchdog(asyncio.get_running_loop()) as watchdog:
            serving = asyncio.create_task(self._server.serve())
            while not self._server.started and not serving.done():  # noqa: ASYNC110 - short
                await asyncio.sleep(0.01)
            self._started.set()
            await serving
        self.blocked += watchdog.blocked

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.servers[0].sockets[0].getsockname()[1]}"

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(SECONDS)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    shell.serve_node(partitions=2)
    yield shell
    shell.close()


@pytest.fixture
def web(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The modules of the document, as a program imports them."""
    for block in blocks_of(DOCS / "how-to" / "fastapi.md"):
        if block.file is not None:
            (shell.folder / block.file).write_text(block.text)
    monkeypatch.syspath_prepend(shell.folder)
    monkeypatch.setenv("HOLDFAST_URL", shell.url)
    yield importlib.import_module("web")
    for name in MODULES:
        del sys.modules[name]


@contextmanager
def served(web: ModuleType) -> Iterator[tuple[Served, httpx.Client]]:
    application = Served(web.api)
    try:
        with httpx.Client(base_url=application.url, timeout=SECONDS) as client:
            yield application, client
    finally:
        application.close()


def test_the_application_serves_tasks_processes_and_errors_and_never_blocks(
    web: ModuleType,
) -> None:
    with served(web) as (application, client):
        task = client.post("/invoices", json={"order": 1, "total": 9.5}).json()
        again = client.post("/invoices", json={"order": 1, "total": 9.5}).json()
        assert task["created"] and again == {"task": task["task"], "created": False}
        pending = client.get(f"/invoices/{task['task']}", params={"wait": 0.05})
        assert (pending.status_code, pending.json()) == (202, {"state": "pending"})

        worker = web.work.worker().start()
        done = client.get(f"/invoices/{task['task']}")
        assert done.json() == {"invoice": "invoice 1 over 9.50"}
        refused = client.post("/invoices", json={"order": 2, "total": -1}).json()
        failed = client.get(f"/invoices/{refused['task']}")
        assert failed.status_code == 422 and "negative total" in failed.json()["detail"]
        unknown = client.get("/invoices/2251799813699999")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "NOT_FOUND")

        instance = client.post("/orders/7").json()["instance"]
        assert client.post("/orders/7/payment").status_code == 202
        assert client.get(f"/shipments/{instance}").json() == {"number": 7, "parcel": "P-7"}
        worker.stop()
    assert not application.blocked, application.blocked[0]


def test_requests_that_wait_for_results_hold_up_no_other_request(web: ModuleType) -> None:
    async def ask(url: str) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=SECONDS) as client:
            answer = await client.post("/invoices", json={"order": 3, "total": 1})
            task = answer.json()["task"]
            waiting = [
                asyncio.create_task(client.get(f"/invoices/{task}", params={"wait": 20}))
                for _ in range(20)
            ]
            for number in range(5):
                assert (await client.post(f"/orders/{number}")).status_code == 201
            assert not any(each.done() for each in waiting)
            worker = web.work.worker().start()
            answers = await asyncio.gather(*waiting)
            assert {each.json()["invoice"] for each in answers} == {"invoice 3 over 1.00"}
            await worker.stop_async()

    with served(web) as (application, _):
        asyncio.run(ask(application.url))
    assert not application.blocked, application.blocked[0]


def test_a_handler_that_blocks_is_noticed(web: ModuleType) -> None:
    @web.api.get("/blocking/{task}")
    async def get_blocking(task: str) -> dict[str, str]:
        web.work.handle(task).view()
        threading.Event().wait(0.2)
        return {}

    with served(web) as (application, client):
        task = client.post("/invoices", json={"order": 4, "total": 1}).json()["task"]
        assert client.get(f"/blocking/{task}").status_code == 200
    assert "get_blocking" in application.blocked[0]
