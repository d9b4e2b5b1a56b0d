"""No reader sees more than what is acknowledged, wherever it reads."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from holdfast.cli.demo.log_walk import LogWalk
from holdfast.cli.journal.files import follow_records, open_reader, read_records
from holdfast.config import Config
from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.gateway.journal.shapes import RecordEnd, RecordPageQuery, RecordQuery
from holdfast.journal import Bounds, Entry, Start
from holdfast.journal.local import JournalReader, LocalJournal, verify
from holdfast.journal.local.scrub import scrub
from holdfast.journal.local.writer import Commit, TopicWriter
from holdfast.limits import READ_BYTES_MAX
from holdfast.node import LocalNode
from holdfast.pipeline.log import open_log
from holdfast.records import Record, ValueType

SOURCES = Path(__file__).parents[2] / "src" / "holdfast"
Look = Callable[[LocalNode, Path], Awaitable[int]]  # how many entries of partition 1 it sees


async def of_the_writer(node: LocalNode, folder: Path) -> int:
    journal = node.journal
    assert isinstance(journal, LocalJournal)
    entries = await journal.read(TOPIC, 1, 0)
    assert entries == journal.read_now(TOPIC, 1, 0)
    assert journal.bounds(TOPIC, 1).next == journal.offset_at(TOPIC, 1, 1 << 50)
    assert journal.bounds(TOPIC, 1) == Bounds(0, len(entries))
    return len(entries)


async def of_a_stream(node: LocalNode, folder: Path) -> int:
    found: list[Entry] = []

    async def follow() -> None:
        async for entries in node.journal.stream(TOPIC, 1, Start.EARLIEST):
            found.extend(entries)

    task = asyncio.create_task(follow())
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    return len(found)


async def of_another_process(node: LocalNode, folder: Path) -> int:
    reader = JournalReader.open(str(folder / "journal"))
    entries = reader.read_now(TOPIC, 1, 0)
    assert entries == await reader.read(TOPIC, 1, 0)
    assert reader.bounds(TOPIC, 1).next == reader.offset_at(TOPIC, 1, 1 << 50) == len(entries)
    reader.let_go()
    return len(entries)


async def of_the_pipeline(node: LocalNode, folder: Path) -> int:
    log = open_log(str(folder))
    entries, bounds = log.read(1, 0), log.bounds()[1]
    assert bounds == log.bounds_since(0)[1] == Bounds(0, len(entries))
    log.close()
    return len(entries)


async def of_the_gateway(node: LocalNode, folder: Path) -> int:
    (bounds, *_) = (await node.gateway.journal.bounds()).partitions
    (since, *_) = (await node.gateway.journal.bounds_since(0)).partitions
    entries = msgspec.msgpack.decode(await node.gateway.journal.read(1, 0, READ_BYTES_MAX))
    assert bounds.next == since.next == len(entries)
    return len(entries)


async def of_the_command_line(node: LocalNode, folder: Path) -> int:
    reader = open_reader(folder)
    found = list(read_records(reader, [1], 0))
    followed: list[Record] = []

    def take(_: int, record: Record) -> bool:
        followed.append(record)
        return True

    following = asyncio.create_task(follow_records(reader, [1], 0, take))
    for _ in range(20):
        await asyncio.sleep(0)
    following.cancel()
    assert len(followed) == len(found)
    return len(found)


async def of_the_demo(node: LocalNode, folder: Path) -> int:
    class Walk(LogWalk):
        def take_up(self, record: Record) -> None:
            """Counted by the walk."""

    walk = Walk(folder)
    walk.read_on()
    return walk.records


async def of_the_doctor(node: LocalNode, folder: Path) -> int:
    assert not [each for each in scrub(str(folder / "journal")) if each is not None]
    (report,) = verify(str(folder / "journal"))
    assert not report.damage
    return report.entries


async def of_the_log_browser(node: LocalNode, folder: Path) -> int:
    newest = RecordQuery(page=RecordPageQuery(limit=100))
    oldest = RecordQuery(page=RecordPageQuery(limit=100, start=RecordEnd.OLDEST))
    found = (await node.gateway.journal.records(newest)).items
    assert {each.position for each in found} == {
        each.position for each in (await node.gateway.journal.records(oldest)).items
    }
    return len(found)


READERS: dict[str, Look] = {
    "journal/local/reading.py": of_the_writer,
    "journal/memory.py": of_a_stream,  # its twin of the local journal
    "journal/local/reader.py": of_another_process,
    "pipeline/log.py": of_the_pipeline,
    "engine/progress.py": of_the_gateway,
    "engine/scanning.py": of_the_log_browser,
    "cli/journal/files.py": of_the_command_line,
    "cli/demo/log_walk.py": of_the_demo,
    "cli/checks/folder.py": of_the_doctor,
}


@pytest.mark.parametrize("look", READERS.values(), ids=lambda look: look.__name__)
def test_nobody_reads_what_is_on_its_way_to_the_disk(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread has written a large commit, and its sync has not returned."""
    written, go_on = threading.Event(), threading.Event()
    transfer = TopicWriter.transfer

    def held(writer: TopicWriter, commit: Commit) -> float:
        seconds = transfer(writer, commit)
        written.set()
        assert go_on.wait(30)
        return seconds

    async def story() -> None:
        node = await LocalNode.open(tmp_path / "node", Config(partitions=1))
        small, large = (
            Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b'"%s"' % (b"x" * size)))
            for size in (10, 150_000)
        )
        await node.runner.submit(1, [small])
        before = await look(node, tmp_path / "node")
        assert before > 0
        monkeypatch.setattr(TopicWriter, "transfer", held)
        answer = node.runner.submit(1, [large] * 2)
        await asyncio.to_thread(written.wait, 30)
        try:
            assert await look(node, tmp_path / "node") == before
        finally:
            go_on.set()
        await answer
        monkeypatch.undo()
        assert await look(node, tmp_path / "node") == before + 4
        await node.close()

    asyncio.run(story())


def test_every_module_that_reads_the_log_is_looked_at() -> None:
    """A new reader has to be added to the walk; what only brings the state back need not wait."""
    words = ("read_now(", "JournalReader.open(", "journal.read(", ".stream(TOPIC")
    found = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if any(word in path.read_text() for word in words)
    }
    beginning = {"engine/kernel/recovery.py", "timekeeping.py"}  # before anything is written
    passing_on = {  # to one of them
        "pipeline/remote_log.py",
        "journal/local/spread.py",
        "cli/journal/elsewhere.py",
        "console/life.py",
        "cli/demo/cluster_verdict.py",
    }
    # By the port, which ends at what is acknowledged.
    following = {"engine/kernel/standbys.py", "engine/ended/look.py"}
    of_its_own = {"cluster/cut_log.py"}  # a topic that this process alone writes and reads
    of_the_writer = {  # other topics, by the port that the writer keeps
        "content/cleaning.py",
        *(f"content/publisher/{each}.py" for each in ("opening", "queues", "retention")),
        "content/publisher/topic_log.py",
        "groups/journal_log.py",
    }
    in_kafka = {"journal/kafka/reader.py", "pipeline/kafka_log.py"}  # which ends at whole flights
    afterwards = {"cli/demo/content_verdict.py"}  # when the node has ended
    others = {
        *beginning,
        *passing_on,
        *following,
        *of_its_own,
        *of_the_writer,
        *in_kafka,
        *afterwards,
    }
    assert found == {*READERS, *others}
