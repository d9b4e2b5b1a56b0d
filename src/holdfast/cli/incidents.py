"""`holdfast incidents`: tasks that used up their retries and wait for a person's decision."""

from typing import Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, IncidentKey, Json, Limit, Url

app = typer.Typer(
    name="incidents",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Tasks that need a person: list them, retry them, discard them.",
)


@app.command(
    "list",
    epilog=examples(
        "holdfast incidents list",
        "holdfast incidents list --type ship --json | jq -r '.items[].incidentKey'",
    ),
)
def list_incidents(
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this task.")] = None,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List open incidents, in the order of their keys."""
    from holdfast.cli.output import moment, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.shapes import IncidentQuery

    page = ask(url, lambda api: api.incidents(IncidentQuery(task_type, limit, after)))
    if json:
        print_json(page)
        return
    print_table(
        ("KEY", "TASK", "TYPE", "REASON", "SINCE", "ERROR"),
        (
            (
                incident.incident_key, incident.task_key, incident.type, incident.reason,
                moment(incident.created), (incident.error.splitlines() or [""])[-1],
            )
            for incident in page.items
        ),
        empty="no open incidents",
    )  # fmt: skip
    if page.after is not None:
        print_note(f"there are more: --after {page.after}")


@app.command(
    epilog=examples(
        "holdfast incidents retry 2251799813685301",
        "holdfast incidents retry 2251799813685301 --retries 5",
    )
)
def retry(
    key: IncidentKey,
    retries: Annotated[int, typer.Option(min=0, help="Failures allowed beyond the next.")] = 0,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """The cause is mended: try the task again."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.resolve_incident(key, retries))
    if json:
        print_json({"incidentKey": key, "state": "RESOLVED"})
    else:
        print_line(f"{key}  resolved: its task is tried again")


@app.command(epilog=examples("holdfast incidents discard 2251799813685301"))
def discard(key: IncidentKey, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Give the task up: it ends without a result."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.discard_incident(key))
    if json:
        print_json({"incidentKey": key, "state": "DISCARDED"})
    else:
        print_line(f"{key}  discarded: its task has ended without a result")
