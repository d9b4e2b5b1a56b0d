"""Tasks, incidents and schedules from the command line, against a real node and a real worker."""

from .shell import Shell

UNKNOWN = "2251799813999999"


def test_a_submitted_task_is_run_by_a_worker_and_its_result_is_printed(shell: Shell) -> None:
    shell.serve_node()
    key = shell.submit("add", '{"a": 1, "b": 2}')
    worker = shell.begin("worker", "shop:app")
    assert worker.started["tasks"] == ["add", "broken", "nap", "charge"]

    result = shell.run("tasks", "result", key, "--wait", "--timeout", "20s")
    assert (result.code, result.out) == (0, "3\n")
    assert shell.run("tasks", "show", key, "--json").json["state"] == "COMPLETED"

    end = worker.end()
    assert end.code == 0
    assert '"event":"stopped"' in end.out and '"completed":1' in end.out


def test_the_payload_can_come_from_standard_input_and_the_result_can_be_waited_for(
    shell: Shell,
) -> None:
    shell.serve_node()
    shell.begin("worker", "shop:app")
    done = shell.run("tasks", "submit", "add", "-", "--wait", stdin='{"a": 20, "b": 22}')
    assert (done.code, done.out) == (0, "42\n")


def test_the_same_key_is_the_same_task(shell: Shell) -> None:
    shell.serve_node()
    first = shell.run("tasks", "submit", "add", "{}", "--key", "once", "--json").json
    second = shell.run("tasks", "submit", "add", "{}", "--key", "once", "--json").json
    assert first["taskKey"] == second["taskKey"]
    assert (first["created"], second["created"]) == (True, False)


def test_waiting_tasks_are_listed_by_state_and_type_and_can_be_cancelled(shell: Shell) -> None:
    shell.serve_node()
    waiting = shell.submit("add")
    later = shell.submit("nap", "{}", "--delay", "1h", "--priority", "5")

    listed = shell.run("tasks", "list", "--json").json["items"]
    assert {task["taskKey"] for task in listed} == {waiting, later}
    scheduled = shell.run("tasks", "list", "--state", "SCHEDULED", "--json").json["items"]
    assert [task["taskKey"] for task in scheduled] == [later]
    assert waiting in shell.run("tasks", "list", "--type", "add").out

    assert shell.run("tasks", "cancel", waiting).code == 0
    assert shell.run("tasks", "result", waiting).code == 7
    assert "no open tasks" in shell.run("tasks", "list", "--type", "add").out


def test_a_result_that_is_not_there_in_time_has_its_own_exit_code(shell: Shell) -> None:
    shell.serve_node()
    key = shell.submit("add")
    assert shell.run("tasks", "result", key).code == 8
    assert shell.run("tasks", "result", key, "--wait", "--timeout", "100ms").code == 8


def test_an_incident_is_listed_retried_and_discarded(shell: Shell) -> None:
    shell.serve_node()
    shell.begin("worker", "shop:app", "--tasks", "broken")
    failed = shell.run("tasks", "submit", "broken", "--retries", "0", "--wait")
    assert failed.code == 7
    assert failed.err.endswith("has an incident: ValueError: no such luck\n")
    assert failed.err.count("\n") == 1

    (incident,) = shell.run("incidents", "list", "--json").json["items"]
    assert shell.run("incidents", "retry", incident["incidentKey"]).code == 0
    shell.run("tasks", "result", incident["taskKey"], "--wait", "--timeout", "20s")
    (again,) = shell.run("incidents", "list", "--type", "broken", "--json").json["items"]
    assert again["incidentKey"] != incident["incidentKey"]

    assert shell.run("incidents", "discard", again["incidentKey"]).code == 0
    assert shell.run("incidents", "discard", again["incidentKey"]).code == 3
    assert "no open incidents" in shell.run("incidents", "list").out


def test_a_schedule_is_set_listed_and_deleted(shell: Shell) -> None:
    shell.serve_node()
    assert shell.run("schedules", "set", "often", "add", "--every", "500ms").code == 0
    assert shell.run("schedules", "set", "nightly", "add", "--cron", "0 3 * * *").code == 0
    names = [item["scheduleId"] for item in shell.run("schedules", "list", "--json").json["items"]]
    assert names == ["nightly", "often"]
    assert "every 0.5 s" in shell.run("schedules", "list").out
    assert shell.run("schedules", "delete", "often").code == 0
    assert shell.run("schedules", "delete", "often").code == 3
    assert shell.run("schedules", "set", "both", "add").code == 2


def test_what_is_wrong_is_said_in_one_line_with_a_code(shell: Shell) -> None:
    nobody = shell.run_process("tasks", "list")
    assert nobody.code == 4
    assert nobody.err.startswith("error: cannot reach the node at http://127.0.0.1:1: ")
    assert nobody.err.count("\n") == 1

    problem = shell.run("tasks", "list", "--json")
    assert '"code":"UNAVAILABLE"' in problem.err

    shell.serve_node()
    assert shell.run("tasks", "show", UNKNOWN).code == 3
    assert shell.run("tasks", "submit", "add", "{not json").code == 2
    assert shell.run("tasks", "submit", "add", "--delay", "soon").code == 2
    assert shell.run("tasks", "list", "--state", "LOST").code == 2
