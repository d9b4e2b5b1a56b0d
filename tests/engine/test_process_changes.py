"""Cancel, modify and migrate: done as a whole, or refused and nothing is changed."""

from process_talk import INSTANCE, Talk

from holdfast.engine.kernel import Command, Reply
from holdfast.engine.processes.values import Activate, InstanceIntent, InstanceRef, NewInstance
from holdfast.model.definition import Definition, Element, ElementKind, Flow, JobSpec, Message
from holdfast.model.dsl import (
    Path,
    Process,
    after,
    error,
    message,
    on_message,
    over,
    path,
    timeout,
    when,
)


def refused(talk: Talk, before: list[tuple[bytes, bytes]], reply: Reply, element: str) -> None:
    """The reply names the element, and nothing has changed."""
    assert reply.rejection is not None, "it was not refused"
    assert element in reply.rejection.reason, reply.rejection.reason
    assert talk.dump() == before


NEST = Process("p").task("a").sub("s", path().sub("t", path().task("b"))).task("c")


# --- cancel -----------------------------------------------------------------------------------


def test_cancel_of_five_thousand_elements_lets_live_commands_pass(talk: Talk) -> None:
    talk.deploy(Process("p").task("a", each=over("for i in 1..5000 return i")))
    talk.deploy(Process("q").task("x"))
    key = talk.start()
    talk.pass_time(10)
    assert len(talk.active(key)) == 5_001
    steps, started = 0, []
    assert talk.do(Command(INSTANCE, InstanceIntent.CANCEL, key, InstanceRef())).rejection is None
    while talk.runs(key):
        steps += 1
        new = Command(INSTANCE, InstanceIntent.CREATE, 0, NewInstance("q"))
        started.append(talk.do(new).key)
        again = talk.do(Command(INSTANCE, InstanceIntent.CANCEL, key, InstanceRef()))
        assert again.rejection is not None
    assert steps >= 2, "each step ends a thousand at most"
    assert all(talk.active(each) == ["x"] for each in started)
    assert talk.outcome(key).state == "CANCELED"
    for each in started:
        talk.cancel(each)


def test_cancel_of_nobody_is_refused(talk: Talk) -> None:
    assert talk.cancel(12345).rejection.code == "NOT_FOUND"


# --- modify -----------------------------------------------------------------------------------


def test_activating_inside_a_sub_process_enters_it_with_its_inputs_and_events(talk: Talk) -> None:
    inner = path().task("b")
    late = timeout("PT10S", path().task("late"))
    process = Process("p").task("a").sub("s", inner, inputs={"x": "y + 1"}, on=[late])
    key = talk.run(process, y=1)
    talk.modify(key, "b", z=5)
    assert talk.active(key) == ["a", "s", "s/b"]
    assert talk.work("b") == {"x": 2, "y": 1, "z": 5}
    assert talk.active(key) == ["a"]
    talk.modify(key, Activate("b", variables=b'{"x":7}'))
    assert talk.variables(talk.element(key, "s")) == {"x": 7}
    talk.pass_time(10)
    assert talk.active(key) == ["a", "late"]
    talk.cancel(key)


def test_two_tokens_for_a_missing_scope_share_it(talk: Talk) -> None:
    key = talk.run(NEST)
    talk.modify(key, "b", "b", terminate_ids=("a",))
    assert talk.active(key) == ["s", "s/t", "s/t/b", "s/t/b"]
    talk.work("b")
    talk.work("b")
    talk.work("c")
    assert not talk.runs(key)


def test_tokens_move_and_scopes_that_are_empty_end(talk: Talk) -> None:
    key = talk.run(NEST)
    talk.modify(key, move=(("a", "b"),))
    assert talk.active(key) == ["s", "s/t", "s/t/b"]
    talk.modify(key, move=(("b", "c"),))
    assert talk.active(key) == ["c"]
    talk.work("c")
    assert not talk.runs(key)


def test_an_instance_that_loses_all_its_tokens_is_canceled(talk: Talk) -> None:
    key = talk.run(NEST)
    talk.modify(key, terminate_ids=("a",))
    assert talk.outcome(key).state == "CANCELED"


