"""`holdfast instances`: processes that run, and what a person can do about them."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli.ended import All, Ended, note_rest, scope_of
from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, After, InstanceKey, Json, Limit, Url, Variables
from holdfast.cli.show import show
from holdfast.limits import VERSION_MAX

if TYPE_CHECKING:
    from holdfast.gateway.api import Api

app = typer.Typer(
    name="instances",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="List and show process instances, change variables, tokens, version; cancel.",
)

_State = Literal["ACTIVE", "TERMINATING", "COMPLETED", "CANCELED"]


def _pairs(help_text: str, flag: str) -> typer.models.OptionInfo:
    return typer.Option(flag, help=f"{help_text} Can be given more than once.", metavar="FROM:TO")


@app.command(
    "list",
    epilog=examples(
        "holdfast instances list",
        "holdfast instances list --process order --with-incidents",
        "holdfast instances list --state completed --limit 20",
        "holdfast instances list --json | jq -r '.items[].processInstanceKey'",
    ),
)
def list_instances(
    process: Annotated[str | None, typer.Option(help="Only of the process with this id.")] = None,
    version: Annotated[
        int | None, typer.Option(min=0, max=VERSION_MAX, help="Only of this version.")
    ] = None,
    with_incidents: Annotated[
        bool, typer.Option("--with-incidents", help="Only those with an open incident.")
    ] = False,
    state: Annotated[
        _State | None,
        typer.Option(
            case_sensitive=False,
            help="Only those in this state: active, terminating; completed, canceled.",
            metavar="STATE",
        ),
    ] = None,
    is_all: All = False,
    ended: Ended = False,
    limit: Limit = 100,
    after: After = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List running process instances, in the order of their keys.

    With --all, --ended or the state of an ended instance: also or only those that ended recently.
    """
    from holdfast.cli.output import moment, number, print_json, print_note, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.processes.shapes import InstanceState, ProcessInstanceQuery
    from holdfast.gateway.shapes import ListScope

    scope = scope_of(is_all, ended)
    query = ProcessInstanceQuery(
        process, version, with_incidents, limit, after, scope,
        InstanceState(state) if state else None,
    )  # fmt: skip
    page = ask(url, lambda api: api.instances.page(query))
    if json:
        print_json(page)
        return
    columns = {
        "KEY": [each.process_instance_key for each in page.items],
        "PROCESS": [each.process_id for each in page.items],
        "VERSION": [number(each.version) for each in page.items],
        "STATE": [str(each.state) for each in page.items],
        "SINCE": [moment(each.created) for each in page.items],
        "INCIDENTS": [number(each.incidents or None) for each in page.items],
    }
    if any(each.finished for each in page.items):
        columns["ENDED"] = [moment(each.finished) for each in page.items]
        columns = {name: cells for name, cells in columns.items() if any(cells)}
    is_open = scope is ListScope.OPEN and not state
    empty = "no running instances" if is_open else "no such instances"
    print_table(list(columns), zip(*columns.values(), strict=True), empty)
    note_rest(page.after, page.ended_since)
    if is_open and not page.items:
        print_note("--all also lists those that ended recently")


app.command(
    "show",
    epilog=examples(
        "holdfast instances show 2251799813685301",
        "holdfast instances show 2251799813685301 --json | jq .variables",
    ),
)(show)


@app.command(epilog=examples("holdfast instances cancel 2251799813685301"))
def cancel(key: InstanceKey, url: Url = DEFAULT_URL, json: Json = False) -> None:
    """Cancel an instance with everything in it. Later reports of its workers are rejected."""
    from holdfast.cli.remote import ask

    ask(url, lambda api: api.instances.cancel(key))
    _say(key, "CANCELED", json)


