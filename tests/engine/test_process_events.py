"""Times, messages and errors: waiting for them, and beside an activity."""

from datetime import UTC, datetime, timedelta

import pytest
from partition_driver import START_MS
from process_talk import Talk

from holdfast.engine.messages.values import MessageIntent, NewMessage
from holdfast.model.dsl import Process, error, every, message, over, path, timeout
from holdfast.records import ValueType

NOW = datetime.fromtimestamp(START_MS / 1_000, UTC)


# --- times ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wait",
    [
        {"duration": "PT10S"},
        {"duration": '=duration("PT" + string(n) + "S")'},
        {"duration": "=span"},
        {"until": (NOW + timedelta(seconds=10)).isoformat()},
        {"until": "=moment"},
    ],
)
def test_a_pause_ends_at_its_time_and_not_before(talk: Talk, wait: dict[str, str]) -> None:
    moment = (NOW + timedelta(seconds=10)).isoformat()
    key = talk.run(Process("p").pause("pause", **wait), n=10, span="PT10S", moment=moment)
    talk.advance(9_999)
    assert talk.active(key) == ["pause"]
    talk.advance(1)
    assert not talk.runs(key)


def test_a_moment_that_is_over_is_not_waited_for(talk: Talk) -> None:
    key = talk.run(Process("p").pause("pause", until="2020-01-01T00:00:00Z"))
    assert not talk.runs(key)


def test_a_time_that_cannot_be_read_is_an_incident(talk: Talk) -> None:
    key = talk.run(Process("p").pause("pause", "=span"), span="soon")
    assert talk.incident().reason == "EXPRESSION_FAILED"
    talk.set(key, span="PT1S")
    talk.resolve()
    talk.pass_time(1)
    assert not talk.runs(key)


def test_a_timeout_interrupts_and_its_path_goes_on(talk: Talk) -> None:
    process = Process("p").task("a", on=[timeout("PT10S", path().task("late"))]).task("b")
    talk.deploy(process)
    key = talk.start()
    job = talk.take("a")
    talk.pass_time(10)
    assert talk.active(key) == ["late"]
    assert talk.complete(job).rejection.code == "NOT_FOUND", "its job is canceled"
    talk.work("late")
    talk.work("b")
    key = talk.start()
    talk.work("a")
    assert talk.active(key) == ["b"]
    talk.pass_time(20)
    assert talk.active(key) == ["b"], "the timer is gone with the activity"
    talk.work("b")


def test_a_timeout_that_does_not_interrupt_happens_beside(talk: Talk) -> None:
    soft = timeout("PT10S", path().task("remind"), interrupting=False)
    key = talk.run(Process("p").task("a", on=[soft]).task("b"))
    talk.pass_time(30)
    assert talk.active(key) == ["a", "remind"], "it happens once"
    talk.work("a")
    talk.work("b")
    assert talk.runs(key), "the reminder is not done"
    talk.work("remind")
    assert not talk.runs(key)


def test_a_cycle_happens_as_often_as_it_says(talk: Talk) -> None:
    key = talk.run(Process("p").task("a", on=[every("R3/PT10S", path().task("tick"))]))
    for ticks in (1, 2, 3, 3):
        talk.pass_time(10)
        assert talk.active(key).count("tick") == ticks
    talk.work("a")
    for _ in range(3):
        talk.work("tick")
    assert not talk.runs(key)


def test_a_cycle_for_ever_keeps_its_beat_and_ends_with_its_host(talk: Talk) -> None:
    beat = path().compute("c", "n + 1", result="n")
    key = talk.run(Process("p").task("a", on=[every("R/PT10S", beat)]), n=0)
    talk.now_ms += 35_000  # nobody was there for a while
    talk.settle()
    assert talk.variables(key)["n"] == 3
    talk.pass_time(5)
    assert talk.variables(key)["n"] == 4, "at 40 s, whenever the others were noticed"
    talk.work("a")
    talk.pass_time(100)
    assert talk.result(key)["n"] == 4


