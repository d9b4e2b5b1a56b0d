"""A node and content distribution: nothing without use, kept across starts, retained by need."""

import asyncio
from pathlib import Path

import msgspec

from holdfast.config import Config
from holdfast.content.messages import Discovery, Package, PackageAction, SubscriberProgress
from holdfast.content.topics import ContentTopic
from holdfast.limits import KIB, SEGMENT_BYTES_MIN
from holdfast.node import LocalNode
from holdfast.testing import MemoryNode, SimulatedDisk, run
from known_metrics import check_exported

CONFIG = Config(partitions=1, segment_bytes=SEGMENT_BYTES_MIN)
PACKAGES = ContentTopic.PACKAGES


def package(number: int, size_bytes: int = 100) -> Package:
    return Package(
        "site", f"p-{number}", PackageAction.ADD, [f"/{number}"], [], 0, size_bytes, b"",
        bytes(size_bytes), None,
    )  # fmt: skip


def discovery(name: str, offset: int, number: int) -> Discovery:
    return Discovery(name, name, False, -1, [SubscriberProgress("site", offset, number)])


def age(node: LocalNode) -> None:
    """From now on only what somebody needs is kept."""
    retention = msgspec.structs.replace(PACKAGES.retention, age_ms=0)
    node.journal.create_topic(PACKAGES.topic, 1, retention)


def test_a_node_without_content_has_nothing_of_it(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        assert not node.content.is_used and node.content.is_ready
        assert b"holdfast_content" not in await node.gateway.node.metrics()
        await node.upkeep.enforce_retention()
        await node.close()
        assert sorted(each.name for each in (tmp_path / "data" / "journal").iterdir()) == [
            ".lock", "records",
        ]  # fmt: skip
        assert not (tmp_path / "data" / "content").exists()

    asyncio.run(story())


def test_content_is_there_after_a_restart_with_its_blobs_in_the_folder(tmp_path: Path) -> None:
    async def story() -> None:
        for start in range(2):
            node = await LocalNode.open(tmp_path / "data", CONFIG)
            content = node.content
            published = await content.publish(package(start))
            assert published.number == start + 1
            await content.announce(discovery("edge-7", -1, 0))
            assert (await content.farm("site")).lag_max == start + 1
            with content.blobs.upload("content/binaries/aa") as upload:
                upload.write(b"1")
            assert (tmp_path / "data/content/blobs/content/binaries/aa").exists()
            exposition = await node.gateway.node.metrics()
            check_exported(exposition)
            metrics = exposition.decode()
            line = 'holdfast_content_lag_packages{publisher="site",subscriber="edge-7"}'
            assert f"{line} {start + 1}.0" in metrics
            health = node.health()
            assert health.warnings == []
            said = discovery("edge-7", -1, 0).progress[0]
            stuck = msgspec.structs.replace(said, retries=4, reason="disk full")
            await content.announce(
                msgspec.structs.replace(discovery("edge-7", -1, 0), progress=[stuck])
            )
            assert "disk full" in node.health().warnings[0]
            await node.close()

    asyncio.run(story())


def test_retention_waits_for_the_slowest_subscriber_within_the_bytes_of_the_config(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        content = node.content
        offsets = [(await content.publish(package(n, 4 * KIB))).offset for n in range(100)]
        age(node)
        await content.announce(discovery("slow", offsets[30], 31))
        await content.announce(discovery("done", offsets[99], 100))
        running = await content.running()
        await running.upkeep.remember()
        await asyncio.sleep(0.01)
        await node.upkeep.enforce_retention()
        earliest = node.journal.bounds(PACKAGES.topic, 1).earliest
        assert 0 < earliest <= offsets[31]
        queue = await content.queue("site", "slow", limit=100)
        assert queue.length == 69 and [each.offset for each in queue.items] == offsets[31:]
        await content.announce(discovery("slow", offsets[60], 61))
        await node.upkeep.enforce_retention()
        earliest = node.journal.bounds(PACKAGES.topic, 1).earliest
        assert offsets[31] < earliest <= offsets[61]
        await node.close()

        small = msgspec.structs.replace(CONFIG, journal_bytes_max=64 * KIB)
        node = await LocalNode.open(tmp_path / "data", small)
        await node.content.running()
        age(node)
        await asyncio.sleep(0.01)
        await node.upkeep.enforce_retention()
        assert node.journal.bounds(PACKAGES.topic, 1).earliest > offsets[61], "the disk is full"
        (slow,) = [e for e in await node.content.subscribers("site") if e.name == "slow"]
        assert slow.misses > 0 and slow.misses + slow.lag == 39
        assert (await node.content.publish(package(100))).number == 101, "numbers outlive packages"
        await node.close()

    asyncio.run(story())


def test_a_node_in_memory_loses_its_power_and_knows_what_it_acknowledged() -> None:
    async def story() -> None:
        node = MemoryNode(disk=SimulatedDisk())
        for start in range(4):
            await node.start()
            content = node.node.content
            published = [await content.publish(package(10 * start + n)) for n in range(10)]
            assert [each.number for each in published] == list(
                range(10 * start + 1, 10 * start + 11)
            )
            await content.announce(discovery("a", published[-1].offset, published[-1].number))
            await asyncio.sleep(1)
            events, _ = await content.events("site", limit=1_000)
            assert [each.number for each in events] == list(range(1, 10 * start + 11))
            node.blobs.content["content/packages/1"] = b""
            assert await content.missing(["content/packages/1"]) == []
            await node.crash()
        await node.start()
        await node.close()

    run(story())