def test_a_called_instance_is_not_emptied_for_its_caller_waits(talk: Talk) -> None:
    talk.deploy(Process("q").sub("s", path().task("x")))
    key = talk.run(Process("p").call("call", process="q"))
    called = talk.instances("q")[0]
    before = talk.dump()
    refused(talk, before, talk.modify(called, terminate_ids=("x",)), "waits for its end")
    assert talk.modify(called, "x", terminate_ids=("x",)).rejection is None
    talk.work("x")
    assert not talk.runs(key)


def test_a_wrong_modification_names_its_element_and_changes_nothing(talk: Talk) -> None:
    process = (
        Process("p")
        .parallel(
            path().task("a", on=[timeout("PT9S", path().task("late"), id="timer")]),
            path().sub("many", path().task("b"), each=over("[1, 2]")),
            path().race(on_message("got", "m", "k"), after("gone", "PT1H")),
        )
        .sub("each", path().task("d"), each=over("[1]"))
        .sub("bad", path().task("e"), on=[message("m", key="missing", id="on")])
    )
    key = talk.run(process, k="k")
    before = talk.dump()
    refused(talk, before, talk.modify(key, "a", "nobody"), "'nobody'")
    refused(talk, before, talk.modify(key, "a", "start"), "'start' is a start event")
    refused(talk, before, talk.modify(key, "a", "timer"), "'timer' is a boundary event")
    refused(talk, before, talk.modify(key, "a", "got"), "'got' is an event behind")
    refused(talk, before, talk.modify(key, "a", "b"), "'many' is active 2 times")
    refused(talk, before, talk.modify(key, "a", "d"), "'each' around 'd'")
    refused(talk, before, talk.modify(key, "a", "e"), "'on'")
    refused(talk, before, talk.modify(key, "a", terminate=(key + 1_000,)), str(key + 1_000))
    refused(talk, before, talk.modify(key, "a", terminate_ids=("late",)), "'late'")
    refused(talk, before, talk.modify(key, move=(("late", "a"),)), "'late'")
    refused(talk, before, talk.modify(key, Activate("a", 5)), "5 to be a scope around 'a'")
    refused(talk, before, talk.modify(key, Activate("a", variables=b"[]")), "JSON object")
    refused(talk, before, talk.modify(key), "something to change")
    one = talk.element(key, "many*/many#1")
    assert talk.modify(key, Activate("b", one)).rejection is None
    assert talk.active(key).count("many*/many#1/b") == 2
    talk.cancel(key)
    assert talk.modify(key, "a").rejection.code == "NOT_FOUND"


def test_the_next_item_begins_when_the_one_before_is_taken_out(talk: Talk) -> None:
    each = over("[1, 2]", sequential=True, collect="all", result="item")
    key = talk.run(Process("p").task("a", each=each))
    talk.modify(key, terminate=(talk.element(key, "a*/a#1"),))
    assert talk.active(key) == ["a*", "a*/a#2"]
    talk.work("a")
    assert talk.result(key) == {"all": [None, 2]}


def test_a_token_put_on_a_join_goes_on_alone(talk: Talk) -> None:
    process = Process("p").parallel(path().task("a"), path().task("b"), id="fork").task("c")
    key = talk.run(process)
    talk.modify(key, "fork-join")
    assert talk.active(key) == ["a", "b", "c"]
    talk.cancel(key)


def test_what_is_canceled_and_modified_while_it_ends_is_refused(talk: Talk) -> None:
    key = talk.run(Process("p").task("a", each=over("for i in 1..1500 return i")))
    talk.do(Command(INSTANCE, InstanceIntent.CANCEL, key, InstanceRef()))
    assert talk.runs(key)
    new = talk.modify(key, "a")
    assert new.rejection is not None
    assert not talk.runs(key)


# --- migrate ----------------------------------------------------------------------------------


