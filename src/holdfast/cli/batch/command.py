"""`holdfast batch`: one command for each of many things that a filter chooses, and how far it is.

The verbs that begin an operation are here; those for operations that are there are in
`steer`.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.batch import steer
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Url, Variables
from holdfast.limits import BATCH_THROTTLE_MAX, PRIORITY_MAX, RETRIES_MAX

if TYPE_CHECKING:
    from holdfast.gateway.batch.shapes import NewBatchOperation

app = typer.Typer(
    name="batch",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Cancel, repair, change or delete many at once, chosen by a filter; watch and steer it.",
)
steer.register(app)

Where = Annotated[
    str,
    typer.Option(
        "--where",
        help="Which ones: a filter over the tables, as a JSON object; @FILE reads it from a file,"
        " - from standard input.",
        metavar="JSON",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only count the selected items, and show a few.")
]
Throttle = Annotated[
    int,
    typer.Option(
        min=0,
        max=BATCH_THROTTLE_MAX,
        help="Items per second at most; 0: as fast as live work allows.",
    ),
]
Priority = Annotated[
    int,
    typer.Option(
        min=-PRIORITY_MAX, max=PRIORITY_MAX, help="Among batch operations, higher goes first."
    ),
]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Return at once, and let it run.")]
Retries = Annotated[
    int, typer.Option(min=0, max=RETRIES_MAX, help="Retries after the next attempt of each.")
]

_ORDERS = """'{"processId": "order"}'"""


@app.command(
    epilog=examples(
        f"holdfast batch cancel --where {_ORDERS} --dry-run",
        f"holdfast batch cancel --where {_ORDERS}",
        'holdfast batch cancel --where \'{"started": {"$lt": "2026-01-01T00:00:00Z"}}\''
        " --throttle 500 --no-wait",
    )
)
def cancel(
    where: Where,
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Cancel running process instances, with the instances that they called."""
    new = _new("CANCEL_PROCESS_INSTANCE", where, dry_run, throttle, priority)
    _begin(new, url, json=json, waits=not no_wait)


@app.command(
    epilog=examples(
        'holdfast batch modify --where \'{"processId": "order", "version": 2}\''
        " --move charge:review",
        f"holdfast batch modify --where {_ORDERS} --terminate paid --activate ship",
    )
)
def modify(
    where: Where,
    activate: Annotated[
        list[str] | None,
        typer.Option(
            help="Add a token to this element. Can be given more than once.", metavar="ID"
        ),
    ] = None,
    terminate: Annotated[
        list[str] | None,
        typer.Option(help="End all of this element. Can be given more than once.", metavar="ID"),
    ] = None,
    move: Annotated[
        list[str] | None,
        typer.Option(
            "--move",
            help="All tokens of one element go to another. Can be given more than once.",
            metavar="FROM:TO",
        ),
    ] = None,
    variables: Variables = "{}",
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Add, remove and move tokens of running instances, the same in each."""
    from holdfast.cli.payload import pair, parse_variables
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.processes.shapes import ActivateElement, MoveTokens, NewModification

    if not (activate or terminate or move):
        raise InvalidArgument("Expected --activate, --terminate or --move, but found none of them")
    plan = NewModification(
        [ActivateElement(each) for each in activate or ()],
        [],
        terminate or [],
        [MoveTokens(*pair(each, "--move")) for each in move or ()],
        parse_variables(variables),
    )
    kind = "MODIFY_PROCESS_INSTANCE"
    new = _new(kind, where, dry_run, throttle, priority, modification=plan)
    _begin(new, url, json=json, waits=not no_wait)


@app.command(
    epilog=examples(
        'holdfast batch migrate --where \'{"processId": "order", "version": 1}\' --to order:2'
        " --map charge:charge",
        f"holdfast batch migrate --where {_ORDERS} --to 2251799813685290 --map charge:charge-card",
    )
)
def migrate(
    where: Where,
    to: Annotated[
        str, typer.Option("--to", help="The new definition.", metavar="DEFINITION-KEY|ID:VERSION")
    ],
    mapped: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            help="An active element becomes another one. Can be given more than once.",
            metavar="FROM:TO",
        ),
    ] = None,
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Move running instances to another version. An active element that is not named fails."""
    from holdfast.cli.payload import pair
    from holdfast.cli.processes.instances import definition_key
    from holdfast.cli.remote import ask
    from holdfast.gateway.processes.shapes import MapElement, NewMigration

    elements = [MapElement(*pair(each, "--map")) for each in mapped or ()]
    definition = ask(url, lambda api: definition_key(api, to))
    plan = NewMigration(definition, elements)
    new = _new("MIGRATE_PROCESS_INSTANCE", where, dry_run, throttle, priority, migration=plan)
    _begin(new, url, json=json, waits=not no_wait)


@app.command(
    epilog=examples(
        'holdfast batch resolve --where \'{"error": {"$like": "*the bank says no*"}}\'',
        'holdfast batch resolve --where \'{"processId": "order", "elementId": "charge"}\''
        " --retries 3",
    )
)
def resolve(
    where: Where,
    retries: Retries = 0,
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Resolve open incidents: their jobs and elements are retried."""
    new = _new("RESOLVE_INCIDENT", where, dry_run, throttle, priority, retries=retries)
    _begin(new, url, json=json, waits=not no_wait)


@app.command(
    epilog=examples(
        'holdfast batch delete --where \'{"ended": {"$lt": "2026-01-01T00:00:00Z"}}\' --dry-run',
        f"holdfast batch delete --where {_ORDERS}",
    )
)
def delete(
    where: Where,
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Delete the data of ended process instances."""
    new = _new("DELETE_PROCESS_INSTANCE", where, dry_run, throttle, priority)
    _begin(new, url, json=json, waits=not no_wait)


@app.command(
    "retry-tasks",
    epilog=examples(
        'holdfast batch retry-tasks --where \'{"type": "send_invoice"}\' --retries 3',
        'holdfast batch retry-tasks --where \'{"error": {"$like": "*timeout*"}}\' --dry-run',
    ),
)
def retry_tasks(
    where: Where,
    retries: Retries = 0,
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Retry tasks with an open incident."""
    new = _new("RETRY_TASK", where, dry_run, throttle, priority, retries=retries)
    _begin(new, url, json=json, waits=not no_wait)


@app.command(
    "discard-tasks",
    epilog=examples('holdfast batch discard-tasks --where \'{"type": "send_invoice"}\''),
)
def discard_tasks(
    where: Where,
    dry_run: DryRun = False,
    throttle: Throttle = 0,
    priority: Priority = 0,
    no_wait: NoWait = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Discard tasks with an open incident."""
    new = _new("DISCARD_TASK", where, dry_run, throttle, priority)
    _begin(new, url, json=json, waits=not no_wait)


def _new(
    kind: str, where: str, dry_run: bool, throttle: int, priority: int, **rest: Any
) -> "NewBatchOperation":
    from holdfast.cli.payload import parse_object
    from holdfast.engine.batch.values import BatchOperationType
    from holdfast.gateway.batch.shapes import NewBatchOperation

    return NewBatchOperation(
        type=BatchOperationType(kind),
        filter=parse_object(where, "--where", "a filter"),
        throttle=throttle,
        priority=priority,
        dry_run=dry_run,
        **rest,
    )


def _begin(new: "NewBatchOperation", url: str, *, json: bool, waits: bool) -> None:
    from holdfast.cli.batch.watch import ask_patiently, follow

    receipt = ask_patiently(url, lambda api: api.batches.create(new))
    follow(receipt, url, as_json=json, waits=waits)
