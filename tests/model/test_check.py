"""Each rule that a definition keeps, and how it is told when it does not."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.errors import Code, InvalidArgument
from holdfast.limits import NAME_CHARS_MAX, RETRIES_MAX
from holdfast.model.check import ModelError, Problem, check, problems
from holdfast.model.definition import (
    Binding,
    Definition,
    Element,
    ElementKind,
    Flow,
    JobSpec,
    Loop,
    Mapping,
    Message,
    Timer,
    TimerKind,
)
from holdfast.model.rules import structure
from holdfast.model.rules.parts import USES

START, END = Element("start", ElementKind.START), Element("end", ElementKind.END)
TASK = Element("task", ElementKind.JOB, job=JobSpec("work"))
WAIT = Element("wait", ElementKind.CATCH, message=Message("paid", "orderId"))
RECEIVE = replace(WAIT, drawn_as="receiveTask")
SUB = Element("sub", ElementKind.SUBPROCESS)
INNER = Element("inner", ElementKind.START, scope="sub")
ALARM = Element("alarm", ElementKind.BOUNDARY, host="task", timer=Timer(TimerKind.DURATION, "PT5M"))
CHOICE = Element("choice", ElementKind.EXCLUSIVE)
RACE = Element("race", ElementKind.EVENT_GATEWAY)
SOON = Element("soon", ElementKind.CATCH, timer=Timer(TimerKind.DURATION, "PT5M"))
CALL = Element("call", ElementKind.CALL, called="other")
SUM = Element("sum", ElementKind.EXPRESSION, expression="a + b", result="c")


def flow(source: str, target: str, condition: str = "", id: str | None = None) -> Flow:
    return Flow(f"{source}--{target}" if id is None else id, source, target, condition)


def process(*elements: Element, flows: tuple[Flow, ...] = ()) -> Definition:
    """A process with a start and what is given; nothing has to be reached."""
    return Definition("order", (START, *elements), flows)


def told(definition: Definition, element: str, *words: str) -> None:
    """Exactly one problem, with this element, that says what was expected and what was found."""
    [problem] = problems(definition)
    assert problem.element == element
    assert problem.message.startswith("Expected ")
    assert ", but " in problem.message
    for word in words:
        assert word in problem.message, problem.message


def clean(definition: Definition) -> None:
    assert problems(definition) == []


def test_a_process_with_one_of_everything_is_clean() -> None:
    far = replace(SOON, id="far", timer=Timer(TimerKind.DATE, "2030-01-01T00:00:00Z"))
    clean(
        process(
            TASK, ALARM, CHOICE, RACE, WAIT, SOON, far, SUB, INNER, CALL, SUM, END,
            Element("fork", ElementKind.PARALLEL),
            Element("some", ElementKind.INCLUSIVE),
            Element("pass", ElementKind.PASS),
            flows=(
                flow("start", "task"), flow("task", "choice"), flow("alarm", "end"),
                flow("choice", "race", "x > 1"), flow("race", "wait"), flow("race", "soon"),
            ),
        )
    )  # fmt: skip


# --- how problems are told ------------------------------------------------------------------------


def test_the_first_problem_is_raised_with_the_number_of_the_others() -> None:
    nameless = replace(CALL, called="")
    with pytest.raises(ModelError) as caught:
        check(process(nameless, replace(nameless, id="again"), replace(nameless, id="more")))
    assert caught.value.fields["element"] == "call"
    assert [each["element"] for each in caught.value.fields["problems"]] == [
        "call",
        "again",
        "more",
    ]
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert isinstance(caught.value, InvalidArgument)
    assert str(caught.value).endswith("(and 2 more problems)")


def test_a_single_problem_counts_no_others() -> None:
    with pytest.raises(ModelError) as caught:
        check(process(replace(CALL, called="")))
    assert str(caught.value) == (
        "Expected call 'call' to name the process that it starts, but it names none"
    )


def test_problems_are_values() -> None:
    assert problems(Definition("order", (), ())) == [
        Problem("order", "Expected process 'order' to have a start, but it has none")
    ]


# --- ids and sizes --------------------------------------------------------------------------------


def test_everything_has_an_id() -> None:
    told(Definition("", (START,), ()), "", "process", "has none")
    told(process(replace(TASK, id="")), "", "element", "has none")
    told(process(TASK, flows=(flow("start", "task", id=""),)), "", "flow", "has none")


def test_ids_are_used_once_by_process_elements_and_flows() -> None:
    told(process(TASK, TASK), "task", "used once")
    told(process(replace(TASK, id="order")), "order", "used once")
    told(process(TASK, flows=(flow("start", "task", id="task"),)), "task", "flow", "used once")
    twice = (flow("start", "task", id="f"), flow("start", "task", id="f"))
    told(process(TASK, flows=twice), "f", "used once")


def test_ids_have_a_limit() -> None:
    clean(process(replace(TASK, id="x" * NAME_CHARS_MAX)))
    told(process(replace(TASK, id="x" * (NAME_CHARS_MAX + 1))), "x" * 201, "at most 200")


@pytest.mark.parametrize("id_", ["1st", "-a", ".a", "a b", "a:b", "a/b", "a\n", "\u0301a", "·a"])
def test_ids_that_xml_cannot_use_are_refused(id_: str) -> None:
    told(process(replace(TASK, id=id_)), id_, "begin with a letter")


@pytest.mark.parametrize("id_", ["a", "_1", "a-b.c_d", "größe", "注文", "a\u0301", "a·b"])
def test_ids_that_xml_can_use_are_accepted(id_: str) -> None:
    clean(process(replace(TASK, id=id_)))


def test_elements_and_flows_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "ELEMENTS_MAX", 2)
    monkeypatch.setattr(structure, "FLOWS_MAX", 1)
    clean(process(TASK, flows=(flow("start", "task"),)))
    told(process(TASK, END), "order", "at most 2 elements", "it has 3")
    two = (flow("start", "task"), flow("task", "task"))
    told(process(TASK, flows=two), "order", "at most 1 flows", "it has 2")


def test_as_many_elements_as_may_be_are_checked_in_time() -> None:
    tasks = [replace(TASK, id=f"t{number}") for number in range(structure.ELEMENTS_MAX - 1)]
    flows = [flow(a.id, b.id) for a, b in pairwise(tasks)]
    clean(process(*tasks, flows=tuple(flows)))


# --- scopes and flows -----------------------------------------------------------------------------


def test_a_scope_exists() -> None:
    told(process(replace(TASK, scope="gone")), "task", "'gone'", "no such element")


def test_a_scope_is_a_sub_process() -> None:
    told(process(CALL, replace(TASK, scope="call")), "task", "'call'", "CALL")


def test_scopes_do_not_go_in_a_circle() -> None:
    a, b = replace(SUB, id="a", scope="b"), replace(SUB, id="b", scope="a")
    starts = (replace(INNER, id="sa", scope="a"), replace(INNER, id="sb", scope="b"))
    found = problems(process(a, b, *starts))
    assert [problem.element for problem in found] == ["a", "b"]
    assert "lead back" in found[0].message
    told(process(replace(SUB, scope="sub"), INNER), "sub", "lead back")


def nest(depth: int) -> Definition:
    subs = [
        replace(SUB, id=f"s{level}", scope=f"s{level - 1}" if level > 1 else "")
        for level in range(1, depth + 1)
    ]
    return process(*reversed(subs), *(replace(INNER, id=f"i-{s.id}", scope=s.id) for s in subs))


def test_sub_processes_nest_so_deep_and_no_deeper() -> None:
    clean(nest(20))
    told(nest(21), "s21", "at most 20 deep", "it is 21")


def test_a_flow_joins_elements_that_exist() -> None:
    told(process(TASK, flows=(flow("task", "gone"),)), "task--gone", "no 'gone'")
    told(process(TASK, flows=(flow("gone", "task"),)), "gone--task", "no 'gone'")


def test_a_flow_stays_in_its_scope() -> None:
    inside = replace(TASK, scope="sub")
    told(
        process(SUB, INNER, inside, flows=(flow("sub", "task"),)),
        "sub--task", "one scope", "sub-process 'sub'", "the process itself",
    )  # fmt: skip


def test_no_flow_leads_to_a_start_or_a_boundary_event() -> None:
    told(process(TASK, flows=(flow("task", "start"),)), "start", "'task--start' does")
    told(process(TASK, ALARM, flows=(flow("start", "alarm"),)), "alarm", "'start--alarm' does")


def test_no_flow_leaves_an_end() -> None:
    told(process(TASK, END, flows=(flow("end", "task"),)), "end", "'end--task' does")


# --- starts and ends ------------------------------------------------------------------------------

HOURLY = Timer(TimerKind.CYCLE, "R/PT1H")


def test_a_process_has_a_start() -> None:
    told(Definition("order", (TASK,), ()), "order", "to have a start")


def test_one_start_may_have_no_event() -> None:
    told(process(replace(START, id="other")), "other", "'start'")
    placed = replace(START, id="placed", message=Message("placed"))
    clean(process(placed, replace(START, id="hourly", timer=HOURLY)))


def test_two_starts_do_not_wait_for_one_message() -> None:
    placed = replace(START, id="placed", message=Message("placed"))
    found = problems(process(placed, replace(placed, id="again")))
    assert [problem.element for problem in found] == ["placed", "again"]
    assert "message 'placed'" in found[0].message


def test_a_sub_process_has_exactly_one_start() -> None:
    told(process(SUB), "sub", "exactly one start", "it has 0")
    told(process(SUB, INNER, replace(INNER, id="other")), "sub", "it has 2")


def test_the_start_of_a_sub_process_has_no_event() -> None:
    told(process(SUB, replace(INNER, timer=HOURLY)), "inner", "neither timer nor message")
    told(process(SUB, replace(INNER, message=Message("m"))), "inner", "neither timer nor message")


def test_a_start_has_one_event() -> None:
    both = replace(START, id="both", timer=HOURLY, message=Message("m"))
    told(process(both), "both", "it has both")


def test_an_error_that_is_thrown_has_a_code() -> None:
    told(process(replace(END, error="")), "end", "to have a code")
    clean(process(replace(END, error="DECLINED")))


def test_an_end_does_not_throw_and_terminate() -> None:
    told(process(replace(END, error="DECLINED", terminate=True)), "end", "does both")


# --- gateways -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ElementKind.EXCLUSIVE, ElementKind.INCLUSIVE])
def test_each_way_out_of_a_deciding_gateway_has_a_condition_or_is_the_default(
    kind: ElementKind,
) -> None:
    gateway = replace(CHOICE, kind=kind)
    ways = (flow("choice", "task", "x > 1"), flow("choice", "end"))
    told(process(gateway, TASK, END, flows=ways), "choice", "'choice--end' has none")
    clean(process(replace(gateway, default="choice--end"), TASK, END, flows=ways))
    clean(process(gateway, TASK, flows=(flow("choice", "task"),)))


def test_a_default_is_a_flow_of_its_gateway_without_a_condition() -> None:
    ways = (flow("choice", "task", "x > 1"), flow("choice", "end", "x < 1"), flow("task", "end"))

    def default(id_: str) -> Definition:
        return process(replace(CHOICE, default=id_), TASK, END, flows=ways)

    told(default("gone"), "choice", "'gone'", "no such flow")
    told(default("task--end"), "choice", "leaves 'task'")
    told(default("choice--end"), "choice", "has a condition")


def test_conditions_are_only_where_something_decides_by_them() -> None:
    told(process(TASK, flows=(flow("start", "task", "x > 1"),)), "start--task", "no condition")
    fork = replace(CHOICE, kind=ElementKind.PARALLEL)
    told(process(fork, TASK, flows=(flow("choice", "task", "x"),)), "choice--task", "no condition")


def race(*elements: Element, flows: tuple[Flow, ...] = ()) -> Definition:
    return process(
        RACE, WAIT, *elements, flows=(flow("race", "wait"), flow("race", "soon"), *flows)
    )


def test_an_event_gateway_has_at_least_two_events() -> None:
    clean(race(SOON))
    told(process(RACE, WAIT, flows=(flow("race", "wait"),)), "race", "at least two", "it has 1")


def test_an_event_gateway_leads_to_events_that_only_it_reaches() -> None:
    told(race(replace(TASK, id="soon")), "race", "'soon' is of kind JOB")
    told(race(SOON, flows=(flow("start", "soon"),)), "race", "'soon' has another incoming flow")
    soon = replace(RECEIVE, id="soon")
    told(race(soon, replace(ALARM, host="soon")), "race", "'soon' has boundary events")
    told(race(replace(soon, loop=Loop("items"))), "race", "'soon' is repeated")


# --- boundary events ------------------------------------------------------------------------------


def test_the_host_of_a_boundary_event_is_an_activity_of_its_scope() -> None:
    told(process(replace(ALARM, host="gone")), "alarm", "'gone'", "no such element")
    told(process(WAIT, replace(ALARM, host="wait")), "alarm", "'wait'", "CATCH")
    told(process(SUB, INNER, TASK, replace(ALARM, scope="sub")), "alarm", "another scope")
    clean(process(RECEIVE, replace(ALARM, host="wait")))
    throw = replace(TASK, drawn_as="intermediateThrowEvent")
    told(process(throw, ALARM), "alarm", "'task'", "drawn as intermediateThrowEvent")


def test_a_boundary_event_waits_for_exactly_one_thing() -> None:
    told(process(TASK, replace(ALARM, timer=None)), "alarm", "exactly one", "waits for 0")
    two = replace(ALARM, message=Message("cancel", "id"))
    told(process(TASK, two), "alarm", "exactly one", "waits for 2")


def test_errors_interrupt() -> None:
    caught = replace(ALARM, timer=None, error="E")
    clean(process(TASK, caught))
    told(process(TASK, replace(caught, interrupting=False)), "alarm", "to interrupt")


def test_a_host_catches_an_error_once() -> None:
    caught = replace(ALARM, timer=None, error="E")
    told(process(TASK, caught, replace(caught, id="b")), "b", "error 'E'", "'alarm' and 'b'")
    every = replace(caught, error="")
    told(process(TASK, every, replace(every, id="b")), "b", "all errors")
    clean(process(TASK, caught, replace(every, id="b"), CALL, replace(caught, id="c", host="call")))


# --- which parts belong where ---------------------------------------------------------------------

PARTS: dict[str, Any] = {
    "job": JobSpec("work"),
    "inputs": (Mapping("a", "b"),),
    "outputs": (Mapping("a", "b"),),
    "timer": Timer(TimerKind.DURATION, "PT5M"),
    "message": Message("m", "k"),
    "error": "E",
    "terminate": True,
    "host": "task",
    "interrupting": False,
    "loop": Loop("items"),
    "called": "other",
    "pass_all": False,
    "take_all": False,
    "expression": "1",
    "result": "r",
    "default": "f",
    "binding": Binding.DEPLOYMENT,
    "version_tag": "stable",
}


def test_every_part_belongs_to_some_kind_and_every_kind_is_known() -> None:
    assert set(PARTS) == set().union(*USES.values())
    assert {"id", "kind", "name", "scope", "drawn_as", *PARTS} == set(Element.__struct_fields__)
    assert set(USES) == set(ElementKind)


@pytest.mark.parametrize("kind", ElementKind, ids=lambda kind: kind.name)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_refused_where_its_kind_does_not_use_it(kind: ElementKind, part: str) -> None:
    element = replace(Element("it", kind), **{part: PARTS[part]})
    found = [each for each in problems(process(element)) if "for it is of kind" in each.message]
    assert [each.element for each in found] == ([] if part in USES[kind] else ["it"])


def test_the_sentence_names_the_part_and_the_kind() -> None:
    told(process(replace(SUM, pass_all=False)), "sum", "no pass all", "EXPRESSION")


def test_a_receive_task_has_what_activities_have() -> None:
    clean(process(replace(RECEIVE, loop=Loop("items"), inputs=(Mapping("a", "b"),))))
    told(process(replace(WAIT, loop=Loop("items"))), "wait", "no loop")
    told(process(replace(WAIT, inputs=(Mapping("a", "b"),))), "wait", "no inputs")


# --- waiting --------------------------------------------------------------------------------------


def test_a_catch_event_waits_for_one_thing() -> None:
    told(process(replace(WAIT, message=None)), "wait", "waits for neither")
    told(process(replace(SOON, message=WAIT.message)), "soon", "waits for both")


def test_a_receive_task_waits_for_a_message() -> None:
    told(process(replace(SOON, drawn_as="receiveTask")), "soon", "for a message")


def test_a_message_has_a_name() -> None:
    told(process(replace(WAIT, message=Message("", "k"))), "wait", "have a name")


def test_who_waits_for_a_message_says_for_which_key() -> None:
    told(process(replace(WAIT, message=Message("m"))), "wait", "have a key")
    cancel = replace(ALARM, timer=None, message=Message("cancel"))
    told(process(TASK, cancel), "alarm", "have a key")


def test_a_start_has_no_key() -> None:
    told(process(replace(START, id="s", message=Message("m", "k"))), "s", "no key", "'k'")


def test_cycles_are_for_what_happens_again() -> None:
    told(process(replace(SOON, timer=HOURLY)), "soon", "it is a cycle")
    told(process(TASK, replace(ALARM, timer=HOURLY)), "alarm", "it is a cycle")
    clean(process(TASK, replace(ALARM, timer=HOURLY, interrupting=False)))
    clean(process(replace(START, id="hourly", timer=HOURLY)))


GOOD_TIMERS = [
    (TimerKind.DURATION, "P3D"),
    (TimerKind.DURATION, "PT0S"),
    (TimerKind.DURATION, "P1Y6M"),
    (TimerKind.DURATION, "=deadline"),
    (TimerKind.DATE, "2030-01-01T00:00:00Z"),
    (TimerKind.DATE, "=due"),
    (TimerKind.CYCLE, "R3/PT10S"),
    (TimerKind.CYCLE, "R/PT1H"),
    (TimerKind.CYCLE, "R/PT0.1S"),
    (TimerKind.CYCLE, "R/P1M"),
    (TimerKind.CYCLE, "=rule"),
    (TimerKind.CYCLE, "0 3 * * *"),
    (TimerKind.CYCLE, "*/30 0 3 * * *"),
]
BAD_TIMERS = [
    (TimerKind.DURATION, "", "a duration like"),
    (TimerKind.DURATION, "3 days", "a duration like"),
    (TimerKind.DATE, "tomorrow", "a date and time like"),
    (TimerKind.DURATION, "-PT5M", "in the past"),
    (TimerKind.DURATION, "-P1M", "in the past"),
    (TimerKind.DATE, "", "a date and time like"),
    (TimerKind.DATE, "2030-01-01T00:00:00", "zone"),
    (TimerKind.CYCLE, "", "a cycle like"),
    (TimerKind.CYCLE, "R3/often", "a cycle like"),
    (TimerKind.CYCLE, "R-1/PT1H", "a cycle like"),
    (TimerKind.CYCLE, "R/PT0S", "polling"),
    (TimerKind.CYCLE, "R/PT0.099S", "polling"),
    (TimerKind.CYCLE, "R/P0M", "polling"),
    (TimerKind.CYCLE, "PT1H", "a cycle like"),
    (TimerKind.CYCLE, "* * * *", "a cycle like"),
    (TimerKind.CYCLE, "* * * * * * *", "a cycle like"),
    (TimerKind.DATE, "=due +", "FEEL"),
]


@pytest.mark.parametrize(("kind", "value"), GOOD_TIMERS)
def test_a_timer_that_can_be_read_is_accepted(kind: TimerKind, value: str) -> None:
    clean(process(TASK, replace(ALARM, timer=Timer(kind, value), interrupting=False)))


@pytest.mark.parametrize(("kind", "value", "wanted"), BAD_TIMERS)
def test_a_timer_that_cannot_be_read_is_refused(kind: TimerKind, value: str, wanted: str) -> None:
    alarm = replace(ALARM, timer=Timer(kind, value), interrupting=False)
    told(process(TASK, alarm), "alarm", "timer of 'alarm'", wanted)


# --- activities -----------------------------------------------------------------------------------


def test_a_task_has_a_job_with_a_type() -> None:
    told(process(replace(TASK, job=None)), "task", "a job with a type")
    told(process(replace(TASK, job=JobSpec(""))), "task", "a job with a type")


def test_retries_are_a_number_within_the_limit() -> None:
    for good in ("0", str(RETRIES_MAX), "=retries"):
        clean(process(replace(TASK, job=JobSpec("work", good))))
    for bad in ("", "-1", str(RETRIES_MAX + 1), "many", "1.5", "²", "9" * 5_000):
        told(process(replace(TASK, job=JobSpec("work", bad))), "task", "from 0 to 1,000")


def test_a_call_names_a_process() -> None:
    told(process(replace(CALL, called="")), "call", "names none")


def test_an_expression_has_an_expression_and_a_result() -> None:
    told(process(replace(SUM, expression="")), "sum", "no expression")
    told(process(replace(SUM, result="")), "sum", "no result")


def test_a_loop_has_a_collection() -> None:
    told(process(replace(TASK, loop=Loop(""))), "task", "no collection")


def test_what_is_drawn_as_an_event_is_not_repeated() -> None:
    throw = replace(TASK, drawn_as="intermediateThrowEvent", loop=Loop("items"))
    told(process(throw), "task", "the form of an event")


def test_a_loop_has_both_or_neither_of_output_collection_and_item() -> None:
    told(process(replace(TASK, loop=Loop("a", output_collection="b"))), "task", "no output item")
    told(process(replace(TASK, loop=Loop("a", output_item="b"))), "task", "no output collection")
    clean(process(replace(TASK, loop=Loop("a", output_collection="b", output_item="c"))))


@pytest.mark.parametrize("target", ["a", "_a1", "order.total", "größe.x"])
def test_values_go_to_variables_and_into_them(target: str) -> None:
    mapping = (Mapping("x", target),)
    clean(process(replace(TASK, inputs=mapping, outputs=mapping, result=target)))


@pytest.mark.parametrize("target", ["", "1a", "a-b", "a.", ".a", "a..b", "a b", "a.1", "=a", "a\n"])
def test_values_do_not_go_anywhere_else(target: str) -> None:
    mapping = (Mapping("x", target),)
    told(process(replace(TASK, inputs=mapping)), "task", "target of an input", f"'{target}'")
    told(process(replace(TASK, outputs=mapping)), "task", "target of an output", f"'{target}'")
    if target:
        told(process(replace(TASK, result=target)), "task", "the result of", f"'{target}'")


def test_the_variables_of_a_loop_are_whole_variables() -> None:
    told(process(replace(TASK, loop=Loop("a", item="b.c"))), "task", "item variable", "'b.c'")
    outputs = Loop("a", output_collection="b.c", output_item="d")
    told(process(replace(TASK, loop=outputs)), "task", "output collection", "'b.c'")


# --- expressions ----------------------------------------------------------------------------------

WRONG = "a +"
EXPRESSIONS = [
    ("expression", replace(SUM, expression=WRONG)),
    ("message key", replace(WAIT, message=Message("m", WRONG))),
    ("message name", replace(WAIT, message=Message(f"={WRONG}", "k"))),
    ("collection", replace(TASK, loop=Loop(WRONG))),
    ("output item", replace(TASK, loop=Loop("a", output_collection="b", output_item=WRONG))),
    ("until condition", replace(TASK, loop=Loop("a", until=WRONG))),
    ("called process", replace(CALL, called=f"={WRONG}")),
    ("error code", replace(END, error=f"={WRONG}")),
    ("job type", replace(TASK, job=JobSpec(f"={WRONG}"))),
    ("retries", replace(TASK, job=JobSpec("work", f"={WRONG}"))),
    ("timer", replace(SOON, timer=Timer(TimerKind.DURATION, f"={WRONG}"))),
    ("source of input 'b'", replace(TASK, inputs=(Mapping(WRONG, "b"),))),
    ("source of output 'b'", replace(TASK, outputs=(Mapping(WRONG, "b"),))),
    ("source of input 'b'", replace(TASK, inputs=(Mapping("", "b"),))),
]


@pytest.mark.parametrize(("field", "element"), EXPRESSIONS)
def test_an_expression_that_is_not_one_is_told_with_its_field(field: str, element: Element) -> None:
    told(process(element), element.id, f"the {field} of '{element.id}'", "FEEL")


def test_a_condition_is_an_expression() -> None:
    ways = (flow("choice", "task", WRONG),)
    told(process(CHOICE, TASK, flows=ways), "choice--task", "the condition of", "FEEL")


def test_headers_and_names_are_texts() -> None:
    job = JobSpec("work", headers=(("a", f"={WRONG}"),))
    clean(process(replace(TASK, name=f"={WRONG}", job=job)))
