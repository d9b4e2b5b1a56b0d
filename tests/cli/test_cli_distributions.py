"""Distributions from the command line, against a real node with a dark and a broken partition."""

import getpass
import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.cli.output import age

from .shell import DARK_NODE, Shell

UNKNOWN = "2251799813999999"


@pytest.fixture
def stuck(shell: Shell) -> Iterator[tuple[Shell, str, str]]:
    """Two deployments that partition 2 does not get and partition 3 does not do; their keys."""
    (shell.folder / "dark").write_text("2")
    (shell.folder / "broken").write_text("3")
    shell.start_node("--partitions", "4", command=DARK_NODE)
    done = shell.run("deploy", "shop:order", "shop:packing", "--json")
    assert done.code == 0, done.err
    order, packing = (item["processDefinitionKey"] for item in done.json["items"])
    yield shell, order, packing


def cells(out: str) -> list[list[str]]:
    """The rows of a table: cells are at least two spaces apart."""
    return [re.split(r" {2,}", line.rstrip()) for line in out.splitlines()]


def arrive(shell: Shell) -> str:
    """What is listed once nothing changes any more: a node takes a moment to send."""
    deadline = time.monotonic() + 20
    while (listed := shell.run("distributions", "list")).out.startswith("KEY"):
        assert time.monotonic() < deadline, listed.out
    return listed.out


def test_what_does_not_arrive_is_listed_with_its_reason(stuck: tuple[Shell, str, str]) -> None:
    shell, order, packing = stuck
    header, *rows = cells(shell.run("distributions", "list").out)
    assert " ".join(header) == "KEY COMMAND FROM QUEUE TARGET STATE ATTEMPTS NEXT AGE WHY"
    when, some = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", r"\d+ (s|min)"
    command = "PROCESS DEPLOY; 1; deployment"
    expected = [
        rf"{order}; {command}; 2; IN_FLIGHT; \d; {when}; {some}",
        rf"{order}; {command}; 3; REFUSED; \d; {when}; {some}; ValueError: no such luck",
        rf"{packing}; {command}; 2; WAITING; 0; {some}; behind {order}",
        rf"{packing}; {command}; 3; WAITING; 0; {some}; behind {order}",
    ]
    for row, pattern in zip(rows, expected, strict=True):
        assert re.fullmatch(pattern, "; ".join(row)), row

    (first, _) = shell.run("distributions", "list", "--json").json["items"]
    assert (first["distributionKey"], first["partition"]) == (order, 1)
    assert [each["partition"] for each in first["targets"]] == [2, 3]
    assert first["targets"][1]["refusal"] == "ValueError: no such luck"

    page = shell.run("distributions", "list", "--limit", "1")
    assert page.err == f"there are more: --after {order}\n"
    rest = shell.run("distributions", "list", "--after", order, "--target", "2").out
    assert [row[0] for row in cells(rest)] == ["KEY", packing]
    for option in (("--target", "4"), ("--queue", "another")):
        assert shell.run("distributions", "list", *option).out == "nothing is being distributed\n"


def test_one_is_shown_in_full(stuck: tuple[Shell, str, str]) -> None:
    shell, order, packing = stuck
    lines = shell.run("distributions", "show", order).out.splitlines()
    shown = dict(re.split(r" {2,}", line, maxsplit=1) for line in lines)
    assert (shown["key"], shown["command"]) == (order, "PROCESS DEPLOY")
    assert (shown["from"], shown["queue"]) == ("partition 1", "deployment")
    assert shown["size"].endswith(" KiB") and shown["started"].endswith(" ago")
    assert re.match("IN_FLIGHT, sent (once|2 times), next at 20", shown["partition 2"])
    assert shown["partition 3"].startswith("REFUSED, sent ")
    assert shown[""] == "ValueError: no such luck"
    waiting = shell.run("distributions", "show", packing)
    assert f"partition 2  WAITING, behind {order}\n" in waiting.out
    assert shell.run("distributions", "show", order, "--json").json["intent"] == "DEPLOY"


def test_deploy_and_definitions_say_what_is_not_everywhere_yet(
    stuck: tuple[Shell, str, str],
) -> None:
    shell, _, _ = stuck
    again = shell.run("deploy", "shop:order")
    where = "(see holdfast distributions list)"
    assert again.err == f"not on every partition yet: order version 1 {where}\n"
    listed = shell.run("definitions", "list")
    both = "order version 1, packing version 1"
    assert listed.err == f"not on every partition yet: {both} {where}\n"
    found = shell.run("definitions", "list", "--json")
    assert [item["distributed"] for item in found.json["items"]] == [False, False]
    assert found.err == ""


