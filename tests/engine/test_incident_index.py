"""Incidents are found by their process instance, also in a state that was written without an index.

What an earlier version left is made by its appliers, which wrote the incidents alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from process_talk import Talk

from holdfast.engine import partition
from holdfast.engine.incidents import state as incidents_state
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import processor as processor_module
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.state import EngineState
from holdfast.errors import DataLoss
from holdfast.model.dsl import Process, path
from holdfast.records import Record, ValueType
from holdfast.state import Progress
from holdfast.state.memory import MemoryStore

FORKED = Process("p").parallel(path().task("a", retries=0), path().task("b", retries=0))


@contextmanager
def earlier_version() -> Iterator[None]:
    """Meanwhile incidents are written as before they had an index."""

    def created(state: EngineState, event: Record) -> None:
        state.incidents.open.insert(event.key, event.value)

    def ended(state: EngineState, event: Record) -> None:
        state.incidents.open.delete(event.key)

    with pytest.MonkeyPatch.context() as patch:
        for intent, applier in (
            (IncidentIntent.CREATED, created),
            (IncidentIntent.RESOLVED, ended),
            (IncidentIntent.DISCARDED, ended),
        ):
            patch.setitem(DISPATCH.appliers, (ValueType.INCIDENT, intent), applier)
        patch.setattr(processor_module, "Progress", lambda *how, is_counted: Progress(*how))
        yield


def break_all(talk: Talk, type_: str) -> None:
    for job in talk.take_all(type_):
        talk.fail(job)


def fork(talk: Talk, instances: int) -> list[int]:
    """Instances with two incidents each, and the incidents of two tasks among them."""
    talk.deploy(FORKED)
    keys: list[int] = []
    for n in range(instances):
        if n in (0, 2):
            talk.ask(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b"null", retries=0))
            break_all(talk, "mail")
        keys.append(talk.start())
        break_all(talk, "a")
        break_all(talk, "b")
    return keys


def test_the_incidents_of_an_instance_are_found_by_it(talk: Talk) -> None:
    one, two, three = fork(talk, 3)
    incidents = talk.view.incidents
    first, second = [key for key, _ in incidents.of_instance(two)]
    assert {incidents.open.get(key).element_id for key in (first, second)} == {"a", "b"}
    assert [key for key, _ in incidents.of_instance(two, first)] == [second]
    assert list(incidents.by_instance(1)) == [(one, 2), (two, 2), (three, 2)]
    assert list(incidents.by_instance(two + 1)) == [(three, 2)]
    talk.resolve(first)
    assert list(incidents.by_instance(two)) == [(two, 1), (three, 2)]
    talk.cancel(two)
    assert not incidents.stops(two) and incidents.stops(one)
    assert list(incidents.of_instance(two)) == []


@pytest.mark.parametrize("tail", [False, True], ids=["all in the store", "half in the log"])
def test_a_state_of_an_earlier_version_gets_its_index_when_it_is_opened(tail: bool) -> None:
    with earlier_version():
        talk = Talk()
        keys = fork(talk, 3)
        talk.write_state()
        if tail:  # some of the old ones end, and new ones come, behind what the store has
            talk.cancel(keys[0])
            talk.resolve(next(iter(talk.incidents())))
            keys.append(talk.start())
            break_all(talk, "a")
        before = talk.dump()
    talk.restart()
    after = talk.dump()
    assert set(before) < set(after)
    assert after == talk.replayed().state.dump(), "as if it had been there from the beginning"
    check_index(talk.view)
    talk.write_state()
    talk.restart()
    assert talk.dump() == after
    for key in talk.incidents():
        talk.resolve(key)
    check_index(talk.view)


def check_index(view: EngineState) -> None:
    rows = [row for row, _ in view.incidents._of_instances.scan()]
    assert rows == sorted((each.instance_key, key) for key, each in view.incidents.open.scan())


class DyingStore(MemoryStore):
    """It loses its power at one of its writes, before or after it."""

    def __init__(self, rows: dict[bytes, bytes], write: int, *, is_written: bool) -> None:
        super().__init__(rows)
        self._writes = count()
        self._write = write
        self._is_written = is_written

    def write(self, puts, deletes) -> None:
        is_last = next(self._writes) == self._write
        if not is_last or self._is_written:
            super().write(puts, deletes)
        self.flush()
        if is_last:
            raise self.damaged("the power went")


@pytest.mark.parametrize("is_written", [False, True])
def test_an_index_that_was_half_built_is_built_again(
    is_written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with earlier_version():
        talk = Talk()
        fork(talk, 4)
        talk.write_state()
    monkeypatch.setattr(incidents_state, "_INDEXED_AT_ONCE", 2)
    monkeypatch.setattr(partition, "STORE_ROWS_MAX", 1)
    rows = dict(talk.store.scan(b"", b"\xff"))
    expected = talk.replayed().state.dump()
    for write in count():
        store = DyingStore(rows, write, is_written=is_written)
        try:
            processor = open_partition(store, 1)
        except DataLoss:
            processor = open_partition(store.crash(), 1)
        else:
            assert write >= 4, "several parts are written one by one"
            assert processor.state.dump() == expected
            return
        check_index(processor.view)
        assert processor.state.dump() == expected
