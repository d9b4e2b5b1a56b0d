"""What the commands about backups share: a bar, and what they say at their end."""

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.progress import DownloadColumn
from rich.progress import Progress as Bar

from holdfast.backup.manifest import BackupManifest
from holdfast.backup.taking import BackupProgress
from holdfast.backup.target import BackupTarget
from holdfast.blobs import open_blobs
from holdfast.cli.output import bytes_text, moment, print_json, print_line

R = TypeVar("R")


def opened(target: str) -> BackupTarget:
    """A target that backups are read from."""
    return BackupTarget(open_blobs(target, create=False))


def bar() -> Bar:
    """A bar on standard error, where somebody sees it."""
    console = Console(stderr=True)
    columns = (*Bar.get_default_columns(), DownloadColumn())
    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


def driven(what: str, pieces: Generator[None, None, R], progress: BackupProgress) -> R:
    """Runs something long to its end, with a bar."""
    with bar() as shown:
        task = shown.add_task(what, total=None)
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                return end.value
            shown.update(task, completed=progress.done_bytes, total=progress.total_bytes or None)


def print_made(
    generation: int, taken_ms: int, size_bytes: int, sent_bytes: int, url: str, *, as_json: bool
) -> None:
    """A backup is there."""
    if as_json:
        print_json(
            {
                "generation": generation, "takenMs": taken_ms, "sizeBytes": size_bytes,
                "sentBytes": sent_bytes, "target": url,
            }
        )  # fmt: skip
        return
    print_line(
        f"backup {generation} as of {moment(datetime.fromtimestamp(taken_ms / 1000, UTC))}:"
        f" {bytes_text(size_bytes)}, of which {bytes_text(sent_bytes)} were sent · {url}"
    )


def print_restored(manifest: BackupManifest, folder: Path, url: str, *, as_json: bool) -> None:
    """A folder is there."""
    if as_json:
        print_json(
            {
                "generation": manifest.generation, "takenMs": manifest.taken_ms,
                "sizeBytes": manifest.size_bytes, "processes": manifest.members,
                "partitions": manifest.partitions, "folder": str(folder), "source": manifest.source,
            }
        )  # fmt: skip
        return
    taken = moment(datetime.fromtimestamp(manifest.taken_ms / 1000, UTC))
    processes = f" --processes {manifest.members}" if manifest.members > 1 else ""
    print_line(
        f"restored backup {manifest.generation} as of {taken} from {url}:"
        f" {bytes_text(manifest.size_bytes)}; start it: holdfast start {folder}{processes}"
    )