def test_a_partition_that_is_back_gets_all_of_it_at_once(stuck: tuple[Shell, str, str]) -> None:
    shell, order, _ = stuck
    (shell.folder / "dark").unlink()
    (shell.folder / "broken").unlink()
    assert shell.run("distributions", "resume", "2").out == "1 sent again to partition 2\n"
    resumed = shell.run("distributions", "resume", "3", "--json").json
    assert resumed == {"partition": 3, "count": 1}
    assert arrive(shell) == "nothing is being distributed\n"
    assert shell.run("distributions", "resume", "2").out == "nothing is in flight to partition 2\n"
    assert shell.run("definitions", "list").err == ""

    lines = shell.run("journal", "cat", "data", "--key", order).out.splitlines()
    (started,) = [line for line in lines if "DISTRIBUTION STARTED" in line]
    assert '"value_type":"PROCESS","intent":"DEPLOY","value":{"process_id":"order"' in started
    (arrived, *_) = [line for line in lines if line.startswith("3/") and " COMMAND " in line]
    assert "from partition 1 in queue 'deployment' {\"process_id\"" in arrived
    assert any("DISTRIBUTION RESUMED" in line for line in lines), "it is one of its keys"
    records = shell.run("journal", "cat", "data", "--partition", "4", "--json").out.splitlines()
    assert json.loads(records[0])["delivery"] == {"queue": "deployment", "attempt": 1}


def test_what_is_given_up_is_on_the_log_with_who_did_it(stuck: tuple[Shell, str, str]) -> None:
    shell, order, packing = stuck
    skipped = shell.run("distributions", "skip", order, "--partition", "2")
    assert skipped.out == f"{order}  skipped for partition 2\n"
    options = ("--by", "ann", "--reason", "it is broken")
    again = shell.run("distributions", "skip", order, "--partition", "3", *options, "--json")
    assert again.json == {"distributionKey": order, "partition": 3, "state": "SKIPPED"}
    canceled = shell.run("distributions", "cancel", packing, *options)
    assert canceled.out == f"{packing}  canceled for all partitions that lack it\n"
    assert shell.run("distributions", "list").out == "nothing is being distributed\n"

    read = shell.run("journal", "cat", "data", "--partition", "1", "--json").out.splitlines()
    decisions = [
        (record["key"], record["intent"], record["value"])
        for record in map(json.loads, read)
        if record["intent"] in ("SKIPPED", "CANCELED")
    ]
    ann = {"by": "ann", "reason": "it is broken"}
    assert decisions == [
        (order, "SKIPPED", {"by": getpass.getuser(), "reason": "", "partitions": [2]}),
        (order, "SKIPPED", ann | {"partitions": [3]}),
        (packing, "CANCELED", ann | {"partitions": [2, 3]}),
    ]


def test_what_is_wrong_is_said_in_one_line(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.serve_node(partitions=2)
    for arguments, code, found in (
        (("show", UNKNOWN), 3, f"no distribution with key {UNKNOWN} is pending"),
        (("show", "nine"), 2, "the key of a distribution, but found 'nine'"),
        (("cancel", UNKNOWN), 3, f"distribution {UNKNOWN} to be pending, but it is not"),
        (("cancel", UNKNOWN, "--by", ""), 2, "a name of who decides"),
        (("skip", UNKNOWN, "--partition", "1"), 3, f"distribution {UNKNOWN} to be pending"),
        (("skip", UNKNOWN, "--partition", "3"), 2, "partition from 1 to 2, but found 3"),
        (("resume", "3"), 2, "partition from 1 to 2, but found 3"),
        (("list", "--target", "3"), 2, "target from 1 to 2, but found 3"),
        (("list", "--after", "soon"), 2, "the key of a distribution, but found 'soon'"),
    ):
        done = shell.run("distributions", *arguments)
        assert done.code == code, done.err
        assert found in done.err and done.err.startswith("error: ") and done.err.count("\n") == 1
    assert shell.run("distributions", "skip", UNKNOWN).code == 2
    assert shell.run("distributions", "resume", "all").code == 2

    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert "a name after --by" in shell.run("distributions", "cancel", UNKNOWN).err


@pytest.mark.parametrize("verb", ["skip", "cancel"])
def test_help_says_what_giving_up_means(shell: Shell, verb: str) -> None:
    text = " ".join(shell.run("distributions", verb, "--help").out.split())
    assert "A copy in flight may still take effect." in text
    assert "recorded on the log, with who took it and why" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7_199, "1 h"), (86_400 * 3, "3 d")],
)
def test_an_age_is_told_in_its_largest_unit(seconds: int, text: str) -> None:
    assert age(datetime.now(UTC) - timedelta(seconds=seconds)) == text
