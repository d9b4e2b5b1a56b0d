"""The topics of content go with the first partition, and every process of a node serves them."""

import asyncio
import random
from pathlib import Path

import msgspec
from divided import opened

from holdfast.blobs import put
from holdfast.client.content_blobs import NodeBlobs
from holdfast.content.messages import decode_package
from holdfast.content.ports import TopicEntries
from holdfast.gateway.content.shapes import (
    NewAnnouncement,
    NewPackage,
    ProgressNote,
    QueueQuery,
    StatusNote,
    TopicQuery,
)
from holdfast.gateway.service import Gateway
from holdfast.rebalancing import rebalance

decode = msgspec.msgpack.Decoder(TopicEntries).decode


def nothing(what: str, size_bytes: int) -> None:
    del what, size_bytes


async def publish(api: Gateway, number: int) -> None:
    receipt = await api.content.publish(NewPackage("site", f"p-{number}", "DELETE", ["/a"]))
    assert (receipt.offset, receipt.number) == (number - 1, number)


async def packages(api: Gateway) -> list[str]:
    found = decode(await api.content.read(TopicQuery("packages", 0)))
    return [decode_package(each.payload).package_id for each in found.entries]


async def use(api: Gateway, number: int) -> None:
    """All kinds of operations, from whichever process it is."""
    await publish(api, number)
    assert await packages(api) == [f"p-{each}" for each in range(1, number + 1)]
    progress = [ProgressNote("site", number - 1, number)]
    await api.content.announce(NewAnnouncement(f"edge-{number}", "s", True, progress=progress))
    await api.content.report([StatusNote(f"edge-{number}", "site", number - 1, "IMPORTED")])
    names = [each.name for each in await api.content.subscribers("site")]
    assert names == [f"edge-{each}" for each in range(1, number + 1)]
    page = await api.content.queue("site", "edge-1", QueueQuery())
    assert page.length == number - 1 == len(page.items)
    assert (await api.content.farm("site")).last_number == number
    try:
        await api.content.retry("site", "edge-1", 0)
    except Exception as error:
        assert "error queue of edge-1" in str(error), "an error travels as it is"


async def upload(api: Gateway, content: bytes, name: str) -> None:
    blobs = NodeBlobs(api, asyncio.get_running_loop(), "site")
    await asyncio.to_thread(put, blobs, name, [content])


async def download(api: Gateway, name: str) -> bytes:
    blobs = NodeBlobs(api, asyncio.get_running_loop(), "site")
    return await asyncio.to_thread(lambda: b"".join(blobs.get(name)))


def test_content_goes_along_and_any_process_serves_it(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(5_000_000)

    async def story() -> None:
        folder, number = tmp_path / "data", 0
        async with opened(folder) as (node,):
            await use(node.gateway, number := number + 1)
            await upload(node.gateway, content, "content/packages/0")
        for processes in (3, 2, 1):
            await rebalance(folder, processes, nothing)
            async with opened(folder) as nodes:
                assert len(nodes) == processes
                for node in nodes:
                    await use(node.gateway, number := number + 1)
                    name = f"content/packages/{number}"
                    await upload(nodes[-1].gateway, content, name)
                    assert await download(node.gateway, name) == content
                    assert await download(node.gateway, "content/packages/0") == content
                    assert await node.gateway.content.missing([name, "content/packages/x"]) == [
                        "content/packages/x"
                    ]

    asyncio.run(story())


def test_a_reader_waits_at_another_process(tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "data"
        async with opened(folder) as (node,):
            await publish(node.gateway, 1)
        await rebalance(folder, 2, nothing)
        async with opened(folder) as (home, other):
            query = TopicQuery("packages", 1, wait_ms=20_000)
            waiting = asyncio.create_task(other.gateway.content.read(query))
            await asyncio.sleep(0)
            await publish(home.gateway, 2)
            async with asyncio.timeout(10):
                found = decode(await waiting)
            assert [each.offset for each in found.entries] == [1]

    asyncio.run(story())
