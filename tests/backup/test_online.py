"""A backup of a node that works: one moment of it, of which nothing is missing or doubled."""

import asyncio
from pathlib import Path

import pytest

from holdfast.backup.target import BackupTarget
from holdfast.blobs import put
from holdfast.blobs.folder import FolderBlobs
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError, InvalidArgument, InvalidState, Unavailable
from holdfast.journal import Retention
from holdfast.journal.local import LocalJournal
from holdfast.journal.local.names import segment_sequences
from holdfast.limits import BACKUP_PIECE_BYTES, MIB
from holdfast.node import LocalNode

from .working import CONFIG, Ledger, backed_up, check_restored, ended, restored, target_of, work


def test_a_backup_under_load_has_all_that_was_acknowledged_before_it(tmp_path: Path) -> None:
    async def story() -> tuple[Ledger, set[str]]:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        ledger, over = Ledger(), asyncio.Event()

        async def load() -> None:
            number = 0
            while not over.is_set():
                await work(node.gateway, ledger, [f"key-{number + n}" for n in range(5)])
                number += 5

        loading = asyncio.get_running_loop().create_task(load())
        while len(ledger.tasks) < 200:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        await node.take_snapshot()
        while len(ledger.tasks) < 400:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        before = ledger.copy()
        made = await backed_up(node.gateway, tmp_path / "backups")
        while len(ledger.tasks) < 600:  # noqa: ASYNC110 - it goes on
            await asyncio.sleep(0.005)
        over.set()
        await loading
        assert made.held_ms == 0  # one process needs no moment of silence
        await node.close()
        return before, set(ledger.tasks)

    before, everything = asyncio.run(story())
    assert len(before.tasks) >= 400 and before.ended
    restored(tmp_path / "backups", tmp_path / "restored")
    asyncio.run(check_restored(tmp_path / "restored", before))
    assert len(everything) >= 600


def test_a_second_backup_of_an_idle_node_sends_next_to_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        ledger = Ledger()
        await work(node.gateway, ledger, [f"key-{n}" for n in range(300)], 4_000)
        first = await backed_up(node.gateway, tmp_path / "backups")
        assert first.sent_bytes >= first.total_bytes * 0.9 > MIB
        second = await backed_up(node.gateway, tmp_path / "backups")
        assert second.generation == 2
        assert second.total_bytes >= first.total_bytes * 0.99
        assert second.sent_bytes < 4_096, second
        # What is new is sent, in whole pieces: never the log again.
        await work(node.gateway, ledger, ["one more"])
        third = await backed_up(node.gateway, tmp_path / "backups")
        assert 0 < third.sent_bytes < first.sent_bytes / 2, third
        await node.close()
        await asyncio.to_thread(restored, tmp_path / "backups", tmp_path / "restored")
        await check_restored(tmp_path / "restored", ledger)

    asyncio.run(story())


