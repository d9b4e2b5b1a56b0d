"""One table of cases, and random ones: Python, DuckDB, Arrow and Spark choose the same rows."""

from pathlib import Path
from typing import Any as Json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.select_engines import by_arrow, by_duckdb, by_spark, by_spark_where
from tests.pipeline.select_reference import THINGS, Row, arrow_of, meets

from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.tree import Condition

NOON_MS = 1_760_000_400_000
NOON = "2025-10-09T09:00:00Z"
TEXTS = [
    "order", "Order", "orders", "", "'; DROP TABLE things; --", "\\", "a\\b", "100%", "a_b", "axb",
    "a*b", "a?b", "two\nlines", "two\r\nlines", "nul\0inside", "Zoë", "Zoe\u0308", "🦀🦀", "a.b",
    "(a|b)", "[abc]", "^a$", "{1,2}", "\\E\\Q", "ACTIVE ", " ACTIVE", "\u2028", "\u0131", "a" * 300,
]  # fmt: skip
ROWS: list[Row] = [
    *(
        {"thing_key": number, "partition_id": 1 + number % 3, "process_id": text}
        for number, text in enumerate(TEXTS)
    ),
    {"thing_key": 100, "partition_id": 1},
    {"thing_key": 101, "partition_id": 1, "parent_key": 7, "some_count": 0, "is_open": True},
    {"thing_key": 102, "partition_id": 2, "parent_key": (1 << 63) - 1, "some_count": -5},
    {"thing_key": 103, "partition_id": 2, "parent_key": 8, "ended": NOON_MS, "is_open": False},
    {"thing_key": 104, "partition_id": 2, "ended": NOON_MS + 1, "content": b"\0\1"},
    {"thing_key": 105, "partition_id": 2, "ended": -1, "process_id": "order"},
]


def texts(*wanted: str) -> set[int]:
    return {TEXTS.index(text) for text in wanted} | ({105} if "order" in wanted else set())


ALL = {row["thing_key"] for row in ROWS}
WITHOUT_TEXT = {100, 101, 102, 103, 104}

