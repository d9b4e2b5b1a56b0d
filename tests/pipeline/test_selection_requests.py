"""Selections on request: either side may die at any point, and nothing stays behind for ever."""

import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipeline.select_tables import PROCESS_INSTANCES, with_instances

from holdfast.errors import DeadlineExceeded, HoldfastError, Internal, InvalidArgument
from holdfast.limits import SELECTION_ATTEMPTS_MAX, SELECTION_TABLES_WAIT_MS
from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.requests import (
    Request,
    answer,
    names,
    open_requests,
    request,
    withdraw,
    withdraw_all,
)
from holdfast.pipeline.select.serving import SelectionServing
from holdfast.pipeline.select.snapshot import (
    FOLDER,
    SelectionManifest,
    folder_of,
    store_manifest,
    write_run,
)
from holdfast.testing.loop import VirtualClock

ACTIVE = read_filter(PROCESS_INSTANCES, {"state": "ACTIVE"})
KEYS = [(1 << 51) + 7, (1 << 51) + 9]


def wanted(name: str = "batch-7", as_of: dict[int, int] | None = None) -> Request:
    return Request(name, PROCESS_INSTANCES.name, ACTIVE, as_of or {})


class Selecting:
    """Makes snapshots of two keys, unless it is told to fail or to die halfway."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.errors: list[BaseException] = []
        self.asked: list[Request] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def __call__(self, asked: Request) -> None:
        self.asked.append(asked)
        folder = folder_of(self.root, asked.name)
        folder.mkdir(parents=True, exist_ok=True)
        run = write_run(folder, 1, pa.array(KEYS, pa.int64()), "1.parquet")
        if self.errors:
            raise self.errors.pop(0)
        store_manifest(
            folder, SelectionManifest(asked.table, 1, {}, asked.filter, asked.visible, {1: run})
        )
        self.meanwhile()


class Killed(BaseException):
    """The process is gone: nothing of it cleans up."""


def serving(root: Path, select: Selecting, clock: VirtualClock | None = None) -> SelectionServing:
    return SelectionServing(root, select, clock or VirtualClock())


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / FOLDER).iterdir())


def test_who_asks_gets_the_snapshot_that_the_other_side_makes(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    other = serving(tmp_path, select)
    other.look()
    assert select.asked == []
    request(tmp_path, wanted())
    assert answer(tmp_path, "batch-7") is None
    other.look()
    found = answer(tmp_path, "batch-7")
    assert found is not None and found.page(1).keys == KEYS
    assert select.asked == [wanted()], "it arrives as it was asked for"
    assert files(tmp_path) == ["batch-7"], "the request is done"
    request(tmp_path, wanted())
    other.look()
    assert len(select.asked) == 1, "the same name is the same snapshot"
    withdraw(tmp_path, "batch-7")
    withdraw(tmp_path, "batch-7")
    assert files(tmp_path) == []


def test_a_request_is_done_again_when_the_other_side_was_killed(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    select.errors = [Killed()]
    request(tmp_path, wanted())
    with pytest.raises(Killed):
        serving(tmp_path, select).look()
    assert answer(tmp_path, "batch-7") is None, "half a snapshot is none"
    request(tmp_path, wanted())  # the asking node may have been killed, too
    serving(tmp_path, select).look()
    found = answer(tmp_path, "batch-7")
    assert found is not None and found.page(1).keys == KEYS
    assert files(tmp_path) == ["batch-7"]


def test_a_kill_between_the_snapshot_and_the_end_of_the_request_costs_nothing(
    tmp_path: Path,
) -> None:
    def die() -> None:
        raise Killed

    select = Selecting(tmp_path)
    select.meanwhile = die
    request(tmp_path, wanted())
    with pytest.raises(Killed):
        serving(tmp_path, select).look()
    assert answer(tmp_path, "batch-7") is not None
    select.meanwhile = lambda: None
    serving(tmp_path, select).look()
    assert files(tmp_path) == ["batch-7"]


def test_what_is_withdrawn_while_it_is_selected_is_not_kept(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    for taking_back in (
        lambda: withdraw(tmp_path, "batch-7"),
        lambda: (tmp_path / FOLDER / "batch-7.request").unlink(),  # and was killed over the rest
    ):
        select.meanwhile = taking_back
        request(tmp_path, wanted())
        serving(tmp_path, select).look()
        assert files(tmp_path) == []


def test_a_selection_whose_folder_is_withdrawn_under_it_has_not_failed(
    tmp_path: Path, logged: Callable[[], list[logging.LogRecord]]
) -> None:
    """The operation was cancelled while Spark wrote: its files cannot be written any more."""
    done: list[str] = []

    def select(asked: Request) -> None:
        folder = folder_of(tmp_path, asked.name)
        folder.mkdir(parents=True)
        withdraw(tmp_path, asked.name)
        if asked.name == "batch-7":
            withdraw(tmp_path, "batch-8")  # found open with the first one
        done.append(asked.name)
        write_run(folder, 1, pa.array(KEYS, pa.int64()), "1.parquet")

    request(tmp_path, wanted())
    request(tmp_path, wanted("batch-8"))
    SelectionServing(tmp_path, select, VirtualClock()).look()
    assert (done, files(tmp_path)) == (["batch-7"], [])
    assert [each for each in logged() if "failed" in each.getMessage()] == []


def test_an_error_is_told_once_and_then_it_is_asked_anew(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    select.errors = [InvalidArgument("Expected tea, but found coffee")]
    other = serving(tmp_path, select)
    request(tmp_path, wanted())
    other.look()
    assert files(tmp_path) == ["batch-7.error"], "what was half done is gone"
    with pytest.raises(InvalidArgument, match="Expected tea, but found coffee"):
        answer(tmp_path, "batch-7")
    assert files(tmp_path) == [] and answer(tmp_path, "batch-7") is None
    request(tmp_path, wanted())
    other.look()
    assert answer(tmp_path, "batch-7") is not None


def test_one_that_throws_is_tried_again_but_not_for_ever(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    select.errors = [RuntimeError("the JVM is gone\nat line 5")] * SELECTION_ATTEMPTS_MAX
    other = serving(tmp_path, select)
    request(tmp_path, wanted())
    for _ in range(SELECTION_ATTEMPTS_MAX - 1):
        other.look()
        assert answer(tmp_path, "batch-7") is None
    other.look()
    with pytest.raises(Internal, match=r"failed 3 times: RuntimeError: the JVM is gone$"):
        answer(tmp_path, "batch-7")
    assert files(tmp_path) == []


def test_a_request_waits_for_its_tables_and_holds_up_no_other(tmp_path: Path) -> None:
    tables, clock, select = with_instances(tmp_path), VirtualClock(), Selecting(tmp_path)
    other = serving(tmp_path, select, clock)
    request(tmp_path, wanted("batch-0", {2: 50}))
    for _ in range(5):
        clock.advance(SELECTION_TABLES_WAIT_MS / 1_000)
        other.look()
    assert answer(tmp_path, "batch-0") is None, "its first micro-batch may take longer"
    withdraw(tmp_path, "batch-0")
    request(tmp_path, wanted("batch-1", {1: 41, 2: 50}))
    request(tmp_path, wanted("batch-2", {1: 41}))
    other.look()
    assert [each.name for each in select.asked] == ["batch-2"]
    tables.publish({2: 50})
    other.look()
    assert [each.name for each in select.asked] == ["batch-2", "batch-1"]
    request(tmp_path, wanted("batch-3", {2: 51}))
    other.look()
    clock.advance(SELECTION_TABLES_WAIT_MS / 1_000 - 0.1)
    other.look()
    assert answer(tmp_path, "batch-3") is None
    clock.advance(0.2)
    other.look()
    with pytest.raises(DeadlineExceeded, match="reach 51 of partition 2 within 20 s"):
        answer(tmp_path, "batch-3")


def test_tables_that_catch_up_are_waited_for_as_long_as_they_move(tmp_path: Path) -> None:
    tables, clock, select = with_instances(tmp_path), VirtualClock(), Selecting(tmp_path)
    other = serving(tmp_path, select, clock)
    request(tmp_path, wanted("batch-1", {2: 50}))
    for position in range(40, 51):
        tables.publish({2: position})
        other.look()
        clock.advance(SELECTION_TABLES_WAIT_MS / 1_000 - 0.1)
        other.look()
    assert answer(tmp_path, "batch-1") is not None


def test_what_is_no_request_is_refused_and_others_go_on(tmp_path: Path) -> None:
    request(tmp_path, wanted())
    (tmp_path / FOLDER / "batch-8.request").write_bytes(b'{"name"')
    assert list(open_requests(tmp_path)) == [wanted()]
    with pytest.raises(HoldfastError, match="It is no request"):
        answer(tmp_path, "batch-8")
    with pytest.raises(InvalidArgument):
        request(tmp_path, wanted("../elsewhere"))


def test_only_what_is_still_wanted_stays_when_others_are_withdrawn(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    for name in ("batch-1", "batch-2", "other-1"):
        request(tmp_path, wanted(name))
    serving(tmp_path, select).look()
    request(tmp_path, wanted("batch-3"))
    request(tmp_path, wanted("batch-4"))
    assert names(tmp_path) == {"batch-1", "batch-2", "batch-3", "batch-4", "other-1"}
    withdraw_all(tmp_path, "batch-", {"batch-2", "batch-4"})
    assert files(tmp_path) == ["batch-2", "batch-4.request", "other-1"]


def test_the_thread_answers_and_ends(tmp_path: Path) -> None:
    select = Selecting(tmp_path)
    other = serving(tmp_path, select)
    other.start()
    request(tmp_path, wanted())
    for _ in range(200):
        if answer(tmp_path, "batch-7") is not None and files(tmp_path) == ["batch-7"]:
            break
        other._stopping.wait(0.02)
    assert answer(tmp_path, "batch-7") is not None
    other.stop()
    other._thread.join(5)
    assert not other._thread.is_alive()
