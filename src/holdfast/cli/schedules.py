"""`holdfast schedules`: rules that submit a task at each of their due times."""

from typing import Annotated

import typer

from holdfast.cli import spans
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, Json, Payload, Url
from holdfast.limits import RETRIES_MAX

app = typer.Typer(
    name="schedules",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Schedule tasks, by cron or at an interval.",
)

_ScheduleId = Annotated[str, typer.Argument(help="The name of the schedule.", metavar="ID")]


@app.command("list", epilog=examples("holdfast schedules list", "holdfast schedules list --json"))
def list_schedules(url: Url = DEFAULT_URL, json: Json = False) -> None:
    """List all schedules and when they fire next."""
    from holdfast.cli.output import moment, number, print_json, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.tasks.shapes import Schedules

    found = ask(url, lambda api: api.schedules.all())
    if json:
        print_json(Schedules(found))
        return
    print_table(
        ("ID", "TYPE", "RULE", "NEXT", "FIRED"),
        (
            (
                schedule.schedule_id, schedule.type,
                _rule(schedule.cron, schedule.interval_ms, schedule.timezone),
                moment(schedule.next_due), number(schedule.fired),
            )
            for schedule in found
        ),
        empty="no schedules",
    )  # fmt: skip


def _rule(cron: str | None, interval_ms: int | None, timezone: str) -> str:
    return f"{cron} ({timezone})" if cron else f"every {(interval_ms or 0) / 1000:g} s"


@app.command(
    "set",
    epilog=examples(
        "holdfast schedules set nightly-report report --cron '0 3 * * *' --timezone Europe/Berlin",
        'holdfast schedules set heartbeat ping \'{"host": "a"}\' --every 30s --catch-up none',
    ),
)
def set_schedule(
    schedule_id: _ScheduleId,
    task_type: Annotated[str, typer.Argument(help="The name of the task.", metavar="TYPE")],
    payload: Payload = "{}",
    cron: Annotated[str | None, typer.Option(help="A cron expression of five fields.")] = None,
    every: Annotated[
        str | None, typer.Option(help="An interval, such as 30s, 10m or 1d.", metavar=spans.METAVAR)
    ] = None,
    timezone: Annotated[str, typer.Option(help="The time zone of the cron expression.")] = "UTC",
    catch_up: Annotated[
        str,
        typer.Option(
            help="Which missed due times fire: all (of the last 1,000), one (the latest) or none.",
            metavar="POLICY",
        ),
    ] = "one",
    retries: Annotated[
        int | None, typer.Option(min=0, max=RETRIES_MAX, help="Retries after the first attempt.")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Create a schedule, or replace the one with its id. Needs --cron or --every."""
    from holdfast.cli.output import moment, print_json, print_line
    from holdfast.cli.payload import parse_payload
    from holdfast.cli.remote import ask
    from holdfast.engine.timers.values import catch_up_of
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.tasks.shapes import NewSchedule, NewTask

    if (cron is None) == (every is None):
        raise InvalidArgument("Expected either --cron or --every")
    task = NewTask(task_type, parse_payload(payload), retries=retries)
    schedule = NewSchedule(task, cron, spans.maybe_span_ms(every), timezone, catch_up_of(catch_up))
    view = ask(url, lambda api: api.schedules.put(schedule_id, schedule))
    if json:
        print_json(view)
    else:
        print_line(f"{view.schedule_id}  fires next at {moment(view.next_due)}")


@app.command(epilog=examples("holdfast schedules delete nightly-report"))
def delete(schedule_id: _ScheduleId, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Delete a schedule. Tasks that it has submitted stay."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.schedules.delete(schedule_id))
    if json:
        print_json({"scheduleId": schedule_id, "state": "DELETED"})
    else:
        print_line(f"{schedule_id}  deleted")
