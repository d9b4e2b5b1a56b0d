"""The log as rows of Spark: all of them, some of them, and as they come."""

import asyncio
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from served_node import PARTITIONS, ServedNode

from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import InvalidArgument
from holdfast.journal.local import LocalJournal
from holdfast.pipeline import source
from holdfast.pipeline.changes.records import row_of
from holdfast.pipeline.schema import RECORDS, ColumnKind
from holdfast.pipeline.source import HoldfastSource, LogReader, LogStreamReader, Range
from holdfast.pipeline.wanted import Wanted, wanted_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


Place = tuple[int, int]  # partition and position


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """A node that has seen something and now rests."""
    served = ServedNode(tmp_path_factory.mktemp("lived") / "node")
    served.live_a_little()
    yield served
    served.close()


def load(spark: "SparkSession", address: str, **options: str) -> "DataFrame":
    return spark.read.format("holdfast").options(**options).load(address)


def expected_rows(node: ServedNode) -> dict[Place, dict[str, Any]]:
    """What the table should show, from the files themselves."""
    found: dict[Place, dict[str, Any]] = {}
    for partition, records in node.records().items():
        for record in records:
            row = dict.fromkeys(RECORDS.names) | row_of(partition, record)
            row["timestamp"] = datetime.fromtimestamp(record.timestamp_ms / 1000, UTC)
            found[partition, record.position] = row
    return found


