"""`holdfast cluster`: how a cluster is, and what can be done about its members."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import spans
from holdfast.cli.cluster import demo
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Timeout, Url
from holdfast.limits import CUTS_LISTED_MAX

if TYPE_CHECKING:
    from holdfast.gateway.cluster.shapes import ClusterPartitionView, ClusterStatus

app = typer.Typer(
    name="cluster",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="A cluster: its status, members and cuts; drain, remove, move, repair; a demo.",
)


def _checked(name: str) -> str:
    from holdfast.member_names import check_member_name

    check_member_name(name)
    return name


Member = Annotated[
    str, typer.Argument(help="The name of a member.", metavar="MEMBER", callback=_checked)
]
_DRAIN_LOOK_S = 0.2  # how often the progress of a drain is asked for


@app.command(
    epilog=examples(
        "holdfast cluster status",
        "holdfast cluster status --url http://10.0.0.7:8080   as another member sees it",
        "holdfast cluster status --json | jq -r '.problems[]'",
    )
)
def status(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show the state of the cluster: members, partitions, and problems."""
    from holdfast.cli.output import number, print_fields, print_json, print_line, print_table

    found = _status(url)
    if json:
        print_json(found)
        return
    up = sum(each.state != "AWAY" for each in found.members)
    print_fields(
        [
            ("cluster", found.cluster_id),
            ("asked", found.member),
            ("journal", found.journal)
            if found.journal
            else ("etcd", found.etcd.lower().replace("_", " ")),
            ("members", f"{up} of {len(found.members)} up"),
            *([] if found.journal else [("cut", number(found.cut))]),
        ]
    )
    print_line("")
    print_table(
        ["PARTITION", "STATE", "OWNER", "EPOCH", "" if found.journal else "REPLICAS"],
        [
            (str(each.partition_id), each.state, each.owner, str(each.epoch), _replicas(each))
            for each in found.partitions
        ],
        empty="no partitions",
    )
    for problem in found.problems:
        print_line(f"! {problem}")


