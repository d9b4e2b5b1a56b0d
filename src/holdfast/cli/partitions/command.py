"""`holdfast partitions`: export a partition of a stopped node, and import it elsewhere."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import Folder, Json
from holdfast.limits import PARTITIONS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from holdfast.moving import Moved, Told

app = typer.Typer(
    name="partitions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Export the state of single partitions of a stopped node, and import it.",
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
    """Write the state of one partition into a file or an object store.

    The node must be stopped. The export stands for the end of the partition's log. It is read back
    and checked before the command ends. A file that is there already is replaced.
    """
    import asyncio

    from holdfast.blobs import open_blobs
    from holdfast.blobs.opening import split_name
    from holdfast.moving import open_stopped

    store, name = split_name(target)

    async def run() -> "Moved":
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
            help="Begin a new log here: work goes on where the export ends, and what happened"
            " before stays in the former node's log. Never start that node again.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Take the state of one partition into a node's folder.

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

    async def run() -> "Moved":
        async with open_stopped(folder, header_of(blobs, name).partition) as node:
            with _progress("importing", blob.size_bytes) as told:
                return node.import_(blobs, name, told, new_log=new_log)

    _print("imported", asyncio.run(run()), source, as_json=json)


def _progress(what: str, total: int | None) -> "AbstractContextManager[Told]":
    """A bar on standard error, where somebody sees it."""
    import contextlib

    from rich.console import Console
    from rich.progress import DownloadColumn, Progress

    @contextlib.contextmanager
    def showing() -> "Iterator[Told]":
        console = Console(stderr=True)
        columns = (*Progress.get_default_columns(), DownloadColumn())
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)

    return showing()


def _print(what: str, moved: "Moved", blob: str, *, as_json: bool) -> None:
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
