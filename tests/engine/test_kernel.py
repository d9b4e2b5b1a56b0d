"""The kernel, seen through a small domain: a shelf of numbers."""

from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from partition_driver import Driver, counted

from holdfast.engine.kernel import Command, Domain, DueCommand, Processor, Submission, Turn
from holdfast.engine.kernel import processor as processor_module
from holdfast.engine.kernel.domain import Dispatch
from holdfast.errors import Code, Internal
from holdfast.limits import RECORDS_HELD_MAX, STEP_COMMANDS_MAX
from holdfast.records import Record, RecordKind, ValueType, counter_of
from holdfast.records.record import Value
from holdfast.state import PartitionState
from holdfast.state.keys import U64
from holdfast.state.memory import MemoryStore

SHELF = ValueType.JOB


class ShelfIntent(IntEnum):
    PUT = 0
    PUTTED = 1
    SPREAD = 2  # puts many, one follow-up each
    BREAK = 3  # writes, and then throws
    IGNORE = 4  # writes nothing
    DELEGATE = 5  # writes nothing but a follow-up
    REFUSE = 6
    ATTEMPT = 7  # does all the others that are no attempts as part of itself


class Number(Value, frozen=True, tag=1):
    number: int = 0


class Shelf:
    """The numbers that were put, by key."""

    def __init__(self, state: PartitionState) -> None:
        self.numbers = state.family(1, U64, int)
        self.undone = 0
        state.when_undone(self._count)

    def _count(self) -> None:
        self.undone += 1


def put(turn: Turn[Shelf], command: Record) -> None:
    turn.event(SHELF, ShelfIntent.PUTTED, turn.new_key(), command.value)
    turn.effect_once("put")


def spread(turn: Turn[Shelf], command: Record) -> None:
    turn.event(SHELF, ShelfIntent.PUTTED, turn.new_key(), Number(-1))
    for number in range(command.value.number):
        turn.command(SHELF, ShelfIntent.PUT, 0, Number(number))


def break_(turn: Turn[Shelf], command: Record) -> None:
    put(turn, command)
    turn.command(SHELF, ShelfIntent.PUT, 0, Number(99))
    turn.effect("broken")
    raise ZeroDivisionError("a bug")


def ignore(turn: Turn[Shelf], command: Record) -> None:
    """Nothing."""


def delegate(turn: Turn[Shelf], command: Record) -> None:
    turn.command(SHELF, ShelfIntent.PUT, 0, command.value)


def refuse(turn: Turn[Shelf], command: Record) -> None:
    turn.reject(command, Code.NOT_FOUND, "There is no shelf")


def attempt(turn: Turn[Shelf], command: Record) -> None:
    """Puts its own number, and answers why which attempt was refused."""
    put(turn, command)
    refused: list[Any] = []
    for intent in (PUT, BREAK, REFUSE, IGNORE, DELEGATE):
        tried = Record(0, RecordKind.COMMAND, SHELF, intent, 0, -1, 0, Number(int(intent)))
        refused.append(turn.attempt(tried))
    turn.answer([each and (each.code, each.reason) for each in refused])


def putted(shelf: Shelf, event: Record) -> None:
    shelf.numbers.insert(event.key, event.value.number)


DISPATCH = Dispatch(
    [
        Domain(
            SHELF,
            ShelfIntent,
            dict.fromkeys(ShelfIntent, Number),
            {
                ShelfIntent.PUT: put,
                ShelfIntent.SPREAD: spread,
                ShelfIntent.BREAK: break_,
                ShelfIntent.IGNORE: ignore,
                ShelfIntent.DELEGATE: delegate,
                ShelfIntent.REFUSE: refuse,
                ShelfIntent.ATTEMPT: attempt,
            },
            {ShelfIntent.PUTTED: putted},
        )
    ]
)


class NothingDue:
    def clock_jumped(self, before_ms: int, after_ms: int) -> None:
        """There are no leases."""

    def put_off(self, command: DueCommand, now_ms: int) -> None:
        """There is nothing to put off."""

    def due(self, now_ms: int, limit: int) -> list[DueCommand]:
        return []

    def next_due_ms(self) -> int | None:
        return None


