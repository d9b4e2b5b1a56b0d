"""`holdfast groups show`, `move`, `park` and `resume`: programs that share partitions.

They are verbs of the same group as those about users, which have groups of another kind; `list`
shows both kinds.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, Json, Limit, Url

if TYPE_CHECKING:
    from holdfast.gateway.groups.shapes import GroupPartitionView, PartitionGroupView

_Name = Annotated[str, typer.Argument(help="The name of the group.", metavar="NAME")]
_Token = Annotated[str, typer.Argument(help="The partition.", metavar="TOKEN")]
_ERROR_CHARS = 40  # of an error in a table; `--json` has all of it


def register(app: typer.Typer) -> None:
    """Adds the verbs to `holdfast groups`."""
    app.command(
        epilog=examples(
            "holdfast groups show devices",
            "holdfast groups show devices --state PARKED",
            "holdfast groups show devices --member worker-3 --json | jq -r '.items[].token'",
        )
    )(show)
    app.command(epilog=examples("holdfast groups move devices north --to worker-3"))(move)
    app.command(epilog=examples("holdfast groups park devices north"))(park)
    app.command(epilog=examples("holdfast groups resume devices north"))(resume)


def show(
    name: _Name,
    state: Annotated[
        str | None,
        typer.Option(help="Only partitions in this state, such as PARKED.", metavar="STATE"),
    ] = None,
    member: Annotated[
        str | None, typer.Option(help="Only partitions of this member.", metavar="MEMBER")
    ] = None,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show the members of a group, and the owners and offsets of its partitions."""
    from typing import get_args

    from holdfast.cli.output import print_json, print_note
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.groups.shapes import GroupPartitionQuery, PartitionStateWord

    word = None if state is None else state.upper()
    if word is not None and word not in get_args(PartitionStateWord):
        words = ", ".join(get_args(PartitionStateWord))
        raise InvalidArgument(f"Expected one of {words} for --state, but found {state!r}")
    query = GroupPartitionQuery(word, member, after, limit)  # pyright: ignore[reportArgumentType]
    view = ask(url, lambda api: api.groups.group(name))
    page = ask(url, lambda api: api.groups.partitions(name, query))
    if json:
        print_json({"group": view, "items": page.items, "after": page.after})
        return
    _print_group(view)
    _print_partitions(page.items)
    if page.after is not None:
        print_note(f"there are more: --after {page.after}")


def move(
    name: _Name,
    token: _Token,
    to: Annotated[str, typer.Option("--to", help="The member that gets it.", metavar="MEMBER")],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Move a partition to a member, where it stays as long as that member is in the group."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask
    from holdfast.gateway.groups.shapes import PartitionMove

    ask(url, lambda api: api.groups.move(name, PartitionMove(token, to)))
    if json:
        print_json({"group": name, "token": token, "to": to})
    else:
        print_line(f"{token}  moves to {to} when its owner has let go of it")


def park(name: _Name, token: _Token, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Stop a partition. It stays with its member and does not run until it is resumed."""
    from holdfast.cli.remote import ask
    from holdfast.gateway.groups.shapes import PartitionToken

    ask(url, lambda api: api.groups.park(name, PartitionToken(token)))
    _print_done(name, token, "parked", json)


def resume(name: _Name, token: _Token, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Run a parked partition again, at once."""
    from holdfast.cli.remote import ask
    from holdfast.gateway.groups.shapes import PartitionToken

    ask(url, lambda api: api.groups.resume(name, PartitionToken(token)))
    _print_done(name, token, "resumed", json)


def _print_done(name: str, token: str, state: str, as_json: bool) -> None:
    from holdfast.cli.output import print_json, print_line

    if as_json:
        print_json({"group": name, "token": token, "state": state.upper()})
    else:
        print_line(f"{token}  {state}")


def _print_group(view: "PartitionGroupView") -> None:
    from holdfast.cli.output import number, print_fields, print_line, print_table

    print_fields(
        [
            ("group", view.group),
            ("epoch", f"{view.epoch}, generation {view.generation}"),
            ("state", _group_state(view)),
            ("partitions", _counts(view)),
            ("watermark", "" if view.watermark is None else number(view.watermark)),
        ]
    )
    print_line("")
    print_table(
        ("MEMBER", "OWNED", "RUNNING", "PARKED", "SHARED", ""),
        (
            (
                each.member, number(each.owned), number(each.running), number(each.parked),
                number(each.shared),
                "away" if each.is_away else "leads" if each.is_leader else "",
            )
            for each in view.members
        ),
        empty="this group has no members",
    )  # fmt: skip
    print_line("")


def _group_state(view: "PartitionGroupView") -> str:
    if view.members and all(each.is_away for each in view.members):
        return "no member is up; the partitions continue when one joins"
    return "rebalancing" if view.is_rebalancing else ""


def _counts(view: "PartitionGroupView") -> str:
    """How many there are, and in which states, where there are any."""
    states = {
        "running": view.running, "shared": view.shared, "parked": view.parked,
        "finished": view.finished,
    }  # fmt: skip
    told = ", ".join(f"{count} {state}" for state, count in states.items() if count)
    return f"{view.partitions}: {told}" if told else str(view.partitions)


def _print_partitions(partitions: "list[GroupPartitionView]") -> None:
    from holdfast.cli.output import print_table
    from holdfast.errors import raised_line

    print_table(
        ("TOKEN", "STATE", "MEMBER", "OFFSET", "WHY"),
        (
            (
                each.token, each.state, each.member.partition("/")[0],
                "" if each.offset is None else str(each.offset),
                _why(each, raised_line(each.error) if each.error else ""),
            )
            for each in partitions
        ),
        empty="no partitions",
    )  # fmt: skip


def _why(partition: "GroupPartitionView", error: str) -> str:
    if partition.is_held:
        return "by hand"
    if error:
        short = error if len(error) <= _ERROR_CHARS else f"{error[: _ERROR_CHARS - 1]}…"
        return f"{short} ({partition.attempts})"
    if partition.target is not None:
        return f"to {partition.target.partition('/')[0]}"
    return f"pinned to {partition.pinned_to}" if partition.pinned_to else ""


def print_groups(groups: "list[PartitionGroupView]") -> None:
    """All groups of programs, in a table."""
    from holdfast.cli.output import number, print_table

    print_table(
        ("GROUP", "MEMBERS", "PARTITIONS", "RUNNING", "PARKED", "EPOCH"),
        (
            (
                each.group, number(len(each.members)), number(each.partitions),
                number(each.running), number(each.parked), number(each.epoch),
            )
            for each in groups
        ),
        empty="no groups",
    )  # fmt: skip
