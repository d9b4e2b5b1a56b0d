"""`holdfast pipeline`: tables that show what is in the log, kept fresh by Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.extras import check_installed
from holdfast.cli.help_text import examples
from holdfast.cli.options import Json
from holdfast.cli.start_options import LogLevel

if TYPE_CHECKING:
    from holdfast.pipeline.lag import Lag
    from holdfast.pipeline.log import Log
    from holdfast.pipeline.tables.progress import TableProgress

app = typer.Typer(
    name="pipeline",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Tables of what happened, for Spark, DuckDB, polars or pandas: run, status.",
)

Node = Annotated[
    str,
    typer.Argument(
        help="The data folder of a node on this machine, the URL of one elsewhere, or that of a"
        " cluster's log in Kafka.",
        metavar="FOLDER|URL",
    ),
]
Tables = Annotated[
    Path | None,
    typer.Option(help="Where the tables are. [default: FOLDER/tables, or ./tables for a URL]"),
]


@app.command(
    epilog=examples(
        "holdfast pipeline run ./data                 tables in ./data/tables, until Ctrl-C",
        "holdfast pipeline run ./data --once          as far as the log is now, then end",
        "holdfast pipeline run http://10.0.0.7:8080 --tables ./tables",
        "holdfast pipeline run kafka://10.0.0.5:9092/orders --tables ./tables",
        "holdfast pipeline run http://10.0.0.7:8080 --as-of-cut latest --tables ./backup",
        "HOLDFAST_SPARK_MASTER=spark://host:7077 holdfast pipeline run ./data",
    )
)
def run(
    node: Node = "data",
    tables: Tables = None,
    once: Annotated[
        bool, typer.Option("--once", help="Exit when the tables have caught up with the log.")
    ] = False,
    as_of_cut: Annotated[
        str | None,
        typer.Option(
            help="End with this cut of a cluster, a number or latest: one moment of all of it.",
            metavar="CUT",
        ),
    ] = None,
    log_level: LogLevel = None,
    json: Json = False,
) -> None:
    """Keep the tables up to date until SIGINT or SIGTERM.

    You can stop, restart or kill it at any time: it continues where it was, and every record is in
    the tables exactly once. The tables are Delta tables: any reader of Delta can read them.

    With --as-of-cut the tables are a consistent backup of a cluster: all of them, and every
    partition, as of the same moment. A later cut can be added to them, an earlier one cannot. They
    end before a transaction of which the cut has a part only.
    """
    import os
    import signal
    from threading import Event

    os.umask(0o077)  # what is stored is for its owner alone
    stopping = Event()  # a signal is heard from here on, while Spark is still to be found too
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())

    from holdfast.clock import SystemClock
    from holdfast.config import load_config
    from holdfast.logs import configure
    from holdfast.pipeline.log import open_log
    from holdfast.pipeline.service import Pipeline
    from holdfast.pipeline.tables.progress import load_progress
    from holdfast.pipeline.whole import whole_ends

    check_installed()
    root = _root(node, tables)
    config = load_config(Path(node) if Path(node).is_dir() else None, log_level=log_level)
    configure(json=config.log_json, level=config.log_level)
    clock = SystemClock()
    log = open_log(node)
    cut = None if as_of_cut is None else log.as_of(_cut_number(as_of_cut))
    upto = None if cut is None else whole_ends(log, cut.ends, load_progress(root).positions)
    show = _Shown(log, json)
    if cut is not None:
        show.note(f"tables as of cut {cut.cut}")
    show.note(f"starting Spark ({config.spark_master}); tables in {root}")
    pipeline = Pipeline(node, root, config, clock, stopping)
    try:
        pipeline.run(
            once=once or cut is not None,
            upto=upto,
            on_start=show.start,
            on_batch=show.batch,
        )
    finally:
        log.close()
        show.end()


def _cut_number(text: str) -> int | None:
    """The number of a cut; None for the latest."""
    if text == "latest":
        return None
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"Expected a number or latest, but found {text!r}")
    return int(text)


@app.command(
    epilog=examples("holdfast pipeline status ./data", "holdfast pipeline status ./data --json")
)
def status(node: Node = "data", tables: Tables = None, json: Json = False) -> None:
    """Show the lag of the tables by partition. Needs no Spark."""
    from holdfast.cli.output import print_json, print_line, print_table
    from holdfast.clock import SystemClock
    from holdfast.errors import NotFound
    from holdfast.pipeline.lag import lag_of
    from holdfast.pipeline.log import open_log
    from holdfast.pipeline.tables.progress import load_progress

    root = _root(node, tables)
    if not root.is_dir():
        raise NotFound(
            f"Expected tables in {root}, but there are none; holdfast pipeline run makes them"
        )
    progress = load_progress(root)
    log = open_log(node)
    try:
        lag = lag_of(progress, log.bounds(), SystemClock().now_ms())
    finally:
        log.close()
    if json:
        print_json(lag)
        return
    print_table(
        ["PARTITION", "IN THE TABLES", "IN THE LOG", "BEHIND"],
        [
            [str(each.partition), f"{each.position:,}", f"{each.end:,}", f"{each.records:,}"]
            for each in lag.partitions
        ],
        empty="the log has no partitions",
    )
    print_line(_said(lag))


class _Shown:
    """A line that says how far the tables are, in its place if somebody watches."""

    def __init__(self, log: "Log", as_json: bool) -> None:
        import sys

        self._log = log
        self._as_json = as_json
        self._watched = sys.stderr.isatty() and not as_json

    def note(self, text: str) -> None:
        from holdfast.cli.output import print_note

        if not self._as_json:
            print_note(text)

    def start(self) -> None:
        """Tells a program that waits for the stream that it runs; nobody else needs the line."""
        import sys

        from holdfast.cli.output import print_json

        if self._as_json:
            print_json({"event": "started"})
            sys.stdout.flush()

    def batch(self, progress: "TableProgress") -> None:
        import sys

        from holdfast.cli.output import print_json
        from holdfast.clock import SystemClock
        from holdfast.pipeline.lag import lag_of

        lag = lag_of(progress, self._log.bounds(), SystemClock().now_ms())
        if self._as_json:
            print_json(
                {
                    "event": "batch",
                    "batch": progress.batch,
                    "positions": progress.records(),
                    "lagRecords": lag.records,
                    "lagSeconds": lag.seconds,
                }
            )
            sys.stdout.flush()
        elif self._watched:
            records = sum(progress.records().values())
            text = f"{records:,} records in the tables · {_said(lag)}"
            sys.stderr.write(f"\r\x1b[2K{text}")
            sys.stderr.flush()

    def end(self) -> None:
        import sys

        if self._watched:
            sys.stderr.write("\n")


def _said(lag: "Lag") -> str:
    if not lag.records:
        return "nothing is missing"
    if not lag.seconds:  # the tables have no record yet whose time could be told
        return f"{lag.records:,} records behind"
    return f"{lag.records:,} records and {lag.seconds:.1f} s behind"


def _root(node: str, tables: Path | None) -> Path:
    from holdfast.pipeline.log import is_url

    if tables is not None:
        return tables.absolute()
    return (Path() if is_url(node) else Path(node)).absolute() / "tables"
