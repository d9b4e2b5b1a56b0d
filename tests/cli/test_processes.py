"""Processes from the command line, against a real node and a real worker."""

import json
import re
import time
from collections.abc import Callable
from typing import Any

from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process

from .shell import Shell

UNKNOWN = "2251799813999999"
ORDER = '{"orderId": "42", "total": 10}'
UNSUPPORTED = """<?xml version="1.0"?>
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
  <process id="shipping" isExecutable="true">
    <startEvent id="start" />
    <adHocSubProcess id="chaos" />
  </process>
</definitions>
"""


def deploy(shell: Shell, *processes: str) -> list[dict[str, Any]]:
    done = shell.run("deploy", *processes, "--json")
    assert done.code == 0, done.err
    return done.json["items"]


def wait_for(what: Callable[[], Any]) -> Any:
    """Asks again until the answer is not empty: a worker in another process brings it about."""
    deadline = time.monotonic() + 20
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen in time"
    return found


def active(shell: Shell, key: str) -> list[str]:
    view = shell.run("show", key, "--json").json
    return [element["elementId"] for element in view.get("elements", ())]


# --- definitions ------------------------------------------------------------------------------


def test_a_process_is_deployed_from_a_file_and_from_python_and_only_once(shell: Shell) -> None:
    shell.serve_node()
    (shell.folder / "mail.bpmn").write_bytes(write_bpmn(Process("mail").task("send").definition()))
    first = deploy(shell, "mail.bpmn", "shop:order")
    assert [(item["processId"], item["version"], item["created"]) for item in first] == [
        ("mail", 1, True),
        ("order", 1, True),
    ]
    again = shell.run("deploy", "mail.bpmn", "shop:order").out
    assert re.search(r"mail +1 +\d+ +unchanged", again)

    (shell.folder / "mail.bpmn").write_bytes(
        write_bpmn(Process("mail").task("send").task("archive").definition())
    )
    done = shell.run("deploy", "mail.bpmn")
    assert re.search(r"mail +2 +\d+ +new", done.out)
    assert "ignored" not in done.err
    text = (shell.folder / "mail.bpmn").read_text()
    (shell.folder / "more.bpmn").write_text(text.replace('id="send"', 'id="send" tomorrow="yes"'))
    asked = shell.run("deploy", "more.bpmn")
    assert re.search(
        r"ignored in mail \(line \d+, send\): tomorrow='yes' of <serviceTask>", asked.err
    )

    listed = shell.run("definitions", "list", "--json").json["items"]
    assert [(item["processId"], item["version"]) for item in listed] == [
        ("mail", 1), ("mail", 2), ("order", 1),
    ]  # fmt: skip
    latest = shell.run("definitions", "list", "--process", "mail", "--latest").out
    assert len(latest.splitlines()) == 2
    assert "An order" in shell.run("definitions", "list").out
    source = shell.run("definitions", "source", first[0]["processDefinitionKey"]).out
    assert source.startswith("<?xml") and 'type="send"' in source


def test_what_cannot_be_deployed_is_said_with_its_place(shell: Shell) -> None:
    shell.serve_node()
    (shell.folder / "bad.bpmn").write_text(UNSUPPORTED)
    bad = shell.run("deploy", "shop:order", "bad.bpmn")
    assert bad.code == 2
    assert bad.err.startswith("error: nothing was deployed. bad.bpmn:5: Expected ")
    assert "line 5 has <adHocSubProcess> 'chaos'" in bad.err
    assert "no processes" in shell.run("definitions", "list").out, "all of them, or none"
    fields = json.loads(shell.run("deploy", "bad.bpmn", "--json").err)["fields"]
    (only,) = fields.pop("problems")
    assert fields == {"element": "chaos", "line": 5, "resource": "bad.bpmn"}
    assert "<adHocSubProcess>" in only["message"]

    assert shell.run("deploy", "nowhere.bpmn").code == 3
    assert shell.run("deploy", "warehouse:order").code == 3
    assert "to be a Process" in shell.run("deploy", "shop:app").err
    assert shell.run("definitions", "source", UNKNOWN).code == 3


