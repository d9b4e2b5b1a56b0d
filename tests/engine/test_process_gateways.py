"""Gateways: which ways tokens take, and which of them become one."""

from msgspec.structs import replace
from process_talk import Talk

from holdfast.engine.kernel import Command
from holdfast.engine.processes.values import InstanceIntent, InstanceRef, NewInstance
from holdfast.model.definition import Definition, Element, ElementKind, Flow, JobSpec
from holdfast.model.dsl import Process, after, on_message, otherwise, path, when
from holdfast.records import ValueType

K = ElementKind


def job(id_: str, **parts: object) -> Element:
    return Element(id_, K.JOB, job=JobSpec(id_), **parts)


def graph(elements: list[Element], *flows: tuple[str, str] | tuple[str, str, str]) -> Definition:
    """A process drawn by hand: `(from, to)` and perhaps the condition."""
    made = tuple(
        Flow(f"f{number}", flow[0], flow[1], flow[2] if len(flow) > 2 else "")
        for number, flow in enumerate(flows)
    )
    return Definition("p", tuple(elements), made)


def test_steps_happen_in_their_order(talk: Talk) -> None:
    key = talk.run(Process("p").task("a").compute("c", "x + 1", result="y").task("b"), x=1)
    assert talk.active(key) == ["a"]
    assert talk.work("a", {"z": 5}) == {"x": 1}
    assert talk.active(key) == ["b"]
    assert talk.work("b") == {"x": 1, "z": 5, "y": 2}
    assert talk.result(key) == {"x": 1, "y": 2, "z": 5}


def test_a_process_without_an_end_event_ends_where_its_ways_do(talk: Talk) -> None:
    key = talk.run(graph([Element("s", K.START), job("a")], ("s", "a")))
    talk.work("a", {"x": 1})
    assert talk.result(key) == {"x": 1}


def test_a_task_with_two_ways_out_takes_both(talk: Talk) -> None:
    elements = [Element("s", K.START), job("a"), job("b"), job("c")]
    key = talk.run(graph(elements, ("s", "a"), ("a", "b"), ("a", "c")))
    talk.work("a")
    assert talk.active(key) == ["b", "c"]
    talk.work("c")
    talk.work("b")
    assert not talk.runs(key)


CHOICE = Process("p").choose(
    when("x > 10", path().task("high")),
    when("x > 5", path().task("middle")),
    otherwise(path().task("low")),
    id="choice",
)


def test_the_first_way_whose_condition_holds_is_taken_else_the_default(talk: Talk) -> None:
    talk.deploy(CHOICE)
    for x, wanted in ((11, "high"), (6, "middle"), (1, "low")):
        key = talk.start(x=x)
        assert talk.active(key) == [wanted]
        talk.work(wanted)
        assert not talk.runs(key)


def test_no_open_way_is_an_incident_until_the_variables_fit(talk: Talk) -> None:
    definition = CHOICE.definition()
    low = next(flow for flow in definition.flows if flow.target == "low")
    flows = tuple(replace(each, condition="x < 0") if each is low else each
                  for each in definition.flows)  # fmt: skip
    elements = tuple(replace(each, default="") for each in definition.elements)
    key = talk.run(replace(definition, flows=flows, elements=elements), x=1)
    assert talk.active(key) == ["choice"]
    incident = talk.incident()
    assert (incident.reason, incident.element_id) == ("NO_MATCHING_FLOW", "choice")
    talk.resolve()
    assert talk.incident().reason == "NO_MATCHING_FLOW", "nothing was mended"
    talk.set(key, x=7)
    talk.resolve()
    assert talk.active(key) == ["middle"] and not talk.incidents()
    talk.work("middle")


def test_a_condition_that_is_no_boolean_is_an_incident(talk: Talk) -> None:
    key = talk.run(CHOICE, x="text")
    assert talk.incident().reason == "EXPRESSION_FAILED"
    assert "boolean" in talk.incident().error
    talk.set(key, x=20)
    talk.resolve()
    talk.work("high")
    assert not talk.runs(key)


INCLUDE = (
    Process("p")
    .include(
        when("a", path().task("ta")), when("b", path().task("tb")), otherwise(path().task("to")),
        id="fork",
    )
    .task("after")
)  # fmt: skip


def test_all_ways_whose_conditions_hold_are_taken_and_joined(talk: Talk) -> None:
    talk.deploy(INCLUDE)
    for a, b, wanted in (
        (True, True, ["ta", "tb"]),
        (True, False, ["ta"]),
        (False, False, ["to"]),
    ):
        key = talk.start(a=a, b=b)
        assert talk.active(key) == wanted
        for each in wanted:
            assert "after" not in talk.active(key)
            talk.work(each)
        assert talk.active(key) == ["after"]
        talk.work("after")
        assert not talk.runs(key)


