"""Kills processes that write a store, and looks at what each one left.

One process does it all: what it starts are forks of itself, which take milliseconds to start.
python killed_store.py directory|sqlite FOLDER at-random|at-each-step KILLS SEED
"""

import hashlib
import os
import signal
import sys
import time
from pathlib import Path
from random import Random

import msgspec

from holdfast.content.repository import DATA, Binary, Repository
from holdfast.content.repository.directory import DirectoryRepository
from holdfast.content.repository.sqlite import SqliteRepository

PATHS = [f"/{folder}/{name}" for folder in ("a", "a/b", "c", "c d") for name in range(6)]


class Told(msgspec.Struct):
    """What a commit says of itself in a note: all files that there are since, by their hashes."""

    number: int
    files: dict[str, bytes]


def opened(kind: str, folder: Path) -> Repository:
    if kind == "sqlite":
        return SqliteRepository(folder / "content.sqlite")
    return DirectoryRepository(folder / "www", grace_ms=0)


def last_told(repository: Repository) -> Told:
    note = repository.get_note("told")
    return Told(0, {}) if note is None else msgspec.msgpack.decode(note, type=Told)


def commit(repository: Repository, last: Told, random: Random) -> Told:
    """Writes and deletes files here and there: no two commits touch the same ones."""
    number, files = last.number + 1, dict(last.files)
    with repository.change() as changes:
        for path in random.sample(PATHS, 4):
            changes.delete(path)
            files.pop(path, None)
        for path in random.sample(PATHS, 8):
            body = f"{path} {number} {random.random()} ".encode() * random.randrange(1, 50)
            binary = Binary(hashlib.sha256(body).digest(), len(body))
            changes.store(binary, [body])
            changes.put(path, {DATA: binary}, number)
            files[path] = binary.sha256
        told = Told(number, files)
        changes.note("told", msgspec.msgpack.encode(told))
        changes.commit()
    return told


def check(kind: str, folder: Path, committed: int, begun: int) -> int:
    """What is left is all of one commit: the last one that was told, or the next."""
    repository = opened(kind, folder)
    try:
        told = last_told(repository)
        assert committed <= told.number <= begun, f"{committed} <= {told.number} <= {begun}"
        found: dict[str, bytes] = {}
        for path, properties in repository.walk("/"):
            binary = properties.get(DATA)
            if isinstance(binary, Binary):
                found[path] = sha256(b"".join(repository.read(binary)))
        assert found == told.files, told.number
        if kind == "directory":
            top = (folder / "www").resolve()
            files = [path for path in top.rglob("*") if not path.is_dir()]
            seen = {f"/{path.relative_to(top)}": sha256(path.read_bytes()) for path in files}
            assert seen == told.files, told.number
        return told.number
    finally:
        repository.close()


def sha256(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def write_until_killed(kind: str, folder: Path, told: int, step: int) -> None:
    """Commits for as long as it lives; with a step, that call to the disk is its last one."""
    left = step

    def count(event: str, _: object) -> None:
        nonlocal left
        if event == "open" or event.startswith("os."):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    repository, random = opened(kind, folder), Random()
    last = last_told(repository)
    if step:
        last = commit(repository, last, random)  # the first one makes the other tree anew
        sys.addaudithook(count)
    while not step or left > 0:
        os.write(told, b"begun %d\n" % (last.number + 1))
        last = commit(repository, last, random)
        os.write(told, b"committed %d\n" % last.number)
        if step:
            break
    os._exit(0)


def run(kind: str, folder: Path, step: int, after: int, seconds: float) -> tuple[int, int, bool]:
    """The last commit that was told, the last that was begun, and whether it was killed.

    Without a step it is killed some time after it has said so many lines.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            write_until_killed(kind, folder, writing, step)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = [pipe.readline() for _ in range(after)]
        if not step:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        lines += pipe.readlines()
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGKILL), f"it ended with {status}"
    numbers = {"committed": 0, "begun": 0}
    for line in lines:
        what, number = line.decode().split()
        numbers[what] = int(number)
    return numbers["committed"], numbers["begun"], status != 0


def main(kind: str, where: str, how: str, kills: str, seed: str) -> None:
    folder, random, number, killed, inside = Path(where), Random(seed), 0, 0, 0
    step = 0
    while killed < int(kills):
        step += how == "at-each-step"
        after, seconds = random.randrange(1, 6), random.uniform(0, 0.01)
        committed, begun, was_killed = run(kind, folder, step, 0 if step else after, seconds)
        if step and not was_killed:
            break
        killed += was_killed
        inside += begun > committed
        latest = number + 1 if step else number  # the commit before the steps are counted
        number = check(kind, folder, max(latest, committed), max(latest, begun))
    print(f"{killed} kills, {inside} inside of a commit, {number} commits")


if __name__ == "__main__":
    main(*sys.argv[1:])