def open_shelf(store: MemoryStore, partition: int) -> Processor[Any]:
    state = PartitionState(store, partition)
    return Processor(state, Shelf(state), DISPATCH, NothingDue())


def command(intent: ShelfIntent, number: int = 0) -> Command:
    return Command(SHELF, intent, 0, Number(number))


PUT, SPREAD, BREAK = ShelfIntent.PUT, ShelfIntent.SPREAD, ShelfIntent.BREAK
IGNORE, DELEGATE, REFUSE = ShelfIntent.IGNORE, ShelfIntent.DELEGATE, ShelfIntent.REFUSE


@pytest.fixture
def driver() -> Driver:
    return Driver(open_shelf, DISPATCH.codec)


def shelf(driver: Driver) -> list[int]:
    return [number for _, number in driver.view.numbers.scan()]


# --- bugs and rejections ----------------------------------------------------------------------


def test_a_command_that_throws_is_rejected_with_its_reason_and_undone(driver: Driver) -> None:
    before, broken, after = driver.submit(command(PUT, 1), command(BREAK, 2), command(PUT, 3))
    assert broken.rejection is not None
    assert broken.rejection.code == Code.INTERNAL
    assert broken.rejection.reason == "ZeroDivisionError: a bug"
    assert isinstance(broken.error(), Internal)
    assert shelf(driver) == [1, 3]
    assert counter_of(after.key) == counter_of(before.key) + 1, "its key was given back"
    assert driver.effects == ["put"], "what it wanted to do outside is not done"
    kinds = [(record.kind, ShelfIntent(record.intent).name) for record in driver.records()]
    assert kinds == [
        (RecordKind.COMMAND, "PUT"),
        (RecordKind.EVENT, "PUTTED"),
        (RecordKind.COMMAND, "BREAK"),
        (RecordKind.REJECTION, "BREAK"),
        (RecordKind.COMMAND, "PUT"),
        (RecordKind.EVENT, "PUTTED"),
    ]
    assert driver.dump() == driver.replayed().state.dump()


def test_bugs_are_counted_in_their_step(driver: Driver) -> None:
    step = driver.step([Submission([command(BREAK), command(REFUSE), command(BREAK)])])
    assert step.bugs == ["ZeroDivisionError: a bug"] * 2
    assert (step.commands, step.rejections) == (3, 3)


def test_what_a_bug_said_can_be_said_again_by_the_next_command(driver: Driver) -> None:
    step = driver.step([Submission([command(BREAK), command(PUT)])])
    assert step.effects == ["put"]


def test_a_command_that_writes_nothing_is_a_bug(driver: Driver) -> None:
    (reply,) = driver.submit(command(IGNORE))
    assert reply.rejection is not None
    assert "the command wrote nothing" in reply.rejection.reason


def test_an_attempt_that_is_refused_or_throws_leaves_nothing_and_says_why(driver: Driver) -> None:
    reply = driver.do(command(ShelfIntent.ATTEMPT, 70))
    assert reply.rejection is None
    put_, broken, refused, ignored, delegated = reply.value
    assert put_ is None and delegated is None
    assert broken == (Code.INTERNAL, "ZeroDivisionError: a bug")
    assert refused == (Code.NOT_FOUND, "There is no shelf")
    assert ignored[0] == Code.INTERNAL and "wrote nothing" in ignored[1]
    assert shelf(driver) == [70, int(PUT), int(DELEGATE)]
    assert driver.effects == ["put"], "and not what the broken one said"
    records = driver.records()
    assert [each.position for each in records] == list(range(len(records)))
    assert {each.source_position for each in records[1:4]} == {0}, "the attempt led to it all"
    assert not [each for each in records if each.kind is RecordKind.REJECTION]
    assert driver.replayed().state.dump() == driver.dump()


