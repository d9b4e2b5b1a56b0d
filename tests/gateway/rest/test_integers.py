"""Numbers at the edges of what anything can hold, in every place of every request.

None of them is answered with 5xx, stops the node, or makes a list unreadable for all.
"""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from fuzz_node import FuzzNode
from request_bodies import KEY, NUMBER, Bodies, text_of, unbounded

from holdfast.clock import SystemClock
from holdfast.engine.jobs.values import NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.timers.values import Schedule, ScheduleIntent
from holdfast.errors import InvalidArgument
from holdfast.gateway.batch.shapes import BatchChange
from holdfast.gateway.endpoint import Endpoint
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.http.openapi import openapi_document
from holdfast.gateway.tasks.shapes import NewSchedule, NewTask
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY
from holdfast.testing import MemoryNode

NUMBERS = [
    *map(str, (0, 1, -1, 100, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 - 1, 2**53 + 1)),
    *map(str, (2**63 - 1, 2**63, 2**63 + 1, -(2**63), -(2**63) - 1)),
    *map(str, (2**64 - 1, 2**64, 2**64 + 1, -(2**64), 10**15, 10**18, 10**30, -(10**30))),
    "-0", "-0.0", "2.0", "1.5", "1e15", "1e308", "-1e308", "1e400", "9" * 5_000,
]  # fmt: skip
DOCUMENT = openapi_document(ENDPOINTS)
LONG_POLLS = {"waitMs", "requestTimeout"}


def is_reading(end: Endpoint) -> bool:
    return end.name.startswith(("list_", "search_", "get_", "read_"))


# what shows many things at once
LISTS: list[tuple[str, str, Any]] = [
    (each.method, each.path, None if each.request is None else {})
    for each in ENDPOINTS
    if not each.parameters and is_reading(each)
    and each.name not in ("get_results", "get_journal_bounds_since", "read_journal", "read_topic")
    and not each.path.startswith("/v2/cluster")  # this node is no member of one
]  # fmt: skip


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FuzzNode]:
    node = FuzzNode(tmp_path_factory.mktemp("integers"))
    yield node
    node.close()


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each.capitalize() for each in rest)


Ask = Callable[[str, str, str | bytes | None], Awaitable[tuple[int, str]]]
"""Takes a method, a path and a body; gives the status and the text of the answer."""


@asynccontextmanager
async def asking(node: FuzzNode) -> AsyncIterator[Ask]:
    async with aiohttp.ClientSession(node.url) as session:

        async def ask(method: str, path: str, text: str | bytes | None) -> tuple[int, str]:
            headers = {"content-type": "application/json"}
            async with session.request(method, path, data=text, headers=headers) as reply:
                return reply.status, (await reply.read()).decode(errors="replace")

        yield ask


async def check_lists(ask: Ask) -> None:
    for method, path, body in LISTS:
        status, said = await ask(method, path, None if body is None else msgspec.json.encode(body))
        assert status in (200, 204), (method, path, status, said)


def bodies(end: Endpoint, known: dict[str, list[str]]) -> list[Any]:
    operation = DOCUMENT["paths"][end.path][end.method.lower()]
    if "requestBody" not in operation or end.request is bytes:
        return []
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return list(Bodies(DOCUMENT, known).of(schema))


def is_filter(body: Any) -> bool:
    """Whether the place is in a filter: there are hundreds, and they are read by one function."""
    text = text_of(body.get("filter", {}), "") if isinstance(body, dict) else ""
    return text != text_of(body.get("filter", {}), "0") if text else False


def waits(end: Endpoint, body: Any) -> bool:
    """Whether it is the time to wait that is varied: it is waited for."""
    return isinstance(body, dict) and any(body.get(each) == NUMBER for each in LONG_POLLS)


async def try_all(node: FuzzNode, end: Endpoint, *, all_filters: bool) -> int:
    known = {camel(name): values for name, values in node.seed().items()}
    asked = 0
    async with asking(node) as ask:
        for place, body in enumerate(bodies(end, known)):
            path = _path(end, known)
            numbers = NUMBERS
            if waits(end, body):
                numbers = [each for each in NUMBERS if each not in ("0", "100", "1")]
            if is_filter(body) and not all_filters:
                numbers = [NUMBERS[place % len(NUMBERS)]]
            for number in numbers:
                text = text_of(body, number)
                try:
                    async with asyncio.timeout(0.2 if waits(end, body) else 20):
                        status, said = await ask(end.method, path, text)
                except TimeoutError:
                    assert waits(end, body), (end.name, text)
                    continue
                assert status < 500, (end.name, text[:500], status, said)
                asked += 1
        for number in NUMBERS if end.parameters else ():
            path = re.sub(r"{\w+}", number, end.path)
            status, said = await ask(end.method, path, None if end.request is None else "{}")
            assert status < 500, (end.name, path[:200], status, said)
            asked += 1
        if not is_reading(end):
            await check_lists(ask)
    return asked


