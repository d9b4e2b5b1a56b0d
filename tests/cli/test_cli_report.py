"""`holdfast report`: which reports of which tables, shown, written and drawn."""

import csv
import importlib.util
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.pipeline.report_tables import Rows, write_tables

from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.report import command as report
from holdfast.cli.report.text import curve
from holdfast.pipeline import session
from holdfast.pipeline.freshness import Freshness
from holdfast.pipeline.report.draw.series import draw_throughput
from holdfast.pipeline.report.draw.style import new_figure
from holdfast.pipeline.report.names import NAMES
from holdfast.pipeline.report.registry import REPORTS
from holdfast.pipeline.report.results import Result

from .shell import Shell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = 1_794_700_800_000
MOMENT = datetime.fromtimestamp(T0 / 1000, UTC)


def _job(key: int) -> dict[str, Any]:
    times = {"created": T0 + key, "activated": T0 + key + 100, "ended": T0 + key + 400}
    return {"job_key": key, "partition_id": 1, "type": "mail", "state": "COMPLETED"} | times


ROWS: Rows = {
    "records": [
        {"position": at, "partition_id": 1, "timestamp": T0 + at * 1_000} for at in range(60)
    ],
    "jobs": [_job(key) for key in range(1, 21)],
}
FRESH = Freshness(MOMENT, 0, 0.0, True)
LATENCY = {
    "subject": "running", "process_id": None, "name": "mail", "count": 20,
    "p50_ms": 300, "p90_ms": 300, "p99_ms": 300, "max_ms": 300,
}  # fmt: skip


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Reports that are made without Spark: one line of latency; what was asked is remembered."""
    asked: list[tuple[Any, ...]] = []

    def make(root: Path, names: list[str], since_ms: int, folder: Path, *, quiet: bool) -> Any:
        asked.append((root, names, since_ms, quiet))
        return [Result(REPORTS["latency"], pa.Table.from_pylist([LATENCY]))], None, FRESH

    monkeypatch.setattr(report, "_make", make)
    return asked


def said_of(shell: Shell, monkeypatch: pytest.MonkeyPatch, freshness: Freshness) -> Any:
    result = Result(REPORTS["latency"], pa.Table.from_pylist([LATENCY]))
    monkeypatch.setattr(report, "_make", lambda *_, **__: ([result], None, freshness))
    return shell.run("report", "--svg", "pictures")


@pytest.mark.parametrize(
    ("freshness", "said", "warned"),
    [
        (Freshness(MOMENT, 0, 0.0, False), ", the end of the log", False),
        (Freshness(MOMENT, 1_203, 4.24, True), ", 1,203 records (4.2 s) behind the log", False),
        (Freshness(MOMENT, 1, 9.0, False), ", 1 record (9.0 s) behind the log", True),
        (Freshness(MOMENT, None, None, False), "", False),
    ],
)
def test_a_report_says_as_of_when_in_text_and_pictures(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, freshness: Freshness, said: str, warned: bool
) -> None:
    done = said_of(shell, monkeypatch, freshness)
    expected = f"as of {MOMENT.astimezone():%Y-%m-%d %H:%M:%S %Z}{said}"
    assert expected in done.out.splitlines()
    for name in ("latency", "overview"):
        assert expected in (shell.folder / "pictures" / f"{name}.svg").read_text()
    assert ("no pipeline runs, so the tables lack the last 1 records" in done.err) == warned


def test_text_and_picture_of_a_report_tell_the_same_peak(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The last piece of time is cut off in its middle, and has most."""
    rows = [
        {
            "time": datetime.fromtimestamp(T0 / 1000 + at, UTC), "seconds": 1.0,
            "is_whole": at < 3, "jobs": count, "instances": 0, "records": 0,
            "jobs_per_minute": count * 60.0, "instances_per_minute": 0.0, "records_per_minute": 0.0,
        }
        for at, count in enumerate((900, 1_010, 800, 1_050))
    ]  # fmt: skip
    result = Result(REPORTS["throughput"], pa.Table.from_pylist(rows))
    monkeypatch.setattr(report, "_make", lambda *_, **__: ([result], None, FRESH))
    text = shell.run("report").out
    figure = new_figure(11, 6.5)
    draw_throughput(figure, "title", rows)
    figure.savefig(tmp_path / "drawn.svg")
    assert "60,600/min at most" in (tmp_path / "drawn.svg").read_text()
    [line] = [line for line in text.splitlines() if line.startswith("jobs ")]
    assert line.split()[1:3] == ["3,760", "60,600"]


