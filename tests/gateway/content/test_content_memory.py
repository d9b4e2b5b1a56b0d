"""A large blob over HTTP: neither the client nor the node holds more of it than some pieces."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from test_content_blobs import Node, story

from holdfast.blobs import put
from holdfast.content.blobs import binary_blob
from holdfast.limits import CONTENT_PIECE_BYTES_MAX

MIB = 1024 * 1024
PIECE = bytes(range(256)) * (MIB // 256)
GROWTH_BYTES_MAX = 48 * MIB  # client and node together, in one process


def peak_bytes() -> int:
    """The most memory that this process had since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("this is no Linux")


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def pieces(size_mib: int) -> Iterator[bytes]:
    for _ in range(size_mib):
        yield PIECE


def there_and_back(folder: Path, size_mib: int) -> None:
    digest = hashlib.sha256()
    for piece in pieces(size_mib):
        digest.update(piece)
    name = binary_blob(digest.digest())

    def download(node: Node) -> str:
        found = hashlib.sha256()
        for piece in node.blobs.get(name):
            assert len(piece) <= CONTENT_PIECE_BYTES_MAX
            found.update(piece)
        return found.hexdigest()

    async def tell(node: Node) -> None:
        small = "content/packages/warm"
        await asyncio.to_thread(put, node.blobs, small, pieces(8))  # what is loaded once
        await asyncio.to_thread(lambda: sum(map(len, node.blobs.get(small))))
        reset_peak()
        before_bytes = peak_bytes()
        assert await asyncio.to_thread(put, node.blobs, name, pieces(size_mib)) == size_mib * MIB
        assert await asyncio.to_thread(download, node) == digest.hexdigest()
        found = hashlib.sha256()
        async with (
            aiohttp.ClientSession(node.url) as session,
            session.get(f"/v2/content/blobs/{name}") as reply,  # without ranges
        ):
            async for piece in reply.content.iter_any():
                found.update(piece)
        assert found.hexdigest() == digest.hexdigest()
        growth_bytes = peak_bytes() - before_bytes
        assert growth_bytes <= GROWTH_BYTES_MAX, f"{growth_bytes / MIB:.0f} MiB"

    story(folder, tell)


def test_a_blob_of_64_mib_takes_little_memory(tmp_path: Path) -> None:
    there_and_back(tmp_path, 64)


@pytest.mark.soak
def test_a_blob_of_512_mib_takes_as_little(tmp_path: Path) -> None:
    there_and_back(tmp_path, 512)
