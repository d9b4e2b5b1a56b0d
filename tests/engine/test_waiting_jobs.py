"""The queues of waiting jobs against a sorted list, and rows that an earlier version wrote."""

from bisect import insort
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest
from count_checks import check_counts
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from partition_driver import Driver

from holdfast.engine.families import Tag
from holdfast.engine.jobs import waiting as waiting_module
from holdfast.engine.jobs.values import Activation, JobBatchIntent, JobIntent, NewJob
from holdfast.engine.jobs.waiting import WaitingJobs
from holdfast.engine.kernel import Command
from holdfast.records import ValueType
from holdfast.state import EMPTY, PartitionState, Progress, Writing
from holdfast.state.memory import MemoryStore

types = st.sampled_from(["a", "ab"])
priorities = st.sampled_from([-(2**31) + 1, 0, 7])
keys = st.integers(2**51, 2**51 + 200)  # three rows and a half


class Queues(RuleBasedStateMachine):
    """Jobs begin to wait, are taken and taken back, with writes and restarts in between."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore()
        self.model: list[tuple[str, int, int]] = []  # type, priority upside down, key
        self.open()

    def open(self) -> None:
        self.state = PartitionState(self.store, 1)
        self.waiting = WaitingJobs(self.state)

    def next(self, type_: str, limit: int) -> list[tuple[str, int, int]]:
        return [each for each in self.model if each[0] == type_][:limit]

    @rule(type_=types, priority=priorities, first=keys, count=st.integers(1, 90))
    def add(self, type_: str, priority: int, first: int, count: int) -> None:
        for key in range(first, first + count):
            if all(key != known for _, _, known in self.model):
                self.waiting.add(type_, priority, key)
                insort(self.model, (type_, -priority, key))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.model:
            type_, upside_down, key = data.draw(st.sampled_from(self.model))
            self.model.remove((type_, upside_down, key))
            self.waiting.remove(type_, -upside_down, key)

    @rule(type_=types, limit=st.integers(1, 150))
    def take(self, type_: str, limit: int) -> None:
        taken = self.next(type_, limit)
        assert self.waiting.next(type_, limit) == [key for _, _, key in taken]
        for place in sorted({place for _, place, _ in taken}):
            of_place = tuple(key for _, each, key in taken if each == place)
            self.waiting.take(type_, -place, of_place)
        self.model = [each for each in self.model if each not in taken]

    @rule()
    def commit(self) -> None:
        self.state.commit()

    @rule(type_=types, first=keys, limit=st.integers(1, 150))
    def take_back(self, type_: str, first: int, limit: int) -> None:
        before = deepcopy(self.model)
        mark = self.state.mark()
        self.take(type_, limit)
        self.add(type_, 0, first, 30)
        self.take(type_, limit)
        self.state.undo_to(mark)
        self.model = before

    @rule(reopen=st.booleans())
    def write(self, reopen: bool) -> None:
        self.state.commit()
        Writing(self.store, [(self.state, Progress(is_counted=True))]).finish()
        if reopen:
            self.open()

    @invariant()
    def the_queues_are_those_of_the_model(self) -> None:
        assert +Counter(self.waiting.counts) == Counter(type_ for type_, _, _ in self.model)
        for type_ in ("a", "ab"):
            expected = self.next(type_, 1_000)
            assert self.waiting.has(type_) == bool(expected)
            assert self.waiting.next(type_, 1_000) == [key for _, _, key in expected]
            firsts = list(self.waiting.firsts(type_, 2))
            places = sorted({place for _, place, _ in expected})
            of_places = [[key for _, at, key in expected if at == place] for place in places]
            assert firsts == [each[:2] for each in of_places]


def test_queues_behave_like_a_sorted_list() -> None:
    run_state_machine_as_test(
        Queues,
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_jobs_with_neighbouring_keys_share_a_row_and_leave_none_behind() -> None:
    state = PartitionState(MemoryStore(), 1)
    waiting = WaitingJobs(state)
    for key in range(640, 1_280):
        waiting.add("mail", 0, key)
    assert len(state.dump()) == 10 + 1, "ten rows and a count"
    waiting.take("mail", 0, tuple(waiting.next("mail", 600)))
    assert len(state.dump()) == 1 + 1
    waiting.take("mail", 0, tuple(waiting.next("mail", 600)))
    assert state.dump() == []


@pytest.mark.parametrize("step", [1, 3, 64, 200])
def test_jobs_that_share_few_rows_are_found_in_order(step: int) -> None:
    waiting = WaitingJobs(PartitionState(MemoryStore(), 1))
    every = list(range(5, 5 + 300 * step, step))
    for key in every:
        waiting.add("mail", 0, key)
    for limit in (1, 4, 63, 64, 65, 299, 300, 301):
        assert waiting.next("mail", limit) == every[:limit]


def test_a_job_that_does_not_wait_is_not_taken() -> None:
    state = PartitionState(MemoryStore(), 1)
    waiting = WaitingJobs(state)
    waiting.add("mail", 0, 1)
    for type_, priority, key in (("mail", 0, 2), ("mail", 1, 1), ("mai", 0, 1), ("mail", 0, 65)):
        with pytest.raises(AssertionError, match="stop"):
            waiting.remove(type_, priority, key)
    assert dict(waiting.counts) == {"mail": 1}
    assert waiting.next("mail", 9) == [1]


def test_a_job_waits_once() -> None:
    waiting = WaitingJobs(PartitionState(MemoryStore(), 1))
    waiting.add("mail", 0, 1)
    waiting.add("mail", 1, 1)
    with pytest.raises(AssertionError, match="waits already"):
        waiting.add("mail", 0, 1)


def test_a_state_of_format_1_is_repacked_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_module, "WAITING_ROWS_REPACKED", 3)
    driver = Driver()
    for type_, priority, count in (("mail", 0, 70), ("mail", 5, 2), ("bill", 0, 3)):
        new = NewJob(type_, b"null", priority=priority)
        driver.submit(*[Command(ValueType.JOB, JobIntent.CREATE, 0, new)] * count)
    asked = Activation(("mail",), "ann", 4, 30_000)
    driver.do(Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, asked))
    expected = {type_: driver.view.jobs.waiting.next(type_, 99) for type_ in ("mail", "bill")}
    dump = driver.dump()
    as_format_1(driver.view.jobs)
    driver.processor.state.commit()
    driver.write_state()
    assert driver.dump() != dump
    driver.restart()
    assert driver.dump() == dump
    assert {each: driver.view.jobs.waiting.next(each, 99) for each in expected} == expected
    check_counts(driver.view)
    driver.write_state()
    driver.restart()
    assert driver.dump() == dump == driver.replayed().state.dump()
    assert not [raw for raw, _ in driver.dump() if raw[2] == Tag.JOBS_WAITING]


def as_format_1(jobs: Any) -> None:
    """A row for each job, as they were before."""
    rows = jobs.waiting._rows
    for row, bits in list(rows.scan()):
        type_, place, number = row
        for key in waiting_module._keys(row, bits):
            jobs.waiting._single.put((type_, place, key), EMPTY)
            assert key >> 6 == number
        rows.delete(row)
