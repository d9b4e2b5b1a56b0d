"""`holdfast start-process`: instances of deployed processes."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import spans
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Timeout, Url, Variables, wait_ms
from holdfast.limits import VERSION_MAX

if TYPE_CHECKING:
    from holdfast.gateway.processes.shapes import NewProcessInstance, ProcessInstanceReceipt


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            'holdfast start-process order --variables \'{"orderId": 42, "total": 99.5}\'',
            "holdfast start-process order --variables @order.json --key order-42",
            "holdfast start-process order --variables @order.json --wait --timeout 30s",
            "holdfast start-process load-test --count 1000",
        )
    )(start_process)


def start_process(
    process_id: Annotated[str, typer.Argument(help="The id of the process.", metavar="ID")],
    variables: Variables = "{}",
    version: Annotated[
        int, typer.Option(min=0, max=VERSION_MAX, help="Which version; 0 is the latest.")
    ] = 0,
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key is the same instance.")
    ] = None,
    count: Annotated[
        int,
        typer.Option(min=1, help="How many instances, all with these variables."),
    ] = 1,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end and print its variables.")
    ] = False,
    timeout: Timeout = None,
    keep_result: Annotated[
        str | None, typer.Option(help="How long the outcome is kept.", metavar=spans.METAVAR)
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Start a process. It is durable when this returns.

    With --wait: exit code 7 if it was canceled, 8 if it has not ended in time.
    """
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.payload import parse_variables
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.processes.shapes import NewProcessInstance, ProcessInstanceReceipts

    limit_ms = wait_ms(wait, timeout)
    if count > 1 and (key is not None or wait):
        raise InvalidArgument("Expected --count without --key and --wait: they are about one")
    new = NewProcessInstance(
        process_id, version, parse_variables(variables), key,
        keep_ms=spans.maybe_span_ms(keep_result),
    )  # fmt: skip
    receipts = _start(url, new, count)
    first = receipts[0]
    if wait:
        _print_end(url, first.process_instance_key, limit_ms, json)
    elif count > 1:
        if json:
            print_json(ProcessInstanceReceipts(receipts))
        else:
            print_line(f"{len(receipts):,} started")
    elif json:
        print_json(first)
    else:
        note = "started" if first.created else "there already: its key named this instance"
        print_line(f"{first.process_instance_key}  {note}")


def _start(url: str, new: "NewProcessInstance", count: int) -> "list[ProcessInstanceReceipt]":
    """As many requests as it takes."""
    from holdfast.cli.remote import ask
    from holdfast.gateway.api import Api
    from holdfast.limits import TASKS_PER_SUBMIT_MAX

    async def start_all(api: Api) -> "list[ProcessInstanceReceipt]":
        receipts: list[ProcessInstanceReceipt] = []
        while left := count - len(receipts):
            receipts += await api.instances.start([new] * min(left, TASKS_PER_SUBMIT_MAX))
        return receipts

    return ask(url, start_all)


def _print_end(url: str, key: str, timeout_ms: int | None, as_json: bool) -> None:
    from holdfast.cli.output import print_json, print_line, raw_text
    from holdfast.cli.remote import ask
    from holdfast.client.handle import wait_for_outcome
    from holdfast.engine.jobs.values import JobState
    from holdfast.errors import DeadlineExceeded, TaskFailed

    timeout = None if timeout_ms is None else timeout_ms / 1000
    try:
        outcome = ask(url, lambda api: wait_for_outcome(api, key, timeout))
    except DeadlineExceeded as error:
        raise DeadlineExceeded(
            f"Process instance {key} has not ended within {timeout} s; it continues:"
            f" see holdfast show {key}",
            key=key,
        ) from error
    if outcome.state != JobState.COMPLETED:
        raise TaskFailed(
            f"Process instance {key} did not complete: it is {outcome.state}",
            key=key,
            state=str(outcome.state),
        )
    if as_json:
        print_json({"processInstanceKey": key, "variables": outcome.result})
    else:
        print_line(raw_text(outcome.result))
