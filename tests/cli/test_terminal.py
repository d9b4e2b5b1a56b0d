"""What commands print in a terminal of 80 columns, and in a pipe: keys are whole everywhere."""

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import termios
from contextlib import redirect_stderr, redirect_stdout

import pytest

from holdfast.cli.main import run
from holdfast.cli.table import lines_of, width_of

from .shell import COMMAND, Shell

KEY = "2251799813685249"
_STUCK = """
from holdfast import Process
stuck = Process("stuck").wait("paid", message="payment", key="nobody")
"""
_LONG = "a-very-long-name-that-somebody-chose-for-a-reason-that-nobody-remembers-any-more"


def _in_terminal(shell: Shell, *arguments: str, columns: int = 80) -> str:
    """What a command prints in a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    done = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=shell.folder,
        env=environment | {"HOLDFAST_URL": shell.url, "TERM": "xterm", "NO_COLOR": "1"},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    os.close(theirs)
    found = b""
    try:
        while piece := os.read(ours, 65_536):
            found += piece
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert done.wait(30) == 0
    return found.decode().replace("\r\n", "\n")


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def _on_screen(shell: Shell, *arguments: str) -> str:
    """The same in this process, which saves the second that a process takes."""
    screen = _Screen()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(screen):
        patch.setenv("COLUMNS", "80")
        patch.setenv("NO_COLOR", "1")
        patch.setenv("HOLDFAST_URL", shell.url)
        with redirect_stderr(io.StringIO()):
            assert run(arguments) == 0
    return screen.getvalue()


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """A node with something in every list."""
    shell.serve_node()
    for number in range(3):
        shell.submit(_LONG, "{}", "--delay", "1h", "--key", f"{_LONG}-{number}")
    (shell.folder / "stuck.py").write_text(_STUCK)
    assert shell.run("deploy", "shop:order", "shop:packing", "stuck:stuck").code == 0
    shell.start("stuck")  # without a correlation key: an incident
    shell.start("packing", '{"items": [1, 2]}')
    shell.start("order", '{"orderId": 42, "total": 5}')
    for command in (
        ("schedules", "set", "nightly", "a-task", "--every", "1h"),
        ("users", "create", "ann", "--name", _LONG, "--email", f"{_LONG}@example.org"),
        ("groups", "create", "ops", "--name", _LONG),
        ("roles", "create", "clerk", "--name", _LONG),
        ("tokens", "create", "robot"),
        ("permissions", "grant", "client:robot", f"TASK:{_LONG}", "WORK", "CREATE", "READ"),
    ):
        done = shell.run(*command)
        assert done.code == 0, done.err
    return shell


# What a list shows of each item, and which of its fields a person copies.
_LISTS = {
    ("tasks", "list"): ("taskKey",),
    ("incidents", "list"): ("incidentKey", "taskKey"),
    ("instances", "list"): ("processInstanceKey",),
    ("definitions", "list"): ("processDefinitionKey", "processId"),
    ("schedules", "list"): ("scheduleId",),
    ("users", "list"): ("username",),
    ("groups", "list"): ("id",),
    ("roles", "list"): ("id",),
    ("tokens", "list"): ("tokenId",),
    ("permissions", "list"): ("authorizationKey",),
    ("distributions", "list"): ("distributionKey",),
    ("transactions", "list"): ("transactionKey",),
    ("batch", "list"): ("batchOperationKey",),
}


def test_keys_are_whole_in_a_terminal_and_lines_are_in_a_pipe(busy: Shell) -> None:
    _check_lists(busy)
    _check_others(busy)


def _check_lists(busy: Shell) -> None:
    """Every list has its keys whole on one line."""
    seen: set[str] = set()
    for command, names in _LISTS.items():
        items = busy.run(*command, "--json").json["items"]
        wanted = [str(item[name]) for item in items for name in names if item.get(name)]
        if not wanted:
            continue
        seen.add(command[0])
        lines = _on_screen(busy, *command).splitlines()
        assert all(width_of(line) <= 80 for line in lines), (command, lines)
        assert len(lines) == len(items) + 1, (command, lines)
        for key in wanted:
            assert any(key in line.split() for line in lines), (command, key, lines)
        piped = busy.run(*command).out
        assert len(piped.splitlines()) == len(items) + 1 and "…" not in piped
    assert seen >= {
        "tasks",
        "incidents",
        "instances",
        "definitions",
        "schedules",
        "users",
        "tokens",
    }


def _check_others(busy: Shell) -> None:
    """What is shown of one thing: words are whole, and in a pipe lines are."""
    (instance, *_) = busy.run("instances", "list", "--json").json["items"]
    key = instance["processInstanceKey"]
    shown = _on_screen(busy, "show", key)
    assert any(key in line for line in shown.splitlines())
    jobs = [word for line in busy.run("show", key).out.splitlines() for word in line.split()]
    for word in (each for each in jobs if each.isdecimal() and len(each) == len(key)):
        assert any(word in line for line in shown.splitlines())
    (task, *_) = busy.run("tasks", "list", "--json").json["items"]
    assert task["taskKey"] in _in_terminal(busy, "tasks", "list").split()
    assert f"{_LONG}\n" in busy.run("tasks", "show", task["taskKey"]).out
    found = busy.run("doctor", "data").out.splitlines()
    checks = busy.run("doctor", "data", "--json").json["items"]
    assert len(found) == len(checks) + sum(bool(each["advice"]) for each in checks)


# --- the table itself ---------------------------------------------------------------------------

_COLUMNS = ("KEY", "PROCESS", "INSTANCE", "ELEMENT", "TASK", "TYPE", "REASON", "SINCE", "ERROR")
_ROW = (KEY, "order", KEY, "charge-card", KEY, "charge", "RETRIES_EXHAUSTED",
        "2026-11-16 17:50:55", "ValueError: the bank says no, and it does not say why")  # fmt: skip


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_keys_are_whole_at_any_width(width: int) -> None:
    (_, line), left_out = lines_of(_COLUMNS, [_ROW], width)
    assert line.split().count(KEY) == 3
    if width >= 60:
        assert width_of(line) <= width
    assert not {"KEY", "INSTANCE", "TASK"} & set(left_out)
    if width >= 80:  # what is wrong is more than where, as long as there is room
        assert "ERROR" not in left_out


def test_without_a_width_nothing_is_cut() -> None:
    long = "x" * 20_000
    (_, line), left_out = lines_of(("KEY", "ERROR"), [(KEY, long)], None)
    assert line == f"{KEY}  {long}" and left_out == []


def test_cells_are_what_they_say_and_not_what_they_do_to_a_terminal() -> None:
    (_, *lines), _ = lines_of(("KEY", "NAME"), [(KEY, "a\x1b[31m\nb"), (KEY, "[bold]c[/]")], 80)
    assert lines == [f"{KEY}  a [31m b", f"{KEY}  [bold]c[/]"]


def test_wide_characters_take_two_columns() -> None:
    (head, first, second), _ = lines_of(("NAME", "X"), [("注文", "1"), ("an order", "2")], None)
    assert (head, first, second) == ("NAME      X", "注文      1", "an order  2")
    assert width_of("注文") == 4


# --- the log ------------------------------------------------------------------------------------


def test_the_log_is_shortened_unless_it_is_asked_for_in_full(shell: Shell) -> None:
    shell.serve_node(partitions=1)
    body = {"text": "y" * 3_000, "numbers": list(range(200))}
    key = shell.submit("mail", json.dumps(body))
    for command in (("journal", "cat", "data"), ("journal", "cat", shell.url)):
        short = shell.run(*command, "--key", key).out
        assert key in short and "y" * 3_000 not in short and "2,920 characters more" in short
        assert "192 more" in short
        assert all(len(line) < 600 for line in short.splitlines())
        assert "y" * 3_000 in shell.run(*command, "--key", key, "--full").out
        assert "y" * 3_000 in shell.run(*command, "--key", key, "--json").out
