"""kill -9 in the middle of load: nothing acknowledged is lost, nothing is done twice.

Each run prints its seed; HOLDFAST_SEED kills after the same numbers of acknowledgements again.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from script import check_same_as_fresh, endings, replayed

from holdfast import Holdfast
from holdfast.engine.jobs.values import JobState
from holdfast.journal.local import LocalJournal
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.records import partition_of
from holdfast.state.snapshots import Snapshots

CHILD = Path(__file__).with_name("kill_child.py")
LINES_MAX = 3_000


class Acknowledged:
    """What the killed programs have said, over all rounds."""

    def __init__(self) -> None:
        self.submitted: set[int] = set()
        self.completed: set[int] = set()

    def note(self, line: str) -> None:
        what, key, _ = line.split()
        (self.submitted if what == "submitted" else self.completed).add(int(key))


def run_and_kill(folder: Path, round_: int, lines: int, acknowledged: Acknowledged) -> None:
    """Starts the program and kills it after so many acknowledgements."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), str(round_)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    assert child.stdout is not None
    try:
        for _ in range(lines):
            line = child.stdout.readline()
            assert line, f"the program ended by itself with {child.wait()}"
            acknowledged.note(line)
    finally:
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read()
        child.wait()
    for line in rest.splitlines(keepends=True):
        if line.endswith("\n"):
            acknowledged.note(line)


async def check(folder: Path, acknowledged: Acknowledged) -> None:
    """Reads the journal and the state as the next process finds them."""
    journal = LocalJournal.open(folder / "journal", segment_bytes=SEGMENT_BYTES_MIN)
    store, repairs = Snapshots(folder / "state").open_store()
    try:
        assert repairs == []
        ended: Counter[int] = Counter()
        views = {}
        for partition in (1, 2):
            processor = replayed(journal, partition, store)
            check_same_as_fresh(processor, journal)
            ended.update(endings(journal, partition))
            views[partition] = processor.view.jobs
        assert not [key for key, times in ended.items() if times > 1], "done twice"
        for key in acknowledged.submitted:
            waiting = views[partition_of(key)].jobs.get(key) is not None
            assert waiting or ended[key], f"task {key} was acknowledged and is lost"
        for key in acknowledged.completed:
            outcome = views[partition_of(key)].outcome(key)
            assert outcome is not None and outcome.state == JobState.COMPLETED
    finally:
        store.close()
        await journal.close()


def finish(folder: Path, acknowledged: Acknowledged) -> None:
    """A program that is not killed does what is left."""
    with Holdfast.open(folder, workers=4) as app:

        @app.task
        def double(number: int) -> int:
            return number * 2

        double.submit(0).result(timeout=60)  # starts the worker
        for key in acknowledged.submitted:
            app.handle(str(key)).result(timeout=60)


def kill_rounds(tmp_path: Path, rounds: int) -> None:
    seed = int(os.environ.get("HOLDFAST_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}: again with HOLDFAST_SEED={seed} pytest -s {Path(__file__).name}")
    random, acknowledged = Random(seed), Acknowledged()
    folder = tmp_path / "data"
    readers = folder / "readers"
    readers.mkdir(parents=True)
    (readers / "test.json").write_text('{"1": 0, "2": 0}')  # keeps all of the log for the checks
    for round_ in range(rounds):
        lines = random.randrange(1, LINES_MAX)
        run_and_kill(folder, round_, lines, acknowledged)
        asyncio.run(check(folder, acknowledged))
    finish(folder, acknowledged)
    asyncio.run(check(folder, acknowledged))
    assert acknowledged.submitted and acknowledged.completed
    assert list((folder / "state" / "snapshots").iterdir()), "the rounds took snapshots"


def test_five_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 5)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_a_hundred_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    for _ in range(10):  # the checks read the whole log each time: ten logs of ten rounds
        tmp_path = tmp_path / "next"
        kill_rounds(tmp_path, 10)