@pytest.mark.parametrize("cycle", ["R/PT0S", "R3/-PT1S", "R3", "nonsense"])
def test_a_cycle_that_would_never_pause_is_an_incident(talk: Talk, cycle: str) -> None:
    key = talk.run(Process("p").task("a", on=[every("=cycle", path().task("b"))]), cycle=cycle)
    assert talk.incident().reason == "EXPRESSION_FAILED"
    talk.cancel(key)


# --- messages ---------------------------------------------------------------------------------

WAIT = Process("p").wait("wait", message="m", key="order")


def test_a_message_comes_to_the_one_that_waits_with_its_key(talk: Talk) -> None:
    talk.deploy(WAIT)
    one, two = talk.start(order="1"), talk.start(order=2)
    talk.publish("m", "2", x=5)
    assert talk.runs(one)
    assert talk.result(two) == {"order": 2, "x": 5}
    talk.publish("other", "1")
    talk.publish("m", "3")
    assert talk.runs(one)
    talk.publish("m", "1")
    assert talk.result(one) == {"order": "1"}


def test_a_message_is_kept_for_those_that_wait_later_and_no_longer(talk: Talk) -> None:
    talk.deploy(WAIT)
    talk.publish("m", "k", ttl=10, n=1)
    assert talk.result(talk.start(order="k"))["n"] == 1
    talk.pass_time(10)
    key = talk.start(order="k")
    assert talk.runs(key)
    talk.publish("m", "k", n=2)
    assert talk.result(key)["n"] == 2


def test_a_message_without_a_time_to_live_is_gone_at_once(talk: Talk) -> None:
    talk.deploy(WAIT)
    talk.publish("m", "k")
    key = talk.start(order="k")
    assert talk.runs(key)
    talk.cancel(key)


def test_the_same_message_id_is_not_published_twice_while_it_is_kept(talk: Talk) -> None:
    talk.deploy(WAIT)
    first = talk.publish("m", "k", ttl=10, message_id="id")
    again = talk.publish("m", "k", ttl=10, message_id="id")
    assert again.rejection.code == "ALREADY_EXISTS" and again.key == first.key
    assert talk.publish("m", "other", ttl=10, message_id="id").rejection is None
    talk.pass_time(10)
    assert talk.publish("m", "k", ttl=10, message_id="id").rejection is None


def test_each_process_gets_a_message_and_one_instance_of_each(talk: Talk) -> None:
    talk.deploy(WAIT)
    talk.deploy(Process("q").wait("wait", message="m", key="order"))
    first, second, other = talk.start(order="k"), talk.start(order="k"), talk.start("q", order="k")
    talk.publish("m", "k", ttl=10)
    assert [talk.runs(key) for key in (first, second, other)] == [False, True, False]
    assert talk.runs(talk.start(order="k")), "the kept message was had by an instance"
    talk.publish("m", "k")
    talk.publish("m", "k")
    assert not talk.instances()


def test_a_message_interrupts_the_activity_beside_which_it_is_waited_for(talk: Talk) -> None:
    stop = message("stop", path().task("undo"), key="k")
    key = talk.run(Process("p").task("a", on=[stop]).task("b"), k="x")
    talk.publish("stop", "x", why="because")
    assert talk.active(key) == ["undo"]
    assert talk.work("undo") == {"k": "x", "why": "because"}
    talk.work("b")
    assert not talk.runs(key)


def test_messages_that_do_not_interrupt_may_be_many(talk: Talk) -> None:
    news = message("news", path().task("read"), key="k", interrupting=False)
    talk.deploy(Process("p").task("a", on=[news]))
    talk.publish("news", "x", ttl=60)
    key = talk.start(k="x")
    assert talk.active(key) == ["a", "read"], "a kept one at once"
    for _ in range(3):
        talk.publish("news", "x", ttl=60)
    assert talk.active(key) == ["a", "read", "read", "read", "read"]
    talk.work("a")
    talk.publish("news", "x")
    for _ in range(4):
        talk.work("read")
    assert not talk.runs(key)


def test_a_correlation_key_that_is_no_text_is_an_incident(talk: Talk) -> None:
    key = talk.run(WAIT, order=None)
    assert talk.incident().element_id == "wait"
    talk.set(key, order="k")
    talk.resolve()
    talk.publish("m", "k")
    assert not talk.runs(key)


