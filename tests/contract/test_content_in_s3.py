"""Content whose large parts are in S3: published, imported, shared and cleaned up."""

import asyncio
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from s3_server import BUCKET, KEY, SECRET, s3_server, uploads_under_way

from holdfast.blobs import Blobs, open_blobs
from holdfast.content.blobs import NotThereYet
from holdfast.content.cleaning import BlobCleanup
from holdfast.content.repository.opening import open_repository
from holdfast.errors import DataLoss
from holdfast.limits import BLOB_PART_BYTES, MIB

sys.path.append(str(Path(__file__).parents[1] / "content"))
from package_kit import packed, taken_in, tree_of
from test_blob_cleaning import Node

LARGE = bytes(range(256)) * (BLOB_PART_BYTES // 256) + b"and a little more"
TREE = {
    "/": {}, "/model": {"data": LARGE}, "/copy": {"data": LARGE},
    **{f"/files/{number:02}": {"data": bytes([number]) * 60_000} for number in range(20)},
    "/files": {},
}  # fmt: skip


async def publish(node: Node, tree: dict) -> tuple:
    node_log = type("Log", (), {"blobs": node.blobs, "missing": node.keeper.missing})()
    message = await packed(tree, log=node_log)
    return message, await node.publish(message.blob or "", *message.binaries)


async def story(blobs: Blobs, tmp_path: Path) -> None:
    node = Node(blobs)  # pyright: ignore
    message, first = await publish(node, TREE)
    assert message.blob is not None
    assert len(message.binaries) == 1
    repository = open_repository(str(tmp_path / "content.sqlite"))
    taken_in(repository, message, blobs)
    assert tree_of(repository) == {path: TREE[path] for path in sorted(TREE)}
    again, _ = await publish(node, TREE | {"/files/20": {"data": b"new"}})
    assert again.binaries == message.binaries
    assert again.blob != message.blob

    assert await node.keeper.clean() == BlobCleanup(seen=3, marked=3)
    await node.append()
    node.drop_to(first + 1)
    assert (await node.clean_later()).removed == 0  # the log is not dropped up to the marks
    node.drop_to(node.journal.bounds("content-packages", 1).next - 1)
    done = await node.clean_later()
    assert (done.removed, done.kept) == (3, 0)
    with pytest.raises(NotThereYet):
        taken_in(open_repository("memory:"), again, blobs)
    repository.close()


async def altered(blobs: Blobs) -> None:
    """Somebody else has a hand on the bucket."""
    node = Node(blobs)  # pyright: ignore
    message, _ = await publish(node, TREE | {"/model": {"data": b"m" * MIB}, "/copy": {}})
    for name in (message.blob, *message.binaries):
        whole = b"".join(blobs.get(name))
        for wrong in (whole[:-1], whole + b"x", whole[:-1] + b"x"):
            with blobs.upload(name) as upload:
                upload.write(wrong)
            repository = open_repository("memory:")
            with pytest.raises(DataLoss, match="package-1"):
                taken_in(repository, message, blobs)
            assert tree_of(repository) == {"/": {}}
        with blobs.upload(name) as upload:
            upload.write(whole)


def test_content_is_distributed_through_s3(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("holdfast.content.blobs.CONTENT_BLOB_LOOK_MS", 1)
    with s3_server() as address:
        secret = quote(SECRET, safe="")
        end = f"endpoint={address}&region=us-east-1"
        for prefix in ("story", "altered"):
            blobs = open_blobs(f"s3://{KEY}:{secret}@{BUCKET}/{prefix}?{end}")
            asyncio.run(story(blobs, tmp_path) if prefix == "story" else altered(blobs))
        assert uploads_under_way(address) == 0
