"""A node that lost its state starts from S3 and its log."""

import asyncio
import shutil
from pathlib import Path

import msgspec
from s3_server import BUCKET, KEY, SECRET, s3_server, uploads_under_way

from holdfast.config import Config
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.node import LocalNode


def test_a_node_that_lost_its_state_starts_from_s3_and_its_log(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    async def story(address: str) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        config = Config(
            partitions=2, segment_bytes=SEGMENT_BYTES_MIN, snapshot_interval_ms=10**9,
            snapshot_store=f"s3://{BUCKET}/node-1", ended_kept_max=0, log_level="critical",
        )  # fmt: skip
        node, keys = await LocalNode.open(tmp_path, config), []
        for number in range(4):
            payload = msgspec.Raw(b'{"number":%d,"text":"%s"}' % (number, b"x" * 500))
            receipts = await node.gateway.tasks.submit([NewTask("work", payload)] * 300)
            keys += [each.task_key for each in receipts]
            if number < 3:
                await node.take_snapshot()
        assert node.metrics.storage.uploads == 3, node.health().warnings
        assert node.journal.bounds(TOPIC, 1).earliest > 0
        await node.close()
        shutil.rmtree(tmp_path / "state")
        again = await LocalNode.open(tmp_path, config)
        assert {(await again.gateway.tasks.get(key)).state for key in keys} == {"WAITING"}
        await again.close()

    with s3_server() as address:
        asyncio.run(story(address))
        assert uploads_under_way(address) == 0