def test_migration_keeps_jobs_timers_subscriptions_and_incidents(talk: Talk) -> None:
    events = [timeout("PT60S", path().task("late")), message("m", path().task("x"), key="k")]
    old = Process("p").parallel(
        path().task("a", on=events),
        path().sub("s", path().task("b").compute("bad", "[1..2]", result="r")),
        id="fork",
    )
    new = Process("p").task("before").parallel(
        path().task("a2", on=events).task("more"),
        path().sub("s", path().task("b").compute("bad", "1", result="r")),
        id="fork",
    )  # fmt: skip
    talk.deploy(old)
    key = talk.start(k="k")
    job = talk.take("a")
    talk.work("b")
    due = {timer.due_ms for _, timer in talk.view.processes.timers.scan()}
    subscriptions = [each for each, _ in talk.view.processes.subscriptions.scan()]
    (incident,) = talk.incidents()
    talk.pass_time(5)
    target = talk.deploy(new)
    names = {"a": "a2", "a__timeout": "a2-timeout", "a__on__m": "a2-on-m"}
    assert talk.migrate(key, target, **names).rejection is None
    assert talk.active(key) == ["a2", "s", "s/bad"]
    assert {timer.due_ms for _, timer in talk.view.processes.timers.scan()} == due
    assert [each for each, _ in talk.view.processes.subscriptions.scan()] == subscriptions
    talk.check()
    talk.resolve(incident)
    assert talk.active(key) == ["a2"]
    talk.complete(job)
    assert talk.active(key) == ["more"]
    talk.work("more")
    assert not talk.runs(key)


def test_tokens_before_joins_that_change_places_go_along(talk: Talk) -> None:
    def process(*extra: str) -> Process:
        inner = path().parallel(path().task("c"), path().task("d"), id="two").task("e")
        said = Process("p")
        for each in extra:
            said = said.task(each)
        return said.parallel(path().task("a"), inner, id="one").task("end-task")

    talk.deploy(process())
    key = talk.start()
    talk.work("a")
    talk.work("c")
    assert talk.active(key) == ["d"]
    for extra in (("x",), ("x", "y", "z"), ()):
        assert talk.migrate(key, talk.deploy(process(*extra))).rejection is None
        talk.check()
    talk.work("d")
    talk.work("e")
    assert talk.active(key) == ["end-task"]
    talk.work("end-task")


def test_a_token_goes_on_where_the_new_version_has_nothing_to_wait_for(talk: Talk) -> None:
    def process(*paths: Path) -> Process:
        ways = [when("true", path().task("a")), *(when("true", each) for each in paths)]
        return Process("p").include(*ways, id="inc").task("last")

    talk.deploy(process(path().task("b"), path().task("c")))
    key = talk.start()
    talk.work("a")
    talk.work("c")
    assert talk.active(key) == ["b"]
    target = talk.deploy(process(path().task("b").end("done"), path().task("c")))
    assert talk.migrate(key, target).rejection is None
    assert talk.active(key) == ["b", "last"], "b ends for itself: the join has all that comes"
    talk.cancel(key)


def test_a_join_that_has_one_way_in_no_longer_lets_its_tokens_go(talk: Talk) -> None:
    def graph(*flows: tuple[str, str]) -> Definition:
        task = ElementKind.JOB
        elements = (
            Element("s", ElementKind.START), Element("fork", ElementKind.PARALLEL),
            Element("a", task, job=JobSpec("a")), Element("b", task, job=JobSpec("b")),
            Element("join", ElementKind.PARALLEL), Element("c", task, job=JobSpec("c")),
        )  # fmt: skip
        made = tuple(Flow(f"{source}-{target}", source, target) for source, target in flows)
        return Definition("p", elements, made)

    ways = [("s", "fork"), ("fork", "a"), ("fork", "b"), ("a", "join"), ("join", "c")]
    talk.deploy(graph(*ways, ("b", "join")))
    key = talk.start()
    talk.work("a")
    assert talk.active(key) == ["b"]
    assert talk.migrate(key, talk.deploy(graph(*ways))).rejection is None
    assert talk.active(key) == ["b", "c"]
    talk.work("b")
    talk.work("c")
    assert not talk.runs(key)


def test_boundaries_are_opened_and_closed_by_migration(talk: Talk) -> None:
    late = timeout("PT10S", path().task("late"))
    talk.deploy(Process("p").task("a", on=[late]))
    key = talk.start(k="k")
    stop = message("stop", path().task("undo"), key="k")
    assert talk.migrate(key, talk.deploy(Process("p").task("a", on=[stop]))).rejection is None
    talk.pass_time(20)
    assert talk.active(key) == ["a"]
    talk.publish("stop", "k")
    assert talk.active(key) == ["undo"]
    talk.work("undo")


