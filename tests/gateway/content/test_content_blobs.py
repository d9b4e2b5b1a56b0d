"""Blobs over HTTP: in pieces, by ranges, and only what their names promise."""

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from holdfast.blobs import put
from holdfast.client.content_blobs import NodeBlobs
from holdfast.client.remote import RemoteApi
from holdfast.content.blobs import binary_blob
from holdfast.errors import DataLoss, InvalidArgument, InvalidState, NotFound
from holdfast.gateway.content.shapes import NewUpload, UploadEnd
from holdfast.gateway.http import HttpServer
from holdfast.limits import CONTENT_PIECE_BYTES_MAX
from holdfast.node import LocalNode

CONTENT = random.Random(1).randbytes(CONTENT_PIECE_BYTES_MAX + 12_345)
NAME = binary_blob(hashlib.sha256(CONTENT).digest())
SMALL = b"0123456789"


class Node(NamedTuple):
    node: LocalNode
    url: str
    api: RemoteApi
    blobs: NodeBlobs  # whose calls block


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Node]:
    node = await LocalNode.open(folder)
    server = HttpServer(node.gateway)
    await server.start()
    api = RemoteApi(server.url)
    try:
        yield Node(node, server.url, api, NodeBlobs(api, asyncio.get_running_loop(), "site", 5.0))
    finally:
        await api.close()
        await server.close()
        await node.close()