# --- from start to end ------------------------------------------------------------------------


def test_a_process_runs_to_its_end_and_its_variables_are_printed(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:order")
    shell.begin("worker", "shop:app")
    published = shell.run("publish", "payment", "--key", "42", "--ttl", "1h",
                          "--variables", '{"paid": true}')  # fmt: skip
    assert published.code == 0 and "published" in published.out
    done = shell.run("start-process", "order", "--variables", ORDER, "--wait", "--timeout", "20s")
    assert done.code == 0, done.err
    assert json.loads(done.out) == {"orderId": "42", "total": 10, "charged": 10.0, "paid": True}


def test_the_same_key_is_the_same_instance_and_many_start_at_once(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:order")
    (shell.folder / "order.json").write_text(ORDER)
    first = shell.run("start-process", "order", "--variables", "@order.json", "--key", "o-42")
    again = shell.run("start-process", "order", "--variables", "-", "--key", "o-42", stdin=ORDER)
    assert "started" in first.out and "there already" in again.out
    assert first.out.split()[0] == again.out.split()[0]

    assert shell.run("start-process", "order", "--count", "30").out == "30 started\n"
    many = shell.run("start-process", "order", "--count", "3", "--json").json["instances"]
    assert len(many) == 3
    page = shell.run("instances", "list", "--process", "order", "--limit", "10")
    assert "there are more: --after" in page.err
    listed = shell.run("instances", "list", "--version", "1", "--json").json["items"]
    assert len(listed) == 34
    assert shell.run("start-process", "order", "--count", "2", "--wait").code == 2


def test_an_instance_that_does_not_end_or_is_cancelled_has_its_exit_code(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:order")
    options = ("start-process", "order", "--key", "slow", "--wait", "--timeout", "100ms")
    late = shell.run(*options)
    assert late.code == 8
    key = late.err.split()[-1]
    assert shell.run("instances", "cancel", key).out == f"{key}  canceled\n"
    assert shell.run(*options).code == 7
    assert "CANCELED" in shell.run("show", key).out
    assert shell.run("show", key, "--svg", "late.svg").code == 5
    assert shell.run("instances", "cancel", key).code == 3
    assert "no running instances" in shell.run("instances", "list").out


# --- looking ----------------------------------------------------------------------------------


def test_an_instance_is_shown_as_a_tree_with_its_incident_and_drawn(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:order")
    shell.begin("worker", "shop:app", "--tasks", "charge")
    key = shell.start("order", '{"orderId": "42", "total": 2000, "note": "[bold]"}')
    other = shell.start("order", ORDER)
    wait_for(lambda: shell.run("incidents", "list", "--json").json["items"])

    shown = shell.run("show", key, "--svg", "order.svg", "--png", "order.png")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"order version 1 · {key} · ACTIVE since ")
    assert "charge 'Charge the card'  job  INCIDENT  job " in lines[1]
    assert "NO_RETRIES_LEFT: ValueError: the bank says no" in lines[2]
    assert any('note     "[bold]"' in line for line in lines), "values are not markup"
    svg = (shell.folder / "order.svg").read_text()
    assert 'data-element="charge"' in svg and "#d92d20" in svg
    assert (shell.folder / "order.png").read_bytes().startswith(b"\x89PNG")
    assert shell.run("show", key, "--svg", "no/such/folder.svg").code == 2

    (instance,) = shell.run("instances", "list", "--with-incidents", "--json").json["items"]
    assert (instance["processInstanceKey"], instance["incidents"]) == (key, 1)
    table = shell.run("incidents", "list", "--process", "order").out
    assert re.search(rf"order +{key} +charge +\d+ +charge", table)
    assert "no open" in shell.run("incidents", "list", "--instance", other).out

    wait_for(lambda: "paid" in active(shell, other))
    waiting = shell.run("show", other).out
    assert "waits for message 'payment' for '42'" in waiting
    assert "waits for time 20" in waiting


def test_the_items_of_a_multi_instance_activity_are_shown(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:packing")
    key = shell.start("packing", '{"items": ["a", "b", "c"]}')
    shown = shell.run("show", key).out
    assert "0 of 3 items done" in shown
    assert all(f"pack [{item}]" in shown for item in (1, 2, 3))


# --- what a person can do ---------------------------------------------------------------------


def test_variables_are_fixed_and_the_incident_is_retried(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:order")
    shell.begin("worker", "shop:app", "--tasks", "charge")
    key = shell.start("order", '{"orderId": "42", "total": 2000}')
    (incident,) = wait_for(lambda: shell.run("incidents", "list", "--json").json["items"])
    refused = shell.run("incidents", "discard", incident["incidentKey"])
    assert refused.code == 5 and "modify or cancel the instance" in refused.err

    done = shell.run("instances", "set-variables", key, "--variables", '{"fixed": true}')
    assert (done.code, done.out) == (0, f"{key}  variables set\n")
    assert shell.run("incidents", "retry", incident["incidentKey"]).code == 0
    wait_for(lambda: active(shell, key) == ["paid"])


def test_tokens_are_moved_added_and_ended(shell: Shell) -> None:
    shell.serve_node()
    deploy(shell, "shop:order")
    key = shell.start("order", ORDER)
    moved = shell.run("instances", "modify", key, "--move", "charge:paid",
                      "--variables", '{"skipped": true}', "--json")  # fmt: skip
    assert moved.json == {"key": key, "done": "MODIFIED"}
    assert active(shell, key) == ["paid"]
    assert shell.run("instances", "modify", key, "--activate", "charge").code == 0
    view = shell.run("show", key, "--json").json
    assert view["variables"]["skipped"] is True
    (paid,) = [each for each in view["elements"] if each["elementId"] == "paid"]
    ended = ("--terminate", paid["elementInstanceKey"])
    assert shell.run("instances", "modify", key, *ended).code == 0
    assert active(shell, key) == ["charge"]
    assert shell.run("instances", "modify", key, "--terminate", "charge", "--activate", "done")
    assert "COMPLETED" in shell.run("show", key).out

    assert shell.run("instances", "modify", key).code == 2
    assert shell.run("instances", "modify", key, "--move", "charge").code == 2


def test_an_instance_is_migrated_to_another_version(shell: Shell) -> None:
    shell.serve_node()
    for task in ("pay", "settle"):
        (shell.folder / "bill.bpmn").write_bytes(
            write_bpmn(Process("bill").task(task).task("file").definition())
        )
        deploy(shell, "bill.bpmn")
    key = shell.start("bill", "{}", "--version", "1")
    migrate = ("instances", "migrate", key, "--to", "bill:2")
    assert shell.run(*migrate).code != 0, "pay is not there any more"
    done = shell.run(*migrate, "--map", "pay:settle")
    assert done.code == 0, done.err
    view = shell.run("show", key, "--json").json
    assert (view["version"], view["elements"][0]["elementId"]) == (2, "settle")
    assert shell.run("instances", "migrate", key, "--to", "bill:7").code == 3
    assert shell.run("instances", "migrate", key, "--to", "bill").code == 2


# --- what is wrong ----------------------------------------------------------------------------


def test_what_is_wrong_is_said_in_one_line_with_a_code(shell: Shell) -> None:
    shell.serve_node()
    bad = shell.run("start-process", "order", "--variables", '{"a": 1,\n "b" 2}')
    assert bad.code == 2
    assert "--variables is not JSON at line 2, column 6" in bad.err
    assert "is a list" in shell.run("publish", "payment", "--variables", "[1]").err
    assert "nowhere.json" in shell.run("publish", "payment", "--variables", "@nowhere.json").err
    unknown = shell.run("start-process", "unheard-of")
    assert unknown.code == 3 and unknown.err.count("\n") == 1
    assert shell.run("show", UNKNOWN).code == 3
    assert shell.run("show", "order").code == 2
    assert shell.run("instances", "set-variables", UNKNOWN, "--variables", "{}").code == 3
