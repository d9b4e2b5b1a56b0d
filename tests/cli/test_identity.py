"""Who may do what from the command line, against a real node with authorization."""

import json
import os
import pty
import re
import stat
from collections.abc import Iterator
from typing import Any

import pytest

from .shell import COMMAND, Finished, Shell

_CREDENTIALS = "HOLDFAST_TOKEN"


class Office:
    """A node with authorization, and the user who types the commands."""

    def __init__(self, shell: Shell, patch: pytest.MonkeyPatch) -> None:
        self.shell = shell
        self._patch = patch
        self.admin = (shell.folder / "data" / "admin-token").read_text().strip()
        self.sign_in(self.admin)

    def sign_in(self, token: str) -> None:
        """The owner of this token types the next commands."""
        self._patch.setenv(_CREDENTIALS, token)

    def run(self, *arguments: str, stdin: str = "") -> Finished:
        return self.shell.run(*arguments, stdin=stdin)

    def done(self, *arguments: str, stdin: str = "") -> Finished:
        """What has to succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.code == 0, done.err
        return done

    def said(self, *arguments: str, stdin: str = "") -> Any:
        """The answer for a program."""
        return self.done(*arguments, "--json", stdin=stdin).json

    def token(self, client: str) -> str:
        return self.said("tokens", "create", client)["token"]


@pytest.fixture
def office(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Office]:
    monkeypatch.delenv(_CREDENTIALS, raising=False)
    for name, value in getattr(request, "param", {}).items():
        monkeypatch.setenv(name, value)
    shell.start_node("--partitions", "2", "--authorization")
    yield Office(shell, monkeypatch)


def rows(out: str) -> list[list[str]]:
    """The rows of a table under its header: cells are at least two spaces apart."""
    return [re.split(r" {2,}", line.rstrip()) for line in out.splitlines()[1:]]


def test_the_first_start_lets_an_administrator_in_and_nobody_else(office: Office) -> None:
    file = office.shell.folder / "data" / "admin-token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    shown = office.done("whoami").out
    assert re.match(r"you are +client:admin\nroles +admin\nKEY +OWNER", shown)
    assert "role:admin  TASK:*" in re.sub(r" {2,}", "  ", shown)
    me = office.said("whoami")
    assert (me["ownerType"], me["ownerId"], me["roles"]) == ("CLIENT", "admin", ["admin"])

    office.sign_in("hf_000000000000_guessed")
    for arguments in (("whoami",), ("users", "list"), ("tasks", "list")):
        refused = office.run(*arguments)
        assert refused.code == 10
        assert refused.err.startswith("error: expected a token of this node, but it is unknown")


def test_a_node_without_authorization_says_that_anybody_may_do_anything(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(_CREDENTIALS, raising=False)
    shell.serve_node(partitions=1)
    assert shell.run("whoami").out.startswith("not authenticated")
    assert shell.run("whoami", "--json").json["ownerType"] is None


def test_users_are_created_listed_changed_and_deleted(office: Office) -> None:
    assert office.done("users", "list").out == "no users\n"
    details = ("--name", "Ann Lee", "--email", "ann@example.org")
    assert office.done("users", "create", "ann", *details).out == "ann  created\n"
    assert office.said("users", "create", "bob") == {"username": "bob", "state": "CREATED"}
    assert rows(office.done("users", "list").out) == [
        ["ann", "Ann Lee", "ann@example.org", "no"],
        ["bob", "no"],
    ]

    again = office.run("users", "create", "ann")
    assert again.code == 5 and "'ann' is there already" in again.err
    office.done("users", "update", "ann", "--email", "lee@example.org")
    office.done("users", "update", "ann", "--name", "Ann Li")
    assert office.said("users", "update", "bob", "--name", "Bob")["state"] == "UPDATED"
    office.done("users", "update", "bob", "--password-stdin", stdin="secret\n")
    (ann, bob) = office.said("users", "list")["items"]
    assert (ann["name"], ann["email"], ann["hasPassword"]) == ("Ann Li", "lee@example.org", False)
    assert (bob["name"], bob["email"], bob["hasPassword"]) == ("Bob", "", True)

    assert office.done("users", "delete", "ann").out == "ann  deleted\n"
    assert office.run("users", "delete", "ann").code == 3
    assert office.run("users", "update", "ann", "--name", "A").code == 3
    assert [each["username"] for each in office.said("users", "list")["items"]] == ["bob"]


@pytest.mark.parametrize("office", [{"HOLDFAST_BASIC_AUTHENTICATION": "true"}], indirect=True)
def test_a_password_comes_from_standard_input_or_a_terminal_and_signs_in(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.done("users", "create", "ann", "--password-stdin", stdin="first secret\n")
    shown = _typed(office, ["users", "create", "bob", "--password-prompt"], ["second", "second"])
    assert "bob  created" in shown and "second" not in shown

    monkeypatch.delenv(_CREDENTIALS)
    at = office.shell.url.removeprefix("http://")
    for name, password in (("ann", "first%20secret"), ("bob", "second")):
        me = office.said("whoami", "--url", f"http://{name}:{password}@{at}")
        assert (me["ownerType"], me["ownerId"]) == ("USER", name)
    wrong = office.run("whoami", "--url", f"http://ann:second@{at}")
    assert wrong.code == 10 and "a known name and its password" in wrong.err


def _typed(office: Office, arguments: list[str], lines: list[str]) -> str:
    """All that a terminal shows while somebody types a line at each question."""
    command = [*COMMAND, *arguments]
    environment = os.environ | {"HOLDFAST_URL": office.shell.url}
    process, terminal = pty.fork()
    if process == 0:
        os.execve(command[0], command, environment)
    shown = b""
    answers = iter(lines)
    try:
        while piece := os.read(terminal, 1024):
            shown += piece
            if shown.endswith(b": "):
                os.write(terminal, next(answers).encode() + b"\n")
    except OSError:  # Linux says so when the other side has gone
        pass
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, shown
    return shown.decode()


def test_a_token_is_shown_once_and_is_of_no_use_when_deleted(office: Office) -> None:
    created = office.done("tokens", "create", "robot", "--lasts", "30d")
    token = created.out.strip()
    named = re.fullmatch(
        r"token (\w+) of client:robot, good until [\d :-]+; not shown again\n", created.err
    )
    assert named is not None and token.startswith(f"hf_{named[1]}_")
    forever = office.said("tokens", "create", "robot")
    assert forever.get("expires") is None

    listed = office.done("tokens", "list")
    assert token not in listed.out
    found = {row[0]: row for row in rows(listed.out)}
    assert found[named[1]][1] == "robot" and found[named[1]][3].startswith("20")
    assert found[forever["tokenId"]][3] == "never"

    office.sign_in(token)
    assert office.said("whoami")["ownerId"] == "robot"
    assert office.done("whoami").out.endswith("you have no permissions\n")
    office.sign_in(office.admin)
    assert office.done("tokens", "delete", named[1]).out == f"{named[1]}  deleted\n"
    assert office.run("tokens", "delete", named[1]).code == 3
    office.sign_in(token)
    assert office.run("whoami").code == 10


def test_a_machine_does_what_was_granted_until_it_is_revoked(office: Office) -> None:
    robot = office.token("robot")
    office.sign_in(robot)
    refused = office.run("tasks", "submit", "mail", "{}")
    assert refused.code == 10
    assert refused.err.startswith("error: 'robot' lacks the permission CREATE on ")

    office.sign_in(office.admin)
    granted = office.done("permissions", "grant", "client:robot", "TASK:mail", "WORK", "create")
    ((key, *said),) = rows(granted.out)
    assert said == ["client:robot", "TASK:mail", "WORK CREATE"]
    office.sign_in(robot)
    office.shell.submit("mail")
    other = office.run("tasks", "submit", "invoice", "{}")
    assert other.code == 10 and "CREATE on TASK 'invoice'" in other.err
    assert office.run("tasks", "list").code == 10

    office.sign_in(office.admin)
    more = office.said("permissions", "grant", "client:robot", "TASK:mail", "READ")
    assert more["authorizationKey"] == key
    assert more["permissionTypes"] == ["WORK", "CREATE", "READ"]
    office.sign_in(robot)
    listed = office.said("tasks", "list")["items"]
    assert [each["type"] for each in listed] == ["mail"]

    office.sign_in(office.admin)
    found = office.said("permissions", "list", "--owner", "client:robot")
    assert found["items"] == [more]
    assert office.done("permissions", "revoke", key).out == f"{key}  revoked\n"
    assert office.run("permissions", "revoke", key).code == 3
    office.sign_in(robot)
    assert office.run("tasks", "submit", "mail", "{}").code == 10


def test_the_journal_says_who_asked(office: Office) -> None:
    office.done("permissions", "grant", "client:robot", "TASK:mail", "CREATE")
    office.sign_in(office.token("robot"))
    office.shell.submit("mail")
    assert office.run("tasks", "submit", "invoice", "{}").code == 10

    read = office.done("journal", "cat", "data", "--json").out.splitlines()
    creates = [
        record
        for record in map(json.loads, read)
        if (record["valueType"], record["intent"]) == ("JOB", "CREATE")
    ]
    asked = {each["value"]["type"]: each["claims"] for each in creates if each["value"]}
    robot = {"sub": "robot", "type": "CLIENT"}
    assert asked == {"mail": robot, "invoice": robot}
    (refused,) = [each["rejection"] for each in creates if each["kind"] == "REJECTION"]
    assert refused["code"] == "FORBIDDEN" and "TASK 'invoice'" in refused["reason"]
    lines = office.done("journal", "cat", "data").out.splitlines()
    commands = [line for line in lines if re.search(r" COMMAND +JOB CREATE ", line)]
    assert len(commands) == 2 and all(" by 'robot' {" in line for line in commands)


def test_permissions_are_listed_by_owner_and_resource(office: Office) -> None:
    office.done("permissions", "grant", "user:ann", "SCHEDULE:*", "READ")
    office.done("permissions", "grant", "user:ann", "SCHEDULE:nightly", "UPDATE")

    def owners(*options: str) -> list[str]:
        return [
            f"{row[1]} {row[2]}" for row in rows(office.done("permissions", "list", *options).out)
        ]

    assert owners("--owner", "user:ann") == ["user:ann SCHEDULE:*", "user:ann SCHEDULE:nightly"]
    assert owners("--resource", "schedule:nightly") == ["user:ann SCHEDULE:nightly"]
    assert "role:reader SCHEDULE:*" in owners("--resource", "SCHEDULE")
    nobody = office.done("permissions", "list", "--owner", "user:bob")
    assert nobody.out == "nothing was granted\n"


def test_groups_and_roles_give_their_members_what_they_may(office: Office) -> None:
    robot = office.token("robot")
    assert office.done("groups", "create", "ops", "--name", "On call").out == "ops  created\n"
    office.done("roles", "create", "clerk", "--description", "submits mail")
    office.done("permissions", "grant", "role:clerk", "TASK:mail", "CREATE")
    added = office.done("groups", "add", "ops", "client:robot")
    assert added.out == "client:robot  is in group ops\n"
    given = office.done("roles", "give", "clerk", "group:ops")
    assert given.out == "group:ops  has role clerk\n"
    assert rows(office.done("groups", "list").out) == [["ops", "On call", "client:robot"]]
    listed = {row[0]: row[-1] for row in rows(office.done("roles", "list").out)}
    assert listed["clerk"] == "group:ops" and listed["admin"] == "client:admin"
    assert {"reader", "worker"} < set(listed)

    office.sign_in(robot)
    me = office.said("whoami")
    assert (me["groups"], me["roles"]) == (["ops"], ["clerk"])
    office.shell.submit("mail")

    office.sign_in(office.admin)
    removed = office.said("groups", "remove", "ops", "client:robot")
    assert removed == {
        "groupId": "ops", "memberType": "CLIENT", "memberId": "robot", "state": "MEMBER_REMOVED",
    }  # fmt: skip
    office.sign_in(robot)
    assert office.run("tasks", "submit", "mail", "{}").code == 10

    office.sign_in(office.admin)
    taken = office.done("roles", "take", "clerk", "group:ops")
    assert taken.out == "group:ops  no longer has role clerk\n"
    assert office.run("roles", "take", "clerk", "group:ops").code == 3
    assert office.done("roles", "delete", "clerk").out == "clerk  deleted\n"
    assert office.said("groups", "delete", "ops") == {"groupId": "ops", "state": "DELETED"}
    assert office.done("groups", "list").out == "no groups\n"
    gone = office.done("permissions", "list", "--owner", "role:clerk")
    assert gone.out == "nothing was granted\n"


def test_what_is_wrong_is_said_in_one_line(office: Office) -> None:
    grant = ("permissions", "grant")
    work = "CREATE, READ, UPDATE, WORK"
    for arguments, found in (
        ((*grant, "robot", "TASK:mail", "WORK"), "user:NAME, client:ID, group:ID or role:ID"),
        ((*grant, "client:", "TASK:mail", "WORK"), "user:NAME, client:ID"),
        ((*grant, "client:robot", "MAIL:x", "WORK"), "a resource of type AUTHORIZATION, BATCH"),
        ((*grant, "client:robot", "TASK", "WORK"), "TASK:ID, or TASK:* for every one"),
        ((*grant, "client:robot", "TASK:", "WORK"), "an id behind 'TASK:'"),
        (
            (*grant, "client:robot", "TASK:mail", "WORK", "FLY"),
            f"permissions of TASK ({work}), but found FLY",
        ),
        (
            (*grant, "client:robot", "JOURNAL:*", "WORK"),
            "permissions of JOURNAL (READ), but found WORK",
        ),
        (("permissions", "revoke", "nine"), "the key of a"),
        (("permissions", "list", "--owner", "ann"), "user:NAME, client:ID"),
        (("groups", "add", "ops", "ann"), "user:NAME, client:ID"),
        (("tokens", "create", "robot", "--lasts", "soon"), "a span such as"),
        (("tokens", "create", "robot", "--lasts", "0d"), "a span longer than nothing"),
        (("users", "update", "ann"), "something to change"),
        (("users", "create", "ann", "--password-stdin"), "a password, but found an empty line"),
        (
            ("users", "create", "ann", "--password-stdin", "--password-prompt"),
            "--password-prompt or --password-stdin, but found both",
        ),
    ):
        done = office.run(*arguments)
        assert done.code == 2, (arguments, done.err)
        assert done.err.startswith(f"error: expected {found}"), done.err
        assert done.err.count("\n") == 1

    office.done("groups", "create", "ops")
    nested = office.run("groups", "add", "ops", "group:ops")
    assert nested.code == 2 and "a member of type CLIENT, USER" in nested.err
    assert office.run("groups", "add", "nobody", "user:ann").code == 3
    assert office.run("users", "create", "ann", "a secret").code == 2, "no password as an argument"
