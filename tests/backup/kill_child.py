"""Kills backups and restores at many points, each in a process of its own, and looks what is left.

This process never starts a thread: each round is a fork that runs to its end or is killed in the
middle. It prints a line for each point that was reached.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from tests.backup.working import (
    CONFIG,
    Ledger,
    backed_up,
    check,
    check_restored,
    target_of,
    work,
)

from holdfast.backup.keeping import verify
from holdfast.backup.restoring import restore
from holdfast.backup.taking import BackupProgress
from holdfast.blobs import folder as folder_blobs
from holdfast.errors import InvalidState
from holdfast.folder_format import check_format
from holdfast.node import LocalNode
from holdfast.pieces import end_of

_LAST_STEPS = 6  # the last look at the state, and everything that puts it in place
POINTS = (  # the kind of blob, how many of them are there by then, and whether this one is
    ("working", 1, True),
    ("data", 1, False),
    ("data", 1, True),
    ("data", 2, True),
    ("generations", 1, False),
    ("generations", 1, True),
)


def in_fork(run: Callable[[], None]) -> bool:
    """Whether it came to its end; False if it was killed."""
    child = os.fork()
    if child == 0:
        try:
            run()
        except BaseException as error:
            print(f"failed: {error!r}", flush=True)
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.WEXITSTATUS(status) == 0, "see what it said"
    return True


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(kind: str, count: int, is_there: bool) -> None:
    """From now on this process ends when a blob of a kind is to be put in its place, or is."""
    upload = folder_blobs._FolderUpload
    put_in_place, seen = upload.__exit__, 0

    def leave(self: folder_blobs._FolderUpload, *problem: object) -> None:
        nonlocal seen
        if f"/{kind}/" in str(self._path):
            seen += 1
            if seen == count and not is_there:
                die()
        put_in_place(self, *problem)  # pyright: ignore[reportArgumentType]
        if seen == count and is_there:
            die()

    upload.__exit__ = leave  # pyright: ignore[reportAttributeAccessIssue]


class Story:
    """A node, its backups, and what it has acknowledged, in files that outlive each round."""

    def __init__(self, root: Path) -> None:
        self.data, self.target, self.ledger_file = root / "data", root / "target", root / "ledger"
        self.restored, self.steps_file = root / "restored", root / "steps"

    def ledger(self) -> Ledger:
        made = Ledger()
        if self.ledger_file.exists():
            tasks, ended = json.loads(self.ledger_file.read_text())
            made.tasks, made.ended = tasks, set(ended)
        return made

    def round(self, name: str, kill: tuple[str, int, bool] | None) -> None:
        """The node goes on after what happened before, works, and makes a backup."""

        async def run() -> None:
            ledger = self.ledger()
            node = await LocalNode.open(self.data, CONFIG)
            await check(node.gateway, ledger)
            await work(node.gateway, ledger, [f"{name}-{n}" for n in range(20)], 4_000)
            self.ledger_file.write_text(json.dumps([ledger.tasks, sorted(ledger.ended)]))
            if kill is not None:
                kill_at(*kill)
            await backed_up(node.gateway, self.target)
            await node.close()

        asyncio.run(run())

    def backups(self) -> list[int]:
        """The generations that can be seen: all of them are whole."""
        target = target_of(self.target)
        found = target.generations()
        manifests = [each.manifest for each in found if each.manifest is not None]
        assert len(manifests) == len(found), found
        assert end_of(verify(target, manifests, BackupProgress())) == []
        return [each.generation for each in manifests]

    def restore(self, killed_at: int | None) -> None:
        target = target_of(self.target)
        steps = restore(target, target.generation(), self.restored, BackupProgress())
        for step, _ in enumerate(steps, 1):
            if step == killed_at:
                die()
            self.steps_file.write_text(str(step))


def main(root: str) -> None:
    story = Story(Path(root))
    assert in_fork(lambda: story.round("first", None))
    expected = story.backups()
    for number, point in enumerate(POINTS):
        reached = not in_fork(lambda n=number, p=point: story.round(f"round-{n}", p))
        if point == ("generations", 1, True):  # it was there before the process ended
            expected.append(expected[-1] + 1)
        found = story.backups()
        assert found == expected, (point, found, expected)
        print(json.dumps({"backup": point, "reached": reached, "seen": found}), flush=True)
    assert in_fork(lambda: story.round("last", None))
    assert story.backups() == [*expected, expected[-1] + 1]
    assert target_of(story.target).workers() == []  # what the killed ones left is gone
    restores(story)


def restores(story: Story) -> None:
    """Killed after some steps, and after each of the last; the next begins anew in the folder."""
    assert in_fork(lambda: story.restore(None))
    steps = int(story.steps_file.read_text())
    shutil.rmtree(story.restored)
    for step in (*range(1, steps - _LAST_STEPS, 5), *range(steps - _LAST_STEPS, steps + 1)):
        assert not in_fork(lambda n=step: story.restore(n))
        print(json.dumps({"restore": step, "whole": is_whole(story.restored)}), flush=True)
    ledger = story.ledger()
    assert is_whole(story.restored)
    assert in_fork(lambda: asyncio.run(check_restored(story.restored, ledger)))


def is_whole(folder: Path) -> bool:
    try:
        check_format(folder)
    except InvalidState:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1])
