"""All subscribers in one view, snapshots of them, and the blobs that are no longer needed."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Url

if TYPE_CHECKING:
    from holdfast.gateway.content.shapes import FarmView, SnapshotView, SubscriberView

_Subscriber = Annotated[str, typer.Argument(help="The subscriber's name.", metavar="SUBSCRIBER")]
_LOOK_SECONDS = 0.2


def register(app: typer.Typer) -> None:
    """Adds the verbs to the group."""
    app.command(
        epilog=examples(
            "holdfast content topology                 all publishers",
            "holdfast content topology site            one, with its subscribers",
            "holdfast content topology site --json | jq '.failing[] | {name, reason}'",
        )
    )(topology)
    app.command(
        epilog=examples(
            "holdfast content snapshot edge-7",
            "holdfast content snapshot edge-7 --no-wait",
        )
    )(snapshot)
    app.command(epilog=examples("holdfast content cleanup"))(cleanup)
    app.command(epilog=examples("holdfast content forget edge-3"))(forget)


def topology(
    publisher: Annotated[
        str | None, typer.Argument(help="Only this publisher.", metavar="PUBLISHER")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show publishers and subscribers: counts, lag, the slowest, and what fails."""
    from holdfast.cli.output import print_json
    from holdfast.cli.remote import ask
    from holdfast.gateway.content.shapes import FarmViews

    if publisher is None:
        farms = ask(url, lambda api: api.content.publishers())
        if json:
            print_json(FarmViews(farms))
        else:
            _print_farms(farms)
        return
    farm = ask(url, lambda api: api.content.farm(publisher))
    if json:
        print_json(farm)
        return
    _print_farm(farm)
    print_subscribers(ask(url, lambda api: api.content.subscribers(publisher)))


def snapshot(
    subscriber: _Subscriber,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait until the subscriber has it.")
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Let a subscriber take a snapshot of its content, to seed another one."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidState

    receipt = ask(url, lambda api: api.content.take_snapshot(subscriber))
    if no_wait:
        print_json(receipt) if json else print_line(f"{subscriber} was told  {receipt.blob}")
        return
    taken = _until_taken(receipt.command_id, url)
    if json:
        print_json(taken)
    if taken.error:
        raise InvalidState(f"Expected {subscriber} to store what it holds, but {taken.error}")
    if not json:
        print_line(f"{subscriber} stored what it holds  {taken.blob}")


def _until_taken(command_id: str, url: str) -> "SnapshotView":
    """Waits for as long as the user does."""
    from holdfast.cli.remote import ask
    from holdfast.gateway.api import Api

    async def find(api: Api) -> "list[SnapshotView]":
        names = [each.publisher for each in await api.content.publishers()]
        return [each for name in names for each in await api.content.snapshots(name)]

    while True:
        for each in ask(url, find):
            if each.command_id == command_id:
                return each
        time.sleep(_LOOK_SECONDS)


def cleanup(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete blobs that are no longer referred to, now; the node does this regularly."""
    from holdfast.cli.output import bytes_text, number, print_json, print_line
    from holdfast.cli.remote import ask

    done = ask(url, lambda api: api.content.clean_up())
    if json:
        print_json(done)
        return
    print_line(
        f"{number(done.removed)} of {number(done.seen)} blobs removed,"
        f" {bytes_text(done.removed_bytes)}"
    )


def forget(subscriber: _Subscriber, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Forget a subscriber that is gone for good, so that the log is no longer kept for it."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.content.forget(subscriber))
    print_json({"subscriber": subscriber}) if json else print_line(f"{subscriber} is forgotten")


def print_subscribers(found: "list[SubscriberView]") -> None:
    """A line for each subscriber."""
    from holdfast.cli.output import age, number, print_table

    print_table(
        ("SUBSCRIBER", "STATE", "LAG", "OFFSET", "FAILED", "READY", "HEARD", "HOST", "WHY"),
        (
            (
                each.name, each.state, number(each.lag), str(each.offset), number(each.failed),
                "yes" if each.ready else "no",
                f"{age(datetime.fromtimestamp(each.heard_ms / 1000, UTC))} ago", each.host,
                _why(each),
            )
            for each in found
        ),
        empty="there are no subscribers",
    )  # fmt: skip


def _why(view: "SubscriberView") -> str:
    if view.is_doubled:
        return "another store uses the same name"
    return f"{view.retries} attempts: {view.reason}" if view.retries else view.reason


def _print_farms(farms: "list[FarmView]") -> None:
    from holdfast.cli.output import number, print_table

    print_table(
        ("PUBLISHER", "PACKAGES", "SUBSCRIBERS", "BLOCKED", "DEAD", "FAILING", "LAG P50", "LAG P99",
         "SLOWEST"),
        (
            (
                each.publisher, number(each.last_number), number(each.subscribers),
                number(each.states.get("BLOCKED", 0)), number(each.states.get("DEAD", 0)),
                number(len(each.failing)), number(each.lag_p50), number(each.lag_p99),
                f"{each.slowest} ({number(each.lag_max)})" if each.slowest else "",
            )
            for each in farms
        ),
        empty="nothing has been published",
    )  # fmt: skip


def _print_farm(farm: "FarmView") -> None:
    from holdfast.cli.output import number, print_fields

    states = ", ".join(f"{count} {state}" for state, count in farm.states.items() if count)
    print_fields(
        [
            ("publisher", farm.publisher),
            ("packages", f"{number(farm.last_number)}, the last at offset {farm.last_offset}"),
            ("distributed", f"up to offset {farm.distributed}" if farm.distributed >= 0 else ""),
            ("subscribers", f"{number(farm.subscribers)}: {states}" if states else "none"),
            ("lag", f"p50 {number(farm.lag_p50)}, p99 {number(farm.lag_p99)}"),
            ("slowest", f"{farm.slowest}, {number(farm.lag_max)} behind" if farm.slowest else ""),
            ("slowed by", f"{farm.delay_ms / 1000:g} s a package" if farm.delay_ms else ""),
        ]
    )