CASES: list[tuple[Json, set[int]]] = [
    ({}, ALL),
    ({"thingKey": "101"}, {101}),
    ({"thingKey": 101}, {101}),
    ({"thingKey": {"$in": ["100", 101, "9223372036854775807"]}}, {100, 101}),
    ({"thingKey": {"$in": []}}, set()),
    ({"thingKey": {"$notIn": []}}, ALL),
    ({"thingKey": {"$in": [str(number) for number in range(90, 1000)]}}, ALL - set(range(90))),
    ({"thingKey": {"$notIn": [str(number) for number in range(1000)]}}, set()),
    ({"parentKey": {"$gte": "8"}}, {102, 103}),
    ({"parentKey": {"$neq": "8"}}, ALL - {103}),
    ({"parentKey": {"$notIn": ["8", "7"]}}, ALL - {101, 103}),
    ({"parentKey": {"$notIn": list(range(500))}}, ALL - {101, 103}),
    ({"parentKey": {"$exists": True}}, {101, 102, 103}),
    ({"parentKey": {"$exists": False}}, ALL - {101, 102, 103}),
    ({"parentKey": {"$gt": -(1 << 63), "$lt": (1 << 63) - 1}}, {101, 103}),
    ({"someCount": {"$lt": 0}}, {102}),
    ({"someCount": {"$lte": 0}}, {101, 102}),
    ({"someCount": {"$neq": 0}}, ALL - {101}),
    ({"isOpen": True}, {101}),
    ({"isOpen": {"$neq": True}}, ALL - {101}),
    ({"isOpen": {"$in": [False]}}, {103}),
    ({"ended": NOON}, {103}),
    ({"ended": {"$gt": NOON}}, {104}),
    ({"ended": {"$gte": "2025-10-09T11:00:00.000+02:00"}}, {103, 104}),
    ({"ended": {"$lt": "1970-01-01T00:00:00Z"}}, {105}),
    ({"ended": {"$in": [NOON, "1969-12-31T23:59:59.999Z"]}}, {103, 105}),
    ({"ended": {"$gt": "0001-01-01T00:00:00Z", "$lt": "9999-12-31T23:59:59Z"}}, {103, 104, 105}),
    ({"ended": {"$gt": "1582-10-01T00:00:00Z"}}, {103, 104, 105}),
    ({"content": {"$exists": True}}, {104}),
    ({"processId": "order"}, texts("order")),
    ({"processId": ""}, texts("")),
    ({"processId": {"$neq": "order"}}, ALL - texts("order")),
    ({"processId": {"$in": ["order", "Order"]}}, texts("order", "Order")),
    ({"processId": {"$in": [*TEXTS, *map(str, range(100))]}}, ALL - WITHOUT_TEXT),
    *(({"processId": text}, texts(text)) for text in TEXTS),
    *(
        ({"processId": {"$like": "".join(f"\\{each}" for each in text)}}, texts(text))
        for text in TEXTS
    ),
    ({"processId": {"$like": "*"}}, ALL - WITHOUT_TEXT),
    ({"processId": {"$like": "***"}}, ALL - WITHOUT_TEXT),
    ({"processId": {"$like": ""}}, texts("")),
    ({"processId": {"$like": "order*"}}, texts("order", "orders")),
    ({"processId": {"$like": "?rder"}}, texts("order", "Order")),
    ({"processId": {"$like": "*%"}}, texts("100%")),
    ({"processId": {"$like": "a_b"}}, texts("a_b")),
    ({"processId": {"$like": "a?b"}}, texts("a\\b", "a_b", "axb", "a*b", "a?b", "a.b")),
    ({"processId": {"$like": "a\\?b"}}, texts("a?b")),
    ({"processId": {"$like": "a\\*b"}}, texts("a*b")),
    ({"processId": {"$like": "two?lines"}}, texts("two\nlines")),
    ({"processId": {"$like": "two*lines"}}, texts("two\nlines", "two\r\nlines")),
    ({"processId": {"$like": "two\n*"}}, texts("two\nlines")),
    ({"processId": {"$like": "nul\0*"}}, texts("nul\0inside")),
    ({"processId": {"$like": "nul?inside"}}, texts("nul\0inside")),
    ({"processId": {"$like": "Zo?"}}, texts("Zoë")),
    ({"processId": {"$like": "??"}}, texts("🦀🦀")),
    ({"processId": {"$like": "🦀?"}}, texts("🦀🦀")),
    ({"processId": {"$like": "*'; DROP*"}}, texts("'; DROP TABLE things; --")),
    ({"processId": {"$like": "*(a|b)*"}}, texts("(a|b)")),
    ({"processId": {"$like": "*\\\\Q"}}, texts("\\E\\Q")),
    ({"processId": {"$like": "*i*e*"}}, texts("two\nlines", "two\r\nlines", "nul\0inside")),
    ({"processId": {"$like": "*aa"}}, texts("a" * 300)),
    ({"processId": {"$like": "*a" * 80 + "*b"}}, set()),
    ({"processId": {"$like": "*o*", "$neq": "order"}}, texts(
        "orders", "two\nlines", "two\r\nlines", "Zoë", "Zoe\u0308")),
    ({"partitionId": 2, "$or": [{"isOpen": False}, {"someCount": {"$lt": 0}}]}, {102, 103}),
    ({"$or": [{"thingKey": {"$in": list(range(100, 200))}}, {"processId": "axb"}]},
     {100, 101, 102, 103, 104, 105} | texts("axb")),
    ({"$or": [{"processId": "axb", "$or": [{"partitionId": 1}, {"partitionId": 9}]},
              {"ended": NOON}]}, {103} | {k for k in texts("axb") if k % 3 == 0}),
]  # fmt: skip


CONDITIONS = [read_filter(THINGS, source) for source, _ in CASES]
CASE_IDS = [f"{number}" for number in range(len(CASES))]


@pytest.mark.parametrize("number", range(len(CASES)), ids=CASE_IDS)
def test_plain_python_chooses_the_rows_of_the_table_of_cases(number: int) -> None:
    found = {row["thing_key"] for row in ROWS if meets(row, CONDITIONS[number])}
    assert found == CASES[number][1], CASES[number][0]


def test_duckdb_chooses_the_rows_of_the_table_of_cases() -> None:
    for case, found in zip(CASES, by_duckdb(arrow_of(ROWS), CONDITIONS), strict=True):
        assert found == case[1], case[0]


def test_arrow_chooses_the_rows_of_the_table_of_cases(tmp_path: Path) -> None:
    for case, found in zip(CASES, by_arrow(tmp_path, arrow_of(ROWS), CONDITIONS), strict=True):
        assert found == case[1], case[0]


def test_arrow_takes_a_column_that_a_file_does_not_have_for_empty(tmp_path: Path) -> None:
    older = arrow_of(ROWS).drop_columns(["process_id", "parent_key", "ended"])
    rows = [{name: row.get(name) for name in older.column_names} for row in ROWS]
    found = by_arrow(tmp_path, older, CONDITIONS)
    assert found == _expected(rows, CONDITIONS)


def test_spark_chooses_the_rows_of_the_table_of_cases(spark: Json, tmp_path: Path) -> None:
    found = by_spark(spark, tmp_path, arrow_of(ROWS), CONDITIONS)
    for case, keys in zip(CASES, found, strict=True):
        assert keys == case[1], case[0]