@pytest.mark.soak  # the tutorial about tables runs `holdfast report` in every test run
def test_all_reports_of_a_folder_with_spark(
    shell: Shell, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = shell.folder / "data" / "tables"
    write_tables(tables, ROWS)
    stopped: list[bool] = []
    monkeypatch.setattr(spark, "stop", lambda: stopped.append(True))  # other tests go on with it
    monkeypatch.setattr(session, "open_session", lambda *_: spark)
    done = shell.run("report", "data", "--json", "--csv", "csv", "--svg", "svg")
    assert done.code == 0, done.err
    assert stopped == [True]
    assert done.json["freshness"] == {
        "asOf": "2026-11-15T00:00:59Z",
        "recordsBehind": None,
        "secondsBehind": None,
        "isPipelineRunning": False,
    }, "there is no log beside these tables"
    reports = done.json["reports"]
    assert tuple(reports) == NAMES
    assert sum(row["jobs"] for row in reports["throughput"]) == 20
    assert sum(row["records"] for row in reports["throughput"]) == 60
    assert reports["latency"] == [LATENCY | {"subject": "waiting"} | _all_ms(100), LATENCY]
    assert reports["incidents"] == []
    assert reports["partitions"][0]["job_p50_ms"] == 400
    files = {Path(file).name for file in done.json["files"]}
    assert files == {f"{name}.{kind}" for name in NAMES for kind in ("csv", "svg")} | {
        "overview.svg"
    }
    with (shell.folder / "csv" / "latency.csv").open(encoding="utf-8", newline="") as lines:
        assert list(csv.DictReader(lines))[1]["p50_ms"] == "300"
    assert (tables / "reports" / "latency" / "latency.parquet").is_file()


def _all_ms(span_ms: int) -> dict[str, int]:
    return {name: span_ms for name in LATENCY if name.endswith("_ms")}


def test_reports_are_shown_short_with_the_path_of_the_picture(
    shell: Shell, no_spark: list[tuple[Any, ...]]
) -> None:
    (shell.folder / "data").mkdir()
    done = shell.run("report", "latency", "data")
    assert done.code == 0, done.err
    assert "Latency: percentiles" in done.out
    assert done.out.splitlines()[2].split() == [
        "running", "mail", "20", "300", "ms", "300", "ms", "300", "ms", "300", "ms",
    ]  # fmt: skip
    tables = (shell.folder / "data" / "tables").resolve()
    assert done.out.splitlines()[-1] == f"overview: {tables / 'reports' / 'overview.png'}"
    assert (tables / "reports" / "overview.png").is_file()
    assert no_spark == [(tables, ["latency"], 0, False)]


def test_the_picture_is_opened(
    shell: Shell, no_spark: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    done = shell.run("report", "--tables", "here", "--png", "pictures", "--open")
    assert done.code == 0, done.err
    assert opened == [(shell.folder / "pictures" / "overview.png").resolve().as_uri()]
    assert done.out.splitlines()[-1].startswith("overview: ")
    assert (shell.folder / "pictures" / "latency.png").is_file()
    assert no_spark[0][0] == (shell.folder / "here").resolve()


@pytest.mark.parametrize(
    ("since", "expected_ms"),
    [
        ("2026-11-15T08:00+00:00", 1_794_729_600_000),
        ("2026-11-15T08:00:00.500Z", 1_794_729_600_500),
    ],
)
def test_since_is_a_time(
    shell: Shell, no_spark: list[tuple[Any, ...]], since: str, expected_ms: int
) -> None:
    assert shell.run("report", "--since", since, "--json").code == 0
    assert no_spark[0][2:] == (expected_ms, True)


def test_since_is_a_span(shell: Shell, no_spark: list[tuple[Any, ...]]) -> None:
    assert shell.run("report", "--since", "2h", "--json").code == 0
    now_ms = datetime.now(UTC).timestamp() * 1000
    assert no_spark[0][2] == pytest.approx(now_ms - 7_200_000, abs=60_000)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "but found 'nonsense'"),
        (["./one", "./two"], "but found './two'"),
        (["./one", "--tables", "there"], "but found './one' beside --tables"),
        (["--since", "soon"], "or a time such as 2026-11-15T08:00, but found 'soon'"),
    ],
)
def test_what_makes_no_sense_is_told(shell: Shell, arguments: list[str], said: str) -> None:
    done = shell.run("report", *arguments)
    assert done.code == ExitCode.USAGE
    assert said in done.err


def test_without_tables_it_says_what_makes_them(shell: Shell) -> None:
    done = shell.run("report", "./data")
    assert done.code == ExitCode.NOT_FOUND
    assert "holdfast pipeline run" in done.err


def test_without_pyspark_it_says_how_to_get_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "pyspark" else find(name)
    )
    done = shell.run("report", "./data")
    assert done.code == ExitCode.UNAVAILABLE
    assert "pip install 'holdfast[pipeline]'" in done.err


def test_a_folder_that_cannot_be_written_is_told(
    shell: Shell, no_spark: list[tuple[Any, ...]]
) -> None:
    (shell.folder / "file").write_text("")
    done = shell.run("report", "--csv", "file")
    assert done.code == ExitCode.USAGE
    assert "expected a folder that can be written" in done.err
    assert no_spark


def test_help_names_every_report(shell: Shell) -> None:
    assert all(name in shell.run("report", "--help").out for name in NAMES)


def test_a_curve_has_the_height_of_its_numbers() -> None:
    assert curve([]) == ""
    assert curve([0, 0]) == "▁▁"
    assert curve([0, 50, 100]) == "▁▅█"
    assert len(curve(list(range(1000)))) == 40


def test_every_report_can_be_shown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with a line in which everything is known, and without any."""
    values = {"timestamp": MOMENT, "string": "running", "boolean": True}
    full = [
        Result(
            each,
            pa.Table.from_pylist(
                [{column.name: values.get(column.type, 7) for column in each.columns}]
            ),
        )
        for each in REPORTS.values()
    ]
    empty = [Result(each.report, each.table.slice(0, 0)) for each in full]
    for results in (full, empty):
        monkeypatch.setattr(
            report, "_make", lambda *_, results=results, **__: (results, None, FRESH)
        )
        done = shell.run("report")
        assert done.code == 0, done.err
        assert all(each.report.title in done.out for each in results)
        assert done.out.count("nothing yet") == (0 if results is full else len(NAMES))
