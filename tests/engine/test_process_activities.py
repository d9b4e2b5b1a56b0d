"""Activities: their variables, sub-processes, calls and repetitions."""

import json

import pytest
from msgspec.structs import replace
from process_talk import Talk

from holdfast.engine.processes.ops import LoopTaken
from holdfast.engine.processes.state import LOOP_CHUNK_ITEMS
from holdfast.engine.processes.values import Advance
from holdfast.limits import VARIABLES_BYTES_MAX
from holdfast.model.definition import Definition, Loop
from holdfast.model.dsl import Process, error, over, path, timeout
from holdfast.model.graph import RECEIVE_TASK


def with_loop(process: Process, element: str, loop: Loop) -> Definition:
    """Repeats what the DSL does not: an expression, a receive task."""
    definition = process.definition()
    elements = tuple(
        replace(each, loop=loop, drawn_as=RECEIVE_TASK if each.message else each.drawn_as)
        if each.id == element
        else each
        for each in definition.elements
    )
    return replace(definition, elements=elements)


# --- variables --------------------------------------------------------------------------------


def test_inputs_are_local_and_outputs_say_what_comes_out(talk: Talk) -> None:
    process = Process("p").task(
        "a",
        inputs={"n": "order.total", "where.city": '"Rome"', "where.zip": "n + 1"},
        outputs={"order.done": "ok", "order.by.name": "who"},
    )
    key = talk.run(process, order={"total": 5})
    told = talk.work("a", {"ok": True, "who": "me", "else": 1})
    assert told == {"order": {"total": 5}, "n": 5, "where": {"city": "Rome", "zip": 6}}
    assert talk.result(key) == {"order": {"total": 5, "done": True, "by": {"name": "me"}}}


def test_a_result_goes_where_its_name_is_known_else_to_the_instance(talk: Talk) -> None:
    inner = path().task("a")
    key = talk.run(Process("p").sub("sub", inner, inputs={"x": "1"}).task("b"), x=0)
    talk.work("a", {"x": 2, "y": 3})
    assert talk.work("b") == {"x": 0, "y": 3}, "the sub-process knew x"
    assert talk.result(key) == {"x": 0, "y": 3}


def test_a_result_that_is_no_object_is_an_incident_unless_a_variable_is_named(talk: Talk) -> None:
    talk.deploy(Process("p").task("a"))
    key = talk.start()
    talk.work("a", 5)
    assert "object of variables" in talk.incident().error
    talk.resolve()
    talk.work("a", {"x": 5})
    assert talk.result(key) == {"x": 5}
    key = talk.run(Process("q").task("a", result="all"))
    talk.work("a", [1, 2])
    assert talk.result(key) == {"all": [1, 2]}


def test_variables_are_set_as_seen_from_an_element_or_exactly_there(talk: Talk) -> None:
    key = talk.run(Process("p").sub("sub", path().task("a"), inputs={"x": "1"}), x=0)
    inner = talk.element(key, "sub/a")
    talk.set(inner, x=2, y=3)
    assert talk.variables(talk.element(key, "sub")) == {"x": 2}
    assert talk.variables(key) == {"x": 0, "y": 3}
    talk.set(inner, local=True, x=9)
    assert talk.work("a") == {"x": 9, "y": 3}
    assert talk.result(key) == {"x": 0, "y": 3}


def test_variables_of_nobody_and_nonsense_are_refused(talk: Talk) -> None:
    key = talk.run(Process("p").task("a"))
    before = talk.dump()
    assert talk.set(12345, x=1).rejection.code == "NOT_FOUND"
    assert talk.set(key, **{"": 1}).rejection.code == "INVALID_ARGUMENT"
    assert talk.dump() == before
    talk.cancel(key)


