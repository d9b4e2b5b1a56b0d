"""Programs that share partitions at one node, as real processes: one of them is killed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.groups.programs import (
    Messages,
    SharingPrograms,
    is_even,
    messages_of,
    owned_after_ms,
    running,
    until,
)
from bench.ours.sharing import TOKENS

from holdfast import Holdfast
from holdfast.client.portal import Portal
from holdfast.config import Config
from holdfast.gateway.http import HttpServer
from holdfast.groups.api import name_of
from holdfast.groups.messages import Committed, Regular, decode
from holdfast.limits import GROUP_TICK_MS
from holdfast.node import LocalNode


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


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in file.read_text().splitlines(keepends=True) if "\n" in each]


def test_a_killed_programs_partitions_go_on_elsewhere_from_their_offsets(
    url: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines.jsonl"
    with SharingPrograms(url, file) as programs, Holdfast.connect(url) as app:
        until(lambda: is_even(app, 3))
        killed = min(running(app))
        until(lambda: committed_by(messages_of(app), killed).keys() >= {*running(app)[killed]})
        orphans = running(app)[killed]
        programs.kill(killed)
        killed_at = time.monotonic()
        until(lambda: is_even(app, 2))
        messages = messages_of(app)
        programs.stop()
    assert owned_after_ms(messages, orphans) <= 3 * GROUP_TICK_MS + 100
    check_runs(lines(file), killed, killed_at)
    committed = committed_by(messages, killed)
    resumed = {
        each["token"]: each["offset"]
        for each in reversed(lines(file))  # the first one counts; it may move on later
        if each["what"] == "begin" and each["at"] > killed_at and each["token"] in orphans
    }
    assert resumed == {token: committed[token] for token in orphans}
    assert all(resumed.values()), "it had come somewhere before"


def committed_by(messages: Messages, member: str) -> dict[str, Any]:
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