def test_an_event_is_no_command(driver: Driver) -> None:
    (reply,) = driver.submit(command(ShelfIntent.PUTTED, 5))
    assert reply.rejection is not None
    assert reply.rejection.code == Code.INVALID_ARGUMENT
    assert shelf(driver) == []


@given(st.lists(st.sampled_from([PUT, SPREAD, BREAK, IGNORE, DELEGATE, REFUSE]), max_size=12))
@settings(deadline=None)
def test_every_command_leaves_a_record_that_names_it(intents: list[ShelfIntent]) -> None:
    driver = Driver(open_shelf, DISPATCH.codec)
    driver.step([Submission([command(intent, 2) for intent in intents])])
    records = driver.records()
    sources = {record.source_position for record in records}
    commands = {record.position for record in records if record.kind == RecordKind.COMMAND}
    assert commands == sources - {-1}
    assert [record.position for record in records] == list(range(len(records)))


# --- follow-ups -------------------------------------------------------------------------------


def test_follow_ups_are_processed_in_the_same_step_before_later_commands(driver: Driver) -> None:
    step = driver.step([Submission([command(SPREAD, 3), command(PUT, 100)])])
    assert step.commands == 5
    assert shelf(driver) == [-1, 0, 1, 2, 100]
    assert not driver.processor.has_leftover


def test_replies_beyond_the_budget_of_a_step_come_with_later_steps(driver: Driver) -> None:
    first, second = object(), object()
    submissions = [
        Submission([command(SPREAD, STEP_COMMANDS_MAX + 10), command(PUT, 7)], first),
        Submission([command(REFUSE)], second),
    ]
    step = driver.step(submissions)
    assert step.commands == STEP_COMMANDS_MAX
    assert step.replies == []
    assert driver.processor.has_leftover
    assert set(driver.processor.awaited_tickets()) == {first, second}
    step = driver.step()
    assert not driver.processor.has_leftover
    assert [ticket for ticket, _ in step.replies] == [first, second]
    replies = driver.answers[id(first)]
    assert [reply.rejection for reply in replies] == [None, None]
    assert driver.view.numbers.get(replies[1].key) == 7
    (refused,) = driver.answers[id(second)]
    assert refused.rejection is not None and refused.rejection.code == Code.NOT_FOUND
    assert shelf(driver) == [-1, *range(STEP_COMMANDS_MAX + 10), 7]


def test_a_restart_goes_on_with_what_was_left_over(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor_module, "STEP_COMMANDS_MAX", 4)
    driver.step([Submission([command(SPREAD, 10), command(DELEGATE, 50)])])
    for with_store in (True, False):
        driver.write_state()
        driver.restart(with_store=with_store)
        assert driver.processor.has_leftover
    while driver.processor.has_leftover:
        driver.step()
        driver.restart()
    assert shelf(driver) == [-1, *range(10), 50]
    assert driver.dump() == driver.replayed().state.dump()


def test_a_command_that_only_delegates_is_not_processed_again_after_a_restart(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor_module, "STEP_COMMANDS_MAX", 1)
    driver.step([Submission([command(DELEGATE, 5)])])
    driver.restart()
    while driver.processor.has_leftover:
        driver.step()
    assert shelf(driver) == [5]


# --- how records become bytes -----------------------------------------------------------------


def step_of(records: int) -> list[Command]:
    """Commands that write so many records in one step; every seventh of them throws."""
    odd = [command(DELEGATE, 5)] if records % 2 else []  # writes three, all others write two
    pairs = (records - 3 * len(odd)) // 2
    return odd + [command(BREAK if n % 7 == 6 else PUT, n) for n in range(pairs)]


