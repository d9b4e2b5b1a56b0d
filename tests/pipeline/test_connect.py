"""The pipeline through Spark Connect: what takes the micro-batches is a server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from connect_reader import Found
from node_story import NodeStory, StoredTables
from served_node import ServedNode
from spark_cluster import (
    DEADLINE_SECONDS,
    LASTING_MS,
    Gate,
    PipelineOn,
    connect_server,
    wait_until,
)

from holdfast.clock import SystemClock
from holdfast.pipeline.project import READER, Projection
from holdfast.pipeline.tables.progress import load_progress

pytestmark = [
    pytest.mark.soak,  # it starts a server of Spark; the others use the same code without one
    pytest.mark.xdist_group("spark-processes"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server for all of these tests."""
    with connect_server(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.mark.soak
def test_the_process_that_started_the_stream_is_killed_and_the_next_one_goes_on(
    server: str, tmp_path: Path
) -> None:
    story = NodeStory(tmp_path / "node", lasting_ms=LASTING_MS)
    tables = tmp_path / "tables"
    story.tell(3)
    gate = Gate()
    node = ServedNode(story.folder, wrap=gate.before)
    runs: list[PipelineOn] = []

    def run() -> PipelineOn:
        runs.append(PipelineOn(server, node.url, tables))
        return runs[-1]

    def are_level() -> bool:
        assert runs[-1].is_running(), "the pipeline ended"
        return load_progress(tables).positions == story.ends()

    try:
        first = run()
        wait_until("the tables to have all", are_level)
        before = load_progress(tables)
        node.portal.call(gate.close())
        node.live_a_little()
        wait_until("a micro-batch to be under way", lambda: gate.waiting)
        first.kill()
        assert load_progress(tables) == before, "what is under way is not committed"
        second = run()
        wait_until("the second one to have started", second.has_started)
        node.portal.call(gate.open())
        wait_until("the tables to have what was under way", are_level)
        node.submit(30, "later")
        wait_until("the tables to have all again", are_level)
        assert second.stop() == 0
    finally:
        for each in runs:
            each.kill()
        node.close()
    story.check(tables)


def test_the_log_and_the_tables_are_read_through_a_server(server: str, tmp_path: Path) -> None:
    story = NodeStory(tmp_path / "node", lasting_ms=LASTING_MS)
    tables = tmp_path / "tables"
    story.tell(4)
    assert PipelineOn(server, str(story.folder), tables, "--once").wait() == 0
    story.check(tables)
    assert (story.folder / "readers" / READER).is_file(), "the node knows how far the tables are"
    story.tell(1)
    reader = Path(__file__).with_name("connect_reader.py")
    command = [sys.executable, reader, server, story.folder, tables]
    run = subprocess.run(command, stdout=subprocess.PIPE, timeout=DEADLINE_SECONDS, check=True)
    found = msgspec.json.decode(run.stdout, type=Found)
    ends = story.ends()
    assert found.positions == [(partition, n) for partition in ends for n in range(ends[partition])]
    assert found.whole_log == len(found.positions)
    assert 0 < found.failed < len(found.positions)
    jobs = StoredTables(tables, None).rows("jobs")
    assert found.mail == sorted(row["job_key"] for row in jobs if row["type"] == "mail") != []


def test_a_projection_travels_as_where_it_reads_and_writes(tmp_path: Path) -> None:
    projection = Projection("http://127.0.0.1:8080", tmp_path, SystemClock())
    make, told = projection.__reduce__()
    assert isinstance(make(*told), Projection)
    assert told[:2] == ("http://127.0.0.1:8080", tmp_path)
