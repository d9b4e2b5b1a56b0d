"""Nothing that goes wrong in a step costs more than the command that it went wrong in."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_driver import Driver

from holdfast import testing
from holdfast.engine.batch.values import BatchesChanged, BatchOperationEnded
from holdfast.engine.distribution.values import CommandTaken, DistributionFinished, Sending
from holdfast.engine.jobs.values import (
    JobEnded,
    JobsAvailable,
    JobsReported,
    JobState,
    Outcome,
    TaskDefined,
)
from holdfast.engine.kernel import (
    Command,
    CommandRefused,
    Domain,
    DueCommand,
    Processor,
    Reply,
    Submission,
    Turn,
    careful,
)
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.parcels.values import Parcel, ParcelReady, ParcelsReceived
from holdfast.engine.transactions.values import TransactionDecided, TransactionState
from holdfast.errors import Code
from holdfast.limits import DUE_BUG_PAUSE_MS, ENTRY_BYTES_MAX
from holdfast.records import Delivery, Record, RecordKind, ValueType
from holdfast.records.record import Value
from holdfast.state import PartitionState
from holdfast.state.keys import U64
from holdfast.state.memory import MemoryStore

BOX = ValueType.JOB
HUGE = 2**64


class BoxIntent(IntEnum):
    PUT = 0  # puts what it is given
    PUTTED = 1
    RUN = 2  # does what the test has left in `SCRIPTS`
    CHANGED = 3  # an event whose applier does what the test has left
    ATTEMPT = 4  # a PUT of each content as an item of its own


class Thing(Value, frozen=True, tag=1):
    content: Any = None
    script: int = 0


SCRIPTS: dict[int, Callable[..., None]] = {}


def script(what: Callable[..., None]) -> Thing:
    SCRIPTS[len(SCRIPTS)] = what
    return Thing(script=len(SCRIPTS) - 1)


class Box:
    def __init__(self, state: PartitionState) -> None:
        self.things = state.family(1, U64, Any)


def put(turn: Turn[Box], command: Record) -> None:
    turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), command.value)
    turn.effect_once("put")


def run(turn: Turn[Box], command: Record) -> None:
    SCRIPTS[command.value.script](turn)


def attempt(turn: Turn[Box], command: Record) -> None:
    answers: list[Any] = []
    for content in command.value.content:
        value = SCRIPTS[content] if callable(content) else Thing(content)
        tried = Record(0, RecordKind.COMMAND, BOX, BoxIntent.PUT, 0, -1, 0, value)
        answers.append(turn.attempt(tried))
    turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), Thing("attempted"))
    turn.answer([each and each.code for each in answers])


def putted(box: Box, event: Record) -> None:
    box.things.insert(event.key, event.value.content)


def changed(box: Box, event: Record) -> None:
    box.things.insert(event.key, "half")
    SCRIPTS[event.value.script](box)


DISPATCH = Dispatch(
    [
        Domain(
            BOX,
            BoxIntent,
            dict.fromkeys(BoxIntent, Thing),
            {BoxIntent.PUT: put, BoxIntent.RUN: run, BoxIntent.ATTEMPT: attempt},
            {BoxIntent.PUTTED: putted, BoxIntent.CHANGED: changed},
        )
    ]
)


class Due:
    """Commands that are due until the test takes them away; or a source that throws."""

    def __init__(self) -> None:
        self.commands: list[DueCommand] = []
        self.error: Exception | None = None
        self.put_off_ones: list[DueCommand] = []

    def due(self, now_ms: int, limit: int) -> list[DueCommand]:
        if self.error is not None:
            raise self.error
        return self.commands

    def next_due_ms(self) -> int | None:
        if self.error is not None:
            raise self.error
        return None

    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """There are no leases."""

    def put_off(self, command: DueCommand, now_ms: int) -> None:
        self.put_off_ones.append(command)


DUE = Due()


def open_box(store: MemoryStore, partition: int) -> Processor[Any]:
    DUE.__init__()
    state = PartitionState(store, partition)
    return Processor(state, Box(state), DISPATCH, DUE)


@pytest.fixture
def driver() -> Driver:
    return Driver(open_box, DISPATCH.codec)


def put_command(content: Any) -> Command:
    return Command(BOX, BoxIntent.PUT, 0, Thing(content))


def run_command(what: Callable[..., None], **more: Any) -> Command:
    return Command(BOX, BoxIntent.RUN, 0, script(what), **more)


def contents(driver: Driver) -> list[Any]:
    return [content for _, content in driver.view.things.scan()]


def check_log(driver: Driver) -> None:
    """The log can be read, has no gaps, and leads to the state that there is."""
    assert [each.position for each in driver.records()] == list(range(len(driver.log)))
    assert driver.replayed().state.dump() == driver.dump()


# --- a handler that throws, behind each kind of effect ----------------------------------------

CLAIMS = {"name": "ann", "groups": ["a", "b"], "more": {"x": 1}}
PARCEL = Parcel(1, 2, 1, 0, 0, 0, b"")
EFFECTS: dict[str, Any] = {
    "JobEnded": JobEnded(1, Outcome(JobState.COMPLETED, b"null", "", 0)),
    "JobsAvailable": JobsAvailable(1, "t"),
    "JobsReported": JobsReported("t", 5, 3, completed=1),
    "TaskDefined": TaskDefined(1, "t"),
    "ParcelReady": ParcelReady(PARCEL),
    "ParcelsReceived": ParcelsReceived(1, 2, 3),
    "Sending": Sending((2,), Command(BOX, BoxIntent.PUT, 0, Thing({"a": []}), CLAIMS), 1),
    "CommandTaken": CommandTaken(1, 2),
    "CommandRefused": CommandRefused(1, 2, "no"),
    "DistributionFinished": DistributionFinished(1),
    "TransactionDecided": TransactionDecided(1, TransactionState.ABORTED),
    "BatchesChanged": BatchesChanged(1),
    "BatchOperationEnded": BatchOperationEnded(1, {"a": []}, {"b": []}, 0),  # pyright: ignore
    "nothing that can be hashed": {"a": [1]},
}


def test_every_effect_that_is_delivered_is_tried() -> None:
    """The examples are those that the runtime knows: a new effect has to be added to them."""

    async def story() -> set[str]:
        node = await testing.MemoryNode().start()
        return {effect.__name__ for effect in node.node.runtime.effects}

    known = testing.run(story())
    assert known and known <= set(EFFECTS)


@pytest.mark.parametrize("name", EFFECTS)
def test_a_handler_that_throws_behind_any_effect_costs_its_command_alone(
    driver: Driver, name: str
) -> None:
    def throws(turn: Turn[Box]) -> None:
        turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), Thing("gone"))
        turn.effect_once("put")
        turn.effect(EFFECTS[name])
        turn.command(BOX, BoxIntent.PUT, 0, Thing("never"))
        raise ZeroDivisionError("a bug")

    before, broken, after = driver.submit(
        put_command(1), run_command(throws, claims=CLAIMS), put_command(2)
    )
    assert before.rejection is None and after.rejection is None
    assert broken.rejection is not None and broken.rejection.code == Code.INTERNAL
    assert contents(driver) == [1, 2]
    assert driver.effects == ["put"]
    check_log(driver)


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def too_deep() -> None:
    too_deep()


ERRORS: list[Callable[[], Any]] = [
    too_deep,
    lambda: bytearray(2**62),  # MemoryError
    lambda: exec("raise Mute()", {"Mute": Mute}),
    lambda: exec("raise ValueError('\\ud800')"),
    lambda: exec(f"raise ValueError('x' * {ENTRY_BYTES_MAX + 1})"),
    lambda: exec("raise ExceptionGroup('many', [ValueError('one')])"),
]


@pytest.mark.parametrize("error", ERRORS, ids=["depth", "memory", "mute", "half", "long", "group"])
def test_whatever_a_handler_throws_the_rejection_can_be_stored(
    driver: Driver, error: Callable[[], Any]
) -> None:
    delivery = Delivery()
    replies = driver.submit(
        put_command(1), run_command(lambda turn: error(), delivery=delivery), put_command(2)
    )
    assert [each.rejection and each.rejection.code for each in replies] == [None, "INTERNAL", None]
    assert contents(driver) == [1, 2]
    (refused,) = [each for each in driver.effects if isinstance(each, CommandRefused)]
    assert len(refused.reason) <= 10_000
    check_log(driver)


def test_an_applier_that_throws_leaves_nothing_of_its_command(driver: Driver) -> None:
    def change(turn: Turn[Box]) -> None:
        turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), Thing("gone"))
        turn.event(BOX, BoxIntent.CHANGED, turn.new_key(), script(lambda box: too_deep()))

    _, broken, _ = driver.submit(put_command(1), run_command(change), put_command(2))
    assert broken.rejection is not None and "RecursionError" in broken.rejection.reason
    assert contents(driver) == [1, 2]
    check_log(driver)


# --- around the commands ----------------------------------------------------------------------


def test_a_source_of_due_commands_that_throws_stops_nothing_and_is_asked_again(
    driver: Driver,
) -> None:
    DUE.error = KeyError("kind")
    assert driver.processor.next_due_ms() is not None, "a step is to find out"
    step = driver.step([Submission([put_command(1)], object())])
    assert contents(driver) == [1] and len(step.replies) == 1
    (bug,) = step.bugs
    assert "KeyError" in bug
    assert driver.processor.next_due_ms() == driver.now_ms + DUE_BUG_PAUSE_MS
    assert driver.step([Submission([put_command(2)])]).bugs == [], "not at every step"
    driver.now_ms += DUE_BUG_PAUSE_MS
    assert len(driver.step().bugs) == 1
    DUE.error, DUE.commands = None, [DueCommand(BOX, BoxIntent.PUT, 0, Thing("due"))]
    driver.now_ms += DUE_BUG_PAUSE_MS
    driver.step()
    assert contents(driver) == [1, 2, "due"]
    check_log(driver)


def test_a_due_command_that_is_refused_is_put_off(driver: Driver) -> None:
    good = DueCommand(BOX, BoxIntent.PUT, 0, Thing("due"))
    bad = DueCommand(BOX, BoxIntent.RUN, 0, script(lambda turn: too_deep()))
    wrong = DueCommand(BOX, BoxIntent.PUT, 0, Thing(HUGE))
    DUE.commands = [good, bad, wrong]
    driver.step([Submission([put_command(1)])])
    assert contents(driver) == ["due", 1]
    assert [each.intent for each in DUE.put_off_ones if each is not wrong] == [BoxIntent.RUN] * 2, (
        "once for the quick way and once for the careful one"
    )
    assert wrong in DUE.put_off_ones and good not in DUE.put_off_ones


def test_a_demand_that_throws_keeps_what_it_asked_for_before(driver: Driver) -> None:
    ticket = object()

    def demand(effects: list[Any]) -> Iterable[Submission]:
        yield Submission([put_command("demanded")], ticket)
        raise ZeroDivisionError("a bug of the gateway")

    step = driver.processor.step([Submission([put_command(1)], object())], driver.now_ms, demand)
    driver.append(step)
    assert contents(driver) == [1, "demanded"]
    assert len(step.replies) == 2 and len(step.bugs) == 1
    check_log(driver)


# --- records that cannot be stored ------------------------------------------------------------

UNSTORABLE = [HUGE, -(2**63) - 1, "\ud800", b"x" * ENTRY_BYTES_MAX, {"a": [HUGE]}, object()]
IDS = ["above", "below", "half a character", "long", "inside", "object"]


def refused_by_journal(driver: Driver, commands: list[Command]) -> list[Reply]:
    """The replies after the journal has refused the step, as it does with what is too long."""
    tickets = [object() for _ in commands]
    given = [Submission([each], ticket) for each, ticket in zip(commands, tickets, strict=True)]
    step = driver.processor.step(given, driver.now_ms)
    if step.entries and max(map(len, step.entries)) > ENTRY_BYTES_MAX:
        driver.processor.abandon(step)
        step = driver.processor.step_again(step, given, driver.now_ms, lambda _: ())
    driver.append(step)
    assert len(step.bugs) == 1
    return [driver.answers[id(ticket)][0] for ticket in tickets]


@pytest.mark.parametrize("content", UNSTORABLE, ids=IDS)
def test_a_command_that_cannot_be_stored_is_answered_and_leaves_no_trace(
    driver: Driver, content: Any
) -> None:
    given = [put_command(1), put_command(content), put_command(2)]
    before, broken, after = refused_by_journal(driver, given)
    assert before.rejection is None and after.rejection is None
    assert broken.rejection is not None
    assert broken.rejection.code == Code.INVALID_ARGUMENT
    assert contents(driver) == [1, 2]
    assert after.key == before.key + 1
    assert len(driver.log) == 4, "neither the command nor a rejection"
    check_log(driver)


@pytest.mark.parametrize("content", UNSTORABLE, ids=IDS)
def test_a_command_that_leads_to_what_cannot_be_stored_is_rejected_on_the_log(
    driver: Driver, content: Any
) -> None:
    def leads_to_it(turn: Turn[Box]) -> None:
        turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), Thing("gone"))
        turn.command(BOX, BoxIntent.PUT, 0, Thing(content))

    replies = refused_by_journal(driver, [put_command(1), run_command(leads_to_it), put_command(2)])
    assert contents(driver) == [1, 2]
    codes = [each.rejection and each.rejection.code for each in replies]
    assert codes == [None, Code.INVALID_ARGUMENT, None]
    assert RecordKind.REJECTION in [each.kind for each in driver.records()]
    check_log(driver)


def test_a_rejection_that_cannot_be_stored_is_said_in_other_words(driver: Driver) -> None:
    def refuses(turn: Turn[Box]) -> None:
        record = turn.records[-1]
        turn.reject(record, Code.NOT_FOUND, "Expected a name, but found \ud800")

    _, broken = driver.submit(put_command(1), run_command(refuses))
    assert broken.rejection is not None and "\\ud800" in broken.rejection.reason
    check_log(driver)


def test_an_item_that_cannot_be_stored_fails_alone(driver: Driver) -> None:
    command = Command(BOX, BoxIntent.ATTEMPT, 0, Thing([1, 2]))
    assert driver.do(command).value == [None, None]

    def attempts(turn: Turn[Box]) -> None:
        tried = [1, HUGE, 2]
        found = [
            turn.attempt(Record(0, RecordKind.COMMAND, BOX, BoxIntent.PUT, 0, -1, 0, Thing(each)))
            for each in tried
        ]
        turn.answer([each and each.code for each in found])

    assert driver.do(run_command(attempts)).value == [None, Code.INVALID_ARGUMENT, None]
    check_log(driver)


def test_what_leads_to_too_much_is_rejected_and_much_is_spread_over_steps(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(careful, "_SHARE_BYTES_MAX", 16_000)

    def writes(times: int) -> Callable[[Turn[Box]], None]:
        def write(turn: Turn[Box]) -> None:
            for _ in range(times):
                turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), Thing("x" * 2_000))

        return write

    ticket, steps = object(), 0
    given = [
        Submission([run_command(writes(6)) for _ in range(8)], ticket),
        Submission([run_command(writes(9))]),
    ]
    while given or driver.processor.has_leftover:
        step = driver.processor.step(given, driver.now_ms)
        driver.processor.abandon(step)  # as the runner does when the journal refuses
        step = driver.processor.step_again(step, given, driver.now_ms, lambda _: ())
        assert sum(map(len, step.entries)) < 2 * 16_000
        driver.append(step)
        given, steps = [], steps + 1
    assert steps > 2
    assert len(contents(driver)) == 8 * 6, "and none of the one that was too much"
    assert [each.rejection for each in driver.answers[id(ticket)]] == [None] * 8
    check_log(driver)


@given(st.lists(st.sampled_from(["put", "throw", "unstorable", "leads", "split"]), max_size=10))
@settings(deadline=None, max_examples=60)
def test_whatever_fails_beside_it_each_command_has_its_own_answer(kinds: list[str]) -> None:
    def throw(turn: Turn[Box]) -> None:
        put(turn, Record(0, RecordKind.COMMAND, BOX, BoxIntent.PUT, 0, -1, 0, Thing("gone")))
        raise ZeroDivisionError

    def leads(turn: Turn[Box]) -> None:
        turn.event(BOX, BoxIntent.PUTTED, turn.new_key(), Thing(HUGE))

    def split(turn: Turn[Box]) -> None:
        turn.command(BOX, BoxIntent.PUT, 0, Thing("follow-up"))

    driver = Driver(open_box, DISPATCH.codec)
    made: dict[str, Callable[[], Command]] = {
        "put": lambda: put_command("put"),
        "throw": lambda: run_command(throw),
        "unstorable": lambda: put_command(HUGE),
        "leads": lambda: run_command(leads),
        "split": lambda: run_command(split),
    }
    tickets = [object() for _ in kinds]
    driver.step(
        [Submission([made[kind]()], each) for kind, each in zip(kinds, tickets, strict=True)]
    )
    wanted = {"throw": "INTERNAL", "unstorable": "INVALID_ARGUMENT", "leads": "INVALID_ARGUMENT"}
    for kind, ticket in zip(kinds, tickets, strict=True):
        (reply,) = driver.answers[id(ticket)]
        assert (reply.rejection and reply.rejection.code) == wanted.get(kind)
    expected = [{"put": "put", "split": "follow-up"}[kind] for kind in kinds if kind not in wanted]
    assert contents(driver) == expected
    check_log(driver)
