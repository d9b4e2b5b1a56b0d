"""What a filter may not say, and the error that names the field."""

import math
from typing import Any as Json

import msgspec
import pytest
from tests.pipeline.select_reference import THINGS

from holdfast.errors import InvalidArgument
from holdfast.limits import (
    FILTER_CONDITIONS_MAX,
    FILTER_PATTERN_CHARS_MAX,
    FILTER_TEXT_CHARS_MAX,
    FILTER_VALUES_MAX,
)
from holdfast.pipeline.schema import PROCESS_INSTANCES, TABLES
from holdfast.pipeline.select.filters import camel, fields_of, read_filter
from holdfast.pipeline.select.sql import sql_of
from holdfast.pipeline.select.tree import Condition, columns_of

LONG_NAME = "x" * 100_000


def nested(levels: int) -> Json:
    source: Json = {"processId": "x"}
    for _ in range(levels):
        source = {"$or": [source]}
    return source


WRONG: list[tuple[Json, str, str]] = [
    (None, "filter", "Expected an object for 'filter', but found null"),
    ([], "filter", "Expected an object for 'filter', but found a list of 0"),
    ("x", "filter", "Expected an object"),
    ({"nobody": 1}, "nobody", "Expected one of thingKey, partitionId"),
    ({"thing_key": 1}, "thing_key", "but found 'thing_key'"),
    ({"$and": []}, "$and", "but found '$and'"),
    ({LONG_NAME: 1}, LONG_NAME[:80], "…"),
    ({7: 1}, "filter", "but found 7"),
    ({"thingKey": {"$regex": "."}}, "thingKey", "Expected one of $eq"),
    ({"thingKey": {7: "."}}, "thingKey", "but found 7"),
    ({"thingKey": {"$like": "1*"}}, "thingKey", "but found '$like'"),
    ({"processId": {"$gt": "a"}}, "processId", "but found '$gt'"),
    ({"isOpen": {"$lt": True}}, "isOpen", "but found '$lt'"),
    ({"content": "AAE="}, "content", "Expected one of $exists for 'content'"),
    ({"thingKey": {}}, "thingKey", "Expected a value or operators"),
    ({"thingKey": None}, "thingKey", "$exists"),
    ({"thingKey": "12a"}, "thingKey", "Expected a key or a whole number for 'thingKey'"),
    ({"thingKey": "\uff11\uff12"}, "thingKey", "Expected a key"),
    ({"thingKey": " 12"}, "thingKey", "Expected a key"),
    ({"thingKey": ""}, "thingKey", "Expected a key"),
    ({"thingKey": True}, "thingKey", "but found True"),
    ({"thingKey": 1.0}, "thingKey", "but found 1.0"),
    ({"thingKey": math.nan}, "thingKey", "but found nan"),
    ({"thingKey": math.inf}, "thingKey", "but found inf"),
    ({"thingKey": 1 << 63}, "thingKey", "at most 64 bits"),
    ({"thingKey": str(1 << 63)}, "thingKey", "at most 64 bits"),
    ({"thingKey": 1 << 100_000}, "thingKey", "a number of 100001 bits"),
    ({"thingKey": "9" * 100_000}, "thingKey", "…"),
    ({"thingKey": ["1"]}, "thingKey", "but found a list of 1"),
    ({"someCount": "1"}, "someCount", "Expected a whole number for 'someCount', but found '1'"),
    ({"someCount": 1 << 31}, "someCount", "at most 32 bits"),
    ({"someCount": math.nan}, "someCount", "but found nan"),
    ({"processId": 1}, "processId", "Expected a text for 'processId', but found 1"),
    ({"processId": {"$eq": {"a": 1}}}, "processId", "but found an object"),
    ({"processId": "x" * (FILTER_TEXT_CHARS_MAX + 1)}, "processId", "at most 8192 characters"),
    ({"processId": "\ud800"}, "processId", "half characters"),
    ({"processId": {"$like": "\\"}}, "processId", "a character after the last"),
    ({"processId": {"$like": "a\\\\\\"}}, "processId", "a character after the last"),
    ({"processId": {"$like": "*" * (FILTER_PATTERN_CHARS_MAX + 1)}}, "processId", "at most 1000"),
    ({"processId": {"$like": None}}, "processId", "Expected a text"),
    ({"processId": {"$in": "abc"}}, "processId", "Expected a list for $in"),
    ({"processId": {"$in": [None]}}, "processId", "but found null"),
    ({"processId": {"$in": ["x"] * (FILTER_VALUES_MAX + 1)}}, "processId", "at most 10000 values"),
    ({"processId": {"$exists": 1}}, "processId", "Expected true or false for $exists"),
    ({"isOpen": 1}, "isOpen", "Expected true or false"),
    ({"isOpen": "true"}, "isOpen", "Expected true or false"),
    ({"ended": 1_760_000_400_000}, "ended", "Expected a time like"),
    ({"ended": "2025-10-09"}, "ended", "Expected a time like"),
    ({"ended": "2025-10-09T09:00:00"}, "ended", "Expected a time like"),
    ({"ended": "2025-02-30T09:00:00Z"}, "ended", "Expected a time like"),
    ({"ended": "2025-10-09T25:00:00Z"}, "ended", "Expected a time like"),
    ({"ended": "2025-10-09T09:00:60Z"}, "ended", "Expected a time like"),
    ({"ended": "0000-01-01T00:00:00Z"}, "ended", "Expected a time like"),
    ({"ended": "9999-12-31T23:59:59-01:00"}, "ended", "Expected a time like"),
    ({"ended": "2025-10-09T09:00:00Z\n"}, "ended", "Expected a time like"),
    ({"ended": "2025-10-09T09:00:00+99:00"}, "ended", "Expected a time like"),
    ({"ended": "'; DROP TABLE things; --"}, "ended", "Expected a time like"),
    ({"$or": []}, "$or", "Expected a list of filters"),
    ({"$or": {"processId": "x"}}, "$or", "Expected a list of filters"),
    ({"$or": [{}]}, "$or", "at least one field in each filter"),
    ({"$or": ["x"]}, "$or", "Expected an object"),
    (nested(5), "$or", "at most 4 levels"),
    (nested(900), "$or", "at most 4 levels"),
    ({"$or": [{"processId": str(n)} for n in range(FILTER_CONDITIONS_MAX + 1)]}, "processId",
     "at most 256 conditions"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "field", "message"), WRONG, ids=[f"{at}" for at in range(len(WRONG))]
)
def test_a_wrong_filter_is_refused_and_its_field_is_named(
    source: Json, field: str, message: str
) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_filter(THINGS, source)
    assert refused.value.fields["field"] == field
    assert message in refused.value.message
    assert refused.value.message.startswith("Expected ")
    assert len(refused.value.message) < 500
    refused.value.message.encode()


