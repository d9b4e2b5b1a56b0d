"""Processes of a node that are killed in the middle of a backup: the node goes on."""

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.members.node_process import Node, started

from .working import restored, target_of

DEADLINE_SECONDS = 60
TASKS = 3_000


def post(node: Node, path: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        node.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def persistently(node: Node, path: str, body: dict[str, Any] | None = None) -> Any:
    """Asks until a process answers: those that were killed are being started again."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        try:
            return node.json(path) if body is None else post(node, path, body)
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def end_of_backup(node: Node) -> dict[str, Any]:
    while (found := persistently(node, "/v2/backup"))["state"] == "RUNNING":
        time.sleep(0.02)
    return found


@pytest.mark.soak
@pytest.mark.parametrize("victim", [1, 2], ids=["its maker", "another"])
def test_a_process_that_is_killed_in_a_backup_leaves_the_former_one_whole(
    tmp_path: Path, victim: int
) -> None:
    target = {"target": str(tmp_path / "backups")}
    with started(tmp_path / "data", "--processes", "2", "--partitions", "4") as node:
        keys: dict[str, str] = {}

        def submit(name: str) -> None:
            tasks = [
                {"type": "t", "payload": "x" * 1_000, "key": f"{name}-{n}"} for n in range(TASKS)
            ]
            for at in range(0, TASKS, 500):
                receipts = persistently(node, "/v2/tasks/batch", {"tasks": tasks[at : at + 500]})[
                    "tasks"
                ]
                for task, receipt in zip(tasks[at : at + 500], receipts, strict=True):
                    keys[task["key"]] = receipt["taskKey"]

        submit("first")
        post(node, "/v2/backup", target)
        assert end_of_backup(node)["state"] == "DONE"
        submit("second")
        post(node, "/v2/backup", target)
        os.kill(node.members()[victim], signal.SIGKILL)
        end_of_backup(node)
        node.until("UP")
        whole = [each.number for each in target_of(tmp_path / "backups").generations()]
        assert whole in ([1], [1, 2])
        persistently(node, "/v2/backup", target)
        last = end_of_backup(node)
        assert (last["state"], last["generation"]) == ("DONE", whole[-1] + 1), last
        node.end()
    restored(tmp_path / "backups", tmp_path / "restored")
    with started(tmp_path / "restored", "--processes", "2") as again:
        for name, key in list(keys.items())[::97]:
            body = {"tasks": [{"type": "t", "payload": None, "key": name}]}
            (receipt,) = persistently(again, "/v2/tasks/batch", body)["tasks"]
            assert (receipt["taskKey"], receipt["created"]) == (key, False)
        again.end()