@app.command(
    "set-variables",
    epilog=examples(
        "holdfast instances set-variables 2251799813685301 --variables '{\"total\": 80}'",
        "holdfast instances set-variables 2251799813685301 --variables @fix.json --local",
    ),
)
def set_variables(
    key: Annotated[
        str,
        typer.Argument(help="The key of a process instance or element instance.", metavar="KEY"),
    ],
    variables: Variables,
    local: Annotated[bool, typer.Option("--local", help="Set them in exactly this scope.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Set variables, as seen from a process instance or from an element in it."""
    from holdfast.cli.payload import parse_variables
    from holdfast.cli.remote import ask
    from holdfast.gateway.processes.shapes import NewVariables

    new = NewVariables(parse_variables(variables), local)
    ask(url, lambda api: api.instances.set_variables(key, new))
    _say(key, "VARIABLES_SET", json)


@app.command(
    epilog=examples(
        "holdfast instances modify 2251799813685301 --move charge:review",
        "holdfast instances modify 2251799813685301 --activate ship --terminate 2251799813685317",
        "holdfast instances modify 2251799813685301 --terminate paid --variables @fix.json",
    )
)
def modify(
    key: InstanceKey,
    activate: Annotated[
        list[str] | None,
        typer.Option(
            help="Add a token to this element. Can be given more than once.", metavar="ID"
        ),
    ] = None,
    terminate: Annotated[
        list[str] | None,
        typer.Option(
            help="End this element instance, or all of this element. Can be given more than once.",
            metavar="KEY|ID",
        ),
    ] = None,
    move: Annotated[
        list[str] | None, _pairs("All tokens of one element go to another.", "--move")
    ] = None,
    variables: Variables = "{}",
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Add, remove and move tokens of a process instance, atomically."""
    from holdfast.cli.payload import pair, parse_variables
    from holdfast.cli.remote import ask
    from holdfast.errors import InvalidArgument
    from holdfast.gateway.processes.shapes import ActivateElement, MoveTokens, NewModification

    ended = terminate or []
    new = NewModification(
        [ActivateElement(each) for each in activate or ()],
        [each for each in ended if each.isdecimal()],
        [each for each in ended if not each.isdecimal()],
        [MoveTokens(*pair(each, "--move")) for each in move or ()],
        parse_variables(variables),
    )
    if not (activate or ended or move):
        raise InvalidArgument("Expected --activate, --terminate or --move, but found none of them")
    ask(url, lambda api: api.instances.modify(key, new))
    _say(key, "MODIFIED", json)


@app.command(
    epilog=examples(
        "holdfast instances migrate 2251799813685301 --to order:2",
        "holdfast instances migrate 2251799813685301 --to order:2 --map charge:charge-card",
        "holdfast instances migrate 2251799813685301 --to 2251799813685290",
    )
)
def migrate(
    key: InstanceKey,
    to: Annotated[
        str, typer.Option("--to", help="The new definition.", metavar="DEFINITION-KEY|ID:VERSION")
    ],
    mapped: Annotated[
        list[str] | None, _pairs("An active element becomes another one.", "--map")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Move a running instance to another version. Elements that are not named keep their id."""
    from holdfast.cli.payload import pair
    from holdfast.cli.remote import ask
    from holdfast.client.process import active_ids
    from holdfast.gateway.api import Api
    from holdfast.gateway.processes.shapes import MapElement, NewMigration

    pairs = dict(pair(each, "--map") for each in mapped or ())

    async def ask_all(api: Api) -> None:
        definition = await definition_key(api, to)
        same = {each: each for each in active_ids(await api.instances.get(key))}
        elements = [MapElement(source, target) for source, target in (same | pairs).items()]
        await api.instances.migrate(key, NewMigration(definition, elements))

    ask(url, ask_all)
    _say(key, "MIGRATED", json)


async def definition_key(api: "Api", text: str) -> str:
    """The key of a definition that is named by its key, or by its id and version."""
    from holdfast.errors import InvalidArgument, NotFound
    from holdfast.gateway.processes.shapes import ProcessDefinitionQuery

    if text.isdecimal():
        return text
    process_id, colon, version = text.rpartition(":")
    if not (process_id and colon and version.isdecimal()):
        raise InvalidArgument(
            f"Expected the key of a definition or ID:VERSION, such as order:2, but found {text!r}"
        )
    versions = {
        each.version: each.process_definition_key
        for each in await api.processes.find(ProcessDefinitionQuery(process_id))
    }
    if int(version) not in versions:
        known = ", ".join(map(str, versions)) or "none"
        raise NotFound(
            f"Expected version {version} of process {process_id!r}, but there is {known}"
        )
    return versions[int(version)]


def _say(key: str, done: str, as_json: bool) -> None:
    from holdfast.cli.output import print_json, print_line

    if as_json:
        print_json({"key": key, "done": done})
    else:
        print_line(f"{key}  {done.lower().replace('_', ' ')}")
