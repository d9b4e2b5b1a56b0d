"""A running node backs itself up to S3 and is restored from there."""

import asyncio
from pathlib import Path
from urllib.parse import quote

from s3_server import BUCKET, KEY, SECRET, s3_server
from tests.backup.working import CONFIG, Ledger, backed_up, check_restored, work

from holdfast.backup.keeping import prune, verify
from holdfast.backup.restoring import restore
from holdfast.backup.taking import BackupProgress
from holdfast.backup.target import BackupTarget
from holdfast.blobs import open_blobs
from holdfast.node import LocalNode
from holdfast.pieces import end_of


def test_a_node_is_backed_up_to_s3_and_restored_from_there(tmp_path: Path) -> None:
    with s3_server() as address:
        secret = quote(SECRET, safe="")
        url = f"s3://{KEY}:{secret}@{BUCKET}/node-1?endpoint={address}&region=us-east-1"
        ledger = Ledger()

        async def story() -> None:
            node = await LocalNode.open(tmp_path / "data", CONFIG)
            for batch in range(2):
                await work(node.gateway, ledger, [f"{batch}-{n}" for n in range(40)], 2_000)
                made = await backed_up(node.gateway, url)
            assert SECRET not in made.target
            idle = await backed_up(node.gateway, url)
            assert idle.sent_bytes < 4_096
            await node.close()

        asyncio.run(story())
        target = BackupTarget(open_blobs(url))
        assert prune(target, 1, "here", 0).generations == [1, 2]
        manifest = target.generation()
        assert end_of(verify(target, [manifest], BackupProgress())) == []
        end_of(restore(target, manifest, tmp_path / "restored", BackupProgress()))
    asyncio.run(check_restored(tmp_path / "restored", ledger))