def test_the_log_is_kept_while_it_is_copied_and_cut_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        folder = tmp_path / "data" / "journal" / TOPIC
        ledger, loop = Ledger(), asyncio.get_running_loop()
        stands, go_on = asyncio.Event(), asyncio.Event()
        send = BackupTarget.send

        def slow_send(target: BackupTarget, piece: str, data: bytes) -> None:
            loop.call_soon_threadsafe(stands.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
            send(target, piece, data)

        monkeypatch.setattr(BackupTarget, "send", slow_send)
        await work(node.gateway, ledger, [f"a-{n}" for n in range(100)], 2_000)
        before = ledger.copy()
        await node.gateway.node.back_up(str(tmp_path / "backups"))
        await stands.wait()
        first = segment_sequences([path.name for path in folder.iterdir()])[0]
        for batch in range(3):  # snapshots behind which the log would be cut
            await work(node.gateway, ledger, [f"b-{batch}-{n}" for n in range(60)], 2_000)
            await node.take_snapshot()
        assert node.journal.bounds(TOPIC, 1).earliest > 0
        assert segment_sequences([path.name for path in folder.iterdir()])[0] == first
        go_on.set()
        await ended(node.gateway)
        await node.take_snapshot()
        await node.close()  # what is removed in the background is removed by then
        assert segment_sequences([path.name for path in folder.iterdir()])[0] > first
        assert not list((tmp_path / "data" / "state" / "snapshots").glob("*.links"))
        await asyncio.to_thread(restored, tmp_path / "backups", tmp_path / "restored")
        await check_restored(tmp_path / "restored", before)

    asyncio.run(story())


def test_a_log_that_was_cut_is_restored_with_the_state_in_front_of_it(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        ledger = Ledger()
        for batch in range(4):
            await work(node.gateway, ledger, [f"{batch}-{n}" for n in range(40)], 2_000)
            await node.take_snapshot()
        assert node.journal.bounds(TOPIC, 1).earliest > 0
        made = await backed_up(node.gateway, tmp_path / "backups")
        await node.close()
        manifest = await asyncio.to_thread(restored, tmp_path / "backups", tmp_path / "restored")
        assert manifest.generation == made.generation
        assert manifest.piece_bytes == BACKUP_PIECE_BYTES
        await check_restored(tmp_path / "restored", ledger)
        # The restored node is backed up to the same place, without a mix-up.
        again = await LocalNode.open(tmp_path / "restored", CONFIG)
        await work(again.gateway, ledger, [f"later-{n}" for n in range(40)], 2_000)
        await backed_up(again.gateway, tmp_path / "backups")
        await again.close()
        await asyncio.to_thread(restored, tmp_path / "backups", tmp_path / "twice")
        await check_restored(tmp_path / "twice", ledger)

    asyncio.run(story())


def test_targets_that_are_wrong_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        (tmp_path / "photos").mkdir()
        (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
        for target, error, text in (
            ("backups", InvalidArgument, "whole path"),
            ("", InvalidArgument, "whole path"),
            ("/tmp/\0", InvalidArgument, "null"),
            ("//[", InvalidArgument, "IPv6"),
            ("/" + "x" * 5_000, HoldfastError, "too long"),
            (str(tmp_path / "data" / "backups"), InvalidArgument, "outside"),
            (f"file://{tmp_path}/data/backups", InvalidArgument, "outside"),
            (str(tmp_path / "photos"), InvalidState, "other things"),
            ("gs://bucket", InvalidArgument, "blob store"),
            (str(tmp_path / "photos" / "cat.jpg"), Unavailable, "cat.jpg"),
        ):
            with pytest.raises(error, match=text):
                await node.gateway.node.back_up(target)
        assert (await node.gateway.node.backup()).state == "NONE"
        assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat.jpg"]
        await node.close()

    asyncio.run(story())


def test_one_backup_at_a_time_and_a_stop_gives_it_up(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        await work(node.gateway, Ledger(), [f"a-{n}" for n in range(50)])
        both = await asyncio.gather(
            *(node.gateway.node.back_up(str(tmp_path / "backups")) for _ in range(2)),
            return_exceptions=True,
        )
        assert [type(each).__name__ for each in both] == ["BackupView", "InvalidState"]
        await node.close()
        assert target_of(tmp_path / "backups").workers() == []

    asyncio.run(story())


def test_a_failed_backup_says_why_and_the_next_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: BackupTarget, piece: str, data: bytes) -> None:
        raise Unavailable("the disk is on fire")

    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        ledger = Ledger()
        await work(node.gateway, ledger, ["a"])
        with monkeypatch.context() as patch:
            patch.setattr(BackupTarget, "send", refuse)
            with pytest.raises(Unavailable, match="on fire"):
                await backed_up(node.gateway, tmp_path / "backups")
        assert target_of(tmp_path / "backups").generations() == []
        assert b"holdfast_backups_failed_total 1.0" in await node.gateway.node.metrics()
        assert b"holdfast_backup_taken_seconds" not in await node.gateway.node.metrics()
        await work(node.gateway, ledger, ["b"])
        made = await backed_up(node.gateway, tmp_path / "backups")
        assert node.metrics.storage.backup_taken_ms == made.taken_ms
        assert b"\nholdfast_backup_taken_seconds " in await node.gateway.node.metrics()
        await node.close()
        await asyncio.to_thread(restored, tmp_path / "backups", tmp_path / "restored")
        await check_restored(tmp_path / "restored", ledger)

    asyncio.run(story())


def test_all_topics_and_the_large_files_of_content_are_in_a_backup(tmp_path: Path) -> None:
    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", CONFIG)
        node.journal.create_topic("other", 3, Retention(bytes=10**6))
        for number in range(20):
            await node.journal.append("other", 2, [b"%d" % number])
        node.journal.discard("other", 2, 5)
        blob = tmp_path / "data" / "content" / "blobs" / "ab" / "abcdef"
        put(FolderBlobs(blob.parent), blob.name, [b"x" * 100])
        await backed_up(node.gateway, tmp_path / "backups")
        await node.journal.append("other", 1, [b"later"])
        await node.close()
        await asyncio.to_thread(restored, tmp_path / "backups", tmp_path / "restored")
        again = LocalJournal.open(tmp_path / "restored" / "journal")
        assert again.topics() == {TOPIC: 2, "other": 3}
        assert again.retention("other") == Retention(bytes=10**6)
        assert again.bounds("other", 2) == (5, 20) and again.bounds("other", 1) == (0, 0)
        entries = await again.read("other", 2, 5)
        assert [each.payload for each in entries] == [b"%d" % n for n in range(5, 20)]
        await again.close()
        there = tmp_path / "restored" / blob.relative_to(tmp_path / "data")
        assert there.read_bytes() == b"x" * 100

    asyncio.run(story())
