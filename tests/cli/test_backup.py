"""`holdfast backup` and `holdfast restore` as they are typed."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.cli.exit_codes import ExitCode
from holdfast.config import Config
from holdfast.folder_format import FORMAT
from holdfast.gateway.node.service import NodeService
from holdfast.gateway.node.shapes import BackupView

from .shell import Served, Shell


@contextmanager
def node_in(shell: Shell, name: str = "data") -> Iterator[None]:
    """A node in this process, for as long as the block lasts."""
    served = Served(shell.folder / name, Config(partitions=4, log_level="error"))
    shell.url = served.server.url
    try:
        yield
    finally:
        served.close()


def test_a_running_node_is_backed_up_restored_and_started(shell: Shell) -> None:
    with node_in(shell):
        key = shell.submit("add", "{}", "--key", "k")
        first = shell.run("backup", shell.url, "backups", "--json").json
        assert first["generation"] == 1 and first["sentBytes"] > 0
        second = shell.run("backup", shell.url, "backups")
        assert "backup 2 as of" in second.out and "0 B were sent" in second.out
    listed = shell.run("backup", "list", "backups", "--json").json["items"]
    assert [each["generation"] for each in listed] == [1, 2]
    assert {each["format"] for each in listed} == {FORMAT}
    assert f"holdfast 0.1.0, format {FORMAT}" in shell.run("backup", "list", "backups").out
    assert "as they were written" in shell.run("backup", "verify", "backups").out
    assert "start it: holdfast start again" in shell.run("restore", "backups", "again").out
    with node_in(shell, "again"):
        again = shell.run("tasks", "submit", "add", "{}", "--key", "k", "--json").json
    assert (again["taskKey"], again["created"]) == (key, False)


def test_a_stopped_folder_is_backed_up_by_the_command(shell: Shell) -> None:
    with node_in(shell):
        shell.submit("add")
        refused = shell.run("backup", "data", "backups")
        assert refused.code == ExitCode.UNAVAILABLE
        assert "by its URL: holdfast backup http" in refused.err
    for _ in range(3):
        assert shell.run("backup", "create", "data", "backups", "--json").code == ExitCode.OK
    pruned = shell.run("backup", "prune", "backups", "--keep", "2")
    assert "1 backups removed, 2 kept" in pruned.out
    one = shell.run("restore", "backups", "again", "--generation", "2", "--json").json
    assert one["generation"] == 2 and one["partitions"] == 4


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("backup", "nowhere", "backups"), ExitCode.NOT_FOUND, "no log; check the path"),
        (("backup", "list", "nowhere"), ExitCode.NOT_FOUND, "there are none; check the target"),
        (("backup", "http://10.0.0.9:8080", "backups"), ExitCode.USAGE, "whole path"),
        (("backup", "http://127.0.0.1:1", "backups"), ExitCode.UNAVAILABLE, "127.0.0.1:1"),
        (("restore", "nowhere", "."), ExitCode.CONFLICT, "has files"),
        (("restore", "nowhere", "new"), ExitCode.NOT_FOUND, "check the target"),
        (("backup", "prune", "nowhere"), ExitCode.USAGE, "--keep"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_line(
    shell: Shell, arguments: tuple[str, ...], code: ExitCode, text: str
) -> None:
    found = shell.run(*arguments)
    assert (found.code, text in found.err) == (code, True), found.err
    assert "Traceback" not in found.err


def test_damage_in_a_target_is_an_exit_code(shell: Shell) -> None:
    with node_in(shell):
        shell.run("backup", shell.url, "backups")
    pieces = [path for path in (shell.folder / "backups" / "data").rglob("*") if path.is_file()]
    piece = max(pieces, key=lambda path: path.stat().st_size)
    piece.write_bytes(b"x" + piece.read_bytes()[1:])
    found = shell.run("backup", "verify", "backups", "--json")
    assert found.code == ExitCode.DATA_LOSS
    assert piece.name in json.loads(found.out)["problems"][0]
    assert shell.run("restore", "backups", "again").code == ExitCode.DATA_LOSS
    assert not any((shell.folder / "again").iterdir())


@pytest.mark.parametrize(
    ("end", "code", "text"),
    [
        (BackupView("NONE"), ExitCode.UNAVAILABLE, "started again"),
        (BackupView("FAILED", code="DATA_LOSS", error="a bit"), ExitCode.DATA_LOSS, "a bit"),
    ],
)
def test_a_backup_that_the_node_did_not_end_well_is_an_error(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, end: BackupView, code: ExitCode, text: str
) -> None:
    with node_in(shell):

        async def backup(_: object) -> BackupView:
            return end

        monkeypatch.setattr(NodeService, "backup", backup)
        found = shell.run("backup", shell.url, "backups")
    assert (found.code, text in found.err) == (code, True), found.err
