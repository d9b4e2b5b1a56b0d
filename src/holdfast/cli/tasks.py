"""`holdfast tasks`: submit work, look at it, wait for it, call it off."""

from typing import Annotated, Literal

import typer

from holdfast.cli import spans
from holdfast.cli.ended import All, Ended, note_rest, scope_of
from holdfast.cli.help_text import examples
from holdfast.cli.options import (
    DEFAULT_URL,
    After,
    Json,
    Limit,
    Payload,
    TaskKey,
    Timeout,
    Url,
    wait_ms,
)
from holdfast.limits import PRIORITY_MAX, RETRIES_MAX

app = typer.Typer(
    name="tasks",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Submit tasks, look at them, wait for them, cancel them.",
)

_State = Literal[
    "WAITING", "SCHEDULED", "ACTIVE", "INCIDENT", "COMPLETED", "CANCELED", "DISCARDED",
    "ERROR_THROWN",
]  # fmt: skip
_BackoffKind = Literal["exponential", "linear", "fixed"]


def _span(help_text: str) -> typer.models.OptionInfo:
    return typer.Option(help=help_text, metavar=spans.METAVAR)


@app.command(
    epilog=examples(
        "holdfast tasks submit send_invoice '{\"order\": 42}'",
        "holdfast tasks submit send_invoice '{\"order\": 42}' --key invoice-42 --delay 10m",
        "jq -c .order order.json | holdfast tasks submit ship - --wait --timeout 30s",
    )
)
def submit(
    task_type: Annotated[str, typer.Argument(help="The name of the task.", metavar="TYPE")],
    payload: Payload = "{}",
    key: Annotated[
        str | None, typer.Option(help="Idempotency key: the same key is the same task.")
    ] = None,
    delay: Annotated[str | None, _span("Delay the task by this time.")] = None,
    priority: Annotated[
        int | None, typer.Option(min=-PRIORITY_MAX, max=PRIORITY_MAX, help="Higher goes first.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, max=RETRIES_MAX, help="Retries after the first attempt.")
    ] = None,
    backoff: Annotated[
        _BackoffKind | None, typer.Option(help="How the delay before a retry grows.")
    ] = None,
    backoff_base: Annotated[str | None, _span("The delay before the first retry.")] = None,
    attempt_timeout: Annotated[str | None, _span("How long one attempt may take.")] = None,
    remember_key: Annotated[str | None, _span("How long the key is remembered.")] = None,
    keep_result: Annotated[str | None, _span("How long the outcome is kept.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result and print it.")] = False,
    timeout: Timeout = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Submit one task. It is durable when this returns.

    TYPE is the name that a worker knows the task by; JSON holds its arguments by name. A SPAN is
    250ms, 90s, 1.5m, 2h or 7d; a bare number is seconds. Options that you omit are taken from the
    task's definition in its worker. Without one, a task has 3 retries.
    """
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.payload import parse_payload
    from holdfast.cli.remote import ask
    from holdfast.engine.jobs.values import BackoffKind
    from holdfast.gateway.tasks.shapes import NewTask, RetryBackoff

    limit_ms = wait_ms(wait, timeout)
    pause = None
    if backoff is not None or backoff_base is not None:
        kind = BackoffKind(backoff or BackoffKind.EXPONENTIAL)
        pause = RetryBackoff(kind, spans.parse_span_ms(backoff_base or "1s"))
    task = NewTask(
        task_type, parse_payload(payload), key, priority, retries, pause,
        timeout_ms=spans.maybe_span_ms(attempt_timeout),
        delay_ms=spans.maybe_span_ms(delay) or 0,
        window_ms=spans.maybe_span_ms(remember_key),
        keep_ms=spans.maybe_span_ms(keep_result),
    )  # fmt: skip
    (receipt,) = ask(url, lambda api: api.tasks.submit([task]))
    if wait:
        _print_result(url, receipt.task_key, limit_ms, json)
    elif json:
        print_json(receipt)
    else:
        note = "submitted" if receipt.created else "there already: its key named this task"
        print_line(f"{receipt.task_key}  {note}")


@app.command(
    "list",
    epilog=examples(
        "holdfast tasks list",
        "holdfast tasks list --all --type send_invoice",
        "holdfast tasks list --state completed --limit 20",
        "holdfast tasks list --json | jq -r '.items[].taskKey'",
    ),
)
def list_tasks(
    state: Annotated[
        _State | None,
        typer.Option(
            case_sensitive=False,
            help="Only those in this state: waiting, scheduled, active, incident; completed,"
            " canceled, discarded, error_thrown.",
            metavar="STATE",
        ),
    ] = None,
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this name.")] = None,
    is_all: All = False,
    ended: Ended = False,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List tasks that have not ended, in the order of their keys.

    With --all, --ended or the state of an ended task: also or only those that ended recently. The
    node knows the last ones, up to a number and an age (ended_kept_max, ended_kept_ms). A task that
    failed for good is in the state INCIDENT, and DISCARDED once its incident is discarded.
    """
    from holdfast.cli.output import moment, number, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.engine.jobs.values import JobState
    from holdfast.gateway.shapes import ListScope
    from holdfast.gateway.tasks.shapes import TaskQuery

    scope = scope_of(is_all or (state == JobState.ERROR_THROWN and not ended), ended)
    query = TaskQuery(task_type, JobState(state) if state else None, limit, after, scope)
    page = ask(url, lambda api: api.tasks.page(query))
    if json:
        print_json(page)
        return
    columns = {
        "KEY": [task.task_key for task in page.items],
        "TYPE": [task.type for task in page.items],
        "STATE": [str(task.state) for task in page.items],
        "FAILURES": [number(task.failures) for task in page.items],
        "RETRIES LEFT": [number(task.retries) for task in page.items],
        "CREATED": [moment(task.created) for task in page.items],
        "DUE": [moment(task.due) for task in page.items],
    }
    if any(task.finished for task in page.items):
        columns["ENDED"] = [moment(task.finished) for task in page.items]
        columns = {name: cells for name, cells in columns.items() if any(cells)}
    is_open = scope is ListScope.OPEN and not state
    empty = "no open tasks" if is_open else "no such tasks"
    print_table(list(columns), zip(*columns.values(), strict=True), empty)
    note_rest(page.after, page.ended_since)
    if is_open and not page.items:
        print_note("--all also lists those that ended recently")


@app.command(
    epilog=examples(
        "holdfast tasks show 2251799813685249",
        "holdfast tasks show 2251799813685249 --json | jq .state",
    )
)
def show(key: TaskKey, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show all that is known of a task, also of one that ended recently."""
    from holdfast.cli.output import moment, number, print_fields, print_json, raw_text
    from holdfast.cli.remote import ask

    task = ask(url, lambda api: api.tasks.details(key))
    if json:
        print_json(task)
        return
    print_fields(
        (
            ("key", task.task_key),
            ("type", task.type),
            ("state", task.state),
            ("payload", raw_text(task.payload)),
            ("result", raw_text(task.result)),
            ("priority", number(task.priority)),
            ("retries left", number(task.retries)),
            ("failures", number(task.failures)),
            ("created", moment(task.created)),
            ("due", moment(task.due)),
            ("finished", moment(task.finished)),
            ("worker", task.worker or ""),
            ("incident", task.incident_key or ""),
            ("error", task.error or ""),
        )
    )


@app.command(
    epilog=examples(
        "holdfast tasks result 2251799813685249",
        "holdfast tasks result 2251799813685249 --wait --timeout 30s",
    )
)
def result(
    key: TaskKey,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the task has ended.")] = False,
    timeout: Timeout = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Print the result of a task, as JSON.

    Exit code 7 if it ended without one or waits at an incident, 8 if it has not ended in time.
    """
    _print_result(url, key, wait_ms(wait, timeout), json)


def _print_result(url: str, key: str, timeout_ms: int | None, as_json: bool) -> None:
    from holdfast.cli.output import print_json, print_line, raw_text
    from holdfast.cli.remote import ask
    from holdfast.client.handle import no_result, wait_for_outcome
    from holdfast.engine.jobs.values import JobState
    from holdfast.errors import NotFound

    timeout = None if timeout_ms is None else timeout_ms / 1000
    outcome = ask(url, lambda api: wait_for_outcome(api, key, timeout))
    if outcome.state is None:
        raise NotFound(f"Task {key} is unknown or no longer kept", key=key)
    if outcome.state != JobState.COMPLETED:
        raise no_result(key, outcome.state, outcome.error)
    if as_json:
        print_json(outcome)
    else:
        print_line(raw_text(outcome.result))


@app.command(epilog=examples("holdfast tasks cancel 2251799813685249"))
def cancel(key: TaskKey, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Cancel a task. Later reports of its worker are rejected."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.tasks.cancel(key))
    if json:
        print_json({"taskKey": key, "state": "CANCELED"})
    else:
        print_line(f"{key}  canceled")
