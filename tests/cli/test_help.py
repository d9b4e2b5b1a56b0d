"""Help: every command has examples, and it shows at once."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from holdfast.cli.exit_codes import MEANINGS, ExitCode, exit_code_of
from holdfast.cli.main import app
from holdfast.errors import Code

from .shell import Shell

_HEAVY = ("rocksdict", "litestar", "aiohttp", "uvicorn", "uvloop", "rich.console", "lxml", "lark",
          "pyspark", "pyarrow", "deltalake", "matplotlib", "obstore")  # fmt: skip


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        if command.hidden:  # it is for holdfast itself
            return
        yield " ".join(path), command
        return
    for name, child in children.items():
        yield from _commands(child, (*path, name))


_ALL = dict(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", _ALL)
def test_every_command_has_help_examples_and_json(path: str) -> None:
    command = _ALL[path]
    assert command.help
    assert "Examples:" in command.epilog
    assert f"holdfast {path}" in command.epilog
    assert "--json" in {option for parameter in command.params for option in parameter.opts}


def test_all_the_verbs_are_there() -> None:
    assert set(_ALL) == {
        "start", "worker", "doctor", "demo", "config show",
        "deploy", "start-process", "show", "publish", "report",
        "definitions list", "definitions source",
        "instances list", "instances show", "instances cancel", "instances set-variables",
        "instances modify", "instances migrate",
        "tasks submit", "tasks list", "tasks show", "tasks result", "tasks cancel",
        "incidents list", "incidents show", "incidents retry", "incidents discard",
        "schedules list", "schedules set", "schedules delete",
        "distributions list", "distributions show", "distributions skip",
        "distributions cancel", "distributions resume",
        "transactions list", "transactions show",
        "batch cancel", "batch modify", "batch migrate", "batch resolve", "batch delete",
        "batch retry-tasks", "batch discard-tasks", "batch list", "batch show", "batch items",
        "batch suspend", "batch resume", "batch abort", "batch change", "batch retry",
        "backup create", "backup list", "backup verify", "backup prune", "restore",
        "journal topics", "journal bounds", "journal cat", "journal verify",
        "partitions export", "partitions import", "partitions rebalance",
        "pipeline run", "pipeline status",
        "cluster status", "cluster members", "cluster cuts", "cluster drain", "cluster remove",
        "cluster repair", "cluster move", "cluster demo",
        "content publish", "content subscribe", "content queues", "content errors",
        "content retry", "content clear", "content remove", "content topology",
        "content snapshot", "content cleanup", "content forget",
        "users create", "users list", "users update", "users delete",
        "groups create", "groups list", "groups delete", "groups add", "groups remove",
        "groups show", "groups move", "groups park", "groups resume",
        "roles create", "roles list", "roles delete", "roles give", "roles take",
        "tokens create", "tokens list", "tokens delete",
        "permissions list", "permissions grant", "permissions revoke", "whoami",
    }  # fmt: skip


def test_help_shows_every_exit_code(shell: Shell) -> None:
    shown = shell.run_process("--help").out
    for code in ExitCode:
        assert f"{code:>3}  {code.name}" in shown


def test_every_error_has_an_exit_code_and_every_exit_code_a_meaning() -> None:
    assert all(exit_code_of(code) is not ExitCode.OK for code in Code)
    assert set(MEANINGS) == set(ExitCode)


def test_a_shell_completes_commands(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # CI may have no shell
    assert "_HOLDFAST_COMPLETE=complete_bash" in shell.run_process("--show-completion", "bash").out
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "holdfast tas")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert shell.run_process().out.split() == ["tasks"]


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from holdfast.cli.main import run; run(['--help']);"
        f"print([name for name in {_HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_arguments_show_the_help_and_an_unknown_verb_is_a_usage_error(shell: Shell) -> None:
    assert "Commands:" in "".join((shell.run_process().out, shell.run_process().err))
    assert shell.run_process("fly").code == 2
    assert shell.run_process("--version").out.startswith("holdfast ")
