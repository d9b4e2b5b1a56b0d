"""`holdfast journal`: what is on disk, read without disturbing the node that writes it."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import Folder, Json
from holdfast.limits import PARTITIONS_MAX, WHOLE_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.cli.journal.files import TakeRecord
    from holdfast.journal.local import TopicReport
    from holdfast.records import Record

app = typer.Typer(
    name="journal",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read the log of a node's folder, while the node runs or not. Nothing is written.",
)

_Node = Annotated[
    str,
    typer.Argument(help="The data folder of a node, or a URL.", metavar="FOLDER|URL"),
]
_Partition = Annotated[int | None, typer.Option(help="Only this one.", min=1, max=PARTITIONS_MAX)]


@app.command(epilog=examples("holdfast journal topics ./data"))
def topics(folder: Folder, json: Json = False) -> None:
    """List the topics with their partitions and the space they take."""
    from holdfast.cli.journal.files import open_reader, topic_bytes
    from holdfast.cli.output import bytes_text, number, print_json, print_table

    reader = open_reader(folder)
    found = [
        (topic, partitions, topic_bytes(folder, topic))
        for topic, partitions in sorted(reader.topics().items())
    ]
    if json:
        rows = [
            {"topic": topic, "partitions": partitions, "bytes": size_bytes}
            for topic, partitions, size_bytes in found
        ]
        print_json({"items": rows})
        return
    print_table(
        ("TOPIC", "PARTITIONS", "SPACE"),
        (
            (topic, number(partitions), bytes_text(size_bytes))
            for topic, partitions, size_bytes in found
        ),
        empty="no topics",
    )


@app.command(
    epilog=examples("holdfast journal bounds ./data", "holdfast journal bounds ./data --json")
)
def bounds(folder: Folder, json: Json = False) -> None:
    """Show the earliest and the next offset of each partition."""
    from holdfast.cli.journal.files import open_reader
    from holdfast.cli.output import number, print_json, print_table

    reader = open_reader(folder)
    found = [
        (topic, partition, reader.bounds(topic, partition))
        for topic, partitions in sorted(reader.topics().items())
        for partition in range(1, partitions + 1)
    ]
    if json:
        rows = [
            {"topic": topic, "partition": partition, "earliest": there.earliest, "next": there.next}
            for topic, partition, there in found
        ]
        print_json({"items": rows})
        return
    print_table(
        ("TOPIC", "PARTITION", "EARLIEST", "NEXT"),
        (
            (topic, number(partition), number(there.earliest), number(there.next))
            for topic, partition, there in found
        ),
        empty="no topics",
    )


@app.command(
    epilog=examples(
        "holdfast journal cat ./data --limit 20",
        "holdfast journal cat ./data --follow --json | jq 'select(.intent == \"COMPLETED\")'",
        "holdfast journal cat ./data --key 2251799813685249          the life of one task",
        "holdfast journal cat ./data --partition 2 --from 1000 --full",
        "holdfast journal cat http://10.0.0.7:8080 --ordered         in the order of a cluster",
    )
)
def cat(
    node: _Node,
    partition: _Partition = None,
    start: Annotated[
        int,
        typer.Option(
            "--from",
            min=0,
            max=WHOLE_MAX,
            help="The first position; with --ordered the number of the first cut.",
        ),
    ] = 0,
    limit: Annotated[int | None, typer.Option(min=1, help="How many records at most.")] = None,
    key: Annotated[
        int | None,
        typer.Option(help="Only records about this task, incident, lease or distribution."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as records come.")] = False,
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered",
            help="In the one order of a cluster, with the sequence id of each record before it.",
        ),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Whole values; without it long ones are shortened.")
    ] = False,
    json: Json = False,
) -> None:
    """Print records, decoded, in the order of their times.

    A line is: partition/position, time, kind, value type and intent, key, value. Long texts, lists
    and payloads are shortened, unless --full or --json is given. The log of a cluster is read from
    the URL of any member.
    """
    show = _printer(key, limit, full, json)
    if node.startswith(("http://", "https://")):
        _cat_remote(node, partition, start, show, follow, ordered)
    else:
        _cat_folder(node, partition, start, show, follow, ordered)


def _cat_remote(
    url: str, partition: int | None, start: int, show: "TakeRecord", follow: bool, ordered: bool
) -> None:
    import asyncio

    from holdfast.cli.journal.elsewhere import print_ordered, print_records

    how = print_ordered if ordered else print_records
    asyncio.run(how(url, partition, start, show, follow))


def _cat_folder(
    name: str, partition: int | None, start: int, show: "TakeRecord", follow: bool, ordered: bool
) -> None:
    from pathlib import Path

    from holdfast.cli.journal.files import (
        follow_records,
        open_reader,
        partitions_of,
        read_records,
    )
    from holdfast.errors import InvalidState
    from holdfast.layout import check_not_member

    folder = Path(name)
    check_not_member(folder)
    if ordered:
        raise InvalidState(
            f"A single node has no cuts, so its partitions have no common order: read {folder}"
            " in the order of times, without --ordered. To read the log of a cluster, name the URL"
            " of a member",
            path=name,
        )
    reader = open_reader(folder)
    chosen = partitions_of(reader, partition)
    if follow:
        import asyncio

        asyncio.run(follow_records(reader, chosen, start, show))
        return
    for found in read_records(reader, chosen, start):
        if not show(*found):
            return


def _printer(key: int | None, limit: int | None, full: bool, as_json: bool) -> "TakeRecord":
    """Prints a record if it is wanted; says whether more are."""
    from holdfast.cli.journal.records import line_of, names_key, view_of
    from holdfast.cli.output import print_json, print_line

    shown = 0

    def show(partition: int, record: "Record", sequence_id: int | None = None) -> bool:
        nonlocal shown
        if key is not None and not names_key(record, key):
            return True
        view = view_of(partition, record)
        if as_json:
            print_json(view if sequence_id is None else {"sequenceId": sequence_id, **view})
        elif sequence_id is None:
            print_line(line_of(view, full=full))
        else:
            print_line(f"{sequence_id:>12}  {line_of(view, full=full)}")
        shown += 1
        return limit is None or shown < limit

    return show


@app.command(
    epilog=examples("holdfast journal verify ./data", "holdfast journal verify ./data --json")
)
def verify(folder: Folder, json: Json = False) -> None:
    """Read every durable byte and check it. Exit code 6 if something is damaged."""
    from holdfast.cli.exit_codes import ExitCode
    from holdfast.cli.journal.files import journal_paths
    from holdfast.cli.output import print_json

    reports = [report for path in journal_paths(folder) for report in _verify_with_progress(path)]
    if json:
        print_json({"items": reports})
    else:
        _print_reports(reports)
    if any(report.damage for report in reports):
        raise typer.Exit(ExitCode.DATA_LOSS)


def _verify_with_progress(path: "Path") -> "list[TopicReport]":
    """The bar is on standard error, and only where somebody sees it."""
    from rich.console import Console
    from rich.progress import Progress

    from holdfast.journal.local import verify as verify_journal

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)

        def on_segment(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return verify_journal(str(path), progress=on_segment)


def _print_reports(reports: "list[TopicReport]") -> None:
    from holdfast.cli.output import bytes_text, number, print_line, print_table

    print_table(
        ("TOPIC", "PARTITIONS", "SEGMENTS", "ENTRIES", "READ", "DAMAGE"),
        (
            (
                report.topic, number(report.partitions), number(report.segments),
                number(report.entries), bytes_text(report.size_bytes),
                number(len(report.damage)) if report.damage else "none",
            )
            for report in reports
        ),
        empty="no topics",
    )  # fmt: skip
    for report in reports:
        for damage in report.damage:
            print_line(f"damaged: {damage.file} at byte {damage.position}: {damage.reason}")
