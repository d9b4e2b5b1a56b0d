"""What subscribers have still to take, what they gave up on, and what to do about it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Limit, Url

if TYPE_CHECKING:
    from holdfast.gateway.content.shapes import (
        CommandReceipt,
        FailedPackages,
        QueuedPackage,
        QueuePage,
    )

_Publisher = Annotated[str, typer.Argument(help="The publisher's name.", metavar="PUBLISHER")]
_Subscriber = Annotated[str, typer.Argument(help="The subscriber's name.", metavar="SUBSCRIBER")]
_After = Annotated[int, typer.Option(help="Continue after this offset.", metavar="OFFSET")]
_Offset = Annotated[int, typer.Argument(help="The package's offset.", metavar="OFFSET")]


def register(app: typer.Typer) -> None:
    """Adds the verbs to the group."""
    app.command(
        epilog=examples(
            "holdfast content queues site                      who is how far behind",
            "holdfast content queues site edge-7               what edge-7 has still to take",
            "holdfast content queues site --json | jq '.items[] | select(.lag > 100).name'",
        )
    )(queues)
    app.command(
        epilog=examples(
            "holdfast content errors site edge-7",
            "holdfast content errors site edge-7 --json | jq -r '.items[].reason'",
        )
    )(errors)
    app.command(
        epilog=examples(
            "holdfast content retry site edge-7 4711",
            "holdfast content retry site edge-7 --all   everything in its error queue",
        )
    )(retry)
    app.command(
        epilog=examples(
            "holdfast content clear site edge-7                all that waits now",
            "holdfast content clear site edge-7 --up-to 4711",
        )
    )(clear)
    app.command(epilog=examples("holdfast content remove site edge-7 4711"))(remove)


def queues(
    publisher: _Publisher,
    subscriber: Annotated[
        str | None, typer.Argument(help="Only the queue of this one.", metavar="SUBSCRIBER")
    ] = None,
    limit: Limit = 100,
    after: _After = -1,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show the lag of all subscribers, or the queue of one."""
    if subscriber is None:
        _show_all(publisher, url, json)
    else:
        _show_queue(publisher, subscriber, limit, after, url, json)


def _show_all(publisher: str, url: str, as_json: bool) -> None:
    from holdfast.cli.content.farm import print_subscribers
    from holdfast.cli.output import print_json
    from holdfast.cli.remote import ask
    from holdfast.gateway.content.shapes import SubscriberViews

    found = ask(url, lambda api: api.content.subscribers(publisher))
    if as_json:
        print_json(SubscriberViews(found))
    else:
        print_subscribers(found)


def _show_queue(
    publisher: str, subscriber: str, limit: int, after: int, url: str, as_json: bool
) -> None:
    from holdfast.cli.output import number
    from holdfast.cli.remote import ask
    from holdfast.gateway.content.shapes import QueueQuery

    query = QueueQuery(after, limit)
    page = ask(url, lambda api: api.content.queue(publisher, subscriber, query))
    in_all = f"{number(page.length)} wait in all; "
    _print_page(page, as_json, f"{subscriber} has all of {publisher}", in_all)


def errors(
    publisher: _Publisher,
    subscriber: _Subscriber,
    limit: Limit = 100,
    after: _After = -1,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show the packages that a subscriber gave up on, and why."""
    from holdfast.cli.remote import ask
    from holdfast.gateway.content.shapes import QueueQuery

    query = QueueQuery(after, limit)
    page = ask(url, lambda api: api.content.errors(publisher, subscriber, query))
    _print_page(page, json, f"{subscriber} gave up on nothing of {publisher}")


def retry(
    publisher: _Publisher,
    subscriber: _Subscriber,
    offset: Annotated[
        int | None, typer.Argument(help="The package's offset.", metavar="OFFSET")
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Everything that the subscriber gave up on.")
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Retry a package that a subscriber gave up on, except paths that newer packages changed."""
    from holdfast.cli.output import print_json
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.api import Api
    from holdfast.gateway.content.shapes import QueueQuery
    from holdfast.limits import PAGE_ITEMS_MAX

    if (offset is None) != all_:
        raise InvalidArgument("Expected an OFFSET or --all, but found neither or both")

    async def ask_all(api: Api) -> "list[CommandReceipt]":
        offsets, after = [] if offset is None else [offset], -1 if all_ else None
        while after is not None:
            query = QueueQuery(after, PAGE_ITEMS_MAX)
            page = await api.content.errors(publisher, subscriber, query)
            offsets += [each.offset for each in page.items]
            after = page.after
        return [await api.content.retry(publisher, subscriber, each) for each in offsets]

    receipts = ask(url, ask_all)
    if json:
        print_json(receipts)
        return
    _print_receipts(receipts, f"{subscriber} tries again", "there is nothing to try again")


def clear(
    publisher: _Publisher,
    subscriber: _Subscriber,
    up_to: Annotated[
        int | None,
        typer.Option(
            "--up-to", help="The last offset; default: the whole queue.", metavar="OFFSET"
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Let an editable subscriber skip the packages in its queue."""
    from holdfast.cli.output import print_json
    from holdfast.cli.remote import ask
    from holdfast.gateway.api import Api

    async def ask_clear(api: Api) -> "CommandReceipt":
        last = up_to
        if last is None:
            last = (await api.content.farm(publisher)).last_offset
        return await api.content.clear(publisher, subscriber, last)

    receipt = ask(url, ask_clear)
    if json:
        print_json(receipt)
        return
    _print_receipts([receipt], f"{subscriber} skips all up to", "")


def remove(
    publisher: _Publisher,
    subscriber: _Subscriber,
    offset: _Offset,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Let an editable subscriber skip one package, or drop a failed one."""
    from holdfast.cli.output import print_json
    from holdfast.cli.remote import ask

    receipt = ask(url, lambda api: api.content.remove(publisher, subscriber, offset))
    if json:
        print_json(receipt)
        return
    _print_receipts([receipt], f"{subscriber} does without", "")


def _print_page(
    page: "QueuePage | FailedPackages", as_json: bool, empty: str, in_all: str = ""
) -> None:
    from holdfast.cli.output import print_json, print_note

    if as_json:
        print_json(page)
        return
    _print_packages(page.items, empty)
    if page.after is not None:
        print_note(f"{in_all}there are more: --after {page.after}")


def _print_packages(items: "list[QueuedPackage]", empty: str) -> None:
    from holdfast.cli.content.words import paths_text
    from holdfast.cli.output import age, bytes_text, number, print_table

    print_table(
        ("OFFSET", "NUMBER", "ACTION", "SIZE", "AGE", "ATTEMPTS", "PACKAGE", "PATHS", "WHY"),
        (
            (
                str(each.offset), number(each.number), each.action or "",
                bytes_text(each.size_bytes),
                age(datetime.fromtimestamp(each.published_ms / 1000, UTC)),
                number(each.attempts) if each.attempts else "", each.package_id, paths_text(each),
                f"{'retrying: ' if each.is_retrying else ''}{each.reason}",
            )
            for each in items
        ),
        empty=empty,
    )  # fmt: skip


def _print_receipts(receipts: "list[CommandReceipt]", does: str, none: str) -> None:
    from holdfast.cli.output import print_line

    for each in receipts:
        print_line(f"{does} offset {each.offset}  command {each.command_id}")
    if not receipts:
        print_line(none)