def shown_rows(frame: "DataFrame") -> dict[Place, dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    for row in rows:
        row["timestamp"] = row["timestamp"].astimezone(UTC)
    shown = {(row["partition_id"], row["position"]): row for row in rows}
    assert len(shown) == len(rows)
    return shown


def places(batches: Iterator[pa.RecordBatch]) -> list[Place]:
    return [
        (row["partition_id"], row["position"]) for batch in batches for row in batch.to_pylist()
    ]


def read_with(address: str, options: dict[str, str]) -> tuple[list[Range], list[Place]]:
    """What is read, and what comes of it."""
    reader = LogReader(address, RECORDS, wanted_of(options))
    ranges = reader.partitions()
    return ranges, [each for found in ranges for each in places(reader.read(found))]


# --- what is there ----------------------------------------------------------------------------


def test_far_and_near_every_record_is_a_row(spark: "SparkSession", lived: ServedNode) -> None:
    expected = expected_rows(lived)
    assert len(expected) > 150
    near, far = load(spark, str(lived.folder)), load(spark, lived.url)
    assert near.columns == far.columns == list(RECORDS.names)
    kinds = dict(near.dtypes)
    assert kinds["position"] == kinds["key"] == "bigint"
    assert [kinds[each.name] for each in RECORDS.columns if each.kind is ColumnKind.TIME] == [
        "timestamp"
    ]
    assert shown_rows(near) == expected
    assert shown_rows(far) == expected


def test_workers_are_forked_with_what_they_need(spark: "SparkSession") -> None:
    def is_imported(_: int) -> bool:
        needed = {"pandas", "pyarrow", "holdfast.pipeline.source", "holdfast.pipeline.project"}
        return needed <= sys.modules.keys()

    found = spark.sparkContext.parallelize(range(2), 2).map(is_imported).collect()
    assert found == [True, True]


def test_filters_of_one_frame_do_not_meet(spark: "SparkSession", lived: ServedNode) -> None:
    """Spark keeps filters that a reader takes with the frame: this one must not take any."""
    frame = load(spark, str(lived.folder), columns="position")
    two = frame.where("position = 5").union(frame.where("position IN (6, 7)"))
    assert sorted({row.position for row in two.collect()}) == [5, 6, 7]
    assert frame.count() == len(expected_rows(lived))


@pytest.mark.parametrize("far", [False, True])
def test_a_range_of_positions_is_all_that_is_read(lived: ServedNode, far: bool) -> None:
    options = {"partition": "2", "fromPosition": "5", "toPosition": "9"}
    ranges, found = read_with(lived.url if far else str(lived.folder), options)
    assert [(each.partition, each.start, each.end) for each in ranges] == [(2, 5, 9)]
    assert found == [(2, 5), (2, 6), (2, 7), (2, 8)]


@pytest.mark.parametrize(
    "options", [{"fromPosition": "1000000"}, {"partition": "99"}, {"toPosition": "0"}]
)
def test_what_is_beyond_the_log_reads_nothing(lived: ServedNode, options: dict[str, str]) -> None:
    assert read_with(str(lived.folder), options) == ([], [])


@pytest.mark.parametrize(
    ("options", "holds"),
    [
        ({"kind": "REJECTION"}, lambda row: row["kind"] == "REJECTION"),
        ({"valueType": "PROCESS, JOB"}, lambda row: row["value_type"] in ("PROCESS", "JOB")),
        ({"intent": "CREATED"}, lambda row: row["intent"] == "CREATED"),
        (
            {"intent": "CREATED,COMPLETED", "valueType": "JOB", "partition": "1,2"},
            lambda row: (
                row["intent"] in ("CREATED", "COMPLETED")
                and row["value_type"] == "JOB"
                and row["partition_id"] < 3
            ),
        ),
        ({"key": "0"}, lambda row: row["key"] == 0),
    ],
)
def test_records_that_are_not_wanted_are_never_made(
    lived: ServedNode, options: dict[str, str], holds: Any
) -> None:
    rows = expected_rows(lived)
    found = read_with(str(lived.folder), options)[1]
    assert 0 < len(found) < len(rows)
    assert found == [place for place, row in rows.items() if holds(row)]


def test_since_and_until_are_exact(lived: ServedNode) -> None:
    rows = expected_rows(lived)
    moments = sorted({row["timestamp"] for row in rows.values()})
    first, last = moments[1], moments[-1]
    options = {"since": first.isoformat(), "until": last.isoformat().replace("+00:00", "")}
    found = read_with(str(lived.folder), options)[1]
    wanted = [place for place, row in rows.items() if first <= row["timestamp"] < last]
    assert 0 < len(wanted) < len(rows)
    assert found == wanted


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
def test_what_was_written_before_is_not_even_read(
    lived: ServedNode, monkeypatch: pytest.MonkeyPatch, far: bool
) -> None:
    monkeypatch.setattr(source, "_SINCE_SLACK_MS", 0)
    address = lived.url if far else str(lived.folder)
    later = max(row["timestamp"] for row in expected_rows(lived).values()) + timedelta(days=1)
    ranges, _ = read_with(address, {"since": later.isoformat()})
    assert ranges == []
    ranges, found = read_with(address, {"since": (later - timedelta(days=9)).isoformat()})
    assert ranges and len(found) == len(expected_rows(lived))


# --- columns ----------------------------------------------------------------------------------


def test_only_the_wanted_columns_are_made(spark: "SparkSession", lived: ServedNode) -> None:
    frame = load(spark, str(lived.folder), columns="intent, key").where("intent = 'CREATED'")
    assert frame.columns == ["intent", "key"]
    wanted = [row for row in expected_rows(lived).values() if row["intent"] == "CREATED"]
    assert sorted(row.key for row in frame.collect()) == sorted(row["key"] for row in wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "x", "columns": "key,colour"}, "but found 'colour'"),
        ({"path": "x", "columns": "key,"}, "but found ''"),
        ({}, "Expected the folder or the URL of a node as path"),
        (
            {"path": "x", "kind": "SONG"},
            "kind to be of COMMAND, EVENT, REJECTION, but found 'SONG'",
        ),
        ({"path": "x", "intent": "CREATED,FLOWN"}, "but found 'FLOWN'"),
        ({"path": "x", "partition": "1,two"}, "whole number as partition, but found 'two'"),
        ({"path": "x", "fromPosition": "-1"}, "whole number as fromPosition, but found '-1'"),
        ({"path": "x", "since": "noon"}, "Expected a time such as .* as since, but found 'noon'"),
        ({"path": "x", "maxRowsPerTrigger": "0"}, "maxRowsPerTrigger of 1 or more, but found '0'"),
        ({"path": "x", "maxRowsPerTrigger": "many"}, "but found 'many'"),
    ],
)
def test_a_wrong_option_is_an_error(options: dict[str, str], message: str) -> None:
    source = HoldfastSource(options)
    with pytest.raises(InvalidArgument, match=message):
        source.streamReader(source.schema())


