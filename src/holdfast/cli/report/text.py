"""A report in a terminal: short, the most important lines only."""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.cli.output import moment, print_line, print_table
from holdfast.pipeline.report.results import Result, Rows
from holdfast.pipeline.report.throughput import peak_per_minute, shown_pieces
from holdfast.pipeline.report.words import count_text, cut, span_text

LINES_MAX = 10
_LINES_BY_SUBJECT_MAX = 3
_CURVE_POINTS = 40
_HEIGHTS = "▁▂▃▄▅▆▇█"
_EMPTY = "nothing yet"


def print_result(result: Result) -> None:
    """The title, the lines, and how many there are more."""
    report, rows = result.report, result.rows
    print_line(f"{report.title}: {report.about}")
    shown = _SHORT[report.name](rows)
    print_table(list(shown[0]) if shown else [], [list(row.values()) for row in shown], _EMPTY)
    if report.name not in _SERIES and len(rows) > len(shown):
        print_line(f"and {len(rows) - len(shown)} more")
    print_line("")


def curve(values: Sequence[float]) -> str:
    """How numbers rise and fall, in one line: each character is the mean of some of them."""
    size = max(-(-len(values) // _CURVE_POINTS), 1)
    parts = [values[at : at + size] for at in range(0, len(values), size)]
    means = [sum(part) / len(part) for part in parts]
    high = max(means, default=0) or 1
    return "".join(_HEIGHTS[round(mean / high * (len(_HEIGHTS) - 1))] for mean in means)


def _throughput(rows: Rows) -> list[dict[str, str]]:
    return [
        {
            "COMPLETED OR WRITTEN": name,
            "TOTAL": count_text(sum(row[name] for row in rows)),
            "PEAK PER MINUTE": count_text(peak_per_minute(rows, name)),
            "OVER TIME": curve([row[name] for row in shown_pieces(rows)]),
        }
        for name in ("jobs", "instances", "records")
        if rows
    ]


def _backlog(rows: Rows) -> list[dict[str, str]]:
    names = {
        "jobs": "jobs",
        "jobs_at_incident": "jobs at incidents",
        "instances": "running instances",
    }
    return [
        {
            "WAITING OR RUNNING": words,
            "AT THE END": count_text(rows[-1][name]),
            "PEAK": count_text(max(row[name] for row in rows)),
            "OVER TIME": curve([row[name] for row in rows]),
        }
        for name, words in names.items()
        if rows
    ]


def _latency(rows: Rows) -> list[dict[str, str]]:
    """The slowest few of each subject."""
    some = [
        row
        for subject in dict.fromkeys(row["subject"] for row in rows)
        for row in [each for each in rows if each["subject"] == subject][:_LINES_BY_SUBJECT_MAX]
    ]
    return [
        {
            "WHAT": row["subject"],
            "NAME": " / ".join(filter(None, (row["process_id"], row["name"]))),
            "COUNT": count_text(row["count"]),
            "P50": span_text(row["p50_ms"]),
            "P90": span_text(row["p90_ms"]),
            "P99": span_text(row["p99_ms"]),
            "MAX": span_text(row["max_ms"]),
        }
        for row in some
    ]


def _incidents(rows: Rows) -> list[dict[str, str]]:
    return [
        {
            "OPEN": count_text(row["open"]),
            "RESOLVED": count_text(row["resolved"]),
            "AFTER": _span(row["resolve_mean_ms"]),
            "WHERE": " / ".join(filter(None, (row["process_id"], row["element_id"])))
            or row["type"]
            or "",
            "REASON": row["reason"] or "",
            "OPEN SINCE": moment(row["open_since"]),
            "ERROR": cut(row["error"] or "", 60),
        }
        for row in rows[:LINES_MAX]
    ]


def _partitions(rows: Rows) -> list[dict[str, str]]:
    return [
        {
            "PARTITION": str(row["partition_id"]),
            "RECORDS": count_text(row["records"]),
            "JOBS DONE": count_text(row["jobs"]),
            "OPEN JOBS": count_text(row["open_jobs"]),
            "INCIDENTS": count_text(row["open_incidents"]),
            "JOB P50": _span(row["job_p50_ms"]),
            "JOB P90": _span(row["job_p90_ms"]),
            "JOB P99": _span(row["job_p99_ms"]),
        }
        for row in rows[:LINES_MAX]
    ]


def _content(rows: Rows) -> list[dict[str, str]]:
    return [
        {
            "SUBSCRIBER": row["subscriber"] or "none",
            "OF": row["publisher"],
            "HAS": f"{count_text(row['number'] or 0)} of {count_text(row['published'] or 0)}",
            "BEHIND": "" if row["lag"] is None else count_text(row["lag"]),
            "RETRIES": count_text(row["retries"] or 0),
            "FAILED": count_text(row["failed"] or 0),
            "IMPORT": _span(row["import_mean_ms"]),
            "HEARD": moment(row["heard"]),
            "WHY": cut(row["reason"] or row["failed_reason"] or "", 60),
        }
        for row in rows[:LINES_MAX]
    ]


def _span(span_ms: Any) -> str:
    return "" if span_ms is None else span_text(span_ms)


_SERIES = ("throughput", "backlog")
_SHORT: dict[str, Callable[[Rows], list[dict[str, str]]]] = {
    "throughput": _throughput,
    "backlog": _backlog,
    "latency": _latency,
    "incidents": _incidents,
    "partitions": _partitions,
    "content": _content,
}