def test_variables_that_are_too_large_for_several_scopes_change_none(talk: Talk) -> None:
    key = talk.run(Process("p").sub("sub", path().task("a"), inputs={"x": "1"}), x=0)
    before = talk.dump()
    large = "x" * (VARIABLES_BYTES_MAX * 2 // 3)
    reply = talk.set(talk.element(key, "sub/a"), x=large, y=large)
    assert reply.rejection.code == "RESOURCE_EXHAUSTED"
    assert talk.dump() == before
    talk.cancel(key)


def test_inputs_that_are_too_large_leave_one_stuck_element(talk: Talk) -> None:
    half = "x" * (VARIABLES_BYTES_MAX // 2 + 1)
    key = talk.run(Process("p").task("a", inputs={"a": "s", "b": "s"}), s=half)
    assert talk.incident().reason == "LIMIT_REACHED"
    assert talk.active(key) == ["a"]
    talk.set(key, s="small")
    talk.resolve()
    talk.work("a")
    assert not talk.runs(key)


def test_a_value_that_json_does_not_have_is_an_incident(talk: Talk) -> None:
    for number, process in enumerate(
        (
            Process("p0").compute("c", "[1..3]", result="x"),
            Process("p1").task("a", inputs={"x": "[1..3]"}),
            Process("p2").task("a", outputs={"x": "[1..3]"}),
            Process("p3").sub("c", path().task("b"), outputs={"x": "[1..3]"}),
            Process("p4").task("a", each=over("[1]", collect="x", result="[1..3]")),
        )
    ):
        key = talk.run(process)
        if number in (2, 4):
            talk.work("a")
        if number == 3:
            talk.work("b")
        assert talk.incident().reason == "EXPRESSION_FAILED"
        talk.resolve()
        assert talk.incident().reason == "EXPRESSION_FAILED"
        talk.cancel(key)


# --- jobs -------------------------------------------------------------------------------------


def test_a_job_that_has_failed_too_often_waits_for_a_person(talk: Talk) -> None:
    key = talk.run(Process("p").task("a", retries="=n"), n=1)
    talk.fail(talk.take("a"), final=False)
    talk.pass_time(10)
    talk.fail(talk.take("a"), final=False)
    incident = talk.incident()
    assert (incident.reason, incident.element_id) == ("NO_RETRIES_LEFT", "a")
    talk.resolve()
    talk.work("a")
    assert not talk.runs(key)


def test_the_retries_of_a_job_can_be_changed_while_it_waits(talk: Talk) -> None:
    key = talk.run(Process("p").task("a", retries=0))
    job = talk.take("a")
    talk.retries(job.key, 3)
    talk.fail(job, final=False)
    assert not talk.incidents()
    talk.pass_time(10)
    assert talk.take("a").retries == 2
    assert talk.retries(12345, 1).rejection.code == "NOT_FOUND"
    talk.cancel(key)


def test_an_incident_of_a_job_ends_with_its_instance(talk: Talk) -> None:
    key = talk.run(Process("p").task("a"))
    talk.fail(talk.take("a"))
    assert talk.incidents()
    talk.cancel(key)
    assert not talk.incidents()
    assert talk.outcome(key).state == "CANCELED"


# --- sub-processes ----------------------------------------------------------------------------


def test_a_terminate_end_ends_its_own_scope_only(talk: Talk) -> None:
    inner = path().parallel(path().task("a"), path().task("b").terminate("stop"))
    process = Process("p").parallel(path().sub("sub", inner), path().task("c")).task("after")
    key = talk.run(process)
    talk.work("b")
    assert talk.active(key) == ["c"]
    talk.work("c")
    talk.work("after")
    assert not talk.runs(key)


def test_a_terminate_end_of_the_process_completes_it(talk: Talk) -> None:
    key = talk.run(Process("p").parallel(path().task("a"), path().task("b").terminate("stop")), x=1)
    talk.work("b")
    assert talk.result(key) == {"x": 1}


def test_a_sub_process_that_times_out_ends_all_inside(talk: Talk) -> None:
    inner = path().parallel(path().task("a"), path().wait("w", message="m", key="k"))
    process = Process("p").sub("sub", inner, on=[timeout("PT5S", path().task("late"))])
    key = talk.run(process, k="k")
    assert talk.active(key) == ["sub", "sub/a", "sub/w"]
    talk.pass_time(5)
    assert talk.active(key) == ["late"]
    talk.publish("m", "k")
    talk.work("late")
    assert not talk.runs(key)


# --- calls ------------------------------------------------------------------------------------


def test_a_call_passes_and_takes_what_it_says(talk: Talk) -> None:
    talk.deploy(Process("called").task("a"))
    cases = (
        ({}, {"x": 1, "y": 2}, {"x": 5, "z": 6, "y": 2}),
        ({"pass_all": False, "inputs": {"i": "x"}}, {"i": 1}, {"x": 5, "z": 6, "y": 2}),
        ({"take_all": False}, {"x": 1, "y": 2}, {"x": 1, "y": 2}),
        ({"outputs": {"out": "z + 1"}}, {"x": 1, "y": 2}, {"x": 1, "y": 2, "out": 7}),
    )
    for number, (how, told, result) in enumerate(cases):
        key = talk.run(Process(f"p{number}").call("call", process="called", **how), x=1, y=2)
        assert len(talk.instances()) == 2
        assert talk.work("a", {"x": 5, "z": 6}) == told
        assert talk.result(key) == result


def test_a_job_names_its_definition_and_the_root_of_its_calls(talk: Talk) -> None:
    low = talk.deploy(Process("low").task("do"))
    talk.deploy(Process("middle").call("lower", process="low"))
    top = talk.run(Process("top").call("down", process="middle"))
    job = talk.take("do")
    assert job.origin is not None
    assert (job.origin.definition_key, job.origin.root_key) == (low, top)
    # rows of instances that were called before they named their root
    processes, mark = talk.view.processes, talk.processor.state.mark()
    for key, row in list(processes.instances.scan()):
        processes.instances.put(key, replace(row, root=0))
    called = processes.instances.get(job.origin.instance_key)
    assert called is not None
    assert processes.root_of(job.origin.instance_key, called) == top
    talk.processor.state.undo_to(mark)


def test_an_error_goes_up_through_two_calls(talk: Talk) -> None:
    talk.deploy(Process("inner").task("a"))
    talk.deploy(Process("middle").call("call", process="inner"))
    key = talk.run(
        Process("p").call("call", process="middle", on=[error("E", path().task("mend"))])
    )
    talk.throw(talk.take("a"), "E", x=1)
    assert talk.instances() == [key]
    assert talk.work("mend") == {"x": 1}
    assert not talk.runs(key)


def test_an_error_end_goes_up_through_a_call_of_many(talk: Talk) -> None:
    talk.deploy(Process("inner").task("a").fail("broken", error="E"))
    many = over("[1, 2, 3]")
    key = talk.run(
        Process("p").call("c", process="inner", each=many, on=[error("E", path().task("mend"))])
    )
    talk.work("a")
    assert talk.instances() == [key] and talk.active(key) == ["mend"]
    talk.work("mend")


def test_a_call_of_nobody_is_an_incident_until_it_is_deployed(talk: Talk) -> None:
    key = talk.run(Process("p").call("call", process="missing"))
    assert talk.incident().reason == "CALLED_PROCESS_MISSING"
    talk.deploy(Process("missing").starts(message="m").task("a"))
    talk.resolve()
    assert talk.incident().reason == "CALLED_PROCESS_MISSING", "only a message starts it"
    talk.deploy(Process("missing").task("a"))
    talk.resolve()
    talk.work("a", {"x": 1})
    assert talk.result(key) == {"x": 1}


def test_canceling_from_the_top_cancels_what_was_called(talk: Talk) -> None:
    talk.deploy(Process("inner").task("a"))
    talk.deploy(Process("middle").call("call", process="inner"))
    key = talk.run(Process("p").call("call", process="middle"))
    called = talk.instances("inner")[0]
    assert talk.cancel(called).rejection.code == "INVALID_STATE"
    talk.cancel(key)
    assert not talk.instances()


def test_calls_that_never_end_calling_are_stopped(talk: Talk) -> None:
    talk.deploy(Process("p").call("again", process="p"))
    key = talk.start()
    assert talk.incident().reason == "LIMIT_REACHED"
    assert len(talk.instances()) == 101
    talk.cancel(key)
    assert not talk.instances()


# --- repetitions ------------------------------------------------------------------------------


def test_items_side_by_side_give_their_results_in_order(talk: Talk) -> None:
    each = over("items", collect="all", result="r + item")
    key = talk.run(Process("p").task("a", each=each), items=[10, 20, 30])
    assert talk.active(key) == ["a*", "a*/a#1", "a*/a#2", "a*/a#3"]
    jobs = talk.take_all("a")
    assert [json.loads(job.payload)["loopCounter"] for job in jobs] == [1, 2, 3]
    for job, r in zip(reversed(jobs), (3, 2, 1), strict=True):
        talk.complete(job, {"r": r})
    assert talk.result(key) == {"items": [10, 20, 30], "all": [11, 22, 33]}


def test_items_one_after_another(talk: Talk) -> None:
    each = over("items", sequential=True, collect="all", result="r")
    key = talk.run(Process("p").task("a", each=each), items=["x", "y"])
    assert talk.active(key) == ["a*", "a*/a#1"]
    assert talk.work("a", {"r": 1})["item"] == "x"
    assert talk.active(key) == ["a*", "a*/a#2"]
    talk.work("a", {"r": 2})
    assert talk.result(key)["all"] == [1, 2]


@pytest.mark.parametrize("sequential", [False, True])
def test_an_empty_collection_is_done_at_once(talk: Talk, sequential: bool) -> None:
    each = over("[]", sequential=sequential, collect="all", result="1")
    key = talk.run(Process("p").task("a", each=each))
    assert talk.result(key) == {"all": []}


@pytest.mark.parametrize("sequential", [False, True])
def test_what_does_not_wait_can_be_repeated_until_it_is_enough(
    talk: Talk, sequential: bool
) -> None:
    process = Process("p").compute("c", "item * 2", result="r")
    loop = Loop("items", "item", sequential, "all", "r", "numberOfCompletedInstances = 3")
    key = talk.run(with_loop(process, "c", loop), items=[1, 2, 3, 4, 5])
    assert talk.result(key)["all"] == [2, 4, 6, None, None]


def test_enough_ends_the_items_that_are_still_active(talk: Talk) -> None:
    each = over("[1, 2, 3]", collect="all", result="r", until="r = 7")
    key = talk.run(Process("p").task("a", each=each).task("b"), r=0)
    talk.complete(talk.take_all("a")[1], {"r": 7})
    assert talk.active(key) == ["a*", "a*/a#1", "a*/a#3"], "what is collected stays inside"
    talk.set(key, r=7)
    talk.cancel(key)
    each = over("[1, 2, 3]", until="numberOfActiveInstances = 1")
    key = talk.run(Process("q").task("a", each=each).task("b"))
    jobs = talk.take_all("a")
    talk.complete(jobs[0])
    assert talk.active(key) == ["a*", "a*/a#2", "a*/a#3"]
    talk.complete(jobs[2])
    assert talk.active(key) == ["b"]
    assert talk.complete(jobs[1]).rejection.code == "NOT_FOUND"
    talk.work("b")


def test_receiving_calling_and_sub_processes_can_be_repeated(talk: Talk) -> None:
    talk.deploy(Process("called").compute("c", "item + 1", result="r"))
    receive = Process("p1").wait("w", message="m", key="item")
    loop = Loop("items", "item", output_collection="all", output_item="x")
    key = talk.run(with_loop(receive, "w", loop), items=["k1", "k2"])
    talk.publish("m", "k2", x=2)
    talk.publish("m", "k1", x=1)
    assert talk.result(key)["all"] == [1, 2]
    each = over("items", collect="all", result="r")
    key = talk.run(Process("p2").call("c", process="called", each=each), items=[1, 2])
    assert talk.result(key)["all"] == [2, 3]
    body = path().task("a").compute("c", "item * x", result="r")
    sub = Process("p3").sub("s", body, inputs={"x": "0", "r": "0"}, each=each)
    key = talk.run(sub, items=[3, 4])
    assert talk.active(key) == ["s*", "s*/s#1", "s*/s#1/a", "s*/s#2", "s*/s#2/a"]
    talk.work("a", {"x": 10})
    talk.work("a", {"x": 10})
    assert talk.result(key)["all"] == [30, 40]


def test_an_item_that_fails_is_an_incident_of_its_own(talk: Talk) -> None:
    each = over("items", collect="all", result="item")
    process = Process("p").task("a", type="=names[loopCounter]", each=each)
    key = talk.run(process, items=[1, 2], names=["t"])
    assert talk.active(key) == ["a*", "a*/a#1", "a*/a#2"]
    assert talk.incident().element_id == "a"
    talk.work("t")
    talk.set(key, names=["t", "t"])
    talk.resolve()
    talk.work("t")
    assert talk.result(key)["all"] == [1, 2]


@pytest.mark.parametrize("sequential", [False, True])
def test_a_repetition_can_be_canceled_midway(talk: Talk, sequential: bool) -> None:
    each = over("for i in 1..600 return i", sequential=sequential)
    key = talk.run(Process("p").task("a", each=each))
    talk.work("a")
    talk.cancel(key)
    assert not talk.instances()


def test_a_thousand_items_are_begun_in_chunks(talk: Talk) -> None:
    each = over("for i in 1..1000 return i", collect="all", result="item * 2")
    process = Process("p").task("a", each=each)
    talk.deploy(process)
    key = talk.start()
    assert len(talk.active(key)) == 1_001
    steps = [record.value for record in talk.records() if isinstance(record.value, Advance)]
    taken = [op.taken for step in steps for op in step.ops if isinstance(op, LoopTaken)]
    assert taken == [*range(LOOP_CHUNK_ITEMS, 1_000, LOOP_CHUNK_ITEMS), 1_000]
    for job in talk.take_all("a"):
        talk.complete(job)
    assert talk.result(key)["all"] == [2 * number for number in range(1, 1_001)]


def test_a_timeout_ends_a_repetition_with_all_its_items(talk: Talk) -> None:
    process = Process("p").task("a", each=over("[1, 2]"), on=[timeout("PT5S", path().task("late"))])
    key = talk.run(process)
    talk.work("a")
    talk.pass_time(5)
    assert talk.active(key) == ["late"]
    talk.work("late")


def test_an_interrupted_repetition_whose_next_chunk_is_due_goes_on_by_its_boundary(
    talk: Talk,
) -> None:
    """More items than a step ends, and more to come: only one of both is waited for."""
    process = Process("p").task(
        "a", each=over("for i in 1..6000 return i"), on=[timeout("PT0.05S", path().task("late"))]
    )
    key = talk.run(process)
    assert len(talk.active(key)) > 4_096
    talk.pass_time(1)
    assert talk.active(key) == ["late"]
    talk.work("late")


def test_results_that_are_too_large_together_are_an_incident_of_the_whole(talk: Talk) -> None:
    big = VARIABLES_BYTES_MAX // 4
    each = over("[1, 2, 3, 4, 5]", collect="all", result="r")
    key = talk.run(Process("p").task("a", each=each))
    for job in talk.take_all("a"):
        talk.complete(job, {"r": "x" * big})
    assert talk.incident().reason == "LIMIT_REACHED"
    assert talk.active(key) == ["a*"]
    talk.resolve()
    assert talk.incident().reason == "LIMIT_REACHED"
    talk.cancel(key)
