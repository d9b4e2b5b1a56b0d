"""Programs that share partitions at one node, as real processes: one of them is killed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.groups.sharing_program import TOKENS

from holdfast import Holdfast
from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.gateway.groups.shapes import SyncQuery
from holdfast.gateway.http import HttpServer
from holdfast.groups.api import name_of
from holdfast.groups.messages import Committed, NewEpoch, Picked, Regular, decode
from holdfast.limits import GROUP_TICK_MS
from holdfast.node import LocalNode

PROGRAM = Path(__file__).with_name("sharing_program.py")
_answer = msgspec.msgpack.Decoder(tuple[list[tuple[int, int, bytes]], int, int]).decode


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """A node of this process, at a URL."""
    portal = Portal("node")

    async def open_() -> tuple[LocalNode, HttpServer]:
        node = await LocalNode.open(tmp_path / "data", Config(partitions=1, log_level="error"))
        server = HttpServer(node.gateway, "127.0.0.1", 0)
        await server.start()
        return node, server

    async def close(node: LocalNode, server: HttpServer) -> None:
        await server.close()
        await node.close()

    node, server = portal.call(open_())
    yield server.url
    portal.call(close(node, server))
    portal.close()


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in file.read_text().splitlines(keepends=True) if "\n" in each]


def test_a_killed_programs_partitions_go_on_elsewhere_from_their_offsets(
    url: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines.jsonl"
    file.touch()
    programs = {
        name: subprocess.Popen(
            [sys.executable, str(PROGRAM), url, name, str(file)], stdin=subprocess.PIPE
        )
        for name in "abc"
    }

    try:
        with Holdfast.connect(url) as app:

            def running() -> dict[str, list[str]]:
                return by_member(app)

            until(lambda: sorted(map(len, running().values())) == [4, 4, 4])
            killed = min(running())
            until(lambda: _committed(_log(app), killed).keys() >= {*running()[killed]})
            orphans = running()[killed]
            programs[killed].kill()
            killed_at = time.monotonic()
            until(lambda: sorted(map(len, running().values())) == [6, 6])
            messages = _log(app)
        for name in set(programs) - {killed}:
            programs[name].communicate(timeout=20)
            assert programs[name].returncode == 0
    finally:
        for each in programs.values():
            each.kill()
            each.communicate()
    owned_ms = _owned_after_ms(messages, orphans)
    print(f"{len(orphans)} orphans were owned again {owned_ms} ms after the epoch")
    assert owned_ms <= 3 * GROUP_TICK_MS + 100
    check_runs(lines(file), killed, killed_at)
    committed = _committed(messages, killed)
    resumed = {
        each["token"]: each["offset"]
        for each in reversed(lines(file))  # the first one counts; it may move on later
        if each["what"] == "begin" and each["at"] > killed_at and each["token"] in orphans
    }
    assert resumed == {token: committed[token] for token in orphans}
    assert all(resumed.values()), "it had come somewhere before"


def _log(app: Holdfast) -> list[tuple[int, int, bytes]]:
    return _answer(app.portal.call(app.api.groups.read("shared", SyncQuery(0))))[0]


def by_member(app: Holdfast) -> dict[str, list[str]]:
    """What runs, by the name of its member."""
    from holdfast import NotFound
    from holdfast.gateway.groups.shapes import GroupPartitionQuery

    query = GroupPartitionQuery("RUNNING")
    found: dict[str, list[str]] = {}
    try:
        page = app.portal.call(app.api.groups.partitions("shared", query))
    except NotFound:
        return found
    for each in page.items:
        found.setdefault(each.member.partition("/")[0], []).append(each.token)
    return found


def _owned_after_ms(messages: list[tuple[int, int, bytes]], orphans: list[str]) -> int:
    """How long after the last epoch all orphans were picked, by the times of the log."""
    read = [(at_ms, decode(body)) for _, at_ms, body in messages]
    [*_, (epoch_ms, epoch)] = [each for each in read if isinstance(each[1], NewEpoch)]
    assert isinstance(epoch, NewEpoch)
    shared = {
        row.token for row in epoch.snapshot.partitions if row.target >= 0 and row.token in orphans
    }
    picked = {
        change.token: at_ms - epoch_ms
        for at_ms, message in read
        if isinstance(message, Regular) and message.epoch == epoch.epoch
        for change in message.changes
        if isinstance(change, Picked)
    }
    assert shared and shared <= picked.keys(), "the leader shares what it does not keep"
    return max(picked[token] for token in shared)


def _committed(messages: list[tuple[int, int, bytes]], member: str) -> dict[str, Any]:
    """The last offset that a member has committed of each partition."""
    return {
        change.token: change.offset
        for _, _, body in messages
        if isinstance(message := decode(body), Regular) and name_of(message.member) == member
        for change in message.changes
        if isinstance(change, Committed)
    }


def check_runs(told: list[dict[str, Any]], killed: str, killed_at: float) -> None:
    """No two programs work on a partition at a time, and each goes on from a committed offset."""
    for token in TOKENS:
        of_token = sorted(
            (each for each in told if each["token"] == token), key=lambda each: each["at"]
        )
        holder: str | None = None
        reached = 0
        for each in of_token:
            if each["what"] == "begin":
                if holder is not None:
                    assert holder == killed and each["at"] > killed_at, f"two owners: {of_token}"
                assert (each["offset"] or 0) >= reached, f"work was lost: {of_token}"
                holder = each["member"]
            else:
                assert holder == each["member"], f"two owners: {of_token}"
                holder, reached = None, each["offset"]
        assert holder is None
