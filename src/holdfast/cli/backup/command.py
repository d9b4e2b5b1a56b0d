"""`holdfast backup`: a node as of one moment, kept in a folder or in S3; `holdfast restore`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from holdfast.cli.help_text import examples
from holdfast.cli.options import Json

if TYPE_CHECKING:
    from holdfast.backup.manifest import BackupManifest
    from holdfast.backup.target import BackupTarget

_DEFAULT = "create"


class _Group(TyperGroup):
    """`holdfast backup NODE TARGET` is short for `holdfast backup create NODE TARGET`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="backup",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Back up a node, running or stopped, to a folder or S3. `holdfast backup NODE TARGET` is"
    " short for `holdfast backup create NODE TARGET`.",
)

_Target = Annotated[
    str,
    typer.Argument(
        help="A folder, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME. Credentials of S3 come from"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        metavar="TARGET",
    ),
]
_Generation = Annotated[
    int | None,
    typer.Option("--generation", help="The number of a backup; the newest by default.", min=1),
]


def register(verbs: typer.Typer) -> None:
    """Adds the verb to the command."""
    verbs.command(
        epilog=examples(
            "holdfast restore ./backups ./data             the newest backup",
            "holdfast restore s3://backups/node-1 ./data --generation 12",
            "holdfast start ./data                         then start a node on it",
        )
    )(restore)


@app.command(
    epilog=examples(
        "holdfast backup http://127.0.0.1:8080 /mnt/backups/node-1      a running node, by its URL",
        "holdfast backup http://127.0.0.1:8080 s3://backups/node-1",
        "holdfast backup ./data /mnt/backups/node-1                     a stopped node, by its"
        " folder",
        "holdfast backup create ./data ./backups --json                 the same in full",
    )
)
def create(
    node: Annotated[
        str,
        typer.Argument(
            help="The URL of a running node, or the data folder of a stopped one.",
            metavar="NODE-or-FOLDER",
        ),
    ],
    target: _Target,
    json: Json = False,
) -> None:
    """Back up a node as of one moment. A running node keeps working.

    A running node writes the backup itself: TARGET is a folder of the node's machine, or S3 with
    the node's credentials. Only what TARGET does not have yet is sent. The backup is there when the
    command ends; a backup that was interrupted leaves no trace that counts.
    """
    if "://" in node:
        from holdfast.cli.backup.running import back_up_running

        back_up_running(node, target, as_json=json)
        return
    import asyncio
    import time

    from holdfast.backup.stopped import cut_stopped
    from holdfast.backup.taking import BackupProgress, BackupTaking
    from holdfast.backup.target import BackupTarget
    from holdfast.blobs import open_blobs
    from holdfast.cli.backup.showing import driven, print_made

    async def run() -> "tuple[BackupManifest, BackupTarget]":
        async with cut_stopped(Path(node), round(time.time() * 1000)) as cut:
            store = BackupTarget(open_blobs(target))
            progress = BackupProgress()
            taking = BackupTaking(cut, store, progress)
            try:
                driven("backing up", taking.send(), progress)
                return taking.finish(), store
            finally:
                taking.close()

    manifest, store = asyncio.run(run())
    print_made(
        manifest.generation, manifest.taken_ms, manifest.size_bytes, manifest.sent_bytes,
        store.url, as_json=json,
    )  # fmt: skip


@app.command(
    "list",
    epilog=examples(
        "holdfast backup list ./backups",
        "holdfast backup list s3://backups/node-1 --json",
    ),
)
def list_(target: _Target, json: Json = False) -> None:
    """List the backups in a target, the oldest first."""
    from datetime import UTC, datetime

    from holdfast.cli.backup.showing import opened
    from holdfast.cli.output import bytes_text, moment, number, print_json, print_table

    store = opened(target)
    store.check()
    found = store.generations()
    if json:
        print_json(
            {
                "items": [
                    {"generation": each.number, "problem": each.problem and each.problem.message}
                    if (made := each.manifest) is None
                    else {
                        "generation": made.generation, "takenMs": made.taken_ms,
                        "sizeBytes": made.size_bytes, "sentBytes": made.sent_bytes,
                        "processes": made.members, "partitions": made.partitions,
                        "format": made.format, "program": made.program, "source": made.source,
                    }
                    for each in found
                ]
            }
        )  # fmt: skip
        return
    rows = [
        (number(each.number), "", "", "", str(each.problem))
        if (made := each.manifest) is None
        else (
            number(made.generation),
            moment(datetime.fromtimestamp(made.taken_ms / 1000, UTC)),
            bytes_text(made.size_bytes), bytes_text(made.sent_bytes),
            f"{made.source} (holdfast {made.program}, format {made.format})",
        )
        for each in found
    ]  # fmt: skip
    columns = ("GENERATION", "AS OF", "SIZE", "SENT", "FROM")
    print_table(columns, rows, f"no backup in {store.url}")