@pytest.mark.parametrize("variables", [b"5", b"{", b'{"": 1}'])
def test_a_message_with_no_variables_but_something_else_is_refused(
    talk: Talk, variables: bytes
) -> None:
    talk.deploy(WAIT)
    key = talk.start(order="k")
    value = NewMessage("m", "k", variables)
    reply = talk.ask(ValueType.MESSAGE, MessageIntent.PUBLISH, 0, value)
    assert reply.rejection.code == "INVALID_ARGUMENT"
    talk.cancel(key)


# --- errors -----------------------------------------------------------------------------------


def test_the_nearest_boundary_with_the_code_catches_and_else_the_one_for_all(talk: Talk) -> None:
    process = Process("p").task(
        "a", on=[error("", path().task("any")), error("E", path().task("known"))]
    )
    talk.deploy(process)
    for code, wanted in (("E", "known"), ("F", "any")):
        key = talk.start()
        talk.throw(talk.take("a"), code, x=1)
        assert talk.active(key) == [wanted]
        assert talk.work(wanted) == {"x": 1}
        assert not talk.runs(key)


def test_an_error_nobody_catches_is_an_incident_of_its_job_which_runs_again(talk: Talk) -> None:
    process = Process("p").task("a", retries=5, on=[timeout("PT10S", path().task("late"))])
    key = talk.run(process)
    job = talk.take("a")
    talk.throw(job, "E")
    incident = talk.incident()
    assert (incident.reason, incident.job_key) == ("UNHANDLED_ERROR", job.key)
    assert (incident.element_id, incident.job_type) == ("a", "a")
    assert not talk.take_all("a"), "nobody gets it while a person looks"
    assert talk.throw(job, "E").rejection.code == "INVALID_STATE", "thrown twice"
    talk.resolve(retries=0)
    again = talk.take("a")
    assert (again.key, again.retries) == (job.key, 5), "it threw, it did not fail"
    talk.check()
    talk.throw(again, "E")
    talk.pass_time(10)
    assert talk.active(key) == ["late"], "its timer went on"
    assert not talk.incidents()
    talk.work("late")


def test_an_item_whose_error_nobody_catches_keeps_its_job(talk: Talk) -> None:
    key = talk.run(Process("p").task("a", each=over("[1, 2]")))
    jobs = talk.take_all("a")
    for job in jobs:
        talk.throw(job, "E")
    assert {each.job_key for each in talk.incidents().values()} == {job.key for job in jobs}
    for incident in talk.incidents():
        talk.resolve(incident)
    assert [job.key for job in talk.take_all("a")] == [job.key for job in jobs]
    talk.cancel(key)


def test_an_instance_with_a_thrown_error_is_canceled_with_its_incident(talk: Talk) -> None:
    key = talk.run(Process("p").task("a"))
    talk.throw(talk.take("a"), "E")
    assert talk.cancel(key).rejection is None
    assert not talk.incidents() and not talk.runs(key)


def test_an_error_end_inside_a_sub_process_is_caught_at_its_boundary(talk: Talk) -> None:
    inner = path().parallel(path().task("a"), path().task("b").fail("broken", error="E"))
    process = Process("p").sub("sub", inner, on=[error("E", path().task("mend"))]).task("after")
    key = talk.run(process)
    talk.work("b", {"x": 1})
    assert talk.active(key) == ["mend"]
    talk.work("mend")
    talk.work("after")
    assert talk.result(key) == {"x": 1}


def test_an_error_end_nobody_catches_is_an_incident_that_can_be_resolved_later(talk: Talk) -> None:
    key = talk.run(Process("p").task("a").fail("broken", error="E"))
    talk.work("a")
    assert talk.incident().element_id == "broken"
    talk.resolve()
    assert talk.incident().element_id == "broken"
    talk.cancel(key)


def test_a_timeout_of_what_is_stuck_takes_nothing_of_its_result_along(talk: Talk) -> None:
    process = Process("p").task(
        "a", outputs={"y": "[1..3]"}, on=[timeout("PT10S", path().task("late"))]
    )
    key = talk.run(process)
    talk.work("a", {"z": 1})
    assert "range" in talk.incident().error
    talk.pass_time(10)
    assert not talk.incidents()
    assert talk.work("late") == {}
    assert not talk.runs(key)
