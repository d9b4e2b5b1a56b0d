"""A bad model cannot disable a node: loops without a wait, tokens and calls that multiply."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from bombs import BOMBS, ENDS, HELD, LIMIT, Bomb, call, exclusive, fork, job, none, over, process
from process_checks import check_end, check_invariants
from process_talk import INSTANCE, Talk

from holdfast.engine.jobs.values import JobBatchIntent, JobList
from holdfast.engine.kernel import Command, Submission
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.values import Advance, InstanceIntent, InstanceRef, NewInstance
from holdfast.records import ValueType

ROOM = "holdfast.engine.processes"
LOWERED = {
    f"{ROOM}.walk.LOOP_MOVES_MAX": 5_000, f"{ROOM}.bounds.LOOP_MOVES_MAX": 5_000,
    f"{ROOM}.bounds.SCOPE_TOKENS_MAX": 200, f"{ROOM}.tree.SCOPE_TOKENS_MAX": 200,
    f"{ROOM}.bounds.SCOPE_TOKENS_LOOK": 20, f"{ROOM}.walk.SCOPE_TOKENS_LOOK": 20,
    f"{ROOM}.bounds.INSTANCE_ITEMS_MAX": 500, f"{ROOM}.bounds.INSTANCE_TOKENS_MAX": 2_000,
    f"{ROOM}.bounds.TREE_RECURSIONS_MAX": 100, f"{ROOM}.bounds.TREE_INSTANCES_MAX": 150,
}  # fmt: skip
STEPS_MAX = 6_000
BEYOND = {  # ... the lowered limits, not those that hold elsewhere
    "a fork of 2,000 ways", "very many items", "very many items, one after another",
    "items of items",
}  # fmt: skip


@pytest.fixture
def lowered() -> Iterator[None]:
    """Limits that are reached in no time."""
    with ExitStack() as patches:
        for name, value in LOWERED.items():
            patches.enter_context(patch(name, value))
        yield


def create(talk: Talk, process_id: str = "p") -> int:
    """Starts a process and nothing else: what it puts off is still to come."""
    (reply,) = talk.submit(Command(INSTANCE, InstanceIntent.CREATE, 0, NewInstance(process_id)))
    return reply.key


def cancel_alone(talk: Talk, key: int) -> None:
    talk.step([Submission([Command(INSTANCE, InstanceIntent.CANCEL, key, InstanceRef())])])


def run(talk: Talk, steps_max: int = STEPS_MAX, seconds: float = 0) -> None:
    """Steps until nothing is due; every step is a bounded one."""
    until = talk.now_ms + seconds * 1_000
    for _ in range(steps_max):
        if not talk.processor.has_leftover and not talk._is_due():
            due_ms = talk.processor.next_due_ms()
            if due_ms is None or due_ms > until:
                return
            talk.now_ms = due_ms
        written = len(talk.log)
        talk.step()
        size = sum(len(entry.payload) for entry in talk.log[written:])
        assert size < 4_000_000, f"a step of {size} bytes"
    raise AssertionError(f"it went on after {steps_max} steps")


# --- the table --------------------------------------------------------------------------------


@pytest.mark.usefixtures("lowered")
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_a_bomb_is_stopped_by_one_incident_and_can_be_canceled(bomb: Bomb) -> None:
    talk = Talk()
    for each in bomb.definitions:
        talk.deploy(each)
    key = create(talk)
    run(talk, seconds=bomb.seconds)
    check_invariants(talk.view)
    incidents = list(talk.incidents().values())
    outcome = HELD if bomb.name in BEYOND else bomb.outcome
    if outcome in (HELD, LIMIT):
        (incident,) = incidents
        assert incident.reason in ("LOOP_LIMIT", "LIMIT_REACHED" if outcome == LIMIT else "")
        for each in bomb.loop.split(" -> "):
            assert re.search(rf"\b{each}\b", incident.error), incident.error
    else:
        assert not incidents
        assert talk.runs(key) == (outcome != ENDS)
    if talk.runs(key):
        cancel_alone(talk, key)
        run(talk)
    assert not talk.instances() and not talk.bugs
    check_end(talk.dump())
    assert talk.replayed().state.dump() == talk.dump()


@pytest.mark.usefixtures("lowered")
@pytest.mark.parametrize("seed", range(8))
def test_wherever_time_cuts_a_step_the_log_is_a_legal_one(seed: int) -> None:
    random = Random(seed)
    bomb = random.choice([each for each in BOMBS if not each.seconds])
    talk, clock = Talk(), 0.0

    def ticks() -> float:
        nonlocal clock
        clock += random.choice((0.0, 0.0, 0.001, 0.02))
        return clock

    talk.processor.measure(ticks)
    for each in bomb.definitions:
        talk.deploy(each)
    key = create(talk)
    for _ in range(300):
        if not talk.processor.has_leftover and not talk._is_due():
            break
        talk.step()
        if not talk.processor.has_leftover:
            check_invariants(talk.view)
    if talk.runs(key):
        cancel_alone(talk, key)
    run(talk, 30_000)
    assert not talk.instances() and not talk.bugs
    check_end(talk.dump())
    assert talk.replayed().state.dump() == talk.dump()


# --- an incident and another budget -----------------------------------------------------------

LOOP = process("p", [exclusive(), none("a")], "s > x > a > x")
DOUBLING = process("p", [exclusive(), fork()], "s > x > f > x; f > x")


@pytest.mark.usefixtures("lowered")
def test_resolving_the_incident_of_a_loop_gives_it_as_many_moves_again(talk: Talk) -> None:
    talk.run(LOOP)
    assert "Moved 5,00" in talk.incident().error and "x -> a -> x" in talk.incident().error
    written = len(talk.log)
    assert talk.resolve().rejection is None
    moves = [
        len(record.value.ops)
        for record in talk.records()[written:]
        if isinstance(record.value, Advance)
    ]
    assert 4_900 < sum(moves) < 5_300
    assert talk.incident().reason == "LOOP_LIMIT"


@pytest.mark.usefixtures("lowered")
def test_resolving_the_incident_of_a_scope_allows_as_many_tokens_again(talk: Talk) -> None:
    key = talk.run(DOUBLING)
    tokens = talk.view.processes.instances.get(key).tokens
    assert 200 < tokens < 210
    talk.resolve()
    assert 400 < talk.view.processes.instances.get(key).tokens < 410
    talk.cancel(key)
    assert not talk.runs(key)


@pytest.mark.usefixtures("lowered")
def test_a_held_instance_goes_on_when_the_element_that_holds_it_is_ended(talk: Talk) -> None:
    key = talk.run(DOUBLING)
    held = talk.incident().element_key
    talk.modify(key, terminate=(held,))
    assert talk.incident().element_key != held  # the others went on until the limit


@pytest.mark.usefixtures("lowered")
def test_the_rest_of_a_held_instance_goes_on(talk: Talk) -> None:
    """Only what was put off waits: a worker's report moves its token as ever."""
    elements = [fork("g"), job("j"), none("z"), exclusive(), fork()]
    key = talk.run(process("p", elements, "s > g > j > z; g > x > f > x; f > x"))
    assert talk.incident().reason == "LOOP_LIMIT"
    talk.work("nobody")
    assert "j" not in talk.active(key)