def _path(end: Endpoint, known: dict[str, list[str]]) -> str:
    path = end.path
    for name in end.parameters:
        value = (known.get(camel(name)) or ["2251799813685249"])[0]
        path = path.replace(f"{{{name}}}", value)
    return path


ASKED = [each for each in ENDPOINTS if each.request is not None or each.parameters]


def test_every_number_of_every_request_has_a_range() -> None:
    assert unbounded(DOCUMENT) == []


@pytest.mark.parametrize("end", ASKED, ids=lambda end: end.name)
def test_no_number_is_too_large_for_a_node(node: FuzzNode, end: Endpoint) -> None:
    asyncio.run(try_all(node, end, all_filters=False))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("end", ASKED, ids=lambda end: end.name)
def test_no_number_in_any_filter_is_too_large_for_a_node(node: FuzzNode, end: Endpoint) -> None:
    asyncio.run(try_all(node, end, all_filters=True))


def test_the_walk_meets_the_numbers_that_stopped_a_node() -> None:
    """Otherwise the walk would prove nothing."""
    known = {"type": ["mail"]}
    by_name = {each.name: bodies(each, known) for each in ENDPOINTS}
    assert any(each.get("intervalMs") == NUMBER for each in by_name["put_schedule"])
    for name in ("create_batch_operation", "change_batch_operation", "cancel_instances"):
        assert any(each.get("priority") == NUMBER for each in by_name[name]), name
        assert any(each.get("throttle") == NUMBER for each in by_name[name]), name
    assert any(KEY in text_of(each, KEY) for each in by_name["search_jobs"])
    assert sum(map(len, by_name.values())) > 500


# --- cursors ----------------------------------------------------------------------------------

STORED = (0, -1, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 253_402_300_800_000_000)


def test_no_number_in_a_cursor_is_too_large_for_a_search(node: FuzzNode) -> None:
    async def run() -> None:
        async with asking(node) as ask:
            for path, field in (("jobs", "creationTime"), ("jobs", "jobKey"), ("incidents", "")):
                query: dict[str, Any] = {"sort": [{"field": field}] if field else []}
                _, said = await ask("POST", f"/v2/{path}/search", msgspec.json.encode(query))
                cursor = msgspec.json.decode(said)["page"]["endCursor"]
                order, values = msgspec.msgpack.decode(base64.b64decode(cursor))
                for place, number in [(at, to) for at in range(len(values)) for to in STORED]:
                    changed = [number if at == place else old for at, old in enumerate(values)]
                    packed = msgspec.msgpack.encode([order, changed])
                    query["page"] = {"after": base64.b64encode(packed).decode()}
                    asked = msgspec.json.encode(query)
                    status, said = await ask("POST", f"/v2/{path}/search", asked)
                    assert status in (200, 400), (path, changed, status, said)

    asyncio.run(run())


def test_no_number_in_a_cursor_is_too_large_for_a_list(node: FuzzNode) -> None:
    async def run() -> None:
        path = "/v2/batch-operations/listing"
        async with asking(node) as ask:
            for number in NUMBERS:
                for cursor in (
                    f"[{number}]",
                    f'[1,[false,{number},""]]',
                    f"[1,null,null,{number}]",
                ):
                    after = base64.urlsafe_b64encode(cursor.encode()).decode()
                    text = msgspec.json.encode({"page": {"after": after}})
                    status, said = await ask("POST", path, text)
                    assert status in (200, 400), (cursor, status, said)

    asyncio.run(run())


# --- what an earlier version let in -----------------------------------------------------------


def test_a_schedule_that_no_date_can_show_does_not_hide_the_others() -> None:
    async def run() -> None:
        node = MemoryNode(partitions=1, clock=SystemClock())
        await node.start()
        rule = NewSchedule(NewTask("mail"), interval_ms=60_000)
        await node.gateway.schedules.put("sound", rule)
        old = Schedule("old", NewJob("mail", b"null"), "", 10**15, "UTC", True)
        command = Command(ValueType.SCHEDULE, ScheduleIntent.CREATE, NO_KEY, old)
        (reply,) = await node.node.runner.submit(1, [command])
        assert reply.rejection is None
        shown = {each.schedule_id: each for each in await node.gateway.schedules.all()}
        assert shown["sound"].next_due is not None and shown["sound"].error is None
        assert shown["old"].next_due is None and "1000000000000000 ms" in str(shown["old"].error)
        await node.close()

    asyncio.run(run())


@pytest.mark.parametrize("interval_ms", [2**64, 10**15, 99, 0, -1])
def test_an_embedded_program_is_told_which_interval_is_allowed(interval_ms: int) -> None:
    async def run() -> None:
        node = MemoryNode(partitions=1, clock=SystemClock())
        await node.start()
        with pytest.raises(InvalidArgument, match="intervalMs from 100 to"):
            await node.gateway.schedules.put("s", NewSchedule(NewTask("mail"), None, interval_ms))
        for change in (BatchChange(throttle=2**64), BatchChange(priority=-(2**64))):
            with pytest.raises(InvalidArgument, match="from"):
                await node.gateway.batches.change("2251799813685249", change)
        await node.close()

    asyncio.run(run())
