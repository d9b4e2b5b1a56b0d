"""An Api that does nothing but tell what it was asked, so that tests see the wire alone.

Its methods come from the table of operations: a new one is in it without a line here.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from tests.gateway.samples import sample

from holdfast.client.remote import RemoteApi
from holdfast.engine.jobs.values import JobState
from holdfast.gateway.api import SPACES, Api, namespace
from holdfast.gateway.batch.shapes import (
    BatchOperationReceipt,
    BatchPreview,
    BatchShare,
    NewBatchOperation,
)
from holdfast.gateway.http import HttpServer
from holdfast.gateway.node.shapes import Health, PartitionView, Topology
from holdfast.gateway.operation import Namespace, Operation, Piece, operations_of
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    JobOrigin,
    NewTask,
    TaskOutcome,
    TaskReceipt,
)

ORIGIN = JobOrigin("order", 2, "5", "mail", "6", {"template": "thanks"})
JOB = ActivatedJob("7", "mail", msgspec.Raw(b'{"to":"a"}'), "lease-7", 30_000, 1, 3, True, ORIGIN)
PREVIEW = BatchPreview(3, [BatchShare(1, 1), BatchShare(2, 2)], ["5", "6"])


class FakeApi(Api):
    """Keeps each call in `calls`; raises `error` if there is one; long polls wait for `ready`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.error: Exception | None = None
        self.activated: list[ActivatedJob] = [JOB]
        self.condition = Health("UP")
        self.ready = asyncio.Event()
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.gives_jobs_when_cancelled = False
        for space in SPACES:
            setattr(self, space, _fake(space, namespace(space))(self))

    async def called(self, times: int) -> None:
        """Waits until there were so many calls."""
        async with asyncio.timeout(10):
            while len(self.calls) < times:  # noqa: ASYNC110 - it is the tests' fake, and short
                await asyncio.sleep(0.01)

    def tell(self, *call: Any) -> None:
        """Keeps a call: its name, then its arguments; shapes as JSON."""
        plain = [each if isinstance(each, str | int) else _encode(each) for each in call]
        self.calls.append(tuple(plain))
        if self.error is not None:
            raise self.error

    async def wait(self, wait_ms: int) -> bool:
        """Whether it is ready in time."""
        if wait_ms == 0:
            return self.ready.is_set()
        self.waiting.set()
        try:
            await asyncio.wait_for(self.ready.wait(), wait_ms / 1_000)
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            self.cancelled.set()
            if not self.gives_jobs_when_cancelled:
                raise
        return True


_encode = msgspec.json.Encoder().encode


def _fake(space: str, declared: type[Namespace]) -> Callable[[FakeApi], Namespace]:
    methods = {name: _telling(f"{space}.{name}", each) for name, each in operations_of(declared)}
    return type(f"Fake{declared.__name__}", (_FakeNamespace, declared), methods)


class _FakeNamespace:
    def __init__(self, api: FakeApi) -> None:
        self.api = api


def _telling(name: str, entry: Operation) -> Callable[..., Any]:
    answer = _ANSWERS.get(name)

    async def tell(self: _FakeNamespace, *given: Any, **named: Any) -> Any:
        arguments = entry.signature.bind(self, *given, **named).args[1:]
        if name != "node.health":  # it costs a node nothing, and is asked for all the time
            self.api.tell(name, *arguments)
        if answer is not None:
            return await answer(self.api, *arguments)
        given_back = entry.hints["return"]
        return None if given_back is type(None) else sample(given_back)

    return tell


# --- answers that tests look into -------------------------------------------------------------


async def _submitted(_: FakeApi, tasks: list[NewTask]) -> list[TaskReceipt]:
    return [TaskReceipt(str(index), index == 0) for index, _ in enumerate(tasks)]


async def _results(api: FakeApi, task_keys: list[str], wait_ms: int) -> list[TaskOutcome]:
    state = JobState.COMPLETED if await api.wait(wait_ms) else None
    return [TaskOutcome(task_key, state) for task_key in task_keys]


async def _activated(api: FakeApi, request: Any) -> list[ActivatedJob]:
    return api.activated if await api.wait(request.wait_ms) else []


async def _created(_: FakeApi, new: NewBatchOperation) -> BatchOperationReceipt:
    if new.dry_run:
        return BatchOperationReceipt(new.type, preview=PREVIEW)
    return BatchOperationReceipt(new.type, "17")


async def _topology(_: FakeApi) -> Topology:
    return Topology("1.2.3", [PartitionView(1, 10, 9)])


async def _condition(api: FakeApi) -> Health:
    return api.condition


async def _piece(_: FakeApi, blob: str, start: int, bytes_max: int) -> Piece:
    return Piece(bytes(range(start, start + bytes_max)), start + bytes_max)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "content.read_blob": _piece,
    "tasks.submit": _submitted,
    "tasks.results": _results,
    "jobs.activate": _activated,
    "batches.create": _created,
    "node.health": _condition,
    "node.topology": _topology,
}


@asynccontextmanager
async def served(api: FakeApi) -> AsyncIterator[HttpServer]:
    """The api on a free port of loopback."""
    server = HttpServer(api)
    await server.start()
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def remote(api: FakeApi) -> AsyncIterator[RemoteApi]:
    """A client of the api over HTTP."""
    async with served(api) as server:
        client = RemoteApi(server.url)
        try:
            yield client
        finally:
            await client.close()


class Reply(msgspec.Struct):
    """An HTTP answer as tests look at it."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.content)


async def ask(url: str, method: str, path: str, **options: Any) -> Reply:
    """One plain HTTP request."""
    async with aiohttp.ClientSession() as session:
        return await ask_in(session, url, method, path, **options)


async def ask_in(
    session: aiohttp.ClientSession, url: str, method: str, path: str, **options: Any
) -> Reply:
    """One plain HTTP request in a session that stays."""
    async with session.request(method, url + path, **options) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status, headers, await response.read())