@app.command(
    epilog=examples(
        "holdfast backup verify ./backups                     every piece of every backup",
        "holdfast backup verify ./backups --generation 12",
        "holdfast backup verify s3://backups/node-1 --json",
    )
)
def verify(target: _Target, generation: _Generation = None, json: Json = False) -> None:
    """Read all pieces of the backups again and compare them with their hashes.

    Exit code 6 if something is damaged or missing.
    """
    from holdfast.backup.keeping import verify as read_back
    from holdfast.backup.taking import BackupProgress
    from holdfast.cli.backup.showing import driven, opened
    from holdfast.cli.exit_codes import ExitCode
    from holdfast.cli.output import print_json, print_line

    store = opened(target)
    if generation is not None:
        manifests, problems = [store.generation(generation)], []
    else:
        store.check()
        found = store.generations()
        manifests = [each.manifest for each in found if each.manifest is not None]
        problems = [each.problem.message for each in found if each.problem is not None]
    progress = BackupProgress()
    problems += [each.message for each in driven(
        "reading", read_back(store, manifests, progress), progress)]  # fmt: skip
    numbers = [each.generation for each in manifests]
    if json:
        print_json({"generations": numbers, "problems": problems})
    else:
        for each in problems:
            print_line(each)
        if not problems:
            print_line(f"{len(numbers)} backups in {store.url}: all as they were written")
    if problems:
        raise typer.Exit(ExitCode.DATA_LOSS)


@app.command(
    epilog=examples(
        "holdfast backup prune ./backups --keep 7",
        "holdfast backup prune s3://backups/node-1 --keep 30 --json",
    )
)
def prune(
    target: _Target,
    keep: Annotated[int, typer.Option(help="How many of the newest to keep.", min=1, metavar="N")],
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Remove backups whose manifest is damaged, too.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove old backups, and what only they need.

    While a backup is being made, the space is freed by the next prune.
    """
    import socket
    import time

    import msgspec

    from holdfast.backup.keeping import prune as remove_old
    from holdfast.cli.backup.showing import opened
    from holdfast.cli.output import bytes_text, print_json, print_line

    store = opened(target)
    now_ms = round(time.time() * 1000)
    done = remove_old(store, keep, socket.gethostname(), now_ms, damaged=damaged)
    if json:
        print_json(msgspec.to_builtins(done))
        return
    print_line(
        f"{len(done.generations)} backups removed, {len(done.kept)} kept,"
        f" {bytes_text(done.size_bytes)} freed in {store.url}"
    )
    if done.is_put_off:
        print_line("a backup is being made there: the next prune frees the space")


def restore(
    target: _Target,
    folder: Annotated[
        Path, typer.Argument(help="An empty folder, or one to be made.", metavar="FOLDER")
    ],
    generation: _Generation = None,
    json: Json = False,
) -> None:
    """Restore the data folder of a node from a backup.

    Every byte is compared with its hash, the log and the state are read, and only then are the
    files put in place. A node does not start on a folder whose restore was interrupted; run the
    command again.
    """
    import os

    from holdfast.backup.restoring import check_empty
    from holdfast.backup.restoring import restore as put_back
    from holdfast.backup.taking import BackupProgress
    from holdfast.cli.backup.showing import driven, opened, print_restored

    os.umask(0o077)  # what is stored is for its owner alone
    check_empty(folder)
    store = opened(target)
    manifest = store.generation(generation)
    progress = BackupProgress()
    driven("restoring", put_back(store, manifest, folder, progress), progress)
    print_restored(manifest, folder, store.url, as_json=json)
