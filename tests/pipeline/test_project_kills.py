"""The pipeline is killed, whole or in part, while the log grows: nothing is lost or doubled."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import psutil
import pytest
from node_story import NodeStory

from holdfast.pipeline.tables.progress import load_progress

KILLS, SOAK_KILLS = 1, 20
DEADLINE_SECONDS = 120.0
SMALL_RECORDS = 2_000  # as is usual: the driver does most of it; otherwise all is the executors'


class PipelineProcess:
    """`holdfast pipeline run` over a node's folder."""

    def __init__(self, folder: Path, small_records: int) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "pipeline", "run", str(folder), "--json"]
        settings = {
            "HOLDFAST_SPARK_MASTER": "local[2,4]",
            "HOLDFAST_SPARK_SMALL_RECORDS": str(small_records),
        }
        self._process = subprocess.Popen(
            command, env=os.environ | settings, stdout=subprocess.DEVNULL, start_new_session=True
        )

    def kill_workers(self) -> None:
        """The Python processes that do the executors' work; some may be gone by themselves."""
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if "pyspark.worker" in child.cmdline():
                    child.kill()

    def kill(self) -> None:
        """The driver, its Java and all workers at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def wait_for_batch(folder: Path, batch: int) -> int:
    """Waits until the tables have a later micro-batch than this."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (now := load_progress(folder / "tables").batch) <= batch:
        assert time.monotonic() < deadline, "expected the tables to go on, but they do not"
        time.sleep(0.01)
    return now


def kill_often(tmp_path: Path, kills: int, seed: int) -> None:
    random = Random(seed)
    story = NodeStory(tmp_path / "node", seed)
    story.tell(3)
    batch = -1
    for number in range(kills):
        small_records = SMALL_RECORDS if number % 4 >= 2 else 0
        process = PipelineProcess(story.folder, small_records)
        try:
            batch = wait_for_batch(story.folder, batch)
            story.tell(2)
            if number % 2:
                process.kill_workers()
                batch = wait_for_batch(story.folder, batch)
                story.tell(2)
            time.sleep(random.random() * 0.5)  # a random point of the micro-batch
        finally:
            process.kill()
    process = PipelineProcess(story.folder, SMALL_RECORDS)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while load_progress(story.folder / "tables").positions != story.ends():
            assert time.monotonic() < deadline, "expected the tables to reach the log's end"
            time.sleep(0.02)
    finally:
        process.stop()
    story.check(story.folder / "tables")


@pytest.mark.xdist_group("spark-processes")
def test_killed_the_tables_have_everything_once(tmp_path: Path) -> None:
    kill_often(tmp_path, KILLS, 1)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_killed_twenty_times_the_tables_have_everything_once(tmp_path: Path) -> None:
    kill_often(tmp_path, SOAK_KILLS, 2)
