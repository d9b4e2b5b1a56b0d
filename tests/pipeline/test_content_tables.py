"""Content distribution in the tables: packages, deliveries and subscribers, each once."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
from node_story import NodeStory, StoredTables
from served_node import ServedNode

from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.content.messages import (
    Discovery,
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    RememberedSubscribers,
    SubscriberProgress,
    encode,
)
from holdfast.content.topics import ContentTopic
from holdfast.node import LocalNode
from holdfast.pipeline.log import entries_between, open_log
from holdfast.pipeline.project import Projection
from holdfast.pipeline.reading import read_log
from holdfast.pipeline.tables.progress import load_progress

STARTED_MS = 1_700_000_000_000


def package(number: int) -> Package:
    return Package(
        "site", f"id {number}", PackageAction.ADD, [f"/pages/{number}"], [], number,
        size_bytes=7, sha256=bytes(32), content=b"content", blob=None, binaries=["a"], user="ann",
    )  # fmt: skip


async def say(folder: Path, messages: dict[ContentTopic, list[bytes]]) -> None:
    """Appends messages as a node does that distributes content."""
    node = await LocalNode.open(folder, Config(partitions=3, log_level="error"))
    for topic, payloads in messages.items():
        node.journal.create_topic(topic.topic, topic.partitions, topic.retention)
        await node.journal.append(topic.topic, 1, payloads)
    await node.close()


def follow(spark: Any, story: NodeStory, root: Path) -> None:
    """The stream of Spark takes what is there, in several micro-batches."""
    query = Projection(str(story.folder), root, SystemClock(), small_records=0).start(
        spark, available_now=True, rows_per_trigger=60
    )
    query.awaitTermination()


def test_spark_has_tables_of_content_beside_those_of_records(spark: Any, tmp_path: Path) -> None:
    story, root = NodeStory(tmp_path / "node"), tmp_path / "tables"
    story.tell(2)
    follow(spark, story, root)
    status = PackageStatus(
        "edge-7", "site", 1, ImportOutcome.REMOVED_FAILED, 2, "id 2", "no room", 4, STARTED_MS
    )
    progress = [SubscriberProgress("site", 1, 2), SubscriberProgress("docs", retries=3, reason="x")]
    heard = Discovery("edge-7", "store", False, 3, progress, ready=True, host="here")
    asyncio.run(
        say(
            story.folder,
            {
                ContentTopic.PACKAGES: [encode(package(number)) for number in range(1, 41)],
                ContentTopic.STATUSES: [encode(status), b"this is no status"],
                ContentTopic.DISCOVERIES: [encode(heard), encode(RememberedSubscribers([]))],
            },
        )
    )
    follow(spark, story, root)
    story.check(root)  # the records are as without content

    tables = StoredTables(root, None)
    packages = tables.rows("content_packages")
    assert [row["number"] for row in packages] == list(range(1, 41))
    assert packages[6]["position"] == 6
    assert json.loads(packages[6]["paths"]) == ["/pages/7"]
    assert (packages[6]["action"], packages[6]["user"], packages[6]["binaries"]) == (
        "ADD",
        "ann",
        1,
    )
    (delivery,) = tables.rows("content_deliveries")
    assert (delivery["subscriber"], delivery["package_position"], delivery["outcome"]) == (
        "edge-7", 1, "REMOVED_FAILED",
    )  # fmt: skip
    assert (delivery["reason"], delivery["attempts"]) == ("no room", 4)
    site, docs = sorted(tables.rows("content_subscribers"), key=lambda row: -row["number"])
    assert (site["publisher"], site["number"], site["ready"]) == ("site", 2, True)
    assert (docs["publisher"], docs["retries"], docs["reason"]) == ("docs", 3, "x")
    (broken,) = tables.rows("quarantine")
    assert broken["bytes"] == b"this is no status"

    follow(spark, story, root)  # nothing comes twice
    assert len(StoredTables(root, None).rows("content_packages")) == 40
    assert read_log(spark, str(story.folder), root).count() == sum(story.ends().values())
    assert load_progress(root).records() == story.ends()


def test_messages_that_retention_dropped_before_they_were_read_do_not_stop_the_stream(
    spark: Any, tmp_path: Path
) -> None:
    story, root = NodeStory(tmp_path / "node"), tmp_path / "tables"
    story.tell(1)
    follow(spark, story, root)

    async def publish_and_drop() -> None:
        await say(story.folder, {ContentTopic.PACKAGES: [encode(package(n)) for n in range(1, 9)]})
        node = await LocalNode.open(story.folder, Config(partitions=3, log_level="error"))
        node.journal.discard(ContentTopic.PACKAGES.topic, 1, 5)
        await node.close()

    asyncio.run(publish_and_drop())
    follow(spark, story, root)
    rows = StoredTables(root, None).rows("content_packages")
    assert [row["number"] for row in rows] == [6, 7, 8]


def test_a_node_elsewhere_tells_its_content_as_its_files_do(node: ServedNode) -> None:
    far, near = open_log(node.url), open_log(str(node.folder))
    assert far.stream_bounds() == near.stream_bounds() == {}, "looking makes no topics"
    far.close()
    near.close()
    service = node.node.content
    for number in range(1, 4):
        plain = msgspec.structs.replace(package(number), binaries=[])
        node.portal.call(service.publish(plain))
    progress = [SubscriberProgress("site", 1, 2)]
    node.portal.call(service.announce(Discovery("edge-7", "store", False, -1, progress)))
    far, near = open_log(node.url), open_log(str(node.folder))
    bounds = far.stream_bounds()
    assert bounds[5_001] == (0, 3)
    for number, (start, end) in bounds.items():
        found = list(entries_between(far, number, start, end))
        assert found == list(entries_between(near, number, start, end))
    far.close()
    near.close()
