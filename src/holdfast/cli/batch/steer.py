"""`holdfast batch list | show | items | suspend | resume | abort | change | retry`."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, Json, Limit, Url, key_argument
from holdfast.limits import BATCH_THROTTLE_MAX, PRIORITY_MAX, RETRIES_MAX

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.gateway.api import Api
    from holdfast.gateway.batch.shapes import BatchOperationView, BatchPartitionView

E = TypeVar("E", bound=StrEnum)
Key = Annotated[str, key_argument("a batch operation")]
_KEY = "2251799813685249"


def list_operations(
    state: Annotated[
        str | None, typer.Option(help="Only in this state, such as ACTIVE.", metavar="STATE")
    ] = None,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List batch operations: those that run, then those that ended, the newest first."""
    from holdfast.cli.output import moment, number, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.engine.batch.values import BatchOperationState
    from holdfast.gateway.batch.shapes import (
        BatchOperationFilter,
        BatchOperationQuery,
        BatchPageQuery,
    )

    wanted = _one_of(BatchOperationState, state) if state is not None else None
    query = BatchOperationQuery(BatchOperationFilter(wanted), BatchPageQuery(limit, after))
    page = ask(url, lambda api: api.batches.page(query))
    if json:
        print_json(page)
        return
    print_table(
        ("KEY", "TYPE", "STATE", "ITEMS", "DONE", "FAILED", "STARTED", "ENDED"),
        (
            (
                each.batch_operation_key, each.batch_operation_type, each.state,
                number(each.operations_total_count), number(_done(each)),
                number(each.operations_failed_count), moment(each.start_date),
                moment(each.end_date),
            )
            for each in page.items
        ),
        empty="no batch operations",
    )  # fmt: skip
    if page.page.end_cursor is not None and len(page.items) == limit:
        print_note(f"there may be more: --after {page.page.end_cursor}")


