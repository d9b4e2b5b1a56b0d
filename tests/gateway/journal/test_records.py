"""Records of the log as the API lists them: filters, pages in both directions, causes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from holdfast.client.remote import RemoteApi
from holdfast.config import Config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.scanning import WantedRecords, matcher
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.api import Api
from holdfast.gateway.http import HttpServer
from holdfast.gateway.identity.shapes import NewUser
from holdfast.gateway.journal.shapes import (
    RecordEnd,
    RecordFilter,
    RecordPage,
    RecordPageQuery,
    RecordQuery,
    RecordType,
    RecordView,
)
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.journal import Entry
from holdfast.limits import READ_BYTES_MAX, SCAN_RECORDS_MAX
from holdfast.node import LocalNode
from holdfast.testing import MemoryNode

_decode = msgspec.msgpack.Decoder(list[Entry]).decode


@asynccontextmanager
async def busy_node(tasks: int = 60) -> AsyncIterator[MemoryNode]:
    """A node of three partitions on which a few things happened."""
    node = await MemoryNode(partitions=3).start()
    for number in range(tasks):
        await node.gateway.tasks.submit([NewTask("mail", key=f"k{number}")])
    jobs = await node.gateway.jobs.activate(ActivationRequest(["mail"], "w", 10))
    done = [JobCompletion(job.job_key, job.lease, msgspec.Raw(b"{}")) for job in jobs]
    await node.gateway.jobs.complete(done)
    try:
        yield node
    finally:
        await node.close()


def place(record: RecordView) -> tuple[int, int]:
    return record.partition_id, record.position


async def listed(api: Api, page: RecordPageQuery, **wanted: object) -> RecordPage:
    return await api.journal.records(
        RecordQuery(RecordFilter(**wanted), page)  # pyright: ignore[reportArgumentType]
    )


async def all_older(api: Api, limit: int, **wanted: object) -> list[RecordPage]:
    pages = [await listed(api, RecordPageQuery(limit), **wanted)]
    while pages[-1].has_older:
        query = RecordPageQuery(limit, older_than=pages[-1].older_cursor)
        pages.append(await listed(api, query, **wanted))
    return pages


async def in_log(api: Api, partition: int) -> list[Entry]:
    return _decode(await api.journal.read(partition, 0, READ_BYTES_MAX))


@pytest.mark.parametrize("limit", [1, 7, 1_000])
@pytest.mark.parametrize("partition", [None, 2])
def test_pages_have_every_record_once_and_turning_back_gives_the_same(
    limit: int, partition: int | None
) -> None:
    async def run() -> None:
        async with busy_node() as node:
            api = node.gateway
            pages = await all_older(api, limit, partition=partition)
            seen = [record for page in pages for record in page.items]
            chosen = [1, 2, 3] if partition is None else [partition]
            expected = {
                (each, entry.offset) for each in chosen for entry in await in_log(api, each)
            }
            assert len(seen) == len(expected) > 30
            assert {place(each) for each in seen} == expected
            times = [each.timestamp for each in seen]
            assert times == sorted(times, reverse=True)
            for each in chosen:
                own = [record.position for record in seen if record.partition_id == each]
                assert own == sorted(own, reverse=True)
            for older, newer in zip(pages[1:], pages, strict=False):
                back = RecordPageQuery(limit, newer_than=older.newer_cursor)
                again = await listed(api, back, partition=partition)
                assert again.items == newer.items

    asyncio.run(run())


def test_what_comes_later_is_behind_the_newer_cursor() -> None:
    async def run() -> None:
        async with busy_node(5) as node:
            page = await listed(node.gateway, RecordPageQuery())
            assert not page.has_newer
            none = await listed(node.gateway, RecordPageQuery(newer_than=page.newer_cursor))
            assert none.items == [] and not none.has_newer
            await node.gateway.tasks.submit([NewTask("later")])
            some = await listed(node.gateway, RecordPageQuery(newer_than=none.newer_cursor))
            assert [(each.type, each.intent) for each in some.items] == [
                (RecordType.EVENT, "CREATED"),
                (RecordType.COMMAND, "CREATE"),
            ]

    asyncio.run(run())


def test_a_list_can_begin_at_the_oldest() -> None:
    async def run() -> None:
        async with busy_node() as node:
            first = await listed(node.gateway, RecordPageQuery(10, RecordEnd.OLDEST), partition=1)
            assert [each.position for each in first.items] == list(range(9, -1, -1))
            assert first.has_newer and not first.has_older

    asyncio.run(run())


def test_filters_choose_by_type_value_type_intent_and_key() -> None:
    async def run() -> None:
        async with busy_node() as node:
            api, page = node.gateway, RecordPageQuery(1_000)
            [key] = [each.task_key for each in await api.tasks.submit([NewTask("own")])]
            every = (await listed(api, page)).items
            for wanted, expected in (
                ({"type": RecordType.COMMAND}, lambda each: each.type == "COMMAND"),
                ({"value_type": "JOB"}, lambda each: each.value_type == "JOB"),
                ({"intent": "CREATED"}, lambda each: each.intent == "CREATED"),
                (
                    {"value_type": "JOB", "intent": "COMPLETED", "type": RecordType.EVENT},
                    lambda each: (each.value_type, each.intent) == ("JOB", "COMPLETED"),
                ),
            ):
                found = (await listed(api, page, **wanted)).items
                assert found == [each for each in every if expected(each)] != []
            about = (await listed(api, page, key=key)).items
            assert [each.intent for each in about if each.key == key] == ["CREATED"]
            jobs = await api.jobs.activate(ActivationRequest(["own"], "w", 1))
            assert [each.job_key for each in jobs] == [key]
            named = (await listed(api, page, key=key)).items
            assert {each.value_type for each in named} == {"JOB", "JOB_BATCH"}

    asyncio.run(run())


def test_times_bound_a_list_without_reading_what_is_outside() -> None:
    async def run() -> None:
        node = await MemoryNode(partitions=1).start()
        api = node.gateway
        for _ in range(3):
            await api.tasks.submit([NewTask("mail")])
            node.clock.advance(1_000)
        entries = await in_log(api, 1)
        times = sorted({each.timestamp_ms for each in entries})
        assert len(times) >= 3
        page = await listed(api, RecordPageQuery(), since_ms=times[-2], until_ms=times[-1] - 1)
        inside = [each.offset for each in entries if each.timestamp_ms == times[-2]]
        assert [each.position for each in page.items] == inside[::-1] != []
        assert page.looked_at == len(inside)
        await node.close()

    asyncio.run(run())


def test_one_request_reads_a_bounded_part_and_the_next_goes_on() -> None:
    async def run() -> None:
        node = await MemoryNode(partitions=1).start()
        api = node.gateway
        [first] = await api.tasks.submit([NewTask("rare")])
        while (await api.journal.bounds()).partitions[0].next < SCAN_RECORDS_MAX + 1_000:
            await api.tasks.submit([NewTask("mail") for _ in range(1_000)])
        page = await listed(api, RecordPageQuery(), key=first.task_key)
        assert page.items == [] and page.has_older and page.looked_to is not None
        assert SCAN_RECORDS_MAX <= page.looked_at <= SCAN_RECORDS_MAX + 1
        rest = await listed(api, RecordPageQuery(older_than=page.older_cursor), key=first.task_key)
        assert [each.intent for each in rest.items] == ["CREATED"] and not rest.has_older
        await node.close()

    asyncio.run(run())


def test_large_records_are_read_back_a_few_at_a_time() -> None:
    async def run() -> None:
        node = await MemoryNode(partitions=1).start()
        large = msgspec.Raw(b'"' + b"x" * 300_000 + b'"')
        for _ in range(12):
            await node.gateway.tasks.submit([NewTask("mail", large)])
        pages = await all_older(node.gateway, 1_000, partition=1)
        assert len(pages) > 3
        found = [each.position for page in pages for each in page.items]
        assert found == list(range(found[0], -1, -1)) and found[0] >= 23
        await node.close()

    asyncio.run(run())


def test_a_log_whose_beginning_is_gone_ends_there() -> None:
    async def run() -> None:
        async with busy_node() as node:
            page = await listed(node.gateway, RecordPageQuery(5), partition=1)
            node.journal.discard(TOPIC, 1, 4)
            pages = await all_older(node.gateway, 1_000, partition=1)
            assert pages[-1].items[-1].position == 4
            older = RecordPageQuery(1_000, older_than=page.older_cursor)
            assert (await listed(node.gateway, older, partition=1)).items[-1].position == 4
            with pytest.raises(NotFound, match="it was discarded; the log goes from 4 to"):
                await node.gateway.journal.record("1", "3")

    asyncio.run(run())


def test_a_record_is_known_by_partition_and_position() -> None:
    async def run() -> None:
        async with busy_node() as node:
            server = HttpServer(node.gateway)
            await server.start()
            client = RemoteApi(server.url)
            page = await listed(client, RecordPageQuery(30))
            for each in page.items:
                found = await client.journal.record(str(each.partition_id), str(each.position))
                assert found == each
            with pytest.raises(NotFound, match="it is not written yet"):
                await client.journal.record("1", "999999")
            with pytest.raises(InvalidArgument, match="partition"):
                await client.journal.record("4", "1")
            with pytest.raises(InvalidArgument, match="Expected a number for position"):
                await client.journal.record("1", "x")
            await client.close()
            await server.close()

    asyncio.run(run())


def test_causes_lead_up_and_effects_lead_down() -> None:
    async def run() -> None:
        async with busy_node() as node:
            api = node.gateway
            wanted = {"value_type": "JOB", "intent": "COMPLETED", "type": RecordType.EVENT}
            completed = (await listed(api, RecordPageQuery(1), **wanted)).items[0]
            at = (str(completed.partition_id), str(completed.position))
            trace = await api.journal.trace(*at)
            assert [(each.type, each.intent) for each in trace.causes] == [
                (RecordType.COMMAND, "COMPLETE"),
                (RecordType.EVENT, "COMPLETED"),
            ]
            command = trace.causes[0]
            assert completed.source_position == command.position
            assert completed in trace.effects
            assert {each.source_position for each in trace.effects} == {command.position}
            assert trace.is_whole
            sourced = await listed(
                api, RecordPageQuery(), partition=completed.partition_id,
                source_position=command.position,
            )  # fmt: skip
            assert sourced.items == trace.effects[::-1]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"value_type": "WEATHER"}, "valueType"),
        ({"intent": "RAIN"}, "intent"),
        ({"value_type": "JOB", "intent": "EXECUTED"}, "intent"),
        ({"partition": 9}, "partition"),
        ({"source_position": 3}, "partition"),
    ],
)
def test_a_wrong_filter_names_its_field(wanted: dict[str, object], field: str) -> None:
    async def run() -> None:
        async with busy_node(1) as node:
            with pytest.raises(InvalidArgument) as raised:
                await listed(node.gateway, RecordPageQuery(), **wanted)
            assert raised.value.fields["field"] == field

    asyncio.run(run())


@pytest.mark.parametrize("cursor", ["x", "gQ==", "", "gQEB"])
def test_a_cursor_of_something_else_is_refused(cursor: str) -> None:
    async def run() -> None:
        async with busy_node(1) as node:
            with pytest.raises(InvalidArgument, match="cursor"):
                await listed(node.gateway, RecordPageQuery(older_than=cursor))

    asyncio.run(run())


def test_what_is_kept_of_a_password_is_not_shown(tmp_path: Path) -> None:
    async def run() -> None:
        node = await LocalNode.open(tmp_path, Config(partitions=2, log_level="error"))
        await node.gateway.identity.create_user(NewUser(username="ann", password="secret-1"))
        page = await listed(node.gateway, RecordPageQuery(1_000))
        about = [each for each in page.items if b'"password"' in bytes(each.value)]
        assert about and all(b'"password":"(hidden)"' in bytes(each.value) for each in about)
        await node.close()

    asyncio.run(run())


def test_a_record_that_names_no_key_does_not_match_one() -> None:
    payload = msgspec.msgpack.encode([1, 1, 1, 2, 2251799813685249, 0, 5, [1, 2]])
    assert matcher(WantedRecords(key=2251799813685249))(payload)
    assert not matcher(WantedRecords(key=2251799813685250))(payload)
    assert matcher(WantedRecords(kinds=(1,), subjects=((1, 2),)))(payload)
    assert not matcher(WantedRecords(kinds=(0,)))(payload)
    assert not matcher(WantedRecords(source_position=4))(payload)
