"""`holdfast partitions`: partitions of a stopped node, exported, imported and divided anew."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import Folder, Json
from holdfast.limits import PARTITIONS_MAX, PROCESSES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from rich.progress import Progress

    from holdfast.moving import MovedPartition, Told
    from holdfast.rebalancing import Rebalanced, Total

app = typer.Typer(
    name="partitions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Export and import partitions of a stopped node, or divide them among its processes.",
)

_Blob = Annotated[
    str,
    typer.Argument(
        help="A file, or s3://BUCKET/NAME?endpoint=URL&region=NAME. Credentials of S3 come from"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        metavar="FILE-or-URL",
    ),
]


@app.command(
    epilog=examples(
        "holdfast partitions export ./data 3 ./partition-3.export",
        "holdfast partitions export ./data 3 s3://backups/node-1/partition-3.export",
        "holdfast partitions export ./data 3 ./partition-3.export --json",
    )
)
def export(
    folder: Folder,
    partition: Annotated[
        int, typer.Argument(help="Its number.", min=1, max=PARTITIONS_MAX, metavar="PARTITION")
    ],
    target: _Blob,
    json: Json = False,
) -> None:
    """Export the state of one partition to a file or an object store.

    The node must be stopped. The export stands for the end of the partition's log. It is read back
    and checked before the command ends. A file that is there already is replaced.
    """
    import asyncio

    from holdfast.blobs import open_blobs
    from holdfast.blobs.opening import split_name
    from holdfast.moving import open_stopped

    store, name = split_name(target)

    async def run() -> "MovedPartition":
        async with open_stopped(folder, partition) as node:
            with _progress("exporting", None) as told:
                return await node.export(partition, open_blobs(store), name, told)

    _print("exported", asyncio.run(run()), target, as_json=json)


@app.command(
    "import",
    epilog=examples(
        "holdfast partitions import ./data ./partition-3.export",
        "holdfast partitions import ./data s3://backups/node-1/partition-3.export",
        "holdfast partitions import ./new ./partition-3.export --new-log   leave the log behind",
    ),
)
def import_(
    folder: Folder,
    source: _Blob,
    new_log: Annotated[
        bool,
        typer.Option(
            "--new-log",
            help="Start a new log here: work continues where the export ends. The history stays in"
            " the log of the former node. Never start that node again.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Import the state of one partition into a node's folder.

    The node must be stopped and must have no state of the partition. It must have the partition's
    log from the export's end on, or begin a new one. Every byte is checked; what is damaged is
    refused as a whole.
    """
    import asyncio

    from holdfast.blobs import open_blobs
    from holdfast.blobs.api import no_blob
    from holdfast.blobs.opening import split_name
    from holdfast.moving import open_stopped
    from holdfast.state.portable import header_of

    store, name = split_name(source)
    blobs = open_blobs(store, create=False)

    blob = blobs.head(name)
    if blob is None:
        raise no_blob(name, blobs.url)

    async def run() -> "MovedPartition":
        async with open_stopped(folder, header_of(blobs, name).partition) as node:
            with _progress("importing", blob.size_bytes) as told:
                return node.import_(blobs, name, told, new_log=new_log)

    _print("imported", asyncio.run(run()), source, as_json=json)


@app.command(
    epilog=examples(
        "holdfast partitions rebalance ./data --processes 4",
        "holdfast partitions rebalance ./data --processes 1          one process again",
        "holdfast partitions rebalance ./data --processes 4 --json",
    )
)
def rebalance(
    folder: Folder,
    processes: Annotated[
        int,
        typer.Option(help="The new number of processes.", min=1, max=PROCESSES_MAX, metavar="N"),
    ],
    json: Json = False,
) -> None:
    """Redistribute the partitions of a node to another number of processes.

    The node must be stopped. Logs and state are copied, compared with the originals, and take
    effect together; then the old files are removed. The disk must have room for both. A rebalance
    that was interrupted is finished by the next one, or leaves the folder as it was.
    """
    import asyncio
    import os

    from holdfast.rebalancing import Total
    from holdfast.rebalancing import rebalance as divide_anew

    os.umask(0o077)  # what is stored is for its owner alone
    total = Total()

    async def run() -> "Rebalanced":
        with _steps(total) as told:
            return await divide_anew(folder, processes, told, total)

    done = asyncio.run(run())
    from holdfast.cli.output import print_json, print_line

    if json:
        import msgspec

        print_json(msgspec.to_builtins(done))
        return
    if done.finished_interrupted:
        print_line("finished a rebalance that had been interrupted")
    if done.processes == done.processes_before:
        print_line(f"nothing to do: {_processes(done.processes)} in {folder} already")
        return
    print_line(
        f"{_processes(done.processes)} instead of {done.processes_before}: {len(done.moved)} of"
        f" {done.partitions} partitions moved, {done.entries:,} records and {done.rows:,} rows"
        " copied and checked"
    )


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


def _steps(total: "Total") -> "AbstractContextManager[Callable[[str, int], None]]":
    """A bar that says what is done now."""
    import contextlib

    @contextlib.contextmanager
    def showing() -> "Iterator[Callable[[str, int], None]]":
        with _bar() as bar:
            task = bar.add_task("", total=None)

            def told(what: str, count: int) -> None:
                # everything is read and written once, and read back
                bar.update(task, description=what, advance=count, total=2 * total.size_bytes)

            yield told

    return showing()


def _progress(what: str, total: int | None) -> "AbstractContextManager[Told]":
    """A bar on standard error, where somebody sees it."""
    import contextlib

    @contextlib.contextmanager
    def showing() -> "Iterator[Told]":
        with _bar() as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)

    return showing()


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress

    console = Console(stderr=True)
    columns = (*Progress.get_default_columns(), DownloadColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _print(what: str, moved: "MovedPartition", blob: str, *, as_json: bool) -> None:
    from holdfast.cli.output import bytes_text, print_json, print_line

    shown = blob.partition("?")[0]
    if "@" in shown:  # credentials are shown to nobody
        shown = "s3://" + shown.rpartition("@")[2]
    if as_json:
        import msgspec

        print_json(msgspec.to_builtins(moved) | {"blob": shown})
        return
    print_line(
        f"{what} partition {moved.partition}: {moved.rows:,} rows, {bytes_text(moved.size_bytes)},"
        f" up to record {moved.position:,} of its log · {shown}"
    )