def test_an_inclusive_join_does_not_wait_for_a_branch_that_ends_elsewhere(talk: Talk) -> None:
    process = (
        Process("p")
        .include(
            when("true", path().task("ta")),
            when("true", path().task("tb").choose(when("gone", path().end("elsewhere")))),
        )
        .task("after")
    )
    key = talk.run(process, gone=True)
    talk.work("ta")
    assert talk.active(key) == ["tb"], "tb may still come"
    talk.work("tb")
    assert talk.active(key) == ["after"]
    talk.work("after")


def test_an_inclusive_join_is_passed_again_when_a_way_leads_back(talk: Talk) -> None:
    process = (
        Process("p")
        .task("first")
        .include(when("true", path().task("ta")), when("n > 1", path().task("tb")))
        .choose(when("n < 3", path().go_to("first")))
    )
    key = talk.run(process, n=1)
    rounds = 0
    while talk.runs(key):
        rounds += 1
        talk.work("first", {"n": rounds})
        for each in [name for name in talk.active(key) if name in ("ta", "tb")]:
            talk.work(each)
    assert rounds == 3


def two_joins_without_a_way_out() -> Definition:
    elements = [
        Element("s", K.START), Element("fork", K.PARALLEL), job("a"), job("b"),
        Element("i1", K.INCLUSIVE), Element("i2", K.INCLUSIVE), Element("both", K.PARALLEL),
    ]  # fmt: skip
    return graph(
        elements, ("s", "fork"), ("fork", "a"), ("fork", "b"), ("fork", "i1"), ("fork", "i2"),
        ("a", "both"), ("both", "i1"), ("both", "i2"), ("b", "i1"),
    )  # fmt: skip


def test_two_inclusive_joins_that_can_settle_at_once_both_do(talk: Talk) -> None:
    key = talk.run(two_joins_without_a_way_out())
    talk.work("b")
    assert talk.active(key) == ["a"]
    talk.work("a")
    assert not talk.runs(key), "both joins end their tokens"


def test_parallel_ways_of_different_length_are_joined_once(talk: Talk) -> None:
    long, none = path().task("b1").task("b2").task("b3"), path().compute("c", "1", result="c")
    process = Process("p").parallel(path().task("a"), long, none)
    key = talk.run(process.task("after"))
    talk.work("a")
    for each in ("b1", "b2", "b3"):
        assert talk.active(key) == [each]
        talk.work(each)
    assert talk.active(key) == ["after"]
    talk.work("after")
    assert talk.result(key)["c"] == 1


def test_two_tokens_on_one_way_into_a_join_wait_for_one_on_each_other(talk: Talk) -> None:
    elements = [
        Element("s", K.START), Element("fork", K.PARALLEL), job("a"), job("b"), job("c"),
        Element("merge", K.EXCLUSIVE), Element("join", K.PARALLEL), job("end"),
    ]  # fmt: skip
    key = talk.run(graph(
        elements, ("s", "fork"), ("fork", "a"), ("fork", "b"), ("fork", "c"), ("a", "merge"),
        ("b", "merge"), ("merge", "join"), ("c", "join"), ("join", "end"),
    ))  # fmt: skip
    talk.work("a")
    talk.work("b")
    assert talk.active(key) == ["c"]
    talk.work("c")
    assert talk.active(key) == ["end"], "one of the two tokens is joined, the other waits"
    talk.work("end")
    assert talk.runs(key), "a token waits at the join for ever"
    talk.cancel(key)


RACE = Process("p").race(
    on_message("paid", "payment", "order", path().task("ship")),
    after("late", "PT10S", path().task("remind")),
    id="race",
)


def test_the_first_event_behind_an_event_gateway_decides(talk: Talk) -> None:
    talk.deploy(RACE)
    key = talk.start(order="k")
    assert talk.active(key) == ["race"]
    talk.publish("payment", "k", amount=5)
    assert talk.active(key) == ["ship"]
    talk.pass_time(20)
    assert talk.work("ship") == {"order": "k", "amount": 5}
    assert not talk.runs(key)
    key = talk.start(order="k")
    talk.pass_time(10)
    assert talk.active(key) == ["remind"]
    talk.publish("payment", "k")
    talk.work("remind")
    assert not talk.runs(key)


def test_a_token_in_an_endless_circle_lets_live_commands_pass(talk: Talk) -> None:
    process = (
        Process("p").compute("inc", "n + 1", result="n").choose(when("true", path().go_to("inc")))
    )
    talk.deploy(process)
    talk.deploy(Process("other").task("x"))
    create = InstanceIntent.CREATE
    reply = talk.do(Command(ValueType.PROCESS_INSTANCE, create, 0, NewInstance("p", 0, b'{"n":0}')))
    for _ in range(3):
        talk.step()
    assert 1_000 < talk.variables(reply.key)["n"] < 3_000
    other = talk.do(Command(ValueType.PROCESS_INSTANCE, create, 0, NewInstance("other")))
    assert talk.active(other.key) == ["x"]
    for key in (reply.key, other.key):
        talk.do(Command(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCEL, key, InstanceRef()))
    assert not talk.runs(reply.key)
