"""kill -9 of subscribers at random points: every store is a prefix of the log, and knows which."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("killed_subscriber.py")
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory: a killed process leaves there what it leaves on a disk, and syncs cost nothing."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as made:
        yield Path(made)


def kill(kind: str, folder: Path, kills: int, seconds_max: float) -> tuple[int, int]:
    """How many were at work when they were killed, and how many packages got through."""
    seed = os.environ.get("HOLDFAST_SEED", "1")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), kind, str(folder), str(kills), seed, str(seconds_max)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, f"HOLDFAST_SEED={seed}\n{done.stdout}{done.stderr}"
    found = re.search(r"(\d+) at work, (\d+) of", done.stdout)
    assert found is not None
    print(done.stdout)
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_subscriber_that_is_killed_leaves_a_prefix_of_the_log(folder: Path, kind: str) -> None:
    at_work, packages = kill(kind, folder, 10, 0.04)
    assert at_work and packages


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_two_hundred_kills_of_subscribers(tmp_path: Path, kind: str) -> None:
    at_work, packages = kill(kind, tmp_path, 200, 0.15)
    assert at_work >= 10 and packages >= 500
