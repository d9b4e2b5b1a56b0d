"""Rows become requests: which columns mean what, and what is wrong with them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from holdfast.errors import InvalidArgument
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.pipeline.sink_rows import MESSAGE_TTL_MS, Row, plan_of, rows_of

_SPARK_NAMES = {"int64": "bigint", "int32": "int", "double": "double", "bool": "boolean"}


def rows(options: dict[str, str], columns: dict[str, list[Any]], first: int = 0) -> list[Row]:
    batch = pa.RecordBatch.from_pydict(columns)
    kinds = {each.name: _SPARK_NAMES.get(str(each.type), str(each.type)) for each in batch.schema}
    return list(rows_of(plan_of(options, kinds), batch, first))


def requests(options: dict[str, str], columns: dict[str, list[Any]]) -> list[bytes]:
    return [msgspec.json.encode(row.request) for row in rows(options, columns)]


def test_columns_without_a_meaning_of_their_own_are_the_payload() -> None:
    moment = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
    columns = {
        "key": ["a"], "n": [7], "text": ["ü"], "none": ["x"], "list": [[1, 2]],
        "struct": [{"x": 1}], "time": [moment], "exact": [Decimal("1.50")],
    }  # fmt: skip
    [row] = rows({"type": "mail"}, columns)
    assert isinstance(row.request, NewTask)
    assert (row.key, row.request.type, row.request.key) == ("a", "mail", "a")
    assert msgspec.json.decode(bytes(row.request.payload)) == {
        "n": 7, "text": "ü", "none": "x", "list": [1, 2], "struct": {"x": 1},
        "time": "2030-01-02T03:04:05Z", "exact": "1.50",
    }  # fmt: skip


def test_a_map_is_an_object() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    batch = pa.record_batch({"key": ["a"], "counts": pa.array([[("x", 1)]], kind)})
    plan = plan_of({"type": "t"}, {"key": "string", "counts": "map<string,bigint>"})
    [row] = rows_of(plan, batch, 0)
    assert isinstance(row.request, NewTask)
    assert bytes(row.request.payload) == b'{"counts":{"x":1}}'


def test_a_task_says_all_that_it_can_by_columns_or_options() -> None:
    columns = {
        "key": ["a", "b"],
        "type": ["mail", None],
        "payload": ['{"to": "ü"}', None],
        "priority": [5, None],
        "delayMs": [None, 10],
    }
    first, second = rows({"type": "other", "priority": "3", "windowMs": "60000"}, columns, 40)
    assert first.request == NewTask(
        "mail", msgspec.Raw('{"to": "ü"}'.encode()), "a", 5, window_ms=60_000
    )
    assert second.request == NewTask("other", key="b", priority=3, delay_ms=10, window_ms=60_000)
    assert (first.number, second.number) == (40, 41)
    assert (first.content_bytes, second.content_bytes) == (12, 0)


def test_a_payload_that_is_no_text_is_encoded() -> None:
    [encoded] = requests({"type": "t"}, {"key": ["a"], "payload": [{"x": [1]}]})
    assert encoded == b'{"type":"t","payload":{"x":[1]},"key":"a"}'


def test_a_named_column_is_the_key_and_stays_in_the_payload() -> None:
    [row] = rows({"type": "ship", "keyColumn": "order"}, {"order": [42], "n": [1]})
    assert (row.key, row.request) == (
        "42",
        NewTask("ship", msgspec.Raw(b'{"order":42,"n":1}'), "42"),
    )
    [row] = rows({"type": "ship", "keyColumn": "order"}, {"order": [42], "payload": ["1"]})
    assert row.request == NewTask("ship", msgspec.Raw(b"1"), "42")


def test_a_key_and_a_type_alone_are_a_task_without_payload() -> None:
    assert rows({}, {"key": ["a"], "type": ["t"]})[0].request == NewTask("t", key="a")


def test_processes_get_variables() -> None:
    [row] = rows({"what": "process", "processId": "order"}, {"key": ["a"], "total": [7]})
    assert row.request == NewProcessInstance("order", 0, msgspec.Raw(b'{"total":7}'), "a")
    columns = {"key": ["a"], "processId": ["order"], "version": [2], "variables": ['{"x":1}']}
    assert rows({"what": "process"}, columns)[0].request == NewProcessInstance(
        "order", 2, msgspec.Raw(b'{"x":1}'), "a"
    )


def test_messages_are_kept_so_that_their_ids_are_known() -> None:
    columns = {"messageId": ["m"], "correlationKey": ["o1"], "paid": [7]}
    [row] = rows({"what": "message", "name": "payment"}, columns)
    assert row.request == NewMessage(
        "payment", "o1", msgspec.Raw(b'{"paid":7}'), "m", MESSAGE_TTL_MS
    )
    [row] = rows({"what": "message", "name": "payment", "ttlMs": "5"}, columns)
    assert isinstance(row.request, NewMessage) and row.request.ttl_ms == 5


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"what": "song"}, {"key": ["a"]}, "task, process, message as `what`, but found 'song'"),
        ({}, {"key": ["a"]}, "a column or an option `type`, but found neither"),
        ({"type": "t"}, {"n": [1]}, "a column key, but found n: .*taken once only by its key"),
        ({"type": "t", "keyColumn": "id"}, {"key": ["a"]}, "a column id, but found key"),
        ({"what": "message", "name": "n"}, {"key": ["a"]}, "a column messageId, but found key"),
        ({"type": "t"}, {"key": [1.5]}, "bigint or .* in column key, but found double"),
        ({"type": "t"}, {"key": ["a"], "priority": ["x"]}, "in column priority, but found string"),
        ({"type": "t", "priority": "x"}, {"key": ["a"]}, "option priority, but found 'x'"),
        (
            {"type": "t"},
            {"key": ["a"], "payload": ["1"], "n": [1]},
            "payload or columns that it is made of, but found both payload and n",
        ),
        ({"type": "t"}, {"key": ["a", None]}, "Expected a key in row 1, but found none"),
        ({"type": "t"}, {"key": ["a", ""]}, "Expected a key in row 1, but found none"),
        ({}, {"key": ["a"], "type": [""]}, "Expected a type in row 0, but found none"),
        (
            {"type": "t"},
            {"key": ["a"], "payload": ['1, "key": "b"']},
            "JSON as payload of row 0, but found '1, ",
        ),
        (
            {"what": "process", "processId": "p"},
            {"key": ["a"], "variables": ["[1]"]},
            "JSON object as variables of row 0, but found ",
        ),
        (
            {"what": "message", "name": "n", "ttlMs": "0"},
            {"messageId": ["m"]},
            "ttlMs of 1 or more in row 0, but found 0",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(
    options: dict[str, str], columns: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        rows(options, columns)
