"""One flipped bit anywhere in a data folder: healed with nothing lost, or refused by name.

A failure names the seed, the flip and the folder, which is kept. `flips` with that seed does the
same flips again.
"""

import asyncio
import os
import shutil
from pathlib import Path
from random import Random

import pytest
from flips import Truth, flip_somewhere, flips, make_folder, start_after_flip

SEED = int(os.environ.get("HOLDFAST_SEED", "12"))


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("master") / "data"
    return folder, asyncio.run(make_folder(folder))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """All is read again after every flip; in between others have their turn, but nobody waits."""
    monkeypatch.setattr("holdfast.upkeep.SCRUB_PAUSE_MS", 0)


def run(master: tuple[Path, Truth], scratch: Path, count: int, *, running: bool) -> None:
    outcomes = flips(*master, scratch, SEED, count, running=running)
    assert sum(outcomes.values()) == count
    for outcome, times in sorted(outcomes.items()):
        print(f"{times:5} {outcome}")


def test_a_flip_while_the_node_is_stopped_loses_nothing(
    master: tuple[Path, Truth], tmp_path: Path
) -> None:
    run(master, tmp_path, 30, running=False)


def test_a_flip_while_the_node_runs_loses_nothing(
    master: tuple[Path, Truth], tmp_path: Path
) -> None:
    run(master, tmp_path, 8, running=True)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_two_thousand_flips_while_the_node_is_stopped_lose_nothing(
    master: tuple[Path, Truth], tmp_path: Path
) -> None:
    run(master, tmp_path, 2_000, running=False)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_two_hundred_flips_while_the_node_runs_lose_nothing(
    master: tuple[Path, Truth], tmp_path: Path
) -> None:
    run(master, tmp_path, 200, running=True)


def test_a_node_is_up_only_when_all_work_is_readable(
    master: tuple[Path, Truth], tmp_path: Path
) -> None:
    original, truth = master
    for number in range(6):
        folder = tmp_path / str(number)
        shutil.copytree(original, folder)
        flip_somewhere(folder, Random(number), kind="live .sst")
        asyncio.run(start_after_flip(folder, truth, reads_at_once=False))
