"""What ended recently from the command line: lists and details that do not vanish with the end."""

import signal

import msgspec

from holdfast.cli.remote import ask
from holdfast.gateway.api import Api
from holdfast.gateway.processes.shapes import Resource
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, JobFailure
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process

from .shell import Shell


def complete(shell: Shell, type_: str) -> None:
    """Whatever of a type waits is done."""

    async def work(api: Api) -> None:
        while jobs := await api.jobs.activate(ActivationRequest([type_], "w", 10)):
            done = [JobCompletion(job.job_key, job.lease, msgspec.Raw(b'{"n":1}')) for job in jobs]
            await api.jobs.complete(done)

    ask(shell.url, work)


def fail(shell: Shell, type_: str) -> None:
    async def work(api: Api) -> None:
        for job in await api.jobs.activate(ActivationRequest([type_], "w", 10)):
            await api.jobs.fail([JobFailure(job.job_key, job.lease, "Traceback\nValueError: no")])

    ask(shell.url, work)


def listed(shell: Shell, *arguments: str) -> list[str]:
    items = shell.run(*arguments, "--json").json["items"]
    name = {"tasks": "taskKey", "instances": "processInstanceKey", "incidents": "incidentKey"}
    return [each[name[arguments[0]]] for each in items]


def test_tasks_instances_and_incidents_stay_in_sight_when_they_end(shell: Shell) -> None:
    shell.serve_node()
    source = write_bpmn(Process("order").task("charge").definition()).decode()
    ask(shell.url, lambda api: api.processes.deploy([Resource("p.bpmn", source)]))
    task, instance = shell.submit("add", '{"a": 1}'), shell.start("order")
    complete(shell, "add")
    complete(shell, "charge")

    empty = shell.run("tasks", "list")
    assert (empty.out, empty.err) == (
        "no open tasks\n", "--all also lists those that ended recently\n"
    )  # fmt: skip
    assert listed(shell, "tasks", "list", "--state", "completed", "--type", "add") == [task]
    shown = shell.run("tasks", "show", task).out
    assert '{"a": 1}' in shown and "COMPLETED" in shown and "finished" in shown

    assert shell.run("instances", "list").out == "no running instances\n"
    table = shell.run("instances", "list", "--ended").out
    assert instance in table and "COMPLETED" in table and "ENDED" in table
    assert '"n":1' in shell.run("instances", "show", instance, "--json").out
    assert listed(shell, "instances", "list", "--state", "canceled") == []

    failed = shell.submit("broken", "{}", "--retries", "0")
    fail(shell, "broken")
    (incident,) = listed(shell, "incidents", "list")
    assert shell.run("incidents", "discard", incident).code == 0
    assert shell.run("incidents", "list").out == "no open incidents\n"
    table = shell.run("incidents", "list", "--resolved").out
    assert incident in table and "DISCARDED" in table and "ValueError: no" in table
    assert "Traceback" in shell.run("incidents", "show", incident).out
    assert listed(shell, "tasks", "list", "--state", "DISCARDED") == [failed]

    waiting = shell.submit("add")
    first = shell.run("tasks", "list", "--all", "--limit", "1")
    assert waiting in first.out and "there are more: --after" in first.err
    everything = listed(shell, "tasks", "list", "--all")
    assert everything[0] == waiting and {task, failed} < set(everything)


def test_what_ended_is_listed_after_kill_9(shell: Shell) -> None:
    node = shell.start_node("--partitions", "2")
    done = [shell.submit("add", "{}", "--keep-result", "0s") for _ in range(6)]
    complete(shell, "add")
    before = listed(shell, "tasks", "list", "--ended")
    assert sorted(before) == sorted(done)
    node.end(signal.SIGKILL)
    shell.serve_node(partitions=2)
    assert listed(shell, "tasks", "list", "--ended") == before
    assert "COMPLETED" in shell.run("tasks", "show", done[0]).out
