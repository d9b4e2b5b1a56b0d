"""The log over HTTP: the same entries that the node's own files hold."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.gateway.fake_api import ask

from holdfast.client.remote import RemoteApi
from holdfast.config import Config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.http import HttpServer
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.journal import Entry
from holdfast.journal.local import JournalReader
from holdfast.limits import READ_BYTES_MAX
from holdfast.node import LocalNode
from holdfast.testing import MemoryNode

_decode = msgspec.msgpack.Decoder(list[Entry]).decode


@asynccontextmanager
async def client_of(node: MemoryNode | LocalNode) -> AsyncIterator[RemoteApi]:
    """A client over HTTP; the node is closed with it."""
    server = HttpServer(node.gateway)
    await server.start()
    client = RemoteApi(server.url)
    try:
        yield client
    finally:
        await client.close()
        await server.close()
        await node.close()


def wait_until_after(timestamp_ms: int) -> None:
    """The next entry is to have another millisecond."""
    while time.time() * 1_000 <= timestamp_ms + 1:
        time.sleep(0)


async def whole(client: RemoteApi, partition: int, bytes_max: int) -> list[Entry]:
    """All entries of a partition, in as many requests as it takes."""
    bounds = (await client.journal.bounds()).partitions[partition - 1]
    entries: list[Entry] = []
    position = bounds.earliest
    while found := _decode(await client.journal.read(partition, position, bytes_max)):
        entries += found
        position = found[-1].offset + 1
    assert position == bounds.next
    return entries


@pytest.mark.parametrize("bytes_max", [1, 5_000, READ_BYTES_MAX])
def test_what_comes_over_http_is_what_stands_in_the_files(tmp_path: Path, bytes_max: int) -> None:
    async def run() -> None:
        node = await LocalNode.open(tmp_path, Config(partitions=2, log_level="error"))
        async with client_of(node) as client:
            await client.tasks.submit([NewTask("mail", key=f"k{each}") for each in range(100)])
            reader = JournalReader.open(str(tmp_path / "journal"))
            for partition in (1, 2):
                found = await whole(client, partition, bytes_max)
                assert len(found) > 50
                assert found == reader.read_now(TOPIC, partition, 0, READ_BYTES_MAX)
            await reader.close()

    asyncio.run(run())


def test_one_read_is_bounded_but_gives_one_entry_at_least() -> None:
    async def run() -> None:
        node = await MemoryNode().start()
        async with client_of(node) as client:
            await client.tasks.submit(
                [NewTask("mail", msgspec.Raw(b'"' + b"x" * 1_000 + b'"'))] * 50
            )
            assert len(_decode(await client.journal.read(1, 0, 1))) == 1
            some = await client.journal.read(1, 0, 10_000)
            assert 2 < len(_decode(some)) < 50
            assert len(some) < 12_000

    asyncio.run(run())


@pytest.mark.parametrize("far", [False, True])
def test_a_position_that_cannot_be_read_is_not_found_and_the_bounds_are_told(far: bool) -> None:
    async def run() -> None:
        node = await MemoryNode().start()
        async with client_of(node) as client:
            await client.tasks.submit([NewTask("mail")] * 10)
            end = (await client.journal.bounds()).partitions[0].next
            node.journal.discard(TOPIC, 1, 4)
            for position in (3, end + 1, -1):
                with pytest.raises(NotFound, match=f"from 4 to {end}") as raised:
                    await (client if far else node.gateway).journal.read(1, position, 1_000)
                assert raised.value.fields["earliest"] == 4
                assert raised.value.fields["next"] == end
            assert _decode(await client.journal.read(1, end, 1_000)) == []
            assert _decode(await client.journal.read(1, 4, 1_000))[0].offset == 4

    asyncio.run(run())


@pytest.mark.parametrize(
    ("partition", "bytes_max", "field"),
    [
        (0, 1_000, "partition"),
        (3, 1_000, "partition"),
        (1, 0, "bytesMax"),
        (1, READ_BYTES_MAX + 1, "bytesMax"),
    ],
)
def test_a_wrong_question_names_its_field(partition: int, bytes_max: int, field: str) -> None:
    async def run() -> None:
        async with client_of(await MemoryNode(partitions=2).start()) as client:
            with pytest.raises(
                InvalidArgument, match=rf"Expected (a whole number of at \w+ \d+ in )?{field}"
            ) as raised:
                await client.journal.read(partition, 0, bytes_max)
            assert raised.value.fields["field"] == field

    asyncio.run(run())


def test_a_program_in_any_language_reads_the_log() -> None:
    async def run() -> None:
        async with client_of(await MemoryNode().start()) as client:
            await client.tasks.submit([NewTask("mail")])
            bounds = await ask(client.url, "GET", "/v2/journal/bounds")
            [found] = bounds.json()["partitions"]
            assert (found["partitionId"], found["earliest"]) == (1, 0)
            read = await ask(
                client.url, "POST", "/v2/journal/read", json={"partition": 1, "position": 0}
            )
            assert read.headers["content-type"] == "application/octet-stream"
            entries = msgspec.msgpack.decode(read.content)
            assert [each[0] for each in entries] == list(range(found["next"]))

    asyncio.run(run())


def test_the_bounds_since_a_time_leave_out_what_was_written_before(tmp_path: Path) -> None:
    async def run() -> None:
        node = await LocalNode.open(tmp_path, Config(partitions=1, log_level="error"))
        async with client_of(node) as client:
            await client.tasks.submit([NewTask("mail", key="first")])
            entries = await whole(client, 1, READ_BYTES_MAX)
            wait_until_after(entries[-1].timestamp_ms)
            await client.tasks.submit([NewTask("mail", key="second")])
            end = (await client.journal.bounds()).partitions[0].next
            after = entries[-1].timestamp_ms + 1
            [found] = (await client.journal.bounds_since(after)).partitions
            assert (found.earliest, found.next) == (len(entries), end)
            [found] = (await client.journal.bounds_since(0)).partitions
            assert found.earliest == 0
            with pytest.raises(InvalidArgument, match="sinceMs"):
                await client.journal.bounds_since(-1)
            with pytest.raises(InvalidArgument, match="sinceMs"):
                await client.journal.bounds_since(10**18)

    asyncio.run(run())