def story(folder: Path, tell: Callable[[Node], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served(folder) as node:
            await tell(node)

    asyncio.run(run())


def store(node: Node, name: str, content: bytes) -> None:
    put(node.node.content.blobs, name, [content])


def content_of(node: Node, name: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join(node.blobs.get(name, start, end))


def test_a_blob_goes_up_and_comes_down_in_pieces(tmp_path: Path) -> None:
    async def tell(node: Node) -> None:
        assert await asyncio.to_thread(node.blobs.head, NAME) is None
        pieces = [CONTENT[at : at + 1_000_000] for at in range(0, len(CONTENT), 1_000_000)]
        assert await asyncio.to_thread(put, node.blobs, NAME, pieces) == len(CONTENT)
        assert b"".join(node.node.content.blobs.get(NAME)) == CONTENT
        assert list((tmp_path / "content" / "uploads").iterdir()) == []
        assert await asyncio.to_thread(content_of, node, NAME) == CONTENT
        assert await asyncio.to_thread(content_of, node, NAME, 5, 25) == CONTENT[5:25]
        assert await asyncio.to_thread(content_of, node, NAME, len(CONTENT)) == b""
        empty = "content/packages/empty"
        assert await asyncio.to_thread(put, node.blobs, empty, []) == 0
        assert await asyncio.to_thread(content_of, node, empty) == b""

    story(tmp_path, tell)


def test_what_is_not_what_its_name_says_is_refused(tmp_path: Path) -> None:
    async def tell(node: Node) -> None:
        with pytest.raises(DataLoss, match="send them again"):
            await asyncio.to_thread(put, node.blobs, NAME, [CONTENT[:-1]])
        assert node.node.content.blobs.head(NAME) is None
        for name in ("snapshots/1", "content/marks/x", "content/binaries/../../etc"):
            with pytest.raises(InvalidArgument):
                await asyncio.to_thread(put, node.blobs, name, [b"x"])
            with pytest.raises(InvalidArgument):
                await asyncio.to_thread(node.blobs.head, name)

    story(tmp_path, tell)


def test_an_upload_that_is_left_by_an_error_leaves_nothing(tmp_path: Path) -> None:
    def fails(node: Node) -> None:
        with node.blobs.upload(NAME) as upload:
            upload.write(CONTENT)
            raise ZeroDivisionError

    async def tell(node: Node) -> None:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(fails, node)
        assert node.node.content.blobs.head(NAME) is None
        assert list((tmp_path / "content" / "uploads").iterdir()) == []

    story(tmp_path, tell)


def test_an_upload_goes_on_after_a_restart_from_where_it_was(tmp_path: Path) -> None:
    begun: list[str] = []

    async def begin(node: Node) -> None:
        content = node.api.content
        begun.append((await content.begin_upload(NewUpload("site", NAME))).upload_id)
        assert (await content.write_upload(begun[0], "0", CONTENT[:1_000])).offset == 1_000
        assert (await content.write_upload(begun[0], "500", CONTENT[500:900])).offset == 900
        with pytest.raises(InvalidState, match="from byte 900 on") as raised:
            await content.write_upload(begun[0], "901", b"x")
        assert raised.value.fields["offset"] == 900
        with pytest.raises(InvalidState, match="but 900 were sent"):
            await content.finish_upload(begun[0], UploadEnd(len(CONTENT)))

    async def go_on(node: Node) -> None:
        content = node.api.content
        assert (await content.upload(begun[0])).offset == 900
        end = 900 + CONTENT_PIECE_BYTES_MAX
        await content.write_upload(begun[0], "900", CONTENT[900:end])
        await content.write_upload(begun[0], str(end), CONTENT[end:])
        blob = await content.finish_upload(begun[0], UploadEnd(len(CONTENT)))
        assert (blob.blob, blob.size_bytes) == (NAME, len(CONTENT))
        with pytest.raises(NotFound, match="begin again"):
            await content.upload(begun[0])

    story(tmp_path, begin)
    story(tmp_path, go_on)


def test_a_blob_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    async def tell(node: Node) -> None:
        name = "content/packages/one"
        store(node, name, SMALL)
        await asyncio.to_thread(put, node.blobs, name, [b"something else"])
        assert b"".join(node.node.content.blobs.get(name)) == SMALL

    story(tmp_path, tell)


def test_a_piece_is_not_larger_than_one_may_be(tmp_path: Path) -> None:
    async def tell(node: Node) -> None:
        upload = await node.api.content.begin_upload(NewUpload("site", NAME))
        with pytest.raises(InvalidArgument, match=f"at most {CONTENT_PIECE_BYTES_MAX} bytes"):
            await node.api.content.write_upload(
                upload.upload_id, "0", bytes(CONTENT_PIECE_BYTES_MAX + 1)
            )

    story(tmp_path, tell)


RANGES = {
    None: (200, None, SMALL),
    "bytes=0-9": (206, "bytes 0-9/10", SMALL),
    "bytes=3-4": (206, "bytes 3-4/10", b"34"),
    "bytes=8-": (206, "bytes 8-9/10", b"89"),
    "bytes=8-1000000000": (206, "bytes 8-9/10", b"89"),
    "bytes=-3": (206, "bytes 7-9/10", b"789"),
    "bytes=-30": (206, "bytes 0-9/10", SMALL),
    "bytes=10-": (416, None, b""),
    "bytes=99999999999999999-": (416, None, b""),
    "bytes=-0": (416, None, b""),
    "bytes=4-3": (200, None, SMALL),  # what is no range is overlooked, as HTTP has it
    "bytes=1-2,4-5": (200, None, SMALL),
    "lines=1-2": (200, None, SMALL),
}


def test_a_part_is_what_the_header_says(tmp_path: Path) -> None:
    async def tell(node: Node) -> None:
        name = "content/packages/small"
        store(node, name, SMALL)
        async with aiohttp.ClientSession(node.url) as session:
            for asked, (status, span, content) in RANGES.items():
                headers = {} if asked is None else {"Range": asked}
                async with session.get(f"/v2/content/blobs/{name}", headers=headers) as reply:
                    assert reply.status == status, asked
                    assert reply.headers.get("Content-Range") == span, asked
                    if status < 300:
                        assert await reply.read() == content, asked
                        assert reply.headers["Accept-Ranges"] == "bytes"
                async with session.head(f"/v2/content/blobs/{name}", headers=headers) as reply:
                    assert reply.status == status, asked
                    if status < 300:
                        assert reply.headers["Content-Length"] == str(len(content)), asked
            async with session.head("/v2/content/blobs/content/packages/none") as reply:
                assert reply.status == 404
            async with session.head("/v2/topology") as reply:
                assert reply.status == 405

    story(tmp_path, tell)
