"""Searching the tables: one row, pages in every order, and readers while the tables change."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.pipeline.select_tables import (
    BASE,
    PROCESS_INSTANCES,
    RECORDS,
    SPREAD,
    START_MS,
    VARIABLES,
    Tables,
    instances,
    with_instances,
)

from holdfast.errors import InvalidArgument, Unavailable
from holdfast.pipeline.search import nearest
from holdfast.pipeline.search import search as search_module
from holdfast.pipeline.search.paging import PageRequest, read_page, read_sort
from holdfast.pipeline.search.search import Answer, Item, Search
from holdfast.pipeline.select.filters import read_filter

KEY = "process_instance_key"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    with_instances(root)
    return root


@pytest.fixture
def search(root: Path) -> Iterator[Search]:
    search = Search(root)
    yield search
    search.close()


def asked(search: Search, filter_: Any = None, sort: Any = None, page: Any = None) -> Answer:
    return search.search(
        PROCESS_INSTANCES,
        read_filter(PROCESS_INSTANCES, filter_ or {}),
        read_sort(PROCESS_INSTANCES, sort),
        read_page(page),
    )


def keys(answer: Answer) -> list[int]:
    return [item[KEY] for item in answer.items]


def test_a_row_is_found_by_its_key(search: Search) -> None:
    item = search.get(PROCESS_INSTANCES, BASE + SPREAD)
    assert item is not None
    assert item["process_id"] == "process-1"
    assert item["started"] == datetime.fromtimestamp(START_MS / 1000 + 1, UTC)
    assert search.get(PROCESS_INSTANCES, BASE + SPREAD + 1) is None
    assert search.get(PROCESS_INSTANCES, 5) is None


def test_a_get_reads_no_file_that_cannot_have_the_key(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    answers = search_module._answers

    def watched(cursor: Any, table: Any, paths: list[str], query: Any) -> Any:
        read.extend(paths)
        return answers(cursor, table, paths, query)

    monkeypatch.setattr(search_module, "_answers", watched)
    search.get(PROCESS_INSTANCES, BASE + SPREAD)
    assert len(read) == 1
    search.get(PROCESS_INSTANCES, 5)
    assert len(read) == 1


def test_rows_of_other_kinds_of_tables_are_found(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.put(VARIABLES, 1, {(BASE, "a"): {"value": "1"}, (BASE, "b"): {"value": "2"}})
    tables.put(RECORDS, 1, {7: {"kind": "EVENT"}})
    tables.put(RECORDS, 2, {7: {"kind": "COMMAND"}})
    tables.publish()
    search = Search(tmp_path)
    found = search.get(VARIABLES, BASE, "b")
    assert found is not None and found["value"] == "2"
    found = search.get(RECORDS, 7, 2)
    assert found is not None and found["kind"] == "COMMAND"
    first = search.search(RECORDS, page=PageRequest(1))
    second = search.search(RECORDS, page=PageRequest(1, after=first.page.end_cursor))
    assert [first.items[0]["kind"], second.items[0]["kind"]] == ["EVENT", "COMMAND"]
    assert len(search.search(VARIABLES).items) == 2


def test_tables_that_never_began_are_empty(tmp_path: Path) -> None:
    search = Search(tmp_path)
    assert search.get(PROCESS_INSTANCES, 1) is None
    answer = asked(search)
    assert answer.items == [] and answer.page.total_items == 0


def test_the_total_is_exact_up_to_its_limit(
    search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(search).page.total_items == 120
    assert asked(search, {"state": "ACTIVE"}).page.total_items == 30
    assert asked(search, {"state": "NOBODY"}).page == search_module.PageInfo(0, False)
    monkeypatch.setattr(search_module, "TOTAL_ITEMS_MAX", 29)
    page = asked(search, {"state": "ACTIVE", "version": {"$gte": 0}}).page
    assert (page.total_items, page.has_more_total_items) == (29, True)


def test_a_page_is_counted_from_the_start(search: Search) -> None:
    everything = keys(asked(search, page={"limit": 200}))
    assert everything == sorted(everything) and len(everything) == 120
    assert keys(asked(search)) == everything[:100]
    assert keys(asked(search, page={"from": 110, "limit": 50})) == everything[110:]
    assert keys(asked(search, page={"from": 500})) == []


@pytest.mark.parametrize("filter_", [{}, {"version": {"$gte": 0}}])
def test_a_page_of_nothing_has_the_total(search: Search, filter_: dict[str, Any]) -> None:
    for _ in range(2):  # the second time it is known how many there are
        answer = asked(search, filter_, [], {"limit": 0})
        assert answer.items == [] and answer.page.end_cursor is None
        assert answer.page.total_items == asked(search, filter_).page.total_items > 0


def test_an_order_may_be_said_in_small_letters(search: Search) -> None:
    for order in ("ASC", "DESC"):
        large, small = [{"field": "started", "order": each} for each in (order, order.lower())]
        assert keys(asked(search, {}, [large])) == keys(asked(search, {}, [small]))


@pytest.mark.parametrize("order", ["ASC", "DESC"])
def test_the_first_rows_of_very_many_are_found_in_a_few_files(
    search: Search, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    sort = [{"field": "started", "order": order}]
    expected = keys(asked(search, {"version": {"$gte": 0}}, sort, {"limit": 10}))
    read: list[int] = []
    answers = search_module._answers

    def watched(cursor: Any, table: Any, paths: list[str], query: Any) -> Any:
        if "ORDER BY" in query.text:
            read.append(len(paths))
        return answers(cursor, table, paths, query)

    monkeypatch.setattr(search_module, "_answers", watched)
    asked(search, {}, sort, {"limit": 10})
    whole = read.pop()
    monkeypatch.setattr(nearest, "_ROWS_AT_FIRST", 1)
    monkeypatch.setattr(search_module, "TOTAL_ITEMS_MAX", 5)
    assert keys(asked(search, {}, sort, {"limit": 10})) == expected
    assert max(read) < whole


def _sort_key(item: Item, sort: list[dict[str, str]]) -> list[Any]:
    parts: list[Any] = []
    for each in sort:
        value = item[{"processId": "process_id"}.get(each["field"], each["field"])]
        place = (value is None, 0 if value is None else _number(value))
        parts.append(tuple(-part for part in place) if each["order"] == "DESC" else place)
    last = -1 if sort and sort[-1]["order"] == "DESC" else 1
    return [*parts, last * item[KEY]]


def _number(value: Any) -> float:
    if isinstance(value, datetime):
        return value.timestamp()
    return int(value[-1]) if isinstance(value, str) else value


sorts = st.lists(
    st.fixed_dictionaries(
        {
            "field": st.sampled_from(["ended", "version", "processId", "started"]),
            "order": st.sampled_from(["ASC", "DESC"]),
        }
    ),
    max_size=2,
    unique_by=lambda each: each["field"],
)


def lead_forth_and_back(
    search: Search,
    monkeypatch: pytest.MonkeyPatch,
    many: bool,
    sort: list[dict[str, str]],
    limit: int,
    filter_: Any,
) -> None:
    if many:  # as if there were very many: a few files are looked at first
        monkeypatch.setattr(nearest, "_ROWS_AT_FIRST", 1)
        monkeypatch.setattr(search_module, "TOTAL_ITEMS_MAX", 5)
    whole = asked(search, filter_, sort, {"limit": 10_000})
    expected = sorted(whole.items, key=lambda item: _sort_key(item, sort))
    assert whole.items == expected
    forth: list[Item] = []
    page: dict[str, Any] = {"limit": limit}
    while (answer := asked(search, filter_, sort, page)).items:
        assert answer.page.total_items == (5 if many else len(expected))
        forth += answer.items
        page = {"limit": limit, "after": answer.page.end_cursor}
    assert forth == expected
    back: list[Item] = expected[-1:]
    page = {"limit": limit, "before": whole.page.end_cursor}
    while (answer := asked(search, filter_, sort, page)).items:
        back = answer.items + back
        page = {"limit": limit, "before": answer.page.start_cursor}
    assert back == expected


SEARCHES, SOAK_SEARCHES = 8, 100
searches = given(
    sort=sorts, limit=st.integers(7, 60), filter_=st.sampled_from([{}, {"incidents": 1}])
)
few_or_many = pytest.mark.parametrize("many", [False, True], ids=["few", "many"])


def examples(count: int) -> settings:
    checks = [HealthCheck.function_scoped_fixture]
    return settings(max_examples=count, deadline=None, suppress_health_check=checks)


@examples(SEARCHES)
@searches
@few_or_many
def test_cursors_lead_forth_and_back_through_every_order(
    search: Search,
    monkeypatch: pytest.MonkeyPatch,
    many: bool,
    sort: list[dict[str, str]],
    limit: int,
    filter_: Any,
) -> None:
    lead_forth_and_back(search, monkeypatch, many, sort, limit, filter_)


@pytest.mark.soak
@examples(SOAK_SEARCHES)
@searches
@few_or_many
def test_cursors_lead_forth_and_back_through_very_many_orders(
    search: Search,
    monkeypatch: pytest.MonkeyPatch,
    many: bool,
    sort: list[dict[str, str]],
    limit: int,
    filter_: Any,
) -> None:
    lead_forth_and_back(search, monkeypatch, many, sort, limit, filter_)


def test_long_texts_are_sorted_by_how_they_begin_and_cursors_stay_short(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    texts = ["x" * 300 + end for end in "ba"] + ["x" * 200, "a" * 100_000, "🦀" * 300]
    rows = {BASE + at: {"result": text} for at, text in enumerate(texts)}
    tables.put(PROCESS_INSTANCES, 1, rows)
    tables.publish()
    search = Search(tmp_path)
    found: list[int] = []
    page: dict[str, Any] = {"limit": 1}
    while (answer := asked(search, None, [{"field": "result"}], page)).items:
        found += keys(answer)
        assert len(answer.page.end_cursor or "") < 2_000
        page = {"limit": 1, "after": answer.page.end_cursor}
    assert [key - BASE for key in found] == [3, 2, 0, 1, 4]


SORT = [{"field": "started"}]
WRONG: list[tuple[Any, Any, str]] = [
    ("started", None, "sort"),
    ([{"field": "nobody"}], None, "sort"),
    ([{"field": "'; DROP TABLE x"}], None, "sort"),
    ([{"field": "started", "order": "desc; DROP"}], None, "sort"),
    ([{"field": "started", "by": 1}], None, "sort"),
    (["started"], None, "sort"),
    ([{"field": "started"}] * 11, None, "sort"),
    (None, [], "page"),
    (None, {"size": 1}, "page"),
    (None, {"limit": -1}, "limit"),
    (None, {"limit": 10_001}, "limit"),
    (None, {"limit": "10"}, "limit"),
    (None, {"limit": True}, "limit"),
    (None, {"from": -1}, "from"),
    (None, {"from": 10**9}, "from"),
    (None, {"from": 1, "after": "x"}, "page"),
    (None, {"after": 7}, "after"),
    (None, {"after": "not a cursor"}, "after"),
    (None, {"after": ""}, "after"),
    (None, {"after": "é"}, "after"),
    (None, {"before": "AAAA"}, "before"),
    (None, {"after": "A" * 100_000}, "after"),
]


@pytest.mark.parametrize(("sort", "page", "field"), WRONG)
def test_a_wrong_order_or_page_is_refused(search: Search, sort: Any, page: Any, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        asked(search, None, sort, page)
    assert refused.value.fields["field"] == field
    assert refused.value.message.startswith("Expected ")


def test_a_cursor_of_another_order_is_refused(search: Search) -> None:
    cursor = asked(search, None, SORT).page.end_cursor
    with pytest.raises(InvalidArgument, match="same order"):
        asked(search, None, None, {"after": cursor})


def test_hostile_values_are_only_ever_values(search: Search) -> None:
    for text in ("'; DROP TABLE x", "\\", "%", "_", "\0", "{source}", "?", "🦀", "x" * 8_000):
        assert asked(search, {"processId": text}).items == []
        assert asked(search, {"processId": {"$in": [text] * 100}}).items == []
    assert len(asked(search, {"processId": {"$like": "*{*"}}).items) == 0


def test_a_file_that_is_older_than_a_column_has_it_empty(tmp_path: Path) -> None:
    with_instances(tmp_path, partitions=1, count=12)
    paths = sorted((tmp_path / PROCESS_INSTANCES.name).glob("*.parquet"))
    for path in paths[:2]:
        pq.write_table(pq.read_table(path).drop_columns(["process_id", "result"]), path)
    search = Search(tmp_path)
    answer = asked(search)
    assert len(answer.items) == 12
    assert {item["result"] for item in answer.items} == {None}
    assert 0 < asked(search, {"processId": {"$exists": False}}).page.total_items < 12


def test_a_file_that_vanished_is_reported(tmp_path: Path) -> None:
    with_instances(tmp_path, partitions=1, count=2)
    for path in (tmp_path / PROCESS_INSTANCES.name).glob("*.parquet"):
        path.unlink()
    with pytest.raises(Unavailable):
        asked(Search(tmp_path), {"state": "ACTIVE"})


def test_readers_of_several_threads_see_whole_micro_batches(tmp_path: Path) -> None:
    tables = with_instances(tmp_path, partitions=2, count=10)
    search = Search(tmp_path)
    troubles: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = asked(search, {"version": {"$gte": 100}}, page={"limit": 1_000}).items
            by_version = {item["version"] for item in found}
            if len(by_version) > 1 or len(found) not in (0, 20):
                troubles.append((by_version, len(found)))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(100, 110):
            for partition in (1, 2):
                rows = {key: {"version": number} for key in instances(partition, 10)}
                tables.put(PROCESS_INSTANCES, partition, rows)
            tables.publish()
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert troubles == []
    assert {item["version"] for item in asked(search).items} == {109}