@pytest.mark.parametrize("records", [127, 128, 129, 130, 131, 256, 257, 700])
def test_a_step_is_the_same_bytes_however_many_records_are_encoded_together(
    records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RECORDS_HELD_MAX == 128, "the numbers above are on both sides of it"
    together, alone = Driver(open_shelf, DISPATCH.codec), Driver(open_shelf, DISPATCH.codec)
    replies = together.submit(*step_of(records))
    with monkeypatch.context() as patch:
        patch.setattr(processor_module, "RECORDS_HELD_MAX", 0)
        assert alone.submit(*step_of(records)) == replies
    written = together.records()
    assert [each.position for each in written] == list(range(records))
    assert together.log == alone.log
    assert [entry.payload for entry in alone.log] == list(map(DISPATCH.codec.encode, written))
    assert together.dump() == alone.dump() == together.replayed().state.dump()


@pytest.mark.parametrize("records", [127, 129, 700])
def test_a_step_whose_first_records_are_bytes_already_can_be_abandoned(
    driver: Driver, records: int
) -> None:
    driver.submit(command(PUT, 1))
    before = driver.dump()
    step = driver.processor.step([Submission(step_of(records))], driver.now_ms)
    assert len(step.entries) == records
    driver.processor.abandon(step)
    assert driver.dump() == before
    driver.submit(command(PUT, 2))
    assert [each.position for each in driver.records()] == [0, 1, 2, 3]
    assert driver.replayed().state.dump() == driver.dump()


# --- abandoned steps --------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [False, True])
def test_an_abandoned_step_leaves_the_state_as_it_was(driver: Driver, stored: bool) -> None:
    driver.submit(command(PUT, 1), command(SPREAD, 3))
    if stored:
        driver.write_state()
    before, progress = driver.dump(), driver.processor.progress
    commands = [command(PUT, 2), command(BREAK), command(SPREAD, 2), command(REFUSE)]
    step = driver.processor.step([Submission(commands, object())], driver.now_ms)
    assert driver.dump() != before
    driver.processor.abandon(step)
    assert driver.dump() == before
    assert driver.processor.progress == progress
    assert driver.processor.next_position == len(driver.log)
    again = driver.submit(command(PUT, 2))
    assert shelf(driver) == [1, -1, 0, 1, 2, 2]
    assert again[0].key > progress.key_counter


def test_an_abandoned_step_keeps_the_tickets_of_what_is_on_the_log(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor_module, "STEP_COMMANDS_MAX", 3)
    ticket, refused = object(), object()
    driver.step([Submission([command(SPREAD, 4), command(PUT, 7), command(PUT, 8)], ticket)])
    assert driver.processor.awaits(ticket)
    before = driver.dump()
    for _ in range(3):
        step = driver.processor.step([Submission([command(PUT, 9)], refused)], driver.now_ms)
        driver.processor.abandon(step)
        assert driver.processor.awaits(ticket)
        assert not driver.processor.awaits(refused)
        assert driver.dump() == before
    while driver.processor.has_leftover:
        driver.step()
    assert not driver.processor.awaits(ticket)
    replies = driver.answers[id(ticket)]
    assert [driver.view.numbers.get(reply.key) for reply in replies[1:]] == [7, 8]


# --- replay -----------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from([PUT, SPREAD, BREAK, DELEGATE, REFUSE]), st.integers(0, 6)),
            min_size=1,
            max_size=4,
        ),
        min_size=1,
        max_size=6,
    ),
    st.data(),
)
@settings(deadline=None)
def test_replay_from_any_store_and_any_prefix_is_processing(
    steps: list[list[tuple[ShelfIntent, int]]], data: st.DataObject
) -> None:
    """After each step: state, counter and what is left over are those of a reader of the log."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processor_module, "STEP_COMMANDS_MAX", data.draw(st.integers(1, 5)))
        driver = Driver(open_shelf, DISPATCH.codec)
        stored_at = data.draw(st.integers(0, len(steps)))
        for number, commands in enumerate(steps):
            if number == stored_at:
                driver.write_state()
            driver.step([Submission([command(*each) for each in commands])])
            for store in (MemoryStore(), MemoryStore(dict(driver.store.scan(b"", b"\xff")))):
                reader = driver.replayed(store, batch=data.draw(st.integers(1, 9)))
                assert reader.state.dump() == driver.dump()
                assert counted(reader) == counted(driver.processor)
                assert reader.next_position == driver.processor.next_position
                assert reader.has_leftover == driver.processor.has_leftover
