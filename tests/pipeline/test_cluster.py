"""The pipeline on a Spark cluster of two workers: an executor is killed, and nothing is missed."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from node_story import NodeStory
from served_node import ServedNode
from spark_cluster import LASTING_MS, WORKERS, Gate, PipelineOn, SparkCluster, wait_until

from holdfast.pipeline.tables.progress import load_progress


@pytest.mark.soak  # it starts a cluster of Spark
@pytest.mark.xdist_group("spark-processes")
def test_an_executor_killed_in_the_middle_of_its_task_changes_nothing(tmp_path: Path) -> None:
    story = NodeStory(tmp_path / "node", lasting_ms=LASTING_MS)
    tables = tmp_path / "tables"
    story.tell(4)
    gate = Gate()
    node = ServedNode(story.folder, wrap=gate.before)
    cluster = SparkCluster(tmp_path)
    pipeline: PipelineOn | None = None

    def are_level() -> bool:
        assert pipeline is not None and pipeline.is_running(), "the pipeline ended"
        return load_progress(tables).positions == story.ends()

    try:
        pipeline = PipelineOn(cluster.start(), node.url, tables)
        wait_until("the tables to have all", are_level)
        before = load_progress(tables)
        assert before.batch >= 0
        killed = _kill_one_that_works(node, gate, cluster)
        assert load_progress(tables) == before, "what was killed was not committed"
        node.portal.call(gate.open())
        wait_until("the tables to have what the killed one read", are_level)
        wait_until(
            "another executor in its place",
            lambda: killed not in (now := _pids(cluster)) and len(now) == WORKERS,
        )
        node.submit(30, "later")
        wait_until("the tables to have all again", are_level)
        assert load_progress(tables).batch > before.batch + 1
        assert pipeline.stop() == 0
    finally:
        if pipeline is not None:
            pipeline.kill()
        cluster.stop()
        node.close()
    assert cluster.executors() == []
    story.check(tables)


def _kill_one_that_works(node: ServedNode, gate: Gate, cluster: SparkCluster) -> int:
    """While its task waits for what it reads; another one runs beside it."""
    executors = _pids(cluster)
    assert len(executors) == WORKERS
    node.portal.call(gate.close())
    node.live_a_little()
    wait_until("an executor to read", lambda: gate.waiting)
    port = urlsplit(node.url).port
    assert port is not None
    executor = wait_until("the one that reads", lambda: cluster.executor_that_reads(port))
    executor.kill()
    executor.wait(30)
    return executor.pid


def _pids(cluster: SparkCluster) -> set[int]:
    return {each.pid for each in cluster.executors()}