def test_what_is_no_record_is_left_out(tmp_path: Path) -> None:
    node = ServedNode(tmp_path / "node")
    node.submit(30)
    records = node.records()
    node.close()

    async def damage() -> int:
        journal = LocalJournal.open(tmp_path / "node" / "journal")
        offset = await journal.append(TOPIC, 1, [b"\xffnothing that we wrote"])
        await journal.append(TOPIC, 1, [b""])
        await journal.close()
        return offset

    place = (1, asyncio.run(damage()))
    ranges, found = read_with(str(tmp_path / "node"), {})
    assert place not in found
    assert (ranges[0].end, len(found)) == (place[1] + 2, sum(map(len, records.values())))


# --- as it comes ------------------------------------------------------------------------------


def test_every_partition_gets_its_share_of_a_limit(lived: ServedNode) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    reader = LogStreamReader(str(lived.folder), RECORDS, Wanted(), 60)
    start, ends = reader.initialOffset(), reader.reportLatestOffset()
    assert set(start.values()) == {0}
    steps = 0
    while start != ends:
        offset = reader.latestOffset(start, ReadMaxRows(60))
        taken = {name: offset[name] - start[name] for name in ends}
        waiting = {name: ends[name] - start[name] for name in ends}
        total = sum(waiting.values())
        for name, rows in waiting.items():
            share = min(rows, rows * 60 / max(total, 60))
            assert share - 1 <= taken[name] <= share + 1
        assert sum(taken.values()) <= 60 + PARTITIONS
        found = [
            each for part in reader.partitions(start, offset) for each in places(reader.read(part))
        ]
        assert len(found) == sum(taken.values()) > 0
        start, steps = offset, steps + 1
    assert 3 < steps < 100
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == ends
    reader.stop()


def follow(
    spark: "SparkSession",
    address: str,
    checkpoint: Path,
    taken: list[list[Place]],
    fail_at: int = -1,
) -> None:
    """Takes what is there, in small micro-batches; may fail in the middle of one."""

    def take(batch: "DataFrame", _: int) -> None:
        if len(taken) == fail_at:
            raise RuntimeError("the sink is away")
        taken.append([(row[0], row[1]) for row in batch.collect()])

    stream = spark.readStream.format("holdfast").option("maxRowsPerTrigger", "150")
    stream = stream.option("columns", "partition_id,position").load(address)
    stream = stream.select("partition_id", "position").writeStream.foreachBatch(take)
    query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(60)


def test_a_stream_goes_on_where_it_was_without_loss_or_doubles(
    spark: "SparkSession", node: ServedNode, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    near, checkpoint, taken = str(node.folder), tmp_path / "checkpoint", []
    node.submit(150)
    with pytest.raises(StreamingQueryException, match="the sink is away"):
        follow(spark, near, checkpoint, taken, fail_at=1)
    assert len(taken) == 1
    node.submit(50, "other")
    follow(spark, node.url, checkpoint, taken)
    assert len(taken) > 2
    assert all(0 < len(batch) <= 150 + PARTITIONS for batch in taken)
    found = [place for batch in taken for place in batch]
    assert len(found) == len(set(found))
    assert set(found) == set(expected_rows(node))
    before = len(taken)
    follow(spark, node.url, checkpoint, taken)
    assert len(taken) == before


def test_where_nothing_is_wanted_there_are_no_rows(
    spark: "SparkSession", lived: ServedNode
) -> None:
    log = spark.read.format("holdfast").option("fromPosition", "1000000000")
    assert log.load(str(lived.folder)).count() == 0
