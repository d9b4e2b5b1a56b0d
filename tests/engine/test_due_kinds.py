"""Domains say what is done when something of theirs is due."""

import pytest

from holdfast.engine.due.commands import DueCommands
from holdfast.engine.due.dates import DueDates, DueKind
from holdfast.engine.jobs.domain import JOB_BATCH
from holdfast.engine.jobs.values import JobBatchIntent
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.partition import DISPATCH
from holdfast.records.keys import NO_KEY
from holdfast.state import PartitionState
from holdfast.state.memory import MemoryStore


def dates() -> DueDates:
    return DueDates(PartitionState(MemoryStore(), 1))


def test_every_kind_of_due_date_is_one_domains() -> None:
    assert DISPATCH.due.keys() == set(DueKind)
    with pytest.raises(AssertionError, match="two domains have due dates of kind"):
        Dispatch([JOB_BATCH, JOB_BATCH])


@pytest.mark.parametrize("kind", DueKind)
def test_a_due_date_becomes_a_command_that_its_domain_has(kind: DueKind) -> None:
    due = dates()
    due.add(5, kind, 7)
    [command] = DueCommands(due, DISPATCH.due).due(5, 10)
    numbers = int(command.value_type), int(command.intent)
    assert numbers in DISPATCH.handlers
    assert type(command.value) is DISPATCH.values[numbers]
    assert command.key in (7, NO_KEY) and command.rows == ((5, kind, 7),)


def test_what_is_due_together_is_one_command_and_comes_first() -> None:
    due = dates()
    due.add(3, DueKind.LEASE, 1)
    for key in (2, 3, 4):
        due.add(4, DueKind.JOB, key)
    commands = DueCommands(due, DISPATCH.due).due(5, 10)
    assert [each.intent for each in commands] == [JobBatchIntent.WAKE, JobBatchIntent.EXPIRE]
    assert commands[0].value.jobs == (2, 3, 4) and len(commands[0].rows) == 3


def test_a_clock_that_jumps_cuts_no_span_short() -> None:
    due = dates()
    due.add(100, DueKind.LEASE, 1)
    due.add(100, DueKind.TIMER, 2)
    source = DueCommands(due, DISPATCH.due)
    source.clock_jumped(50, 1_000)
    assert [each.key for each in source.due(1_000, 10)] == [2]
    assert [each.key for each in source.due(1_050, 10)] == [1, 2]


def test_a_due_date_names_a_command_of_its_own_domain() -> None:
    wrong = Domain(
        JOB_BATCH.value_type, JOB_BATCH.intents, JOB_BATCH.values, JOB_BATCH.commands,
        JOB_BATCH.appliers,
        due={1: WhenDue(JobBatchIntent.WOKEN, lambda _: None)},
    )  # fmt: skip
    with pytest.raises(AssertionError, match="is no command"):
        Dispatch([wrong])
