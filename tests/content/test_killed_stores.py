"""kill -9 at any point: a store holds all of one commit, content and notes of the same one."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("killed_store.py")
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory: a killed process leaves there what it leaves on a disk, and syncs cost nothing."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as made:
        yield Path(made)


def kill(kind: str, folder: Path, how: str, kills: int) -> tuple[int, int]:
    """How many processes were killed, and how many of them in a commit."""
    seed = os.environ.get("HOLDFAST_SEED", "1")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), kind, str(folder), how, str(kills), seed],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, f"HOLDFAST_SEED={seed}\n{done.stdout}{done.stderr}"
    found = re.match(r"(\d+) kills, (\d+) inside", done.stdout)
    assert found is not None
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_a_store_that_is_killed_at_random_holds_one_commit(folder: Path, kind: str) -> None:
    killed, inside = kill(kind, folder, "at-random", 30)
    assert killed == 30 and inside >= 3


def test_a_directory_that_is_killed_at_each_step_of_a_commit_holds_one_commit(
    folder: Path,
) -> None:
    killed, inside = kill("directory", folder, "at-each-step", 1_000)
    assert killed == inside and 30 <= killed < 1_000


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["directory", "sqlite"])
def test_two_hundred_kills(tmp_path: Path, kind: str) -> None:
    killed, inside = kill(kind, tmp_path, "at-random", 200)
    assert killed == 200 and inside >= 20
