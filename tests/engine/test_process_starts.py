"""How instances begin by themselves: at a time, again and again, by a message."""

from datetime import UTC, datetime, timedelta

import msgspec
from partition_driver import START_MS
from process_talk import Talk, deployment

from holdfast.engine.processes.values import InstanceIntent, NewInstance, ProcessIntent
from holdfast.model.definition import Definition, ElementKind, Mapping
from holdfast.model.dsl import Process, path
from holdfast.records import ValueType

NOW = datetime.fromtimestamp(START_MS / 1_000, UTC)


def stop_all(talk: Talk) -> None:
    for key in talk.instances():
        talk.cancel(key)


def test_a_process_starts_at_its_moment_once(talk: Talk) -> None:
    talk.deploy(Process("p").starts(at=NOW + timedelta(seconds=10)).task("a"))
    talk.advance(9_999)
    assert not talk.instances()
    talk.advance(1)
    assert len(talk.instances()) == 1
    talk.pass_time(100)
    assert len(talk.instances()) == 1
    stop_all(talk)


def test_a_moment_that_is_over_starts_nothing(talk: Talk) -> None:
    talk.deploy(Process("p").starts(at=NOW - timedelta(seconds=1)).task("a"))
    talk.pass_time(10)
    assert not talk.instances()


def test_a_process_starts_as_often_as_its_cycle_says(talk: Talk) -> None:
    talk.deploy(Process("p").starts(every="R2/PT10S").task("a"))
    for started in (1, 2, 2):
        talk.pass_time(10)
        assert len(talk.instances()) == started
    stop_all(talk)


def test_two_cycles_that_meet_both_start(talk: Talk) -> None:
    process = Process("p").starts(every="R/PT10S").starts(every="R/PT20S", id="slow").task("a")
    talk.deploy(process)
    talk.write_state()
    for started in (1, 3, 4, 6):
        talk.pass_time(10)
        assert len(talk.instances()) == started
    stop_all(talk)


def test_a_new_version_replaces_the_starts_of_the_old_one(talk: Talk) -> None:
    talk.deploy(Process("p").starts(every="R/PT10S").starts(message="m").task("a"))
    talk.pass_time(10)
    talk.deploy(Process("p").starts(every="R/PT30S").starts(message="n").task("b"))
    talk.pass_time(29)
    talk.publish("m", "k")
    assert len(talk.instances()) == 1
    talk.pass_time(1)
    talk.publish("n", "k")
    assert [talk.active(key) for key in talk.instances()] == [["a"], ["b"], ["b"]]
    stop_all(talk)