def test_spark_chooses_the_same_rows_when_the_filter_reaches_the_file(
    spark: Json, tmp_path: Path
) -> None:
    by_spark(spark, tmp_path, arrow_of(ROWS), CONDITIONS[:1])
    for number in range(0, len(CASES), 4):
        found = by_spark_where(spark, tmp_path / "things.parquet", CONDITIONS[number])
        assert found == CASES[number][1], CASES[number][0]


# --- random ------------------------------------------------------------------------------------

letters = st.sampled_from(
    ["a", "b", "B", "*", "?", "\\", "%", "_", ".", "\n", "\0", "ë", "🦀", "'"]
)
words = st.text(letters, max_size=5)
longs = st.one_of(st.integers(-2, 3), st.sampled_from([-(1 << 63), (1 << 63) - 1]))
ints = st.one_of(st.integers(-2, 3), st.sampled_from([-(1 << 31), (1 << 31) - 1]))
moments = st.integers(-2, 3)
row_values = {
    "parent_key": longs, "some_count": ints, "process_id": words, "is_open": st.booleans(),
    "ended": moments, "content": st.binary(max_size=2),
}  # fmt: skip
tables = st.lists(st.fixed_dictionaries({}, optional=row_values), min_size=1, max_size=8).map(
    lambda rows: [{"thing_key": at, "partition_id": 1} | row for at, row in enumerate(rows)]
)


def _moment(milliseconds: int) -> str:
    second, rest = divmod(milliseconds, 1000)
    base = "1970-01-01T00:00:00" if second == 0 else "1969-12-31T23:59:59"
    return f"{base}.{rest:03d}Z"


def operators(values: st.SearchStrategy[Json], *more: st.SearchStrategy[Json]) -> Json:
    exists = st.fixed_dictionaries({"$exists": st.booleans()})
    one = st.one_of(
        exists,
        *(st.fixed_dictionaries({name: values}) for name in ("$eq", "$neq")),
        *(
            st.fixed_dictionaries({name: st.lists(values, max_size=3)})
            for name in ("$in", "$notIn")
        ),
        *more,
    )
    return st.one_of(values, one, st.tuples(one, one).map(lambda pair: pair[0] | pair[1]))


def ordered(values: st.SearchStrategy[Json]) -> Json:
    names = ("$gt", "$gte", "$lt", "$lte")
    return operators(values, *(st.fixed_dictionaries({name: values}) for name in names))


# A pattern must not end within an escape.
patterns = words.filter(lambda word: (len(word) - len(word.rstrip("\\"))) % 2 == 0)
fields = {
    "parentKey": ordered(st.one_of(longs, longs.map(str))),
    "someCount": ordered(ints),
    "processId": operators(words, st.fixed_dictionaries({"$like": patterns})),
    "isOpen": operators(st.booleans()),
    "ended": ordered(moments.map(_moment)),
    "content": st.fixed_dictionaries({"$exists": st.booleans()}),
}
some_fields = st.sets(st.sampled_from(sorted(fields)), min_size=1, max_size=2).flatmap(
    lambda names: st.fixed_dictionaries({name: fields[name] for name in sorted(names)})
)
filters = st.recursive(
    some_fields,
    lambda inner: st.builds(
        lambda base, branches: {**base, "$or": branches},
        st.one_of(st.just({}), some_fields),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=4,
)
questions = st.lists(filters, min_size=20, max_size=40)


def _expected(rows: list[Row], conditions: list[Condition]) -> list[set[int]]:
    return [{row["thing_key"] for row in rows if meets(row, condition)} for condition in conditions]


def _read(sources: list[Json]) -> list[Condition]:
    depth_max = [source for source in sources if _depth(source) <= 4]
    return [read_filter(THINGS, source) for source in depth_max]


def _depth(source: Json) -> int:
    return 1 + max(map(_depth, source["$or"])) if "$or" in source else 0


@settings(max_examples=25, deadline=None)
@given(rows=tables, sources=questions)
def test_duckdb_and_plain_python_agree_on_random_filters(
    rows: list[Row], sources: list[Json]
) -> None:
    conditions = _read(sources)
    assert by_duckdb(arrow_of(rows), conditions) == _expected(rows, conditions)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables, sources=questions)
def test_arrow_and_plain_python_agree_on_random_filters(
    tmp_path: Path, rows: list[Row], sources: list[Json]
) -> None:
    conditions = _read(sources)
    assert by_arrow(tmp_path, arrow_of(rows), conditions) == _expected(rows, conditions)


@pytest.mark.soak  # Spark's answers to the table of cases are the short version
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=tables, sources=questions)
def test_spark_and_plain_python_agree_on_random_filters(
    spark: Json, tmp_path: Path, rows: list[Row], sources: list[Json]
) -> None:
    conditions = _read(sources)
    found = by_spark(spark, tmp_path, arrow_of(rows), conditions)
    assert found == _expected(rows, conditions)
