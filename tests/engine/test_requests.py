"""Requests: a repetition with the same request id gets the first answer."""

from enum import IntEnum
from typing import Any

import pytest
from partition_driver import Driver

from holdfast.engine.due.dates import DueDates
from holdfast.engine.jobs.values import Activation, JobBatchIntent, JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command, Domain, Processor, Reply, Submission, Turn, processor
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.requests import commands
from holdfast.engine.requests.domain import REQUEST
from holdfast.engine.requests.state import AnswerLine, Requests
from holdfast.engine.requests.values import RequestIntent
from holdfast.errors import Code
from holdfast.limits import REQUEST_KEPT_MS
from holdfast.records import Record, RecordKind, ValueType
from holdfast.records.record import Value
from holdfast.state import PartitionState
from holdfast.state.keys import U64
from holdfast.state.memory import MemoryStore

JOB, BATCH = ValueType.JOB, ValueType.JOB_BATCH


def create(request_id: str | None = None, content: bytes = b"1") -> Command:
    return Command(JOB, JobIntent.CREATE, 0, NewJob("mail", content), request_id=request_id)


def jobs(driver: Driver) -> int:
    return sum(
        each.kind == RecordKind.EVENT and (each.value_type, each.intent) == (JOB, JobIntent.CREATED)
        for each in driver.records()
    )


def ask(driver: Driver, *asked: Command) -> list[Reply]:
    ticket = object()
    driver.step([Submission(asked, ticket)])
    while driver.processor.has_leftover:
        driver.step()
    return driver.answers[id(ticket)]


def test_a_request_is_done_once_and_answered_the_same() -> None:
    driver = Driver()
    (first,) = ask(driver, create("a"))
    written = len(driver.log)
    (again,) = ask(driver, create("a", b"2"))
    assert again == first
    assert len(driver.log) == written, "nothing is written for a repetition"
    (other,) = ask(driver, create("b"))
    assert other.key != first.key
    assert jobs(driver) == 2


def test_two_of_the_same_in_one_step_are_one() -> None:
    driver = Driver()
    first, again, other = ask(driver, create("a"), create("a"), create("b"))
    assert first == again != other
    assert jobs(driver) == 2


def test_a_rejection_is_answered_again_though_it_would_be_done_now() -> None:
    driver = Driver()
    cancel = Command(JOB, JobIntent.CANCEL, 1 << 51 | 1, JobRef(), request_id="c")
    (first,) = ask(driver, cancel)
    assert first.rejection is not None and first.rejection.code == Code.NOT_FOUND
    (made,) = ask(driver, create())
    assert made.key == 1 << 51 | 1
    assert ask(driver, cancel) == [first]


def test_what_is_answered_beyond_a_key_is_kept_too() -> None:
    driver = Driver()
    ask(driver, create(), create())
    activate = Command(
        BATCH, JobBatchIntent.ACTIVATE, 0, Activation(("mail",), "w", 10, 60_000), request_id="l"
    )
    (first,) = ask(driver, activate)
    assert len(first.value) == 2
    assert ask(driver, activate) == [first]


def test_an_answer_that_is_too_large_is_not_kept_and_nothing_is_done_again() -> None:
    driver = Driver()
    ask(driver, create(content=b'"%s"' % (b"x" * 70_000)))
    activate = Command(
        BATCH, JobBatchIntent.ACTIVATE, 0, Activation(("mail",), "w", 10, 60_000), request_id="l"
    )
    (first,) = ask(driver, activate)
    assert len(first.value) == 1
    (again,) = ask(driver, activate)
    assert again.rejection is not None and again.rejection.code == Code.ALREADY_EXISTS


@pytest.mark.parametrize("with_store", [False, True])
def test_answers_outlive_a_restart(with_store: bool) -> None:
    driver = Driver()
    (first,) = ask(driver, create("a"))
    if with_store:
        driver.write_state()
    driver.restart(with_store=with_store)
    assert ask(driver, create("a")) == [first]
    assert driver.dump() == driver.replayed().state.dump()


class Box:
    """A number for each PUT, and requests: a domain whose commands lead to others."""

    def __init__(self, state: PartitionState) -> None:
        self.numbers = state.family(200, U64, int)
        self.requests = Requests(state, DueDates(state))


class BoxIntent(IntEnum):
    PUT = 0
    PUTTED = 1
    SPREAD = 2  # asks for so many PUTs


class Number(Value, frozen=True, tag=1):
    number: int = 0


def put(turn: Turn[Any], command: Record) -> None:
    turn.event(JOB, BoxIntent.PUTTED, turn.new_key(), command.value)


def spread(turn: Turn[Any], command: Record) -> None:
    for number in range(command.value.number):
        turn.command(JOB, BoxIntent.PUT, 0, Number(number))