def show(key: Key, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show a batch operation, and the progress of each partition."""
    from holdfast.cli.batch.watch import outcomes
    from holdfast.cli.output import moment, number, print_fields, print_json
    from holdfast.cli.remote import ask

    view = ask(url, lambda api: api.batches.get(key))
    if json:
        print_json(view)
        return
    rate = view.items_per_second
    print_fields(
        [
            ("key", view.batch_operation_key),
            ("type", view.batch_operation_type),
            ("state", view.state),
            ("where", bytes(view.filter).decode()),
            ("repeats", view.repeats or ""),
            ("items", number(view.operations_total_count)),
            ("outcomes", outcomes(view)),
            ("throttle", f"{number(view.throttle)}/s" if view.throttle else ""),
            ("priority", str(view.priority) if view.priority else ""),
            ("started", moment(view.start_date)),
            ("ended", moment(view.end_date)),
            ("rate", "" if rate is None else f"{rate:,.1f}/s"),
            ("over at", moment(view.estimated_end)),
            *(
                (
                    f"partition {each.partition_id}",
                    f"{each.state}, {number(_done(each))} of {number(each.operations_total_count)}",
                )
                for each in view.partitions
            ),
            *((f"error of {each.partition_id}", each.message) for each in view.errors),
        ]
    )


def items(
    key: Key,
    state: Annotated[
        str | None, typer.Option(help="Only in this state, such as FAILED.", metavar="STATE")
    ] = None,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List the items of an operation with their outcomes, from the tables."""
    from holdfast.cli.output import moment, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.errors import raised_line
    from holdfast.gateway.batch.shapes import (
        BatchItemFilter,
        BatchItemQuery,
        BatchItemState,
        BatchPageQuery,
    )

    wanted = _one_of(BatchItemState, state) if state is not None else None
    asked = BatchItemFilter(batch_operation_key=key, state=wanted)
    query = BatchItemQuery(asked, BatchPageQuery(limit, after))
    page = ask(url, lambda api: api.batches.items(query))
    if json:
        print_json(page)
        return
    print_table(
        ("ITEM", "INSTANCE", "STATE", "PROCESSED", "ERROR"),
        (
            (
                each.item_key, each.process_instance_key or "", each.state,
                moment(each.processed_date), raised_line(each.error_message or ""),
            )
            for each in page.items
        ),
        empty="no items",
    )  # fmt: skip
    if page.page.end_cursor is not None and len(page.items) == limit:
        print_note(f"there may be more: --after {page.page.end_cursor}")


def suspend(key: Key, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Stop an operation until it is resumed."""
    _tell(url, lambda api: api.batches.suspend(key), key, "SUSPENDED", json)


def resume(key: Key, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Resume a suspended operation."""
    _tell(url, lambda api: api.batches.resume(key), key, "RESUMED", json)


def abort(key: Key, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Abort an operation. Items that are already processed stay as they are."""
    _tell(url, lambda api: api.batches.cancel(key), key, "CANCELED", json)


def change(
    key: Key,
    throttle: Annotated[
        int | None,
        typer.Option(
            min=0, max=BATCH_THROTTLE_MAX, help="Items per second at most; 0 is no limit."
        ),
    ] = None,
    priority: Annotated[
        int | None, typer.Option(min=-PRIORITY_MAX, max=PRIORITY_MAX, help="Higher runs first.")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Change the throttle or the priority of a running operation."""
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.batch.shapes import BatchChange

    if throttle is None and priority is None:
        raise InvalidArgument("Expected --throttle or --priority, but found neither")
    new = BatchChange(throttle, priority)
    _tell(url, lambda api: api.batches.change(key, new), key, "CHANGED", json)


def retry(
    key: Key,
    partitions: Annotated[
        bool,
        typer.Option("--partitions", help="Only the partitions that could not select their items."),
    ] = False,
    retries: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=RETRIES_MAX,
            help="Retries after the next attempt of each. [default: as in the operation before]",
            show_default=False,
        ),
    ] = None,
    throttle: Annotated[
        int, typer.Option(min=0, max=BATCH_THROTTLE_MAX, help="Items per second at most.")
    ] = 0,
    priority: Annotated[
        int, typer.Option(min=-PRIORITY_MAX, max=PRIORITY_MAX, help="Higher runs first.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the items to retry.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return at once, and let it run.")
    ] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Retry the failed items of an ended operation, with a new operation."""
    from holdfast.cli.batch.watch import ask_patiently, follow
    from holdfast.gateway.batch.shapes import BatchFailures, BatchRetry

    failed = BatchFailures.PARTITIONS if partitions else BatchFailures.ITEMS
    asked = BatchRetry(failed, retries, throttle, priority, dry_run)
    receipt = ask_patiently(url, lambda api: api.batches.retry(key, asked))
    follow(receipt, url, as_json=json, waits=not no_wait)


# --- words ------------------------------------------------------------------------------------


def register(app: typer.Typer) -> None:
    """Adds the verbs of this file to those of the group."""
    for name, verb, lines in (
        ("list", list_operations, ("", "--state ACTIVE", "--json | jq '.items[].state'")),
        ("show", show, (_KEY, f"{_KEY} --json | jq '.operationsFailedCount'")),
        ("items", items, (_KEY, f"{_KEY} --state FAILED")),
        ("suspend", suspend, (_KEY,)),
        ("resume", resume, (_KEY,)),
        ("abort", abort, (_KEY,)),
        ("change", change, (f"{_KEY} --throttle 200", f"{_KEY} --priority 10")),
        ("retry", retry, (_KEY, f"{_KEY} --partitions --dry-run")),
    ):
        said = (f"holdfast batch {name} {line}".rstrip() for line in lines)
        app.command(name, epilog=examples(*said))(verb)


def _done(view: "BatchOperationView | BatchPartitionView") -> int:
    return (
        view.operations_completed_count + view.operations_failed_count
        + view.operations_skipped_count + view.operations_canceled_count
    )  # fmt: skip


def _one_of(kind: "type[E]", text: str) -> "E":
    from holdfast.errors import InvalidArgument

    try:
        return kind(text.upper())
    except ValueError as error:
        known = ", ".join(kind)
        raise InvalidArgument(f"Expected one of {known}, but found {text!r}") from error


def _tell(
    url: str, question: "Callable[[Api], Awaitable[None]]", key: str, done: str, as_json: bool
) -> None:
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, question)
    if as_json:
        print_json({"batchOperationKey": key, "done": done})
    else:
        print_line(f"{key}  {done.lower()}")
