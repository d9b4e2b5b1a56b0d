"""Reports: every number is what plain Python makes of the same rows."""

import csv
import math
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from report_tables import Rows, write_tables

from holdfast.errors import InvalidArgument, NotFound
from holdfast.pipeline.freshness import Freshness
from holdfast.pipeline.report.buckets import POINTS_MAX, buckets_of
from holdfast.pipeline.report.draw.pages import draw_overview, draw_report
from holdfast.pipeline.report.names import NAMES
from holdfast.pipeline.report.registry import REPORTS, reports_named
from holdfast.pipeline.report.results import AS_OF, FOLDER, Result, make, store, write_csv
from holdfast.pipeline.report.tables import Tables, open_tables
from holdfast.pipeline.report.words import count_text, cut, span_text
from holdfast.pipeline.schema import JOBS, TABLES
from holdfast.pipeline.tables.arrow import rows_as_arrow
from holdfast.pipeline.tables.delta import DeltaLog
from holdfast.pipeline.tables.files import write_part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = 1_794_700_803_217
HOUR = 3_600_000
END = T0 + 3 * HOUR
SINCE = T0 + HOUR + 12_345
PARTITIONS = 3
FRESHNESS = Freshness(datetime.fromtimestamp(T0 // 1000, UTC), 3, 4.5, True)
AS_OF_TEXT = "as of then"


# --- rows that somebody could have written ----------------------------------------------------


def _rows() -> Rows:
    random = Random(11)
    rows: Rows = defaultdict(list)
    keys = iter(range(1, 10**6))
    for position in range(400):
        at = T0 if position == 0 else END if position == 1 else random.randint(T0, END)
        partition = random.randint(1, PARTITIONS)
        rows["records"].append({"position": position, "partition_id": partition, "timestamp": at})
    for _ in range(150):
        started, ended = sorted(random.randint(T0, END) for _ in range(2))
        state = random.choice(["COMPLETED", "COMPLETED", "CANCELED", "ACTIVE"])
        of_process = {
            "partition_id": random.randint(1, PARTITIONS),
            "process_id": random.choice(["order", "refund"]),
            "state": state,
            "started": started,
            "ended": None if state == "ACTIVE" else ended,
        }
        rows["process_instances"].append({"process_instance_key": next(keys)} | of_process)
        element = {"element_instance_key": next(keys), "element_id": random.choice("abc")}
        rows["element_instances"].append(of_process | element)
    for _ in range(300):
        rows["jobs"].append(_job(random, next(keys)))
    for _ in range(60):
        rows["incidents"].append(_incident(random, next(keys)))
    _add_content(random, rows)
    return rows


def _add_content(random: Random, rows: Rows) -> None:
    """Packages of three publishers, of which one has no subscriber, and what subscribers said."""
    for position, publisher in enumerate(random.choices(["site", "docs", "alone"], k=60)):
        number = sum(each["publisher"] == publisher for each in rows["content_packages"]) + 1
        rows["content_packages"].append(
            {"position": position, "publisher": publisher, "number": number, "published": T0}
        )
    for position in range(80):
        number = position // 8
        is_failing = random.random() < 0.5
        rows["content_subscribers"].append(
            {
                "position": position,
                "subscriber": f"edge-{random.randint(1, 4)}",
                "publisher": random.choice(["site", "docs"]),
                "number": number,
                "retries": 2 if is_failing else 0,
                "reason": "the disk is full" if is_failing else None,
                "ready": position > 40,
                "imported": number,
                "import_ms": number * 7,
                "host": "here",
                "heard": T0 + position * (END - T0) // 80,
            }
        )
    for position in range(120):  # some fail, and are imported or removed later, or fail again
        outcome = random.choice(["IMPORTED", "REMOVED", "REMOVED_FAILED", "REMOVED_FAILED"])
        rows["content_deliveries"].append(
            {
                "position": position,
                "subscriber": f"edge-{random.randint(1, 4)}",
                "publisher": random.choice(["site", "docs"]),
                "package_position": random.randint(0, 9),
                "outcome": outcome,
                "reason": f"no {position}" if outcome == "REMOVED_FAILED" else None,
            }
        )


def _job(random: Random, key: int) -> dict[str, Any]:
    created, activated, ended = sorted(random.randint(T0, END) for _ in range(3))
    state = random.choice(["COMPLETED", "COMPLETED", "CANCELED", "WAITING", "ACTIVE"])
    return {
        "job_key": key,
        "partition_id": random.randint(1, PARTITIONS - 1),  # the last one has none
        "type": random.choice(["mail", "print", "ship"]),
        "state": state,
        "created": created,
        "activated": None if state == "WAITING" else activated,
        "ended": ended if state in ("COMPLETED", "CANCELED") else None,
    }


def _incident(random: Random, key: int) -> dict[str, Any]:
    created, ended = sorted(random.randint(T0, END) for _ in range(2))
    state = random.choice(["OPEN", "RESOLVED", "DISCARDED"])
    error = random.choice(
        [
            "\nthe bank says no\nand more",
            'Traceback (most recent call last):\n  File "x.py"\nValueError: no luck\n',
            "",
        ]
    )
    of_job = {"job_key": key, "type": "mail"} if random.random() < 0.5 else {}
    return of_job | {
        "incident_key": key,
        "partition_id": random.randint(1, PARTITIONS),
        "state": state,
        "reason": random.choice(["NO_RETRIES_LEFT", "NO_MATCHING_FLOW"]),
        "error": error,
        "process_id": random.choice(["order", None]),
        "element_id": random.choice(["a", None]),
        "created": created,
        "ended": None if state == "OPEN" else ended,
    }


ROWS = _rows()
SAID = {
    "\nthe bank says no\nand more": "the bank says no",
    'Traceback (most recent call last):\n  File "x.py"\nValueError: no luck\n': (
        "ValueError: no luck"
    ),
    "": "",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    write_tables(root, ROWS)
    later = write_part(root, JOBS, 1, 2, 3, rows_as_arrow(JOBS, [_job(Random(1), 10**7)]))
    DeltaLog(root, JOBS).commit([later], 1)  # of a micro-batch that is not whole: nobody looks
    return root


@pytest.fixture(scope="module", params=[0, SINCE], ids=["all", "since"])
def tables(request: Any, spark: "SparkSession", root: Path) -> Tables:
    return open_tables(spark, root, request.param)


@pytest.fixture(scope="module")
def empty(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tables]:
    root = tmp_path_factory.mktemp("empty")
    write_tables(root, {})
    yield open_tables(spark, root)


def made(spark: "SparkSession", tables: Tables, name: str) -> list[dict[str, Any]]:
    (result,) = make(spark, tables, [REPORTS[name]])
    return result.rows


def ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def percentile(values: list[int], part: int) -> int:
    return sorted(values)[math.ceil(len(values) * part / 100) - 1]


# --- the numbers ------------------------------------------------------------------------------


def test_throughput_counts_what_was_completed_and_written(
    spark: "SparkSession", tables: Tables
) -> None:
    rows = made(spark, tables, "throughput")
    assert 30 <= len(rows) <= POINTS_MAX
    step = round(rows[0]["seconds"] * 1000)
    first = max(T0, tables.since_ms)
    moments = {
        "jobs": [row["ended"] for row in ROWS["jobs"] if row["state"] == "COMPLETED"],
        "instances": [
            row["ended"] for row in ROWS["process_instances"] if row["state"] == "COMPLETED"
        ],
        "records": [row["timestamp"] for row in ROWS["records"]],
    }
    for at, row in enumerate(rows):
        start = first - first % step + at * step
        assert ms(row["time"]) == start
        assert row["is_whole"] == (start >= first and start + step <= END)
        for name, found in moments.items():
            count = sum(start <= moment < start + step for moment in found if moment >= first)
            assert row[name] == count
            assert row[f"{name}_per_minute"] == pytest.approx(count * 60_000 / step)
    for name, found in moments.items():
        assert sum(row[name] for row in rows) == sum(moment >= first for moment in found)


def test_backlog_is_what_has_begun_and_not_ended(spark: "SparkSession", tables: Tables) -> None:
    rows = made(spark, tables, "backlog")

    def level(name: str, begin: str, at: int, *, of_jobs: bool = False) -> int:
        return sum(
            row[begin] <= at and (row["ended"] is None or row["ended"] > at)
            for row in ROWS[name]
            if not of_jobs or "job_key" in row
        )

    assert ms(rows[-1]["time"]) == END
    for row in rows[:-1]:
        at = ms(row["time"]) - 1  # the end itself is in the next piece
        stuck = level("incidents", "created", at, of_jobs=True)
        assert row["jobs"] == level("jobs", "created", at) - stuck
        assert row["jobs_at_incident"] == stuck
        assert row["instances"] == level("process_instances", "started", at)
    assert rows[-1]["instances"] == level("process_instances", "started", END)


def test_latency_is_measured_from_start_to_end(spark: "SparkSession", tables: Tables) -> None:
    spans: dict[tuple[str, str | None, str | None], list[int]] = defaultdict(list)

    def take(key: tuple[str, str | None, str | None], row: dict[str, Any], *ends: str) -> None:
        since, until = (row[end] for end in ends)
        if until is not None and until >= tables.since_ms:
            spans[key].append(until - since)

    for row in ROWS["process_instances"]:
        if row["state"] == "COMPLETED":
            take(("process", row["process_id"], None), row, "started", "ended")
    for row in ROWS["element_instances"]:
        if row["state"] == "COMPLETED":
            take(("element", row["process_id"], row["element_id"]), row, "started", "ended")
    for row in ROWS["jobs"]:
        take(("waiting", None, row["type"]), row, "created", "activated")
        if row["state"] == "COMPLETED":
            take(("running", None, row["type"]), row, "activated", "ended")
    found = made(spark, tables, "latency")
    assert {(row["subject"], row["process_id"], row["name"]) for row in found} == spans.keys()
    for row in found:
        values = spans[row["subject"], row["process_id"], row["name"]]
        assert row["count"] == len(values)
        assert row["max_ms"] == max(values)
        for part in (50, 90, 99):
            assert row[f"p{part}_ms"] == percentile(values, part)
    subjects = ["process", "element", "waiting", "running"]
    order = [(subjects.index(row["subject"]), -row["p99_ms"]) for row in found]
    assert order == sorted(order)


def test_incidents_are_counted_by_what_they_say(spark: "SparkSession", tables: Tables) -> None:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in ROWS["incidents"]:
        if row["ended"] is None or row["ended"] >= tables.since_ms:
            key = (row["process_id"], row["element_id"], row.get("type"), row["reason"])
            groups[*key, SAID[row["error"]]].append(row)
    found = made(spark, tables, "incidents")
    names = ("process_id", "element_id", "type", "reason", "error")
    assert {tuple(row[name] for name in names) for row in found} == groups.keys()
    for row in found:
        group = groups[tuple(row[name] for name in names)]
        by_state = {
            state: [each for each in group if each["state"] == state]
            for state in ("OPEN", "RESOLVED", "DISCARDED")
        }
        assert row["total"] == len(group)
        assert row["open"] == len(by_state["OPEN"])
        assert row["resolved"] == len(by_state["RESOLVED"])
        assert row["discarded"] == len(by_state["DISCARDED"])
        spent = [each["ended"] - each["created"] for each in by_state["RESOLVED"]]
        mean = sum(spent) / len(spent) if spent else None
        assert row["resolve_mean_ms"] == (None if mean is None else pytest.approx(mean, abs=0.51))
        assert ms(row["open_since"]) == min(
            (each["created"] for each in by_state["OPEN"]), default=None
        )
        assert ms(row["last"]) == max(each["created"] for each in group)
    order = [(-row["open"], -row["total"]) for row in found]
    assert order == sorted(order)


def test_partitions_are_told_apart_and_the_slowest_is_first(
    spark: "SparkSession", tables: Tables
) -> None:
    found = made(spark, tables, "partitions")
    assert {row["partition_id"] for row in found} == set(range(1, PARTITIONS + 1))
    for row in found:
        mine = {
            name: [each for each in all_ if each.get("partition_id") == row["partition_id"]]
            for name, all_ in ROWS.items()
        }
        records = [each for each in mine["records"] if each["timestamp"] >= tables.since_ms]
        assert row["records"] == len(records)
        assert row["open_jobs"] == sum(each["ended"] is None for each in mine["jobs"])
        running = sum(each["ended"] is None for each in mine["process_instances"])
        assert row["running_instances"] == running
        assert row["open_incidents"] == sum(each["state"] == "OPEN" for each in mine["incidents"])
        for table, count, prefix, begin in (
            ("jobs", "jobs", "job", "created"),
            ("process_instances", "instances", "instance", "started"),
        ):
            spans = [
                each["ended"] - each[begin]
                for each in mine[table]
                if each["state"] == "COMPLETED" and each["ended"] >= tables.since_ms
            ]
            assert row[count] == len(spans)
            for part in (50, 90, 99):
                expected = percentile(spans, part) if spans else None
                assert row[f"{prefix}_p{part}_ms"] == expected
    timed = [row["job_p90_ms"] for row in found if row["job_p90_ms"] is not None]
    assert timed == sorted(timed, reverse=True)
    assert found[-1]["job_p90_ms"] is None


def test_content_tells_who_is_how_far_behind_and_what_was_given_up_on(
    spark: "SparkSession", tables: Tables
) -> None:
    last: dict[str, int] = {}
    for row in ROWS["content_packages"]:
        last[row["publisher"]] = row["number"]
    said: dict[tuple[str, str], dict[str, Any]] = {}
    for row in ROWS["content_subscribers"]:
        if row["heard"] >= tables.since_ms:
            said[row["publisher"], row["subscriber"]] = row
    ended: dict[tuple[str, str, int], dict[str, Any]] = {}
    for row in ROWS["content_deliveries"]:
        ended[row["publisher"], row["subscriber"], row["package_position"]] = row
    found = made(spark, tables, "content")
    known = [row for row in found if row["subscriber"] is not None]
    assert {(row["publisher"], row["subscriber"]) for row in known} == said.keys()
    for row in known:
        name = (row["publisher"], row["subscriber"])
        stood, failed = (
            said[name],
            [
                each
                for (*of, _), each in ended.items()
                if tuple(of) == name and each["outcome"] == "REMOVED_FAILED"
            ],
        )
        assert row["published"] == last[name[0]]
        assert (row["number"], row["lag"]) == (stood["number"], last[name[0]] - stood["number"])
        assert (row["retries"], row["reason"]) == (stood["retries"], stood["reason"])
        assert (row["ready"], ms(row["heard"])) == (stood["ready"], stood["heard"])
        assert row["import_mean_ms"] == (7 if stood["number"] else None)
        newest = max(failed, key=lambda each: each["position"], default=None)
        assert row["failed"] == len(failed)
        assert row["failed_reason"] == (newest["reason"] if newest else None)
    assert [row["lag"] for row in known] == sorted((row["lag"] for row in known), reverse=True)
    (alone,) = [row for row in found if row["subscriber"] is None]
    assert (alone["publisher"], alone["published"]) == ("alone", last["alone"])
    assert alone["lag"] is None and alone["failed"] is None


# --- what becomes of them ---------------------------------------------------------------------


@pytest.mark.parametrize("tables", [SINCE], indirect=True)  # once is enough
def test_reports_have_their_columns_and_are_kept_beside_the_tables(
    spark: "SparkSession", tables: Tables, tmp_path: Path
) -> None:
    results = make(spark, tables, REPORTS.values())
    store(tmp_path, results, FRESHNESS)
    files = write_csv(tmp_path / "csv", results)
    for result, file in zip(results, files, strict=True):
        names = [column.name for column in result.report.columns]
        kept = pq.read_table(tmp_path / FOLDER / result.report.name)
        assert kept.column_names == names
        assert kept.to_pylist() == result.rows
        told = msgspec.json.decode(kept.schema.metadata[AS_OF], type=Freshness)
        assert told == FRESHNESS
        with file.open(encoding="utf-8", newline="") as lines:
            header, *rows = csv.reader(lines)
        assert header == names
        assert len(rows) == len(result.rows)
    assert {path.name for path in (tmp_path / FOLDER).iterdir()} == set(REPORTS)
    latency = next(result for result in results if result.report.name == "latency")
    first = (tmp_path / "csv" / "latency.csv").read_text().splitlines()[1]
    assert first.split(",")[4] == str(latency.rows[0]["p50_ms"])
    _draw_all(results, tmp_path)


def test_of_empty_tables_there_is_nothing_to_tell_yet(
    spark: "SparkSession", empty: Tables, tmp_path: Path
) -> None:
    results = make(spark, empty, REPORTS.values())
    assert [result.rows for result in results] == [[]] * len(REPORTS)
    store(tmp_path, results, FRESHNESS)
    assert write_csv(tmp_path, results)[0].read_text().startswith("time,seconds,is_whole,jobs")
    _draw_all(results, tmp_path)
    assert (tmp_path / "throughput.svg").read_text().count("nothing yet") == 1
    overview = (tmp_path / "overview.svg").read_text()
    assert overview.count("nothing yet") == len(REPORTS) - 1, "content is there where it is used"


def _draw_all(results: list[Result], folder: Path) -> None:
    """Both kinds of pictures; PNG has its mark at its beginning."""
    for kind in ("png", "svg"):
        paths = [draw_report(result, AS_OF_TEXT, folder, kind) for result in results]
        paths.append(draw_overview(results, "today", folder, kind))
        for path in paths:
            assert path.stat().st_size > 1_000
            assert b"PNG" in path.read_bytes()[:4] or b"<svg" in path.read_bytes()[:1_000]
    for result in results:
        assert AS_OF_TEXT in (folder / f"{result.report.name}.svg").read_text()


def test_a_time_after_the_last_record_leaves_only_what_is_open(
    spark: "SparkSession", root: Path
) -> None:
    tables = open_tables(spark, root, END + 1)
    assert made(spark, tables, "throughput") == made(spark, tables, "backlog") == []
    assert made(spark, tables, "latency") == []
    found = made(spark, tables, "incidents")
    assert sum(row["total"] for row in found) == sum(
        row["state"] == "OPEN" for row in ROWS["incidents"]
    )


# --- without Spark ----------------------------------------------------------------------------


def test_names_are_those_of_the_registry() -> None:
    assert tuple(REPORTS) == NAMES
    assert [report.name for report in reports_named([])] == list(NAMES)
    assert [report.name for report in reports_named(["latency", "backlog"])] == [
        "backlog",
        "latency",
    ]
    with pytest.raises(InvalidArgument, match="but found 'fun'"):
        reports_named(["fun"])
    assert not set(NAMES) - {"incidents"} & set(TABLES)


def test_without_tables_it_says_what_makes_them(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holdfast pipeline run"):
        open_tables(None, tmp_path)  # pyright: ignore[reportArgumentType] - it is not reached


@pytest.mark.parametrize(
    "span_ms", [3_500, 60_000, 777_777, HOUR, 25 * HOUR, 10**9, 10**11, 10**13]
)
def test_pieces_of_time_are_enough_and_not_too_many(span_ms: int) -> None:
    for first in (T0, T0 + 1, T0 // HOUR * HOUR):
        buckets = buckets_of(first, first + span_ms)
        assert 30 <= buckets.count <= POINTS_MAX
        assert buckets.start_ms <= first < buckets.start_ms + buckets.step_ms
        end = buckets.start_ms + buckets.count * buckets.step_ms
        assert end - buckets.step_ms <= first + span_ms < end


def test_one_moment_is_one_piece() -> None:
    assert buckets_of(T0, T0).count == 1


def test_numbers_are_said_as_people_say_them() -> None:
    assert [span_text(span) for span in (0, 999, 1_000, 9_960, 59_999, 90_000, 2 * HOUR)] == [
        "0 ms", "999 ms", "1 s", "10 s", "60 s", "1.5 min", "2 h",
    ]  # fmt: skip
    assert [count_text(value) for value in (0, 0.25, 3.0, 12.4, 12_345)] == [
        "0", "0.2", "3", "12", "12,345",
    ]  # fmt: skip
    assert cut("abcdef", 4) == "abc…"
    assert cut("abcd", 4) == "abcd"


@pytest.mark.parametrize("seconds", [0, 1])
def test_a_single_moment_can_be_drawn(seconds: int, tmp_path: Path) -> None:
    """One job, done in no time or in a second, on one partition; the rest is empty."""
    moment = datetime.fromtimestamp(T0 / 1000, UTC)
    span = seconds * 1000
    some: dict[str, Any] = {
        "time": moment, "seconds": 0.1, "is_whole": False, "subject": "running",
        "name": "a $type_ with a $ign", "reason": "NO_RETRIES_LEFT", "type": "mail", "last": moment,
        "error": "it costs $5 and $6", "open": 1, "total": 1, "partition_id": 1,
        "p50_ms": span, "p90_ms": span, "p99_ms": span, "max_ms": span,
        "job_p50_ms": span, "job_p90_ms": span, "job_p99_ms": span,
    }  # fmt: skip
    results: list[Result] = []
    for report in REPORTS.values():
        row = {
            column.name: some.get(column.name, 1 if column.type in ("bigint", "double") else None)
            for column in report.columns
        }
        results.append(Result(report, pa.Table.from_pylist([row])))
    _draw_all(results, tmp_path)
    assert "a $type_ with a $ign" in (tmp_path / "latency.svg").read_text() or not seconds
