"""`holdfast incidents`: tasks and elements of processes that wait for a person's decision."""

from typing import Annotated

import typer

from holdfast.cli.ended import All, note_rest, scope_of
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, IncidentKey, Json, Limit, Url
from holdfast.limits import RETRIES_MAX

app = typer.Typer(
    name="incidents",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Incidents of tasks and processes: list incidents, show, retry, discard.",
)


@app.command(
    "list",
    epilog=examples(
        "holdfast incidents list",
        "holdfast incidents list --process order",
        "holdfast incidents list --resolved",
        "holdfast incidents list --type ship --json | jq -r '.items[].incidentKey'",
    ),
)
def list_incidents(
    task_type: Annotated[str | None, typer.Option("--type", help="Only of this task.")] = None,
    process: Annotated[str | None, typer.Option(help="Only of the process with this id.")] = None,
    instance: Annotated[
        str | None, typer.Option(help="Only of the process instance with this key.")
    ] = None,
    is_all: All = False,
    ended: Annotated[
        bool,
        typer.Option(
            "--ended", "--resolved", help="Only those resolved or discarded, the last one first."
        ),
    ] = False,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List open incidents, in the order of their keys.

    With --all or --resolved: also or only those that were resolved or discarded recently.
    """
    from holdfast.cli.output import moment, print_json, print_table
    from holdfast.cli.remote import ask
    from holdfast.errors import raised_line
    from holdfast.gateway.shapes import ListScope
    from holdfast.gateway.tasks.shapes import IncidentQuery

    scope = scope_of(is_all, ended)
    query = IncidentQuery(task_type, limit, after, process, instance, scope)
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
        "ERROR": [raised_line(incident.error) for incident in page.items],
    }
    if scope is not ListScope.OPEN:
        columns["STATE"] = [str(incident.state) for incident in page.items]
        columns["ENDED"] = [moment(incident.ended) for incident in page.items]
    used = {name: cells for name, cells in columns.items() if any(cells)}  # no tasks, no column
    empty = "no open incidents" if scope is ListScope.OPEN else "no such incidents"
    print_table(list(used), zip(*used.values(), strict=True), empty)
    note_rest(page.after, page.ended_since)


@app.command(
    epilog=examples(
        "holdfast incidents show 2251799813685301",
        "holdfast incidents show 2251799813685301 --json | jq -r .error",
    )
)
def show(key: IncidentKey, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Show an incident with its whole error, also one that ended recently."""
    from holdfast.cli.output import moment, print_fields, print_json
    from holdfast.cli.remote import ask

    incident = ask(url, lambda api: api.incidents.get(key))
    if json:
        print_json(incident)
        return
    print_fields(
        (
            ("key", incident.incident_key),
            ("state", incident.state),
            ("reason", incident.reason),
            ("process", incident.process_id or ""),
            ("instance", incident.process_instance_key or ""),
            ("element", incident.element_id or ""),
            ("task", incident.task_key or ""),
            ("type", incident.type),
            ("since", moment(incident.created)),
            ("ended", moment(incident.ended)),
            ("error", incident.error),
        )
    )


@app.command(
    epilog=examples(
        "holdfast incidents retry 2251799813685301",
        "holdfast incidents retry 2251799813685301 --retries 5",
    )
)
def retry(
    key: IncidentKey,
    retries: Annotated[
        int, typer.Option(min=0, max=RETRIES_MAX, help="Retries after the next attempt.")
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
        print_line(f"{key}  resolved, will be retried")


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