def test_what_is_stuck_behind_its_work_is_migrated_with_its_timer(talk: Talk) -> None:
    def process(*extra: str) -> Process:
        said = Process("p")
        for each in extra:
            said = said.task(each)
        late = timeout("PT10S", path().task("late"))
        return said.task("a", outputs={"y": "[1..3]"}, on=[late])

    talk.deploy(process())
    key = talk.start()
    talk.work("a", {"x": 1})
    assert talk.incidents()
    assert talk.migrate(key, talk.deploy(process("new", "newer"))).rejection is None
    talk.check()
    talk.pass_time(10)
    assert talk.active(key) == ["late"]
    talk.work("late")


def test_items_get_no_boundary_events_of_their_own_by_migration(talk: Talk) -> None:
    talk.deploy(Process("p").task("a", each=over("[1, 2]")))
    key = talk.start()
    late = timeout("PT10S", path().task("late"))
    target = talk.deploy(Process("p").task("a", each=over("[1, 2]"), on=[late]))
    assert talk.migrate(key, target).rejection is None
    assert len(list(talk.view.processes.timers.scan())) == 1
    talk.pass_time(10)
    assert talk.active(key) == ["late"]
    talk.work("late")


def test_a_wrong_migration_names_its_element_and_changes_nothing(talk: Talk) -> None:
    soft = message("m", path().task("x"), key="k", interrupting=False, id="on")
    hard = message("m", path().task("x"), key="k", id="on")
    talk.deploy(
        Process("p").parallel(path().task("a", on=[soft]), path().sub("s", path().task("b")))
    )
    key = talk.start(k="k")
    talk.deploy(Process("other").task("a"))
    other = talk.view.processes.latest.get("other")
    flat = talk.deploy(Process("p").parallel(path().task("a", on=[soft]), path().task("b")))
    changed = talk.deploy(
        Process("p").parallel(path().task("a", on=[hard]), path().sub("s", path().task("b")))
    )
    each = talk.deploy(
        Process("p").parallel(
            path().task("a", on=[soft]), path().sub("s", path().task("b", each=over("[1]")))
        )
    )
    before = talk.dump()
    refused(talk, before, talk.migrate(key, other), "'s', which is active")
    refused(talk, before, talk.migrate(key, flat), "'s'")
    refused(talk, before, talk.migrate(key, flat, s="a"), "'s' and 'a' to be of one kind")
    refused(talk, before, talk.migrate(key, changed), "'on'")
    refused(talk, before, talk.migrate(key, changed, a=""), "'a', which is active")
    refused(talk, before, talk.migrate(key, each), "'b' and 'b' to be repeated alike")
    refused(talk, before, talk.migrate(key, each, nobody="a"), "'nobody'")
    talk.cancel(key)


def test_an_error_finds_its_way_after_migration(talk: Talk) -> None:
    talk.deploy(Process("p").task("a"))
    key = talk.start()
    job = talk.take("a")
    new = Process("p").task("z").task("a", on=[error("E", path().task("mend"))])
    assert talk.migrate(key, talk.deploy(new)).rejection is None
    talk.throw(job, "E")
    assert talk.active(key) == ["mend"]
    talk.work("mend")


def test_an_instance_becomes_one_of_another_process(talk: Talk) -> None:
    events = [timeout("PT60S", path().task("late")), message("m", path().task("x"), key="k")]
    talk.deploy(Process("p").task("a", on=events))
    other = talk.deploy(Process("q").task("b", on=events, type="a").task("more"))
    key = talk.start(k="k")
    job = talk.take("a")
    names = {"a": "b", "a__timeout": "b-timeout", "a__on__m": "b-on-m"}
    assert talk.migrate(key, other, **names).rejection is None
    assert talk.plan_of(key).process_id == "q"
    assert talk.view.processes.origin(talk.element(key, "b")).process_id == "q"
    talk.complete(job)
    talk.work("more")
    assert talk.outcome(key).type == "q"


