"""The worker command: what it refuses, what it logs, and how it stops."""

import json
import signal
import time

import pytest

from .shell import Shell

NOISY = """
import logging
from holdfast import Holdfast

app = Holdfast.connect()

@app.task(retries=0)
def noisy() -> None:
    logging.getLogger("shop.noisy").info("about to fail")
    raise ValueError("no such luck")
"""


def test_an_app_that_cannot_be_found_is_said_so(shell: Shell) -> None:
    assert shell.run_process("worker", "shop").code == 2
    assert shell.run_process("worker", "warehouse:app").code == 3
    assert "there is no such name" in shell.run_process("worker", "shop:nothing").err
    unknown = shell.run_process("worker", "shop:app", "--tasks", "add,subtract")
    assert unknown.code == 2
    assert "subtract" in unknown.err


def test_tasks_run_in_child_processes_too(shell: Shell) -> None:
    shell.serve_node()
    shell.begin("worker", "shop:app", "--mode", "processes", "--concurrency", "1")
    done = shell.run("tasks", "submit", "add", '{"a": 1, "b": 1}', "--wait")
    assert (done.code, done.out) == (0, "2\n")


@pytest.mark.parametrize("mode", ["threads", "processes"])
def test_what_tasks_raise_and_log_is_on_standard_error(shell: Shell, mode: str) -> None:
    (shell.folder / "noise.py").write_text(NOISY)
    shell.serve_node(partitions=1)
    worker = shell.begin("worker", "noise:app", "--mode", mode, "--log-level", "info")
    # The worker tells the retries of its tasks with its first request, which may come later.
    assert shell.run("tasks", "submit", "noisy", "--retries", "0", "--wait").code == 7
    told = worker.end().err
    assert all(line.startswith("{") for line in told.splitlines()), told
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["event"] for line in lines] == ["about to fail", "task failed"]
    assert lines[0]["logger"] == "shop.noisy"
    assert (lines[1]["task"], lines[1]["attempt"]) == ("noisy", 1)
    assert lines[1]["next"] == "incident: no retries left"
    assert lines[1]["exception"].endswith("ValueError: no such luck")


@pytest.mark.parametrize(
    "command",
    [
        ("worker", "shop:app"),
        ("start", "data"),
        ("demo",),
        ("content", "subscribe", "edge", "--of", "site", "--into", "www"),
    ],
    ids=lambda command: command[0],
)
def test_a_wrong_log_level_is_one_clear_line(shell: Shell, command: tuple[str, ...]) -> None:
    refused = shell.run(*command, "--log-level", "loud")
    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    assert "debug, info, warning, error" in refused.err and "'loud'" in refused.err


def test_a_stop_finishes_what_runs_and_gives_the_rest_back(shell: Shell) -> None:
    shell.serve_node(partitions=1)
    running, waiting = (shell.submit("nap", '{"seconds": 2}') for _ in range(2))
    worker = shell.begin("worker", "shop:app", "--concurrency", "1")
    _wait_until_active(shell, waiting)

    assert worker.end(signal.SIGINT).code == 0
    assert shell.run("tasks", "result", running).out == '"rested"\n'
    assert shell.run("tasks", "show", waiting, "--json").json["state"] == "WAITING"


def test_no_child_process_outlives_a_worker_that_is_killed(shell: Shell) -> None:
    shell.serve_node()
    worker = shell.begin("worker", "shop:app", "--mode", "processes", "--concurrency", "1")
    assert shell.run("tasks", "submit", "add", '{"a": 1, "b": 1}', "--wait").code == 0
    worker.end(signal.SIGKILL)  # returns when nobody holds the other end of its output


def test_the_second_signal_stops_at_once(shell: Shell) -> None:
    shell.serve_node()
    running = shell.submit("nap", '{"seconds": 30}')
    worker = shell.begin("worker", "shop:app", "--concurrency", "1")
    _wait_until_active(shell, running)
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.stdout is not None
    assert '"stopping"' in worker.process.stdout.readline()
    assert worker.end(signal.SIGTERM).code == 130


def test_a_worker_waits_for_a_node_that_is_not_there_yet(shell: Shell) -> None:
    worker = shell.begin("worker", "shop:app")
    assert worker.process.stdout is not None
    assert '"waiting"' in worker.process.stdout.readline()
    assert worker.end().code == 0


def _wait_until_active(shell: Shell, key: str) -> None:
    deadline = time.monotonic() + 20
    while shell.run("tasks", "show", key, "--json").json["state"] != "ACTIVE":
        assert time.monotonic() < deadline
