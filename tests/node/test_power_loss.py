"""The power goes under a whole node, RocksDB included: nothing that was acknowledged is lost.

Not kill -9, which keeps what the system has in its cache: of what was not synced any part may be
missing, of file contents and of names. Each run prints its seed; HOLDFAST_SEED repeats its choices.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from power_loss import Machine, Note, Op, build_shim, read_notes

from holdfast.config import Config
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.node import LocalNode

CHILD = Path(__file__).with_name("kill_child.py")
CUTS = 10  # moments of one process at which the power goes
CONFIG = Config(
    partitions=2, segment_bytes=SEGMENT_BYTES_MIN, snapshot_interval_ms=10**9, log_level="critical"
)


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = build_shim(tmp_path_factory.mktemp("shim"))
    if library is None:
        pytest.skip("there is no C compiler to build the shim with")
    return library


def run_and_kill(folder: Path, notes: Path, shim: Path, round_: int, lines: int) -> None:
    """A node works until it has acknowledged so much, with everything noted that it does."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(folder), str(round_)],
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LD_PRELOAD": str(shim),
            "HOLDFAST_SHIM_ROOT": str(folder),
            "HOLDFAST_SHIM_LOG": str(notes),
        },
        text=True,
    )
    assert child.stdout is not None
    try:
        for _ in range(lines):
            assert child.stdout.readline(), f"the program ended by itself with {child.wait()}"
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()


class DropAll(Random):
    """Nothing is left of what was not synced, not even the names of files and folders."""

    def random(self) -> float:
        return 1.0

    def choice(self, seq: Any) -> Any:
        return seq[0]


async def check(folder: Path, said: list[str]) -> None:
    """A node starts on what is left, and has all that was acknowledged."""
    node = await LocalNode.open(folder, CONFIG)
    try:
        for line in said:
            what, key, _ = line.split()
            task = await node.gateway.tasks.get(key)
            assert what == "submitted" or task.state == "COMPLETED", line
        await node.upkeep.scrubbed.wait()
        assert (await node.gateway.node.health()).status == "UP"
    finally:
        await node.close()


def moments(notes: list[Note], random: Random) -> list[int]:
    """After which notes the power goes: anywhere, and just behind what was said or synced."""
    telling = [number for number, note in enumerate(notes, 1) if note.op in (Op.SAID, Op.SYNC)]
    anywhere = random.sample(range(len(notes) // 20, len(notes)), CUTS // 2)
    return sorted([*anywhere, *random.sample(telling, CUTS - len(anywhere))])


def cut(tmp_path: Path, shim: Path, cuts: int, lines: int) -> None:
    seed = int(os.environ.get("HOLDFAST_SEED", "0")) or int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    random, before, earlier = Random(seed), tmp_path / "before", list[str]()
    before.mkdir()
    done = 0
    while done < cuts:
        folder, notes_file = tmp_path / "data", tmp_path / "notes"
        shutil.copytree(before, folder)
        run_and_kill(folder, notes_file, shim, done, lines)
        notes = list(read_notes(notes_file))
        machine, at, said = Machine(folder, before), 0, earlier
        survivor = tmp_path / "survivor"
        for moment in moments(notes, random):
            for note in notes[at:moment]:
                machine.play(note)
            at = moment
            said = earlier + [line.decode() for line in machine.said.split(b"\n")[:-1]]
            shutil.rmtree(survivor, ignore_errors=True)
            machine.lose_power(survivor, DropAll() if done % 3 == 0 else random)
            kept = tmp_path / "kept"
            shutil.copytree(survivor, kept, dirs_exist_ok=True)
            try:
                asyncio.run(check(survivor, said))
            except BaseException as error:
                raise AssertionError(f"seed {seed}, cut {done}: left was {kept}") from error
            shutil.rmtree(kept)
            done += 1
        # The next process goes on with what the last cut has left, or from the beginning.
        shutil.rmtree(before)
        if done % (5 * CUTS):
            survivor.rename(before)
            earlier = said
        else:
            before.mkdir()
            earlier = []
        for each in (folder, survivor):
            shutil.rmtree(each, ignore_errors=True)
        notes_file.unlink()
    print(f"{done} cuts")


def test_ten_power_failures_lose_nothing(tmp_path: Path, shim: Path) -> None:
    cut(tmp_path, shim, 10, 400)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_five_hundred_power_failures_lose_nothing(tmp_path: Path, shim: Path) -> None:
    cut(tmp_path, shim, 500, 1_500)