def test_incidents_name_the_process_and_element_that_they_came_to_stop(talk: Talk) -> None:
    stuck = path().compute("bad", "[1..2]", result="r")
    fine = path().compute("good", "1", result="r")
    talk.deploy(Process("p").parallel(path().task("a"), stuck, id="fork"))
    other = talk.deploy(Process("q").parallel(path().task("z", type="a"), fine, id="fork"))
    key = talk.start()
    talk.fail(talk.take("a"))
    assert talk.migrate(key, other, a="z", bad="good").rejection is None
    found = {(each.process_id, each.element_id) for each in talk.incidents().values()}
    assert found == {("q", "z"), ("q", "good")}
    talk.check()
    for incident in talk.incidents():
        talk.resolve(incident)
    talk.work("a")
    assert talk.result(key) == {"r": 1}


def test_the_lock_of_a_message_start_goes_along_to_another_process(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    other = talk.deploy(Process("q").starts(message="n").task("a"))
    talk.publish("m", "k")
    (key,) = talk.instances()
    talk.publish("m", "k", ttl=60)
    assert talk.instances() == [key], "the first message's instance has not ended"
    assert talk.migrate(key, other).rejection is None
    assert len(talk.instances("p")) == 1, "the message that was kept starts the next one"
    talk.publish("n", "k", ttl=60)
    assert talk.instances("q") == [key], "one instance of a process for a key"
    talk.check()
    talk.cancel(key)
    assert len(talk.instances("q")) == 1
    for each in talk.instances():
        talk.cancel(each)


def test_an_instance_does_not_come_to_a_process_that_has_one_for_its_key(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    other = talk.deploy(Process("q").starts(message="m").task("a"))
    talk.publish("m", "k")
    (ours,), (theirs,) = talk.instances("p"), talk.instances("q")
    refused(talk, talk.dump(), talk.migrate(ours, other), f"instance {theirs} holds the lock")
    talk.cancel(theirs)
    assert talk.migrate(ours, other).rejection is None
    talk.cancel(ours)


def test_an_instance_that_ends_as_it_migrates_gives_its_own_lock_back(talk: Talk) -> None:
    """Its last token waits before a join that waits for nothing in the other process."""

    def graph(id_: str, *flows: tuple[str, str]) -> Definition:
        elements = (
            Element("s", ElementKind.START, message=Message(f"start-{id_}")),
            Element("fork", ElementKind.PARALLEL), Element("join", ElementKind.PARALLEL),
            *(Element(each, ElementKind.JOB, job=JobSpec(each)) for each in "ab"),
        )  # fmt: skip
        made = tuple(Flow(f"{source}-{target}", source, target) for source, target in flows)
        return Definition(id_, elements, made)

    ways = [("s", "fork"), ("fork", "a"), ("fork", "b"), ("a", "join")]
    talk.deploy(graph("p", *ways, ("b", "join")))
    other = talk.deploy(graph("q", *ways))
    talk.publish("start-p", "k")
    (key,) = talk.instances()
    talk.work("a")
    talk.modify(key, terminate_ids=("b",))
    assert talk.runs(key)
    assert talk.migrate(key, other).rejection is None
    assert not talk.runs(key)
    talk.publish("start-p", "k")
    assert len(talk.instances("p")) == 1, "the key is free again"
    talk.cancel(talk.instances("p")[0])


def test_a_waiting_element_counts_for_the_process_that_it_came_to(talk: Talk) -> None:
    wait = Process("p").wait("w", message="m", key="k")
    talk.deploy(wait)
    other = talk.deploy(Process("q").wait("w", message="m", key="k"))
    first, second = talk.start(k="k"), talk.start(k="k")
    assert talk.migrate(second, other).rejection is None
    talk.publish("m", "k")
    assert not talk.runs(first) and not talk.runs(second), "one instance of each process"


def test_a_message_that_another_process_has_not_had_is_given_after_migration(talk: Talk) -> None:
    talk.deploy(Process("p").wait("w", message="m", key="k"))
    other = talk.deploy(Process("q").wait("w", message="m", key="k"))
    first = talk.start(k="k")
    talk.publish("m", "k", ttl=60)
    assert not talk.runs(first)
    second = talk.start(k="k")
    assert talk.runs(second), "an instance of its process has had the message"
    assert talk.migrate(second, other).rejection is None
    assert not talk.runs(second)