def test_lists_are_counted_over_the_whole_filter() -> None:
    half = {"processId": {"$in": [str(number) for number in range(FILTER_VALUES_MAX // 2)]}}
    read_filter(THINGS, {"$or": [half, half]})
    with pytest.raises(InvalidArgument):
        read_filter(THINGS, {"$or": [half, half, half]})


def test_every_column_of_every_table_has_one_name_in_requests() -> None:
    for table in TABLES.values():
        assert len(fields_of(table)) == len(table.columns)
    assert camel("process_instance_key") == "processInstanceKey"
    assert fields_of(PROCESS_INSTANCES)["processInstanceKey"].name == "process_instance_key"


def test_values_never_stand_in_the_text_of_the_sql() -> None:
    hostile = "'; DROP TABLE things; --"
    source = {"processId": {"$eq": hostile, "$neq": hostile, "$like": hostile, "$in": [hostile]}}
    where = sql_of(read_filter(THINGS, source))
    assert "DROP" not in where.text
    assert where.text.count("?") == len(where.parameters) == 4


def test_a_tree_says_which_columns_it_needs_and_survives_its_encoding() -> None:
    source = {
        "processId": {"$like": "a*"},
        "$or": [{"ended": {"$exists": False}}, {"isOpen": True}],
    }
    condition = read_filter(THINGS, source)
    assert columns_of(condition) == {"process_id", "ended", "is_open"}
    encoded = msgspec.json.encode(condition)
    assert msgspec.json.decode(encoded, type=Condition) == condition
