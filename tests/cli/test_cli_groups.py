"""`holdfast groups` about programs that share partitions."""

import time

from holdfast import Holdfast, Owned

from .shell import Finished, Shell


def run(owned: Owned) -> None:
    owned.commit(41)
    if owned.token == "bad":
        raise ValueError("no answer from the bad device, and a long text that goes on and on")
    owned.wait(60)


def eventually(shell: Shell, wanted: str, *arguments: str) -> Finished:
    deadline = time.monotonic() + 20
    while True:
        done = shell.run(*arguments)
        assert done.code == 0, done.err
        if wanted in done.out:
            return done
        assert time.monotonic() < deadline, done.out
        time.sleep(0.05)


def test_operators_see_groups_and_move_park_and_resume_partitions(shell: Shell) -> None:
    shell.serve_node(partitions=1)
    assert shell.run("groups", "list").out == "no groups\n"
    tokens = ["bad", "east", "north", "west"]
    with (
        Holdfast.connect(shell.url) as app,
        app.group("devices", partitions=tokens, run=run, member="a"),
        app.group("devices", run=run, member="b"),
    ):
        shown = eventually(shell, "3 running, 1 parked", "groups", "show", "devices")
        assert max(map(len, shown.out.splitlines())) <= 80, shown.out
        assert "ValueError: no answer from the bad devi…" in shown.out
        listed = eventually(shell, "devices", "groups", "list")
        assert "no groups of users" in listed.out
        found = shell.run("groups", "list", "--json").json
        assert found["items"] == []
        assert [each["group"] for each in found["partitionGroups"]] == ["devices"]

        page = shell.run("groups", "show", "devices", "--state", "running", "--json").json
        assert [each["token"] for each in page["items"]] == ["east", "north", "west"]
        assert {each["offset"] for each in page["items"]} == {41}
        owner = page["items"][1]["member"].partition("/")[0]
        other = {"a": "b", "b": "a"}[owner]
        moved = shell.run("groups", "move", "devices", "north", "--to", other)
        assert moved.code == 0 and f"moves to {other}" in moved.out
        args = ("groups", "show", "devices", "--member", other)
        eventually(shell, f"pinned to {other}", *args)

        assert shell.run("groups", "park", "devices", "north").out == "north  parked\n"
        eventually(shell, "by hand", "groups", "show", "devices", "--state", "PARKED")
        done = shell.run("groups", "resume", "devices", "north", "--json").json
        assert done == {"group": "devices", "token": "north", "state": "RESUMED"}
        eventually(shell, "north", "groups", "show", "devices", "--state", "RUNNING")
        assert "away" not in shell.run("groups", "show", "devices").out
    shown = eventually(shell, "no member is up", "groups", "show", "devices")
    assert "away" in shown.out and "leads" not in shown.out


def test_what_is_not_there_is_said_so(shell: Shell) -> None:
    shell.serve_node(partitions=1)
    for arguments in (
        ("show", "nothing"), ("move", "nothing", "p", "--to", "a"), ("park", "nothing", "p"),
        ("resume", "nothing", "p"),
    ):  # fmt: skip
        done = shell.run("groups", *arguments)
        assert done.code != 0 and "a group that exists" in done.err
    done = shell.run("groups", "show", "nothing", "--state", "FLYING")
    assert "expected one of CREATED" in done.err
