"""Processes said in Python, and the graphs that they become."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_processes import Game, processes, unreachable

import holdfast.model.dsl as dsl
from holdfast.model.check import ModelError, problems
from holdfast.model.definition import (
    Element,
    ElementKind,
    JobSpec,
    Loop,
    Mapping,
    Message,
    Timer,
    TimerKind,
    decode_definition,
    encode_definition,
)
from holdfast.model.dsl import (
    Process,
    after,
    error,
    every,
    message,
    on_message,
    otherwise,
    over,
    path,
    timeout,
    when,
)


def drawn(process: Process) -> str:
    """The flows of a process in their order, with where boundary events are."""
    definition = process.definition()
    elements = {element.id: element for element in definition.elements}

    def line(source: str, target: str, condition: str, id_: str) -> str:
        found = elements[source]
        beside = f" beside {found.host}" if found.host else ""
        beside += "" if found.interrupting else " meanwhile"
        way = f" if {condition}" if condition else " otherwise" if found.default == id_ else ""
        return f"{source}{beside} -> {target}{way}"

    return "\n".join(
        line(flow.source, flow.target, flow.condition, flow.id) for flow in definition.flows
    )


def same(process: Process, expected: str) -> None:
    assert drawn(process) == dedent(expected).strip()


def element(process: Process, id_: str) -> Element:
    [found] = [each for each in process.definition().elements if each.id == id_]
    return found


def refused(process: Process, element_id: str, *words: str) -> None:
    with pytest.raises(ModelError) as caught:
        process.definition()
    assert caught.value.fields["element"] == element_id
    for word in words:
        assert word in caught.value.message


def test_the_public_names_are_these() -> None:
    assert dsl.__all__ == [
        "Branch", "Catch", "Duration", "Event", "Mappings", "Moment", "Path", "Process", "after",
        "error", "every", "message", "on_message", "otherwise", "over", "path", "timeout", "when",
    ]  # fmt: skip
    assert all(hasattr(dsl, name) for name in dsl.__all__)


def order() -> Process:
    return (
        Process("order", name="Order")
        .task(
            "charge",
            type="charge-card",
            retries=5,
            inputs={"amount": "total"},
            outputs={"receipt": "receiptId"},
            headers={"region": "eu"},
        )
        .choose(
            when("total > 100", path().task("review")),
            otherwise(path().task("pack")),
        )
        .parallel(
            path().task("invoice"),
            path().wait("paid", message="payment", key="orderId", within="P3D"),
        )
        .end()
    )


def test_an_order_becomes_this_graph() -> None:
    same(
        order(),
        """
        start -> charge
        charge -> charge-choice
        charge-choice -> review if total > 100
        charge-choice -> pack otherwise
        review -> charge-merge
        pack -> charge-merge
        charge-merge -> charge-fork
        charge-fork -> invoice
        charge-fork -> paid
        invoice -> charge-join
        paid -> charge-join
        paid-timeout beside paid -> paid-late
        charge-join -> end
        """,
    )
    definition = order().definition()
    assert (definition.id, definition.name) == ("order", "Order")
    assert [flow.id for flow in definition.flows[:2]] == ["start--charge", "charge--charge-choice"]


def test_the_same_program_gives_the_same_bytes() -> None:
    assert encode_definition(order().definition()) == encode_definition(order().definition())


def test_a_process_shows_its_steps() -> None:
    assert repr(order()) == (
        "Process('order': charge, choose(review | pack), parallel(invoice | paid), end)"
    )
    looped = path().sub("s", path().task("t")).go_to("s")
    assert repr(looped) == "path(s(t), go_to(s))"
    raced = path().race(after("late", "PT1H", path().end("over")), on_message("m", "n", "k"))
    assert repr(raced) == "path(race(late, over | m))"
    assert repr(path()) == "path(...)"


def test_each_call_leaves_what_it_was_called_on_as_it_was() -> None:
    base = Process("p").task("a")
    one, two = base.task("b"), base.starts(message="m").task("c")
    assert [each.id for each in base.definition().elements] == ["start", "a", "end"]
    assert [each.id for each in one.definition().elements] == ["start", "a", "b", "end"]
    assert [each.id for each in two.definition().elements] == ["start-m", "a", "c", "end"]


# --- steps and their elements ---------------------------------------------------------------------


def test_a_task_is_a_job() -> None:
    assert element(order(), "charge") == Element(
        "charge",
        ElementKind.JOB,
        job=JobSpec("charge-card", "5", (("region", "eu"),)),
        inputs=(Mapping("total", "amount"),),
        outputs=(Mapping("receiptId", "receipt"),),
    )
    assert element(order(), "review").job == JobSpec("review", "3")
    given = Process("p").task("a", retries="=retries", result="r", name="Charge")
    found = element(given, "a")
    assert (found.job, found.result, found.name) == (JobSpec("a", "=retries"), "r", "Charge")


def test_an_expression_is_computed() -> None:
    found = element(Process("p").compute("sum", "= a + b", result="c"), "sum")
    assert found == Element("sum", ElementKind.EXPRESSION, expression="a + b", result="c")


def test_expressions_may_begin_with_an_equals_sign() -> None:
    process = Process("p").task("a", inputs={"x": "=y"}).choose(when("= y > 1", path().task("b")))
    assert element(process, "a").inputs == (Mapping("y", "x"),)
    assert "a-choice -> b if y > 1" in drawn(process)


def test_waiting_for_a_message_is_an_event() -> None:
    found = element(Process("p").wait("paid", message="payment", key="orderId"), "paid")
    assert found == Element("paid", ElementKind.CATCH, message=Message("payment", "orderId"))


def test_waiting_within_a_time_is_a_task_with_a_timer_and_an_error_that_a_person_sees() -> None:
    process = Process("p").wait("paid", message="m", key="k", within=timedelta(days=3))
    assert element(process, "paid").drawn_as == "receiveTask"
    assert element(process, "paid-timeout") == Element(
        "paid-timeout", ElementKind.BOUNDARY, timer=Timer(TimerKind.DURATION, "P3D"), host="paid"
    )
    assert element(process, "paid-late") == Element("paid-late", ElementKind.END, error="paid-late")


def test_a_late_path_leads_back() -> None:
    same(
        Process("p").wait(
            "paid", message="m", key="k", within="P3D", late=path().task("remind")
        ).task("ship"),
        """
        start -> paid
        paid -> ship
        paid-timeout beside paid -> remind
        remind -> ship
        ship -> end
        """,
    )  # fmt: skip


def test_a_late_path_needs_a_time() -> None:
    with pytest.raises(ModelError, match="'paid' to have within, because"):
        Process("p").wait("paid", message="m", key="k", late=path())


def test_a_pause_has_a_duration_or_a_moment() -> None:
    def timer(process: Process) -> Timer | None:
        return element(process, "a").timer

    assert timer(Process("p").pause("a", "PT5M")) == Timer(TimerKind.DURATION, "PT5M")
    assert timer(Process("p").pause("a", "=delay")) == Timer(TimerKind.DURATION, "=delay")
    text = "2030-01-01T00:00:00+00:00"
    assert timer(Process("p").pause("a", until=text)) == Timer(TimerKind.DATE, text)
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert timer(Process("p").pause("a", until=moment)) == Timer(TimerKind.DATE, text)
    with pytest.raises(ModelError, match="'a' to have a duration or a moment, but it has both"):
        Process("p").pause("a", "PT5M", until=text)
    with pytest.raises(ModelError, match="but it has neither"):
        Process("p").pause("a")
    with pytest.raises(ModelError, match="moment of 'a' to have a time zone"):
        Process("p").pause("a", until=moment.replace(tzinfo=None))


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "PT0S"),
        (timedelta(days=2), "P2D"),
        (timedelta(days=1, hours=2, minutes=3, seconds=4), "P1DT2H3M4S"),
        (timedelta(milliseconds=1_500), "PT1.5S"),
    ],
)
def test_a_timedelta_is_a_duration(span: timedelta, text: str) -> None:
    assert element(Process("p").pause("a", span), "a").timer == Timer(TimerKind.DURATION, text)


def test_a_sub_process_has_its_own_start_and_end() -> None:
    process = Process("p").sub("pack", path().task("wrap"), inputs={"a": "b"}).task("ship")
    same(
        process,
        """
        start -> pack
        pack -> ship
        pack-start -> wrap
        wrap -> pack-end
        ship -> end
        """,
    )
    scopes = {each.id: each.scope for each in process.definition().elements}
    assert {id_ for id_, scope in scopes.items() if scope == "pack"} == {
        "pack-start",
        "wrap",
        "pack-end",
    }


def test_a_call_starts_another_process() -> None:
    found = element(
        Process("p").call("pay", process="payment", outputs={"a": "b"}, pass_all=False), "pay"
    )
    assert found == Element(
        "pay", ElementKind.CALL, called="payment", outputs=(Mapping("b", "a"),), pass_all=False
    )


def test_activities_are_repeated_over_items() -> None:
    each = over("= items", item="line", sequential=True, collect="all", result="=r", until="=done")
    assert each == Loop("items", "line", True, "all", "r", "done")
    assert over("items") == Loop("items", "item")
    process = (
        Process("p").task("a", each=each).sub("b", path(), each=each).call(
            "c", process="x", each=each
        )
    )  # fmt: skip
    assert [found.loop for found in process.definition().elements if found.loop] == [each] * 3


# --- ways that part -------------------------------------------------------------------------------


def test_without_an_otherwise_nothing_is_done() -> None:
    same(
        Process("p").task("a").choose(when("x", path().task("b"))).task("c"),
        """
        start -> a
        a -> a-choice
        a-choice -> b if x
        a-choice -> a-merge otherwise
        b -> a-merge
        a-merge -> c
        c -> end
        """,
    )


def test_ways_keep_the_order_in_which_they_were_written() -> None:
    chosen = drawn(
        Process("p").choose(when("x"), when("y", path().task("b")), otherwise(), when("z"))
    )
    assert [line.split(" -> ")[1] for line in chosen.splitlines()[1:5]] == [
        "start-merge if x",
        "b if y",
        "start-merge otherwise",
        "start-merge if z",
    ]


def test_where_one_way_goes_on_nothing_is_merged() -> None:
    same(
        Process("p").task("a").choose(when("bad", path().fail("no", error="BAD"))).task("b"),
        """
        start -> a
        a -> a-choice
        a-choice -> no if bad
        a-choice -> b otherwise
        b -> end
        """,
    )


def test_an_inclusive_choice_joins() -> None:
    process = Process("p").task("a").include(
        when("x", path().task("b")), when("y", path().task("c"))
    )  # fmt: skip
    same(
        process,
        """
        start -> a
        a -> a-include
        a-include -> b if x
        a-include -> c if y
        a-include -> a-include-join otherwise
        b -> a-include-join
        c -> a-include-join
        a-include-join -> end
        """,
    )
    assert element(process, "a-include-join").kind is ElementKind.INCLUSIVE


def test_the_first_event_of_a_race_decides() -> None:
    process = Process("p").race(
        on_message("paid", "payment", "orderId", path().task("ship")),
        after("late", "PT1H"),
        id="which",
    )
    same(
        process,
        """
        start -> which
        which -> paid
        which -> late
        paid -> ship
        ship -> which-merge
        late -> which-merge
        which-merge -> end
        """,
    )
    assert element(process, "which").kind is ElementKind.EVENT_GATEWAY
    assert element(process, "paid").message == Message("payment", "orderId")


def test_a_path_reaches_a_join_by_one_flow() -> None:
    same(
        Process("p").task("a").parallel(
            path().task("b", on=[timeout("PT1H")]), path().task("c")
        ),
        """
        start -> a
        a -> a-fork
        a-fork -> b
        a-fork -> c
        b -> b-merge
        b-timeout beside b -> b-merge
        c -> a-join
        b-merge -> a-join
        a-join -> end
        """,
    )  # fmt: skip


def test_paths_that_end_are_not_joined() -> None:
    same(
        Process("p").parallel(path().task("a").end(), path().task("b")).task("c"),
        """
        start -> start-fork
        start-fork -> a
        start-fork -> b
        a -> a-end
        b -> c
        c -> end
        """,
    )


def test_a_join_never_waits_for_a_path_that_may_have_ended() -> None:
    perhaps = path().task("a").choose(when("x", path().end("over")))
    refused(
        Process("p").parallel(perhaps, path().task("b")), "over", "'start-fork'", "'start-join'"
    )
    deeper = path().choose(when("x", path().parallel(path().end("over"), path().end())))
    refused(Process("p").parallel(deeper, path()), "over")
    beside = path().task("a", on=[error("E", path().end("over"))])
    refused(Process("p").parallel(beside, path()), "over")
    thrown = path().task("a").choose(when("x", path().fail("over", error="E")))
    assert Process("p").parallel(thrown, path()).definition()


def test_a_fork_is_reached_by_one_flow() -> None:
    same(
        Process("p")
        .task("a", on=[timeout("PT1H")])
        .parallel(path().task("b"), path().task("c"), id="fork")
        .choose(when("again", path().go_to("fork"))),
        """
        start -> a
        a -> fork-entry
        a-timeout beside a -> fork-entry
        fork -> b
        fork -> c
        b -> fork-join
        c -> fork-join
        fork-join -> fork-choice
        fork-choice -> fork-entry if again
        fork-choice -> end otherwise
        fork-entry -> fork
        """,
    )


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: path().parallel(path()), "at least 2 paths, but there are 1"),
        (lambda: path().race(after("a", "PT1H")), "at least 2 events, but there are 1"),
        (lambda: path().choose(otherwise(path())), "at least 1 conditions, but there are 0"),
        (lambda: path().include(), "at least 1 conditions"),
        (lambda: path().choose(when("x"), otherwise(), otherwise()), "at most one otherwise"),
    ],
)
def test_what_makes_no_choice_is_refused(build: object, words: str) -> None:
    assert callable(build)
    with pytest.raises(ModelError, match=words):
        build()


# --- events beside activities ---------------------------------------------------------------------


def test_events_wait_beside_their_host_and_lead_back_or_end() -> None:
    process = (
        Process("p")
        .task(
            "a",
            on=[
                error("OUT_OF_STOCK", path().task("reorder")),
                error("", path().fail("failed", error="FAILED")),
                timeout(timedelta(minutes=5)),
                message("cancel", path().terminate("stop"), key="orderId"),
                message("ask me", path().task("answer"), key="orderId", interrupting=False),
                every("R/PT1H", path().task("remind"), id="hourly"),
            ],
        )
        .task("b")
    )
    same(
        process,
        """
        start -> a
        a -> b
        a-on-OUT_OF_STOCK beside a -> reorder
        reorder -> b
        a-on-error beside a -> failed
        a-timeout beside a -> b
        a-on-cancel beside a -> stop
        a-on-ask_me beside a meanwhile -> answer
        answer -> answer-end
        hourly beside a meanwhile -> remind
        remind -> remind-end
        b -> end
        """,
    )
    assert element(process, "a-on-cancel").message == Message("cancel", "orderId")
    assert element(process, "a-on-error").error == ""
    assert element(process, "hourly").timer == Timer(TimerKind.CYCLE, "R/PT1H")
    assert element(process, "stop").terminate


def test_a_message_wait_has_events_too() -> None:
    process = Process("p").wait("a", message="m", key="k", on=[every(timedelta(hours=1))])
    assert element(process, "a").drawn_as == "receiveTask"
    assert element(process, "a-every").timer == Timer(TimerKind.CYCLE, "R/PT1H")


# --- starts and ends ------------------------------------------------------------------------------


def test_a_process_without_steps_begins_and_ends() -> None:
    same(Process("p"), "start -> end")


def test_starts_are_instead_of_the_plain_one_or_beside_it() -> None:
    same(Process("p").starts(message="placed").task("a"), "start-placed -> a\na -> end")
    process = (
        Process("p")
        .starts()
        .starts(message="placed")
        .starts(every="R/PT1H")
        .starts(at="2030-01-01T00:00:00Z", id="once")
        .starts(every="0 3 * * *")
        .parallel(path().task("a"), path().task("b"))
    )
    assert [
        (each.id, each.timer, each.message)
        for each in process.definition().elements
        if each.kind is ElementKind.START
    ] == [
        ("start", None, None),
        ("start-placed", None, Message("placed")),
        ("start-timer", Timer(TimerKind.CYCLE, "R/PT1H"), None),
        ("once", Timer(TimerKind.DATE, "2030-01-01T00:00:00Z"), None),
        ("start-timer-2", Timer(TimerKind.CYCLE, "0 3 * * *"), None),
    ]
    assert "once -> start-fork-entry" in drawn(process)


def test_a_start_has_one_reason() -> None:
    with pytest.raises(ModelError, match="'begin' to have one of message, every and at"):
        Process("p").starts(message="m", every="R/PT1H", id="begin")


def test_nothing_follows_an_end() -> None:
    both_end = (when("x", path().end()), otherwise(path().fail("no", error="E")))
    for closed, last in (
        (path().task("a").end(), "end"),
        (path().end("over"), "over"),
        (path().go_to("a"), r"go_to\(a\)"),
        (path().choose(*both_end), r"choose\(end \| no\)"),
        (path().parallel(path().end("x"), path().end("y")), r"parallel\(x \| y\)"),
    ):
        with pytest.raises(ModelError, match=f"nothing to follow '{last}'.* but 'ship' does"):
            closed.task("ship")
    half = path().choose(when("x", path().end()))
    assert half.task("ship")


def test_a_way_back_is_a_flow() -> None:
    same(
        Process("p")
        .task("charge")
        .choose(
            when("declined", path().task("ask").go_to("charge")),
            when("again", path().go_to("charge")),
        ),
        """
        start -> charge
        charge -> charge-choice
        charge-choice -> ask if declined
        charge-choice -> charge if again
        charge-choice -> end otherwise
        ask -> charge
        """,
    )


def test_a_way_leads_to_what_the_same_token_can_reach() -> None:
    refused(Process("p").task("a").go_to("gone"), "gone", "go_to('gone') after 'a'", "is none")
    refused(Process("p").task("a").sub("s", path().go_to("a")), "a", "beyond the sub-process")
    out = path().task("b").choose(when("x", path().go_to("a")))
    refused(Process("p").task("a").parallel(out, path()), "a", "parallel")
    beside = [every("R/PT1H", path().go_to("a"))]
    refused(Process("p").task("a", on=beside), "a", "event path")
    refused(
        Process("p").parallel(path(), path()).choose(when("x", path().go_to("start-join"))),
        "start-join",
        "it is a join",
    )
    refused(Process("p").task("a").go_to("start"), "start", "no flow to lead to 'start'")


# --- ids ------------------------------------------------------------------------------------------


def ids(process: Process) -> list[str]:
    return [each.id for each in process.definition().elements]


def test_ids_are_derived_from_neighbours_and_numbered_on_repeats() -> None:
    nested = path().choose(when("w", path().end()))
    process = (
        Process("p")
        .task("a")
        .choose(when("x", path().task("b")))
        .choose(when("y"), when("z", nested))
    )
    assert ids(process) == [
        "start", "a", "a-choice", "b", "a-merge", "a-choice-2", "a-choice-3", "a-end", "a-merge-2",
        "end",
    ]  # fmt: skip


def test_a_change_elsewhere_keeps_derived_ids() -> None:
    def tail(process: Process) -> Process:
        return process.task("z").choose(when("x", path().task("y"))).parallel(path(), path())

    before = set(ids(tail(Process("p").task("a"))))
    changed = set(ids(tail(Process("p").task("a").choose(when("x", path().task("b"))).task("c"))))
    assert before < changed


def test_ids_that_were_given_are_never_derived() -> None:
    process = Process("end").task("a").choose(when("x", path().task("a-choice"))).task("start")
    assert ids(process) == [
        "start-2", "a", "a-choice-2", "a-choice", "a-merge-2", "start", "end-2",
    ]  # fmt: skip


def test_an_id_is_given_once() -> None:
    refused(Process("p").task("a").task("a"), "a", "two elements are called 'a'")
    shared = path().task("b")
    refused(Process("p").parallel(shared, shared), "b", "two elements are called 'b'")


def test_long_ids_leave_room_for_derived_ones() -> None:
    long = "x" * 190
    process = Process("p").task(long, on=[error("E" * 190)]).choose(when("x", path().task("y")))
    assert max(len(each.id) for each in process.definition().flows) <= 200


def test_a_wrong_process_is_refused_with_the_name_of_the_element() -> None:
    refused(Process("p").task("1st"), "1st", "'1st'")
    refused(Process("p").task("a", retries=-1), "a", "retries of task 'a'")
    refused(Process("p").pause("a", "soon"), "a", "timer of 'a'")
    refused(Process("p").compute("a", "1 +", result="x"), "a", "expression of 'a'")
    refused(Process("p").task("a", outputs={"x-y": "1"}), "a", "target of an output of 'a'")


def test_a_definition_is_the_same_after_it_was_stored() -> None:
    definition = order().definition()
    assert decode_definition(encode_definition(definition)) == definition


# --- all programs ---------------------------------------------------------------------------------


@given(processes())
def test_whatever_is_said_is_a_clean_graph_all_of_which_can_be_reached(process: Process) -> None:
    definition = process.definition()
    assert problems(definition) == []
    assert unreachable(definition) == set()
    assert encode_definition(process.definition()) == encode_definition(definition)
    ends = {each.id for each in definition.elements if each.kind is ElementKind.END}
    assert {each.id for each in definition.elements} - {
        flow.source for flow in definition.flows
    } == ends


@given(processes(), st.integers(0, 1_000))
def test_whatever_is_said_no_token_is_left_behind(process: Process, seed: int) -> None:
    definition = process.definition()
    scopes = [each.id for each in definition.elements if each.kind is ElementKind.SUBPROCESS]
    for scope in ["", *scopes]:
        assert Game(definition, scope, seed).play() == set()


@pytest.mark.parametrize(
    ("named", "make"),
    [
        ("x", lambda: Process("p").pause("x", 2)),
        ("x", lambda: Process("p").pause("x", until=2)),
        ("x", lambda: Process("p").wait("x", message="m", key="k", within=1.5)),
        ("x", lambda: after("x", 3)),
        ("timeout", lambda: timeout(10)),
        ("every", lambda: every(60)),
        ("start of p", lambda: Process("p").starts(every=5)),
        ("start of p", lambda: Process("p").starts(at=1_700_000_000)),
    ],
)
def test_a_time_of_a_wrong_type_is_refused_with_the_name_of_its_element(
    named: str, make: Callable[[], object]
) -> None:
    with pytest.raises(
        ModelError, match=f"of '{named}' to be a .* but found [0-9.]+ \\("
    ) as caught:
        make()
    assert caught.value.fields["element"] == named
