"""`holdfast distributions`: commands on their way to other partitions, and why they are not there.

A person can give one up, or have all that a partition missed sent again.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, Json, Limit, Url, key_argument
from holdfast.limits import PARTITIONS_MAX

if TYPE_CHECKING:
    from holdfast.gateway.distribution.shapes import DistributionView, TargetView

app = typer.Typer(
    name="distributions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Commands in flight to other partitions: list, skip, cancel, resend.",
)

_Key = Annotated[str, key_argument("a distribution")]
_By = Annotated[
    str | None,
    typer.Option(help="Who decides; recorded on the log.", metavar="NAME", show_default="you"),
]
_Reason = Annotated[str, typer.Option(help="Why; recorded on the log.", metavar="TEXT")]


@app.command(
    "list",
    epilog=examples(
        "holdfast distributions list",
        "holdfast distributions list --target 3",
        "holdfast distributions list --queue deployment --json | jq -r '.items[].distributionKey'",
    ),
)
def list_distributions(
    queue: Annotated[str | None, typer.Option(help="Only in this queue.", metavar="NAME")] = None,
    target: Annotated[
        int | None,
        typer.Option(
            min=1, max=PARTITIONS_MAX, help="Only commands that this partition lacks.", metavar="P"
        ),
    ] = None,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List pending distributions, one line for each partition that lacks the command."""
    from holdfast.cli.output import age, moment, number, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.distribution.shapes import DistributionQuery

    query = DistributionQuery(queue, target, limit, after)
    page = ask(url, lambda api: api.distributions.page(query))
    if json:
        print_json(page)
        return
    print_table(
        (
            "KEY", "COMMAND", "FROM", "QUEUE", "TARGET", "STATE", "ATTEMPTS", "NEXT", "AGE", "WHY",
        ),
        (
            (
                each.distribution_key, _command(each), number(each.partition), each.queue or "",
                number(pending.partition), pending.state, number(pending.attempts),
                moment(pending.next_attempt), age(each.started), _why(pending),
            )
            for each in page.items
            for pending in each.targets
            if target in (None, pending.partition)
        ),
        empty="nothing is being distributed",
    )  # fmt: skip
    if page.after is not None:
        print_note(f"there are more: --after {page.after}")


@app.command(
    epilog=examples(
        "holdfast distributions show 2251799813685249",
        "holdfast distributions show 2251799813685249 --json | jq '.targets[].refusal'",
    )
)
def show(key: _Key, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show a distribution, and its state at each partition that lacks the command."""
    from holdfast.cli.output import age, bytes_text, moment, print_fields, print_json
    from holdfast.cli.remote import ask

    view = ask(url, lambda api: api.distributions.get(key))
    if json:
        print_json(view)
        return
    print_fields(
        [
            ("key", view.distribution_key),
            ("command", _command(view)),
            ("size", bytes_text(view.size_bytes)),
            ("from", f"partition {view.partition}"),
            ("queue", view.queue or ""),
            ("started", f"{moment(view.started)}, {age(view.started)} ago"),
            *((f"partition {each.partition}", _standing(each)) for each in view.targets),
        ]
    )


@app.command(
    epilog=examples(
        "holdfast distributions skip 2251799813685249 --partition 3",
        "holdfast distributions skip 2251799813685249 --partition 3 --reason 'its disk is gone'",
    )
)
def skip(
    key: _Key,
    partition: Annotated[
        int, typer.Option(min=1, max=PARTITIONS_MAX, help="The partition to skip.", metavar="P")
    ],
    by: _By = None,
    reason: _Reason = "",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Skip a distribution on one partition; commands that wait behind it continue.

    The partition never gets the command and stays different from the others. A copy in flight may
    still take effect. The decision is recorded on the log, with who took it and why.
    """
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask
    from holdfast.gateway.distribution.shapes import DistributionSkip

    decision = DistributionSkip(partition, _user() if by is None else by, reason)
    ask(url, lambda api: api.distributions.skip(key, decision))
    if json:
        print_json({"distributionKey": key, "partition": partition, "state": "SKIPPED"})
    else:
        print_line(f"{key}  skipped for partition {partition}")


@app.command(
    epilog=examples(
        "holdfast distributions cancel 2251799813685249",
        "holdfast distributions cancel 2251799813685249 --by ann --reason 'deployed by mistake'",
    )
)
def cancel(
    key: _Key,
    by: _By = None,
    reason: _Reason = "",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Cancel a distribution for all partitions that lack the command.

    Partitions that have it keep it. A copy in flight may still take effect. The decision is
    recorded on the log, with who took it and why.
    """
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask
    from holdfast.gateway.distribution.shapes import DistributionCancellation

    decision = DistributionCancellation(_user() if by is None else by, reason)
    ask(url, lambda api: api.distributions.cancel(key, decision))
    if json:
        print_json({"distributionKey": key, "state": "CANCELED"})
    else:
        print_line(f"{key}  canceled for all partitions that lack it")


@app.command(epilog=examples("holdfast distributions resume 3"))
def resume(
    partition: Annotated[
        int,
        typer.Argument(
            min=1, max=PARTITIONS_MAX, help="The number of a partition.", metavar="PARTITION"
        ),
    ],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Resend everything in flight to a partition at once, when it is reachable again."""
    from holdfast.cli.output import number, print_json, print_line
    from holdfast.cli.remote import ask

    count = ask(url, lambda api: api.distributions.resume(partition))
    if json:
        print_json({"partition": partition, "count": count})
    elif count:
        print_line(f"{number(count)} sent again to partition {partition}")
    else:
        print_line(f"nothing is in flight to partition {partition}")


# --- words ------------------------------------------------------------------------------------


def _command(view: "DistributionView") -> str:
    return f"{view.value_type} {view.intent}"


def _why(target: "TargetView") -> str:
    """Why a partition does not have it yet, on one line."""
    from holdfast.errors import raised_line

    return f"behind {target.behind}" if target.behind else raised_line(target.refusal or "")


def _standing(target: "TargetView") -> str:
    """How it stands at a partition; what the partition said is under it."""
    from holdfast.cli.output import moment, number

    words = [str(target.state)]
    if target.behind:
        words.append(f"behind {target.behind}")
    if target.attempts:
        words.append(
            "sent once" if target.attempts == 1 else f"sent {number(target.attempts)} times"
        )
    if target.next_attempt:
        words.append(f"next at {moment(target.next_attempt)}")
    return "\n".join(filter(None, (", ".join(words), target.refusal)))


def _user() -> str:
    """The user of the command, as the operating system names them."""
    import getpass

    from holdfast.errors import InvalidArgument

    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise InvalidArgument(
            "Expected a name after --by, but found none, and the system knows none either"
        ) from error