def putted(box: Box, event: Record) -> None:
    box.numbers.insert(event.key, event.value.number)


BOX = Dispatch(
    [
        Domain(
            JOB, BoxIntent, dict.fromkeys(BoxIntent, Number),
            {BoxIntent.PUT: put, BoxIntent.SPREAD: spread}, {BoxIntent.PUTTED: putted},
        ),
        REQUEST,
    ],
    requests=commands.Remembering(),
)  # fmt: skip


class NothingDue:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None if name == "next_due_ms" else ()


def open_box(store: MemoryStore, partition: int) -> Processor[Any]:
    state = PartitionState(store, partition)
    box = Box(state)
    return Processor(state, box, BOX, NothingDue())


@pytest.mark.parametrize("with_store", [False, True])
def test_a_command_that_waits_on_the_log_keeps_its_request(
    monkeypatch: pytest.MonkeyPatch, with_store: bool
) -> None:
    """It is put on the log in one step, and processed in another, after a restart."""
    monkeypatch.setattr(processor, "STEP_COMMANDS_MAX", 3)
    driver = Driver(open_box, BOX.codec)
    late = Command(JOB, BoxIntent.PUT, 0, Number(77), request_id="late")
    driver.step([Submission([Command(JOB, BoxIntent.SPREAD, 0, Number(9)), late])])
    assert driver.processor.has_leftover
    (meanwhile,) = ask_now(driver, late)
    assert meanwhile.rejection is not None and meanwhile.rejection.code == Code.UNAVAILABLE
    if with_store:
        driver.write_state()
    driver.restart(with_store=with_store)
    while driver.processor.has_leftover:
        driver.step()
    (answer,) = ask_now(driver, late)
    assert answer.rejection is None
    assert driver.view.numbers.get(answer.key) == 77
    assert [number for _, number in driver.view.numbers.scan()].count(77) == 1
    assert driver.view.requests.open.get("late") is None
    assert driver.dump() == driver.replayed().state.dump()


def ask_now(driver: Driver, command: Command) -> list[Reply]:
    """What is answered without a record, whatever else waits."""
    known = driver.processor._known(command.request_id or "", command)
    assert known is not None
    return [known]


def test_answers_are_forgotten_when_their_time_is_over() -> None:
    driver = Driver()
    for number in range(10):
        ask(driver, create(f"r{number}"))
        driver.advance(REQUEST_KEPT_MS // 20)
    assert len(driver.view.requests.line()) == 10
    driver.advance(REQUEST_KEPT_MS // 2 + REQUEST_KEPT_MS // 8)
    kept = len(driver.view.requests.line())
    assert 0 < kept < 10, "the oldest are gone first"
    assert ask(driver, create("r9"))[0].key > 0
    before = jobs(driver)
    ask(driver, create("r9"))
    assert jobs(driver) == before
    driver.advance(2 * REQUEST_KEPT_MS)
    assert len(driver.view.requests.line()) == 0
    assert driver.processor.next_due_ms() is None
    ask(driver, create("r9"))
    assert jobs(driver) == before + 1, "it is a new request by now"
    assert driver.dump() == driver.replayed().state.dump()


def test_there_are_never_too_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "REQUESTS_KEPT_MAX", 20)
    monkeypatch.setattr(commands, "PURGE_ROWS_MAX", 5)
    driver = Driver()
    for number in range(200):
        ask(driver, create(f"r{number}"))
        assert len(driver.view.requests.line()) <= 25
    made = jobs(driver)
    ask(driver, create("r199"), create("r190"))
    assert jobs(driver) == made, "the newest are kept"
    assert driver.dump() == driver.replayed().state.dump()


def test_a_command_that_throws_is_answered_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    key = (JOB, JobIntent.CREATE)
    monkeypatch.setitem(driver.processor._handlers, key, broken)
    (first,) = ask(driver, create("a"))
    assert first.rejection is not None and first.rejection.code == Code.INTERNAL
    monkeypatch.undo()
    assert ask(driver, create("a")) == [first]


def test_an_id_stands_for_one_command() -> None:
    driver = Driver()
    (made,) = ask(driver, create("a"))
    cancel = Command(JOB, JobIntent.CANCEL, made.key, JobRef(), request_id="a")
    (refused,) = ask(driver, cancel)
    assert refused.rejection is not None and refused.rejection.code == Code.INVALID_ARGUMENT
    assert ask(driver, create("a")) == [made]


def test_commands_without_a_request_leave_no_trace() -> None:
    driver = Driver()
    ask(driver, *[create() for _ in range(10)])
    assert driver.view.requests.line() == AnswerLine()
    assert not any(each.value_type == ValueType.REQUEST for each in driver.records())
    assert RequestIntent.ANSWERED == 1