def test_a_message_starts_an_instance_with_its_variables(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    talk.publish("m", "k", x=1)
    assert talk.work("a") == {"x": 1}
    assert not talk.instances()


def test_messages_with_one_key_start_one_instance_after_another(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    for number in (1, 2, 3):
        talk.publish("m", "k", ttl=100, n=number)
    talk.publish("m", "other", n=0)
    talk.publish("m", "k", n=4)  # not kept: nobody is there to take it
    assert len(talk.instances()) == 2
    assert talk.work("a") == {"n": 1}
    assert talk.work("a") == {"n": 0}
    assert talk.work("a") == {"n": 2}
    talk.cancel(talk.instances()[0])
    assert not talk.instances(), "the third message was the next; it is canceled now"


def test_the_next_kept_message_starts_when_the_instance_is_canceled(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    talk.publish("m", "k", ttl=100, n=1)
    talk.publish("m", "k", ttl=100, n=2)
    talk.cancel(talk.instances()[0])
    assert talk.work("a") == {"n": 2}
    assert not talk.instances()


def test_messages_without_a_key_start_as_many_as_they_are(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    for _ in range(3):
        talk.publish("m", "")
    assert len(talk.instances()) == 3
    stop_all(talk)


def test_a_message_starts_one_process_and_wakes_another(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    waiting = talk.run(Process("q").wait("w", message="m", key='"k"'))
    talk.publish("m", "k")
    assert not talk.runs(waiting) and len(talk.instances("p")) == 1
    stop_all(talk)


def test_what_only_a_message_starts_is_not_started_by_asking(talk: Talk) -> None:
    talk.deploy(Process("p").starts(message="m").task("a"))
    reply = talk.ask(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, 0, NewInstance("p"))
    assert reply.rejection.code == "INVALID_STATE"
    reply = talk.ask(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, 0, NewInstance("nobody"))
    assert reply.rejection.code == "NOT_FOUND"


def test_the_same_content_is_no_new_version(talk: Talk) -> None:
    key = talk.deploy(Process("p").task("a"))
    same = deployment(Process("p").task("a"))
    reply = talk.ask(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, same)
    assert (reply.rejection.code, reply.key) == ("ALREADY_EXISTS", key)
    assert talk.deploy(Process("p").task("b")) != key


def test_an_idempotency_key_names_one_instance(talk: Talk) -> None:
    talk.deploy(Process("p").task("a"))
    new = NewInstance("p", idempotency_key="once", window_ms=60_000, keep_ms=60_000)
    first = talk.ask(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, 0, new)
    again = talk.ask(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, 0, new)
    assert (again.rejection.code, again.key) == ("ALREADY_EXISTS", first.key)
    talk.work("a", {"x": 1})
    assert talk.view.jobs.outcome(first.key).result == b'{"x":1}'


# --- outputs of start events ------------------------------------------------------------------


def with_outputs(process: Process, *outputs: Mapping) -> Definition:
    """The process with these outputs at each start."""
    definition = process.definition()
    elements = [
        msgspec.structs.replace(each, outputs=outputs) if each.kind is ElementKind.START else each
        for each in definition.elements
    ]
    return msgspec.structs.replace(definition, elements=tuple(elements))


def test_outputs_of_a_plain_start_are_variables_of_the_instance(talk: Talk) -> None:
    definition = with_outputs(Process("p").task("a"), Mapping("y + 1", "x"))
    key = talk.run(definition, y=1)
    assert talk.work("a") == {"x": 2, "y": 1}
    assert talk.result(key) == {"x": 2, "y": 1}


def test_outputs_of_a_start_inside_a_sub_process_are_seen_in_it(talk: Talk) -> None:
    inner = Process("p").sub("s", path().task("a"), inputs={"x": "0"})
    talk.run(with_outputs(inner, Mapping("y", "x")), y=5)
    assert talk.work("a") == {"x": 5, "y": 5}


def test_of_a_message_only_the_outputs_of_its_start_reach_the_instance(talk: Talk) -> None:
    talk.deploy(with_outputs(Process("p").starts(message="m").task("a"), Mapping("y * 2", "x")))
    talk.publish("m", "k", y=4, z=1)
    assert talk.work("a") == {"x": 8}


def test_outputs_of_a_timer_start_run(talk: Talk) -> None:
    talk.deploy(with_outputs(Process("p").starts(every="R1/PT10S").task("a"), Mapping("1", "x")))
    talk.pass_time(10)
    assert talk.work("a") == {"x": 1}


def test_outputs_of_a_start_that_fail_are_an_incident_that_is_tried_again(talk: Talk) -> None:
    broken = Mapping('if y = null then [1..2] else "is " + y', "x")
    talk.deploy(with_outputs(Process("p").task("a"), broken))
    key = talk.start()
    assert talk.active(key) == ["start"]
    assert talk.incident().reason == "EXPRESSION_FAILED"
    talk.set(key, y="there")
    talk.resolve()
    assert talk.work("a") == {"x": "is there", "y": "there"}


def test_a_message_is_not_lost_when_the_outputs_of_its_start_fail(talk: Talk) -> None:
    broken = Mapping("if z = null then [1..2] else y", "x")
    talk.deploy(with_outputs(Process("p").starts(message="m").task("a"), broken))
    talk.publish("m", "k", y=7)
    (key,) = talk.instances()
    talk.set(key, z=1)
    talk.resolve()
    assert talk.work("a") == {"x": 7, "z": 1}