def test_a_wait_gives_a_loop_a_new_budget(talk: Talk, lowered: None) -> None:
    key = talk.run(process("p", [exclusive(), job("j")], "s > x > j > x"))
    for _ in range(20):
        talk.work("nobody")
    assert not talk.incidents() and talk.active(key) == ["j"]


def test_items_that_wait_for_workers_are_no_moves(talk: Talk) -> None:
    """However many there are, and however fast they are taken away."""
    with patch(f"{ROOM}.bounds.LOOP_MOVES_MAX", 500), patch(f"{ROOM}.walk.LOOP_MOVES_MAX", 500):
        key = talk.run(process("p", [job("j", loop=over("2000"))], "s > j"))
    assert not talk.incidents() and len(talk.active(key)) == 2_001


@pytest.mark.usefixtures("lowered")
def test_a_tree_of_calls_has_one_incident_and_one_queue(talk: Talk) -> None:
    elements = [fork(), call("a", "p"), call("b", "p")]
    key = talk.run(process("p", elements, "s > f > a; f > b"))
    assert len(talk.instances()) > 100 and len(talk.incidents()) == 1
    roots = {root for (root, _), _ in talk.view.processes.deferred.scan()}
    assert roots == {key}


# --- live commands, cancel and restart --------------------------------------------------------


def purge() -> Submission:
    """A live command that changes nothing."""
    wake = Command(ValueType.JOB_BATCH, JobBatchIntent.WAKE, 0, JobList(()))
    return Submission([wake], object())


@pytest.mark.parametrize(
    "name", ["tokens double", "a process that calls itself twice", "calls in a loop"]
)
def test_a_live_command_is_answered_by_the_second_step(name: str) -> None:
    (bomb,) = [each for each in BOMBS if each.name == name]
    talk = Talk()
    for each in bomb.definitions:
        talk.deploy(each)
    create(talk)
    for _ in range(10):
        asked = purge()
        talk.step([asked])
        if id(asked.ticket) not in talk.answers:
            talk.step()
        assert id(asked.ticket) in talk.answers


def test_a_canceled_instance_does_nothing_more_of_its_own() -> None:
    talk = Talk()
    talk.deploy(DOUBLING)
    key = create(talk)
    for _ in range(5):
        talk.step()
    cancel_alone(talk, key)
    written = len(talk.log)
    run(talk)
    done = [
        type(op).__name__
        for record in talk.records()[written:]
        if isinstance(record.value, Advance)
        for op in record.value.ops
    ]
    assert "Passed" not in done and "Activated" not in done and "Terminated" in done


def test_a_tree_of_many_calls_is_canceled_in_bounded_steps_over_restarts() -> None:
    talk = Talk()
    talk.deploy(process("p", [call("c", "q", over("1500"))], "s > c"))
    talk.deploy(process("q", [job("j")], "s > j"))
    key = create(talk)
    run(talk, seconds=60)
    assert len(talk.instances()) == 1_501
    cancel_alone(talk, key)
    assert talk.view.processes.instances.get(key).phase is Phase.TERMINATING
    steps = 0
    while talk.processor.has_leftover or talk._is_due():
        written = len(talk.log)
        talk.step()
        assert sum(len(entry.payload) for entry in talk.log[written:]) < 1_000_000
        steps += 1
        if steps in (1, 2):
            talk.restart(with_store=steps == 1)
    assert steps > 2 and not talk.instances() and not talk.bugs
    check_end(talk.dump())


@pytest.mark.usefixtures("lowered")
def test_a_bomb_that_restarts_after_every_step_writes_the_same_log() -> None:
    def told(restarting: bool) -> Any:
        talk = Talk()
        talk.deploy(DOUBLING)
        create(talk)
        while talk.processor.has_leftover or talk._is_due():
            talk.step()
            if restarting:
                talk.restart(with_store=False)
        return [entry.payload for entry in talk.log], talk.dump()

    assert told(restarting=True) == told(restarting=False)