@app.command(
    epilog=examples(
        "holdfast cluster members",
        "holdfast cluster members --json | jq -r '.[] | select(.state == \"AWAY\").member'",
    )
)
def members(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List the members: which are up, their addresses, and what they own."""
    from holdfast.cli.output import print_json, print_table

    found = _status(url)
    if json:
        print_json(found.members)
        return
    print_table(
        ["MEMBER", "STATE", "PARTITIONS", "URL", "VERSION", "ADDRESS"],
        [
            (
                each.member, each.state, str(len(each.owned_partitions)), each.url, each.version,
                each.address,
            )
            for each in found.members
        ],
        empty="no members",
    )  # fmt: skip


@app.command(epilog=examples("holdfast cluster cuts", "holdfast cluster cuts --limit 100 --json"))
def cuts(
    limit: Annotated[int, typer.Option(min=1, max=CUTS_LISTED_MAX, help="How many at most.")] = 20,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List the latest cuts: numbered moments of the whole cluster, the newest first."""
    from holdfast.cli.output import moment, number, print_json, print_table
    from holdfast.cli.remote import ask

    found = ask(url, lambda api: api.cluster.cuts(limit))
    if json:
        print_json(found)
        return
    print_table(
        ["CUT", "WRITER", "TIME", "LOGS", "ENTRIES"],
        [
            (
                str(each.number), each.writer, moment(each.time), number(each.logs),
                number(each.entries),
            )
            for each in found.items
        ],
        empty="no cuts yet",
    )  # fmt: skip


@app.command(
    epilog=examples(
        "holdfast cluster drain 5f2a90c1d3e4      before its machine is stopped or upgraded",
        "holdfast cluster drain 5f2a90c1d3e4 --undo",
        "holdfast cluster drain 5f2a90c1d3e4 --no-wait",
    )
)
def drain(
    member: Member,
    undo: Annotated[bool, typer.Option("--undo", help="Let it own partitions again.")] = False,
    wait: Annotated[bool, typer.Option(help="Return when it owns no partition any more.")] = True,
    timeout: Timeout = "2m",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Drain a member: it hands all its partitions to others without downtime."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    limit_s = (spans.maybe_span_ms(timeout) or 0) / 1000
    ask(url, lambda api: api.cluster.drain(member, not undo))
    left = 0 if undo or not wait else _wait_until_drained(url, member, limit_s)
    if json:
        print_json({"member": member, "draining": not undo, "partitionsLeft": left})
    elif undo:
        print_line(f"{member}  owns partitions again, as they come")
    elif not wait:
        print_line(f"{member}  drains; holdfast cluster status shows its progress")
    else:
        print_line(f"{member}  owns nothing any more: it can be stopped")


def _wait_until_drained(url: str, member: str, timeout_s: float) -> int:
    from holdfast.cli.output import print_note
    from holdfast.errors import DeadlineExceeded

    deadline, told = time.monotonic() + timeout_s, -1
    while True:
        found = _status(url)
        left = sum(each.owner == member for each in found.partitions)
        if left == 0:
            return 0
        if left != told:
            print_note(f"{left} partitions left")
            told = left
        if time.monotonic() > deadline:
            raise DeadlineExceeded(
                f"Member {member} still owns {left} partitions after {timeout_s:g} s; the drain"
                " continues. See holdfast cluster status: another member must be up and have all of"
                " their logs",
                member=member,
            )
        time.sleep(_DRAIN_LOOK_S)


@app.command(
    epilog=examples(
        "holdfast cluster remove 5f2a90c1d3e4",
        "holdfast cluster remove 5f2a90c1d3e4 --force   its disk is lost, and another one with it",
    )
)
def remove(
    member: Member,
    force: Annotated[
        bool,
        typer.Option("--force", help="Also if a partition would be left with too few disks."),
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Remove a member for good: its key becomes invalid, and its disk no longer counts."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.cluster.remove(member, force))
    if json:
        print_json({"member": member, "removed": True})
    else:
        print_line(f"{member}  removed; the logs that it kept go to other members")


@app.command(epilog=examples("holdfast cluster move 3 5f2a90c1d3e4"))
def move(
    partition: Annotated[int, typer.Argument(help="The number of a partition.", min=1)],
    member: Member,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Move a partition to another member that has its log."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.cluster.move(str(partition), member))
    if json:
        print_json({"partition": partition, "member": member})
    else:
        print_line(f"partition {partition} is {member}'s now")


@app.command(
    epilog=examples(
        "holdfast cluster repair                  what etcd lacks, and what prevents a repair",
        "holdfast cluster repair --yes            write it back",
        "holdfast cluster repair --without 5f2a90c1d3e4 --yes   that member is lost for ever",
    )
)
def repair(
    yes: Annotated[
        bool, typer.Option("--yes", help="Write to etcd; without it nothing is changed.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="A member that does not answer and never comes back; its key is removed.",
            metavar="MEMBER",
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Restore missing data of an etcd that was rolled back to a backup, from the members."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    found = ask(url, lambda api: api.cluster.repair(yes, without or ()))
    if json:
        print_json(found)
        return
    print_line(f"answered: {', '.join(found.members)}")
    for each in found.problems:
        print_line(f"problem: {each}")
    for each in found.changes:
        print_line(f"{'written' if found.is_done else 'lacking'}: {each}")
    if found.is_done:
        print_line("etcd is repaired; restart the members one after the other")
    elif not found.changes:
        print_line("etcd has all that the members know; nothing to repair")
    elif not found.problems:
        print_line("nothing was changed; --yes writes it back")


demo.register(app)


def _status(url: str) -> "ClusterStatus":
    from holdfast.cli.remote import ask

    return ask(url, lambda api: api.cluster.status())


def _replicas(partition: "ClusterPartitionView") -> str:
    """The members that keep the log; those behind with how much, those away in brackets."""
    parts: list[str] = []
    for each in partition.replicas:
        behind = f" (-{each.lag:,})" if each.lag else ""
        parts.append(f"{each.member}{behind}" if each.is_heard else f"[{each.member}]")
    return " ".join(parts)
