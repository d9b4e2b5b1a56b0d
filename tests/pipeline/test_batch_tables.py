"""What batch operations get of the tables, without Spark: another process answers as it would."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.select_reference import meets
from tests.pipeline.select_tables import BASE, INCIDENTS, PROCESS_INSTANCES, Tables, instances

from holdfast.clock import SystemClock
from holdfast.engine.batch.values import BatchOperation, BatchOperationType, Selection, Visible
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.gateway.batch.shapes import (
    BatchItemFilter,
    BatchItemQuery,
    BatchItemState,
    BatchOperationFilter,
    BatchOperationQuery,
    BatchPageQuery,
)
from holdfast.gateway.batch.tables import failed_items, of_instances
from holdfast.pipeline.batch import selector as selector_module
from holdfast.pipeline.batch import tables as tables_module
from holdfast.pipeline.batch.sources import condition_of, source_of, visible_of
from holdfast.pipeline.batch.tables import PipelineTables
from holdfast.pipeline.schema import BATCH_OPERATION_ITEMS, BATCH_OPERATIONS, TABLES
from holdfast.pipeline.search.search import Search
from holdfast.pipeline.select.requests import Request, names
from holdfast.pipeline.select.serving import SelectionServing
from holdfast.pipeline.select.snapshot import (
    SelectionManifest,
    folder_of,
    store_manifest,
    write_run,
)
from holdfast.pipeline.select.tree import EVERYTHING, apart

_T = BatchOperationType
KEY = BASE + 5


def operation(type_: BatchOperationType, filter_: bytes, **rest: Any) -> BatchOperation:
    return BatchOperation(type_, filter_, selection=Selection("batch-5", {}), **rest)


class OtherProcess(SelectionServing):
    """Answers requests by looking at rows in memory."""

    def __init__(self, root: Path, rows: dict[str, dict[int, dict[str, Any]]]) -> None:
        self.asked: list[Request] = []

        def select(wanted: Request) -> None:
            self.asked.append(wanted)
            folder = folder_of(root, wanted.name)
            folder.mkdir(parents=True, exist_ok=True)
            empty = dict.fromkeys(TABLES[wanted.table].names)
            found = sorted(
                key for key, row in rows[wanted.table].items() if meets(empty | row, wanted.filter)
            )
            runs = {}
            for partition in {key // BASE for key in found}:
                keys = [key for key in found if key // BASE == partition]
                runs[partition] = write_run(
                    folder, partition, pa.array(keys, pa.int64()), f"{partition}.parquet"
                )
            manifest = SelectionManifest(wanted.table, 1, {}, wanted.filter, wanted.visible, runs)
            store_manifest(folder, manifest)

        super().__init__(root, select, SystemClock())


def answered(root: Path, rows: dict[str, dict[int, dict[str, Any]]], story: Any) -> OtherProcess:
    other = OtherProcess(root, rows)
    other.start()
    try:
        asyncio.run(story(PipelineTables(root, Search(root), SystemClock())))
    finally:
        other.stop()
    return other


def test_items_come_in_pages_from_one_snapshot(tmp_path: Path) -> None:
    Tables(tmp_path).publish()
    rows = {key: row for part in (1, 2) for key, row in instances(part, 40).items()}
    wanted = operation(_T.CANCEL_PROCESS_INSTANCE, b'{"processId":{"$like":"process-*"}}')
    active = [key for key, row in rows.items() if row["state"] == "ACTIVE"]

    async def story(tables: PipelineTables) -> None:
        found: list[int] = []
        for partition in (1, 2, 3):
            cursor: str | None = ""
            while cursor is not None:
                page = await tables.page(KEY, wanted, partition, cursor, 3)
                assert len(page.items) <= 3 and page.instances == ()
                found += page.items
                cursor = page.next_cursor
        assert found == sorted(active)
        assert names(tmp_path) == {"batch-5"}
        chosen = await tables.preview(wanted)
        assert sum(chosen.counts.values()) == len(active) and set(chosen.sample) <= set(active)
        assert names(tmp_path) == {"batch-5"}, "nothing of a dry run stays"
        tables.keep_only([wanted])
        assert names(tmp_path) == {"batch-5"}
        tables.drop(wanted)
        assert names(tmp_path) == set()

    other = answered(tmp_path, {PROCESS_INSTANCES.name: rows}, story)
    assert len(other.asked) == 2, "once for all partitions, and once for the dry run"


def test_incidents_come_with_their_instances(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    rows: dict[int, dict[str, Any]] = {
        BASE + 2 * n: {"state": "OPEN", "error": "broke", "position": n} for n in range(6)
    }
    for n in (0, 3, 5):
        rows[BASE + 2 * n]["process_instance_key"] = BASE + 1_000 + n
    tables.put(INCIDENTS, 1, rows)
    tables.publish()
    wanted = operation(_T.RESOLVE_INCIDENT, b'{"error":"broke"}')

    async def story(found: PipelineTables) -> None:
        page = await found.page(KEY, wanted, 1, "", 4)
        assert page.items == tuple(BASE + 2 * n for n in range(4))
        assert page.instances == (BASE + 1_000, 0, 0, BASE + 1_003)
        page = await found.page(KEY, wanted, 1, page.next_cursor or "", 4)
        assert page.instances == (0, BASE + 1_005) and page.next_cursor is None

    answered(tmp_path, {INCIDENTS.name: rows}, story)


def test_nobody_who_selects_is_unavailable_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selector_module, "BATCH_SELECTION_WAIT_MS", 100)
    monkeypatch.setattr(selector_module, "_NOBODY_SECONDS", 0.1)
    Tables(tmp_path).publish()
    tables = PipelineTables(tmp_path, Search(tmp_path), SystemClock())
    wanted = operation(_T.RETRY_TASK, b'{"type":"mail"}')
    with pytest.raises(Unavailable, match="is holdfast pipeline run at work"):
        asyncio.run(tables.page(KEY, wanted, 1, "", 10))
    assert names(tmp_path) == {"batch-5"}, "the request stays for the next pipeline"
    with pytest.raises(Unavailable):
        asyncio.run(tables.preview(wanted))
    assert names(tmp_path) == {"batch-5"}, "but not that of a dry run"


@pytest.mark.parametrize(
    ("type_", "filter_", "field"),
    [
        (_T.CANCEL_PROCESS_INSTANCE, b'{"proces":"x"}', "proces"),
        (_T.RESOLVE_INCIDENT, b'{"version":3}', "version"),
        (_T.RESOLVE_INCIDENT, b'{"processInstance":{"error":"x"}}', "error"),
        (_T.RESOLVE_INCIDENT, b'{"processInstance":{}}', "processInstance"),
        (_T.CANCEL_PROCESS_INSTANCE, b'{"processInstance":{"version":1}}', "processInstance"),
        (_T.RETRY_TASK, b'{"created":"soon"}', "created"),
        (_T.DISCARD_TASK, b"{}", "filter"),
        (_T.RETRY_TASK, failed_items(7), "batchOperationKey"),
    ],
)
def test_a_filter_that_is_none_is_refused_by_its_field(
    tmp_path: Path, type_: BatchOperationType, filter_: bytes, field: str
) -> None:
    with pytest.raises(InvalidArgument) as raised:
        PipelineTables(tmp_path, Search(tmp_path), SystemClock()).check(operation(type_, filter_))
    assert raised.value.fields["field"] == field


@pytest.mark.parametrize("type_", BatchOperationType)
def test_what_cannot_be_done_is_not_chosen(type_: BatchOperationType) -> None:
    wanted = operation(type_, b'{"position":{"$gte":0}}')
    table = source_of(wanted).table
    empty = dict.fromkeys(table.names) | {"position": 1}
    good, bad = {
        PROCESS_INSTANCES.name: ("ACTIVE", "COMPLETED"),
        INCIDENTS.name: ("OPEN", "RESOLVED"),
        "jobs": ("INCIDENT", "WAITING"),
    }[table.name]
    if type_ is _T.DELETE_PROCESS_INSTANCE:
        good, bad = bad, good
    condition = condition_of(wanted)
    assert meets(empty | {"state": good}, condition)
    assert not meets(empty | {"state": bad}, condition)
    if type_ is _T.CANCEL_PROCESS_INSTANCE:
        assert not meets(empty | {"state": good, "parent_element_instance_key": 7}, condition)
    if type_ in (_T.RETRY_TASK, _T.DISCARD_TASK):
        assert not meets(empty | {"state": good, "process_instance_key": 7}, condition)


def test_incidents_are_chosen_by_what_their_instances_are() -> None:
    wanted = operation(_T.RESOLVE_INCIDENT, of_instances(b'{"version":3}'))
    assert source_of(wanted).table is INCIDENTS
    own, (theirs,) = apart(condition_of(wanted))
    assert (theirs.table, theirs.column) == (PROCESS_INSTANCES.name, "process_instance_key")
    assert meets({"version": 3}, theirs.condition) and not meets({"version": 2}, theirs.condition)
    assert meets({"state": "OPEN"}, own) and not meets({"state": "RESOLVED"}, own)


@pytest.mark.parametrize("type_", BatchOperationType)
def test_what_the_creator_may_not_see_is_not_chosen(type_: BatchOperationType) -> None:
    def sees(row: dict[str, Any], processes: tuple[str, ...], tasks: tuple[str, ...]) -> bool:
        visible = Visible(processes, tasks)
        return meets(row, visible_of(operation(type_, b"{}", visible=visible)))

    of_task = type_ in (_T.RETRY_TASK, _T.DISCARD_TASK)
    rows: list[tuple[dict[str, Any], bool]] = [({"process_id": "order", "type": None}, False)]
    if type_ is _T.RESOLVE_INCIDENT:
        rows.append(({"process_id": None, "type": "mail"}, True))
    for row, is_task in [({"type": "mail"}, True)] if of_task else rows:
        mine, others = (("order",), ("mail",)), (("other",), ("other",))
        assert sees(row, *mine) and not sees(row, *others) and not sees(row, (), ())
        assert sees(row, ("*",), ()) != is_task and sees(row, (), ("*",)) == is_task
    assert visible_of(operation(type_, b"{}")) == EVERYTHING


def test_failed_items_of_one_operation_are_chosen_for_another() -> None:
    wanted = operation(_T.RESOLVE_INCIDENT, failed_items(7), repeats=7)
    assert source_of(wanted).table is BATCH_OPERATION_ITEMS
    condition = condition_of(wanted)
    row = dict.fromkeys(BATCH_OPERATION_ITEMS.names) | {"batch_operation_key": 7, "state": "FAILED"}
    assert meets(row, condition)
    assert not meets(row | {"batch_operation_key": 8}, condition)
    assert not meets(row | {"state": "COMPLETED"}, condition)


def test_operations_and_items_are_told_as_the_tables_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "BATCH_TABLES_WAIT_MS", 100)
    made = Tables(tmp_path)
    plan = (
        '{"activate":[{"element_id":"a","ancestor_key":0,"variables":{"x":1}}],"terminate":[3],'
        '"terminate_ids":["b"],"move":[["c","d"]],"variables":{}}'
    )
    row: dict[str, Any] = {
        "type": "MODIFY_PROCESS_INSTANCE", "state": "PARTIALLY_COMPLETED", "plan": plan,
        "filter": '{"state":"ACTIVE"}', "throttle": 4, "priority": 2, "partitions": 3,
        "partitions_ended": 3, "selection": "batch-5", "created": 1_700_000_000_000,
        "ended": 1_700_000_001_000, "total": 9, "completed": 6, "failed": 3, "skipped": 0,
        "canceled": 0, "errors": '[{"partition":2,"type":"QUERY_FAILED","message":"no ü"}]',
    }  # fmt: skip
    second = row | {"created": 1_700_000_002_000, "state": "COMPLETED", "errors": None}
    made.put(BATCH_OPERATIONS, 1, {KEY: row, KEY + 1: second})
    items = {
        (BASE + n, KEY): {
            "type": row["type"], "state": "FAILED" if n % 3 == 0 else "COMPLETED",
            "process_instance_key": BASE + n, "error": "broke" if n % 3 == 0 else None,
        }
        for n in range(9)
    }  # fmt: skip
    made.put(BATCH_OPERATION_ITEMS, 1, items)
    made.publish({1: 10})
    tables = PipelineTables(tmp_path, Search(tmp_path), SystemClock())

    async def story() -> None:
        past = await tables.past(KEY, {1: 10})
        assert past is not None and await tables.past(KEY + 9, {}) is None
        with pytest.raises(Unavailable, match="as far as the log"):
            await tables.past(KEY, {1: 11})
        view, was = past.view, past.operation
        assert (view.operations_total_count, view.operations_failed_count) == (9, 3)
        assert [each.message for each in view.errors] == ["no ü"]
        assert was.filter == b'{"state":"ACTIVE"}' and was.modification is not None
        assert was.modification.activate[0].variables == b'{"x":1}'
        assert was.modification.move == (("c", "d"),) and was.modification.terminate == (3,)

        page = await tables.operations(BatchOperationQuery())
        assert [each.batch_operation_key for each in page.items] == [str(KEY + 1), str(KEY)]
        only = BatchOperationQuery(BatchOperationFilter(view.state), BatchPageQuery(1))
        assert [each.batch_operation_key for each in (await tables.operations(only)).items] == [
            str(KEY)
        ]
        asked = BatchItemFilter(str(KEY), state=BatchItemState.FAILED)
        first = await tables.items(BatchItemQuery(asked, BatchPageQuery(2)))
        rest = await tables.items(BatchItemQuery(asked, BatchPageQuery(2, first.page.end_cursor)))
        found = [*first.items, *rest.items]
        assert [each.item_key for each in found] == [str(BASE + n) for n in (0, 3, 6)]
        assert first.page.total_items == 3 and {each.error_message for each in found} == {"broke"}

    asyncio.run(story())


def test_failures_are_grouped_by_what_they_have_in_common(tmp_path: Path) -> None:
    made = Tables(tmp_path)

    def item(state: str, code: str | None, error: str | None) -> dict[str, Any]:
        return {"type": "RETRY_TASK", "state": state, "error_code": code, "error": error}

    items = {
        (BASE + n, KEY): item("FAILED", "INVALID_STATE", f"Expected job {BASE + n} at step 7")
        for n in range(5)
    }
    items |= {(BASE + 10, KEY): item("FAILED", "FORBIDDEN", "'ann' may not")}
    items |= {(BASE + 11, KEY): item("COMPLETED", None, None)}
    items |= {(BASE, KEY + 1): item("FAILED", "FORBIDDEN", "of another operation")}
    made.put(BATCH_OPERATION_ITEMS, 1, items)
    made.publish({1: 10})
    tables = PipelineTables(tmp_path, Search(tmp_path), SystemClock())
    found = asyncio.run(tables.failures(KEY))
    assert found.is_whole
    assert [(each.error_code, each.reason, each.items) for each in found.items] == [
        ("INVALID_STATE", "Expected job # at step 7", 5),
        ("FORBIDDEN", "'ann' may not", 1),
    ]
    assert found.items[0].example == f"Expected job {BASE} at step 7"
    assert found.items[0].example_key == str(BASE)
    assert asyncio.run(tables.failures(KEY + 2)).items == []
