"""`holdfast incidents`: tasks and elements of processes that wait for a person's decision."""

from typing import Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, IncidentKey, Json, Limit, Url
from holdfast.limits import RETRIES_MAX

app = typer.Typer(
    name="incidents",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Tasks and processes that need a person: list incidents, retry, discard.",
)


@app.command(
    "list",
    epilog=examples(
        "holdfast incidents list",
        "holdfast incidents list --process order",
        "holdfast incidents list --type ship --json | jq -r '.items[].incidentKey'",
    ),
)
def list_incidents(
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this task.")] = None,
    process: Annotated[str | None, typer.Option(help="Only of the process with this id.")] = None,
    instance: Annotated[
        str | None, typer.Option(help="Only of the process instance with this key.")
    ] = None,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List open incidents, in the order of their keys."""
    from holdfast.cli.output import last_line, moment, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.tasks.shapes import IncidentQuery

    query = IncidentQuery(task_type, limit, after, process, instance)
    page = ask(url, lambda api: api.incidents.page(query))
    if json:
        print_json(page)
        return
    columns = {
        "KEY": [incident.incident_key for incident in page.items],
        "PROCESS": [incident.process_id or "" for incident in page.items],
        "INSTANCE": [incident.process_instance_key or "" for incident in page.items],
        "ELEMENT": [incident.element_id or "" for incident in page.items],
        "TASK": [incident.task_key or "" for incident in page.items],
        "TYPE": [incident.type for incident in page.items],
        "REASON": [str(incident.reason) for incident in page.items],
        "SINCE": [moment(incident.created) for incident in page.items],
        "ERROR": [last_line(incident.error) for incident in page.items],
    }
    used = {name: cells for name, cells in columns.items() if any(cells)}  # no tasks, no column
    print_table(list(used), zip(*used.values(), strict=True), empty="no open incidents")
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
    retries: Annotated[
        int, typer.Option(min=0, max=RETRIES_MAX, help="Failures allowed beyond the next.")
    ] = 0,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Retry the task or the element, once the cause is fixed."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.incidents.resolve(key, retries))
    if json:
        print_json({"incidentKey": key, "state": "RESOLVED"})
    else:
        print_line(f"{key}  resolved: it is tried again")


@app.command(epilog=examples("holdfast incidents discard 2251799813685301"))
def discard(key: IncidentKey, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Discard the incident and its task: the task ends without a result."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.incidents.discard(key))
    if json:
        print_json({"incidentKey": key, "state": "DISCARDED"})
    else:
        print_line(f"{key}  discarded: its task has ended without a result")
