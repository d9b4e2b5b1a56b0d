"""Large files in S3: through the node, and straight to the store."""

import random
from pathlib import Path
from urllib.parse import quote

from tests.client.test_publishing import ServedNode
from tests.contract.s3_server import BUCKET, KEY, SECRET, s3_server

from holdfast import Holdfast
from holdfast.blobs import open_blobs
from holdfast.config import Config
from holdfast.content.repository.memory import MemoryRepository

LARGE = random.Random(1).randbytes(5_000_000)


def test_large_files_go_through_the_node_or_straight_to_s3(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    with s3_server() as address:
        credentials = f"{KEY}:{quote(SECRET, safe='')}"
        store = f"s3://{credentials}@{BUCKET}/site?endpoint={address}&region=us-east-1"
        node = ServedNode(tmp_path / "data", Config(content_store=store))
        try:
            with Holdfast.connect(node.url) as app:
                for number, way in enumerate((None, store), start=1):
                    (site / "large.bin").write_bytes(LARGE + bytes([number]))
                    app.publisher("site", site, store=way).add()
                for name, way in (("through-node", None), ("straight", store)):
                    memory = MemoryRepository()
                    with app.subscriber(name, of="site", into=memory, store=way) as sub:
                        sub.wait_until_idle(30)
                    data = memory.get("/large.bin").properties["data"]
                    assert b"".join(memory.read(data)) == LARGE + b"\x02"
        finally:
            node.close()
        blobs = [each.name for each in open_blobs(store).list("content/binaries/")]
        assert len(blobs) == 2
        assert not (tmp_path / "data" / "content" / "blobs").exists()
