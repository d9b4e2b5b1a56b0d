"""A rebalance that is killed: the folder is the old division or the new one, or says what to do."""

import asyncio
import itertools
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from divided import Truth, check_all, complete_some, logs, make_folder, opened

from holdfast.errors import InvalidState
from holdfast.layout import layout_of, settled_layout, switching_to
from holdfast.node import LocalNode
from holdfast.rebalancing import rebalance
from holdfast.rebalancing.switching import Told, finish

CHILD = Path(__file__).with_name("killed_child.py")
Made = dict[int, Path]  # by the number of processes


class Crash(BaseException):
    """Stands for the end of the process, where nothing has to be closed for it."""


def nothing(what: str, size_bytes: int) -> None:
    del what, size_bytes


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, truth: Truth) -> Made:
    """The same folder with one process and with three."""
    base = tmp_path_factory.mktemp("killed")

    async def make() -> None:
        found = await make_folder(base / "1")
        for name in Truth.__struct_fields__:
            setattr(truth, name, getattr(found, name))
        shutil.copytree(base / "1", base / "3")
        await rebalance(base / "3", 3, nothing)

    asyncio.run(make())
    return {1: base / "1", 3: base / "3"}


async def check_after_crash(folder: Path, old: int, new: int, truth: Truth, made: Path) -> str:
    """A start is right or is refused with a way, and the way is right; which it was."""
    found = "old"
    if switching_to(folder) is not None:
        found = "half"
        for start in (lambda: layout_of(folder), lambda: logs(folder)):
            with pytest.raises(InvalidState, match="holdfast partitions rebalance"):
                start()
        with pytest.raises(InvalidState, match="interrupted"):
            await LocalNode.open(folder)
        assert (await rebalance(folder, new, nothing)).finished_interrupted
    elif settled_layout(folder).members == new:
        found = "new"
    assert layout_of(folder).members == (old if found == "old" else new)
    assert logs(folder) == logs(made)
    async with opened(folder) as nodes:
        await check_all(nodes[-1].gateway, truth)
    return found


def check_names(folder: Path, members: int) -> None:
    """Nothing of another division is where members look for theirs."""
    names = {"members.next", "rebalance.json", "members", "members.json", "journal", "state"}
    expected = {"journal", "state"} if members == 1 else {"members", "members.json"}
    assert {path.name for path in folder.iterdir()} & names == expected


async def check_whole(folder: Path, new: int, truth: Truth) -> None:
    """Whatever was left behind, the next one does it and leaves nothing."""
    await rebalance(folder, new, nothing)
    check_names(folder, new)
    assert not (folder / "members.old").exists()
    async with opened(folder) as nodes:
        assert len(nodes) == new
        await check_all(nodes[0].gateway, truth)
        ended = Truth(leased=dict(truth.leased))
        await complete_some(nodes[0].gateway, ended, 10)


@pytest.mark.parametrize(("old", "new"), [(1, 2), (3, 2), (3, 1)])
def test_a_switch_that_stops_anywhere_is_finished(
    tmp_path: Path, made: Made, truth: Truth, old: int, new: int
) -> None:
    """Every rename is the last one once; what comes back is always one whole division."""

    def crash_at(number: int) -> Told:
        steps = itertools.count()

        def told(what: str, size_bytes: int) -> None:
            del size_bytes
            if what == "switching" and next(steps) == number:
                raise Crash

        return told

    decided = tmp_path / "decided"
    shutil.copytree(made[old], decided)
    with pytest.raises(Crash):
        asyncio.run(rebalance(decided, new, crash_at(1)))
    expected = logs(made[old])
    for number in itertools.count():
        folder = tmp_path / str(number)
        shutil.copytree(decided, folder)
        with pytest.raises(InvalidState, match=f"rebalance {folder} --processes {new}$"):
            layout_of(folder)
        try:
            finish(folder, crash_at(number))
        except Crash:
            with pytest.raises(InvalidState, match="interrupted"):
                layout_of(folder)
            assert finish(folder, nothing) is not None
        else:
            break
        assert layout_of(folder).members == new and logs(folder) == expected
        check_names(folder, new)
        shutil.rmtree(folder)
    assert number >= 4
    asyncio.run(check_whole(folder, new, truth))


def kill(folder: Path, processes: int, step: str, number: int) -> bool:
    """Whether it was killed; False if it had come to its end before."""
    command = [sys.executable, str(CHILD), str(folder), str(processes), step, str(number)]
    code = subprocess.run(command, timeout=60).returncode
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.parametrize(
    ("old", "new", "step", "number", "found"),
    [
        (1, 3, "copying", 12, "old"),
        (3, 2, "checking", 7, "old"),
        (3, 2, "switching", 4, "half"),
        (3, 1, "removing the old files", 1, "new"),
    ],
)
def test_a_rebalance_that_is_killed_loses_nothing(
    tmp_path: Path, made: Made, truth: Truth, old: int, new: int, step: str, number: int, found: str
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made[old], folder)
    assert kill(folder, new, step, number)
    assert asyncio.run(check_after_crash(folder, old, new, truth, made[old])) == found
    asyncio.run(check_whole(folder, new, truth))


@pytest.mark.soak
def test_fifty_kills(tmp_path: Path, made: Made, truth: Truth) -> None:
    random, found = Random(13), set[str]()
    for kill_number in range(50):
        old, new = random.choice([(1, 2), (1, 3), (3, 2), (3, 1), (3, 5)])
        step = random.choice(["copying", "checking", "switching", "removing the old files"])
        number = {"switching": random.randrange(1, 9), "removing the old files": 1}.get(
            step, random.randrange(1, 30)
        )
        folder = tmp_path / str(kill_number)
        shutil.copytree(made[old], folder)
        kill(folder, new, step, number)
        found.add(asyncio.run(check_after_crash(folder, old, new, truth, made[old])))
        asyncio.run(check_whole(folder, new, truth))
        shutil.rmtree(folder)
    assert found == {"old", "half", "new"}
