"""`holdfast report`: what the tables say about the work, as short tables and as pictures."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.extras import check_installed
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_FOLDER, Json

if TYPE_CHECKING:
    from holdfast.pipeline.freshness import Freshness
    from holdfast.pipeline.report.buckets import Buckets
    from holdfast.pipeline.report.results import Result
    from holdfast.pipeline.tables.progress import TableProgress


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast report                              all of ./data, shown and drawn",
            "holdfast report ./data --open                look at the picture",
            "holdfast report latency incidents ./data --since 2h",
            "holdfast report ./data --since 2026-11-15T08:00 --csv ./reports",
            "holdfast report content ./data               who is behind, and what fails",
            "holdfast report --tables ./tables --svg ./pictures",
            "holdfast report throughput ./data --json | jq '.reports.throughput[-1]'",
        )
    )(report)


def report(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Which reports, all if none is named; and the data folder of a node, which is"
            f" ./{DEFAULT_FOLDER} if none is named.",
            metavar="[NAMES...] [FOLDER]",
            show_default=False,
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="Where the tables are. [default: FOLDER/tables]", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only what happened since: 2h, 7d, or a time.", metavar="SPAN|TIME"),
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write each report here as CSV.", metavar="DIR")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Draw each report here as PNG.", metavar="DIR")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Draw each report here as SVG.", metavar="DIR")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the overview picture.")] = False,
    json: Json = False,
) -> None:
    """Report on the work: throughput, backlog, latency, incidents, partitions, content.

    It reads the tables that `holdfast pipeline run` makes, and leaves each report beside them as
    Parquet, with one picture of all of them: tables/reports/overview.png.
    """
    from holdfast.cli.output import print_json, print_line, print_note

    names, folder = _names_and_folder(words or [], tables)
    root = (tables or folder / "tables").absolute()
    check_installed()
    from holdfast.pipeline.freshness import freshness_text, standing_still

    results, buckets, freshness = _make(root, names, _since_ms(since), folder, quiet=json)
    as_of = freshness_text(freshness)
    files, overview = _write(root, results, _period(buckets), as_of, csv, png, svg)
    if warning := standing_still(freshness):
        print_note(f"warning: {warning}")
    if json:
        print_json(
            {
                "tables": str(root),
                "freshness": freshness,
                "reports": {result.report.name: result.rows for result in results},
                "files": [str(file) for file in files],
                "overview": str(overview),
            }
        )
    else:
        from holdfast.cli.report.text import print_result

        for result in results:
            print_result(result)
        print_line(as_of)
        print_line(f"overview: {overview}")
    if open_:
        import webbrowser

        webbrowser.open(overview.absolute().as_uri())


def _names_and_folder(words: list[str], tables: Path | None) -> tuple[list[str], Path]:
    """Words that name reports do; one other is the folder. ./latency is a folder for sure."""
    from holdfast.errors import InvalidArgument
    from holdfast.pipeline.report.names import NAMES

    names = [word for word in words if word in NAMES]
    others = [word for word in words if word not in NAMES]
    folders = [word for word in others if tables is None and ("/" in word or Path(word).is_dir())]
    unknown = [word for word in others if word not in folders[:1]]
    if unknown:
        raise InvalidArgument(
            f"Expected names of reports ({', '.join(NAMES)}) and one folder, but found"
            f" {unknown[0]!r}" + (" beside --tables" if tables is not None else "")
        )
    return names, Path(folders[0]) if folders else DEFAULT_FOLDER


def _since_ms(text: str | None) -> int:
    """A time, or a span before now, in milliseconds since the epoch; 0 for all."""
    from datetime import datetime

    from holdfast.cli.spans import parse_span_ms
    from holdfast.clock import SystemClock
    from holdfast.errors import InvalidArgument

    if text is None:
        return 0
    try:
        return max(SystemClock().now_ms() - parse_span_ms(text), 0)
    except InvalidArgument:
        pass
    try:
        return max(int(datetime.fromisoformat(text).astimezone().timestamp() * 1000), 0)
    except ValueError:
        raise InvalidArgument(
            f"Expected a span such as 90s, 2h or 7d, or a time such as 2026-11-15T08:00,"
            f" but found {text!r}"
        ) from None


def _make(
    root: Path, names: list[str], since_ms: int, folder: Path, *, quiet: bool
) -> "tuple[list[Result], Buckets | None, Freshness]":
    """Starts Spark, makes the reports and stores them."""
    from holdfast.cli.output import print_note
    from holdfast.config import load_config
    from holdfast.logs import configure
    from holdfast.pipeline.report.registry import reports_named
    from holdfast.pipeline.report.results import make, store
    from holdfast.pipeline.report.tables import check_tables, open_tables
    from holdfast.pipeline.session import open_session

    check_tables(root)
    config = load_config(folder if folder.is_dir() else None)
    configure(json=config.log_json, level=config.log_level)
    if sys.stderr.isatty() and not quiet:
        print_note("starting Spark…")
    spark = open_session(config, root / "_spark")
    try:
        tables = open_tables(spark, root, since_ms)
        results = make(spark, tables, reports_named(names))
    finally:
        spark.stop()
    freshness = _freshness(root, tables.progress, folder)
    store(root, results, freshness)
    return results, tables.buckets, freshness


def _freshness(root: Path, progress: "TableProgress", folder: Path) -> "Freshness":
    """How old the tables are that were read; the log tells how much they lack, if it is there."""
    from holdfast.clock import SystemClock
    from holdfast.errors import HoldfastError
    from holdfast.pipeline.freshness import freshness_of
    from holdfast.pipeline.log import open_log

    ends = None
    if (folder / "journal").is_dir():
        try:
            log = open_log(str(folder))
            try:
                ends = log.bounds()
            finally:
                log.close()
        except HoldfastError:  # a log that cannot be read says nothing about the tables
            ends = None
    return freshness_of(root, progress, ends, SystemClock().now_ms())


def _period(buckets: "Buckets | None") -> str:
    """From when to when, in the reader's time zone."""
    from datetime import UTC, datetime

    if buckets is None:
        return "nothing yet"
    first, last = (
        datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone()
        for moment_ms in (buckets.first_ms, buckets.last_ms)
    )
    end = "%H:%M:%S %Z" if first.date() == last.date() else "%Y-%m-%d %H:%M:%S %Z"
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:{end}}"


def _write(
    root: Path,
    results: "list[Result]",
    period: str,
    as_of: str,
    csv: Path | None,
    png: Path | None,
    svg: Path | None,
) -> tuple[list[Path], Path]:
    """All files that are asked for, and the overview in any case; the overview comes last."""
    from holdfast.errors import InvalidArgument
    from holdfast.pipeline.report.draw.pages import draw_overview, draw_report
    from holdfast.pipeline.report.results import FOLDER, write_csv

    asked = [(folder, kind) for folder, kind in ((png, "png"), (svg, "svg")) if folder is not None]
    try:
        files = write_csv(csv, results) if csv is not None else []
        files += [
            draw_report(each, as_of, folder, kind) for folder, kind in asked for each in results
        ]
        overviews = [
            draw_overview(results, f"{period}; {as_of}", folder, kind)
            for folder, kind in asked or [(root / FOLDER, "png")]
        ]
    except OSError as error:
        raise InvalidArgument(f"Expected a folder that can be written, but {error}") from error
    return [*files, *overviews], overviews[0]
