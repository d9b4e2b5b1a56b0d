"""Programs that share partitions, as real processes: what happens after one of them is killed."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench.harness import Run, remove
from bench.ours import sharing
from bench.ours.node import OurNode
from holdfast import Holdfast, NotFound
from holdfast.gateway.groups.shapes import GroupPartitionQuery, SyncQuery
from holdfast.groups.messages import NewEpoch, Picked, Regular, decode

Messages = list[tuple[int, int, bytes]]  # offset, when it was written, body
_answer = msgspec.msgpack.Decoder(tuple[Messages, int, int]).decode
_SECONDS_MAX = 60.0


class SharingPrograms:
    """Three programs at a node; a context manager that ends them."""

    def __init__(self, url: str, file: Path) -> None:
        self._processes = {
            name: subprocess.Popen(
                [sys.executable, sharing.__file__, url, name, str(file)], stdin=subprocess.PIPE
            )
            for name in "abc"
        }

    def __enter__(self) -> "SharingPrograms":
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._processes.values():
            each.kill()
            each.communicate()

    def kill(self, name: str) -> None:
        """kill -9."""
        self._processes.pop(name).kill()

    def stop(self) -> None:
        """Those that live are told to end, and do."""
        for each in self._processes.values():
            each.communicate(timeout=_SECONDS_MAX)
            assert each.returncode == 0, "a program ends without an error"


def until(condition: Callable[[], bool]) -> None:
    """Waits for a condition, for a minute at most."""
    deadline = time.monotonic() + _SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def running(app: Holdfast) -> dict[str, list[str]]:
    """What runs, by the name of its member."""
    found: dict[str, list[str]] = {}
    try:
        query = GroupPartitionQuery("RUNNING")
        page = app.portal.call(app.api.groups.partitions(sharing.GROUP, query))
    except NotFound:
        return found
    for each in page.items:
        found.setdefault(each.member.partition("/")[0], []).append(each.token)
    return found


def is_even(app: Holdfast, members: int) -> bool:
    """Whether so many members have the same number of partitions."""
    return sorted(map(len, running(app).values())) == [len(sharing.TOKENS) // members] * members


def messages_of(app: Holdfast) -> Messages:
    """All that the sync log has."""
    return _answer(app.portal.call(app.api.groups.read(sharing.GROUP, SyncQuery(0))))[0]


def owned_after_ms(messages: Messages, orphans: list[str]) -> int:
    """How long after the last epoch all orphans were picked, by the times of the log."""
    read = [(at_ms, decode(body)) for _, at_ms, body in messages]
    epoch_ms, epoch = [each for each in read if isinstance(each[1], NewEpoch)][-1]
    assert isinstance(epoch, NewEpoch)
    rows = epoch.snapshot.partitions
    shared = {row.token for row in rows if row.target >= 0 and row.token in orphans}
    picked = {
        change.token: at_ms - epoch_ms
        for at_ms, message in read
        if isinstance(message, Regular) and message.epoch == epoch.epoch
        for change in message.changes
        if isinstance(change, Picked)
    }
    assert shared and shared <= picked.keys(), "the leader shares what it does not keep"
    return max(picked[token] for token in shared)


def owned_again_ms(run: Run) -> float:
    """A program of three is killed; from the epoch without it to the last pick of its share."""
    folder = run.folder("groups")
    try:
        with (
            OurNode(folder / "data", 1) as node,
            SharingPrograms(node.url, folder / "lines.jsonl") as programs,
            Holdfast.connect(node.url) as app,
        ):
            until(lambda: is_even(app, 3))
            orphans = running(app)["b"]
            programs.kill("b")
            until(lambda: is_even(app, 2))
            return owned_after_ms(messages_of(app), orphans)
    finally:
        remove(folder)
