"""Expressions that fail: wherever one stands, the token stops at an incident and nothing else."""

import json

import pytest
from process_talk import Talk, deployment

from holdfast.engine.processes.values import ProcessIntent
from holdfast.model.dsl import Process, every, message, over, path, timeout, when
from holdfast.records import ValueType

SPENT = "count(for i in 1..1000000000 return i)"
# Doubled 19 times, then in a list 100,000 times: little in memory, 50 GB as JSON.
LARGE = "{" + "s0: s, " + ", ".join(f"s{i}: s{i - 1} + s{i - 1}" for i in range(1, 20))
LARGE += ", r: for i in 1..100000 return s19}.r"
LAUGHS = "{a0: [1, 1], " + ", ".join(f"a{i}: [a{i - 1}, a{i - 1}]" for i in range(1, 60)) + "}"


def everywhere(expression: str) -> dict[str, Process]:
    """A process for each place that an expression can stand in."""
    new = Process("p")
    return {
        "condition": new.choose(when(expression, path().task("a")), when("false", path())),
        "input": new.task("a", inputs={"x": expression}),
        "output": new.compute("a", "1", result="z").task("b", outputs={"y": expression}),
        "script": new.compute("a", expression, result="x"),
        "duration": new.pause("a", f"={expression}"),
        "moment": new.pause("a", until=f"={expression}"),
        "boundary timer": new.task("a", on=[timeout(f"={expression}", path().task("late"))]),
        "cycle": new.task("a", on=[every(f"={expression}", path().task("again"))]),
        "job type": new.task("a", type=f"={expression}"),
        "retries": new.task("a", retries=f"={expression}"),
        "collection": new.task("a", each=over(expression)),
        "item": new.task("b", each=over("[1]", collect="xs", result=expression)),
        "message key": new.wait("a", message="m", key=expression),
        "message name": new.wait("a", message=f"={expression}", key='"k"'),
        "boundary message": new.task("a", on=[message("m", path().task("c"), key=expression)]),
        "called process": new.call("a", process=f"={expression}"),
    }


@pytest.mark.parametrize("place", everywhere("1"))
@pytest.mark.parametrize("text", [SPENT, LARGE, LAUGHS], ids=["steps", "bytes", "parts"])
def test_an_expression_beyond_its_budget_is_an_incident(talk: Talk, place: str, text: str) -> None:
    key = talk.run(everywhere(text)[place], s="x")
    for job in talk.take_all("b"):
        talk.complete(job)
    incident = talk.incident()
    assert incident.reason == "EXPRESSION_FAILED"
    assert len(incident.error) < 2_000
    assert talk.runs(key)
    talk.cancel(key)
    assert not talk.runs(key)


def test_the_mappings_of_an_element_share_a_budget(talk: Talk) -> None:
    """One is fine, a thousand would take a minute in one step."""
    heavy = "count(for i in 1..100000 return i)"
    one, many = (Process(f"p{n}").task("a", inputs={f"x{i}": heavy for i in range(n)})
                 for n in (1, 1_000))  # fmt: skip
    assert talk.runs(talk.run(one))
    assert talk.work("a")["x0"] == 100_000
    talk.run(many)
    assert "of one element take more than 1000000 steps" in talk.incident().error


@pytest.mark.parametrize("text", [SPENT, LARGE, LAUGHS], ids=["steps", "bytes", "parts"])
def test_a_start_timer_beyond_its_budget_is_refused_with_its_deployment(
    talk: Talk, text: str
) -> None:
    process = Process("p").starts(every=f"={text}").task("a")
    reply = talk.ask(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(process))
    assert reply.rejection is not None
    assert reply.rejection.code == "INVALID_ARGUMENT"
    talk.run(Process("q").task("b"))
    talk.work("b")


@pytest.mark.parametrize(
    "cycle", ["R" + "9" * 4_000 + "/PT1H", "R1/PT1H" + " " * 1_000_000, "*," * 500_000]
)
def test_a_cycle_that_no_record_could_carry_is_an_incident(talk: Talk, cycle: str) -> None:
    talk.run(Process("p").task("a", on=[every("=cycle", path().task("again"))]), cycle=cycle)
    incident = talk.incident()
    assert incident.reason == "EXPRESSION_FAILED"
    assert len(incident.error) < 10_000


def test_a_name_that_is_too_long_is_an_incident(talk: Talk) -> None:
    for process in (
        Process("p").task("a", type="=x"),
        Process("q").call("a", process="=x"),
        Process("r").wait("a", message="=x", key='"k"'),
    ):
        key = talk.run(process, x="x" * 1_000_000)
        assert len(talk.incident().error) < 2_000
        talk.cancel(key)


@pytest.mark.parametrize("place", everywhere("1"))
def test_an_assertion_that_does_not_hold_is_an_incident(talk: Talk, place: str) -> None:
    key = talk.run(everywhere("assert(x, x != null)")[place])
    for job in talk.take_all("b"):
        talk.complete(job)
    incident = talk.incident()
    assert incident.reason == "EXPRESSION_FAILED"
    assert "Expected the condition to hold, but it is false, in 'assert'" in incident.error
    talk.cancel(key)


def test_an_assertion_passes_once_the_variable_is_there(talk: Talk) -> None:
    key = talk.run(Process("p").compute("a", "assert(x, x != null)", result="y").task("b"))
    assert talk.incident().element_id == "a"
    talk.set(key, x=5)
    talk.resolve()
    assert talk.work("b")["y"] == 5
    assert not talk.runs(key)


def test_a_whole_number_with_a_point_is_one_for_the_engine(talk: Talk) -> None:
    """As JSON has it: for retries, correlation keys, items and their results."""
    new = Process("p").task("a", retries="=n").wait("w", message="m", key="n")
    key = talk.run(new.task("c", each=over("for i in 1..n return i * n")), n=2.0)
    talk.work("a")
    talk.publish("m", "2")
    assert [json.loads(job.payload)["item"] for job in talk.take_all("c")] == [2, 4]
    talk.cancel(key)


def test_a_timer_takes_nanoseconds_and_refuses_far_years(talk: Talk) -> None:
    key = talk.run(Process("p").pause("a", '=duration("PT1.000000001S")'))
    talk.pass_time(1)
    assert not talk.runs(key)
    talk.run(Process("q").pause("a", until='=date and time("12026-01-01T00:00:00Z")'))
    assert talk.incident().reason == "EXPRESSION_FAILED"
