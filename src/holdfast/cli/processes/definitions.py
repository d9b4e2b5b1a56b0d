"""`holdfast deploy` and `holdfast definitions`: what can be started, by version."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, DefinitionKey, Json, Url

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.gateway.processes.shapes import ProcessDefinition, Resource

app = typer.Typer(
    name="definitions",
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at deployed processes: their versions, and their BPMN.",
)


def register(app: typer.Typer) -> None:
    """Adds `deploy` to the command."""
    app.command(
        epilog=examples(
            "holdfast deploy order.bpmn",
            "holdfast deploy order.bpmn shipping.bpmn    all of them, or none if one is wrong",
            "holdfast deploy shop:order                  the Process called order in shop.py",
        )
    )(deploy)


def deploy(
    processes: Annotated[
        list[str],
        typer.Argument(
            help="BPMN files, or a module and the Process in it.", metavar="FILE|MODULE:NAME..."
        ),
    ],
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Deploy processes: BPMN files, or processes written in Python.

    Changed content becomes a new version; the same content stays the same version. Running
    instances keep their version.
    """
    from holdfast.cli.output import number, print_json, print_table
    from holdfast.cli.processes.problems import checked
    from holdfast.cli.remote import ask
    from holdfast.gateway.processes.shapes import ProcessDefinitions

    resources = checked(processes, _resource)
    found = ask(url, lambda api: api.processes.deploy(resources))
    if json:
        print_json(ProcessDefinitions(found))
        return
    print_table(
        ("PROCESS", "VERSION", "KEY", ""),
        (
            (
                each.process_id, number(each.version), each.process_definition_key,
                "new" if each.created else "unchanged",
            )
            for each in found
        ),
        empty="nothing deployed",
    )  # fmt: skip
    _note_ignored(found)
    _note_missing(found)


def _note_ignored(found: "Iterable[ProcessDefinition]") -> None:
    """Says what the files ask for and does not happen, if there is anything."""
    from holdfast.cli.output import print_note

    for each in found:
        for part in each.ignored:
            where = f"line {part.line}" + (f", {part.element}" if part.element else "")
            print_note(f"ignored in {each.process_id} ({where}): {part.what}: {part.why}")


def _note_missing(found: "Iterable[ProcessDefinition]") -> None:
    """Says which definitions are not on every partition yet, if there are any."""
    from holdfast.cli.output import print_note

    missing = [each for each in found if not each.distributed]
    if missing:
        names = ", ".join(f"{each.process_id} version {each.version}" for each in missing)
        print_note(f"not on every partition yet: {names} (see holdfast distributions list)")


def _resource(text: str) -> "Resource":
    """A file, or what MODULE:NAME names."""
    from holdfast.cli.imports import import_target
    from holdfast.cli.processes.problems import definition_of
    from holdfast.client.process import resource_of
    from holdfast.errors import InvalidArgument, NotFound
    from holdfast.model.definition import Definition
    from holdfast.model.dsl import Process

    path = Path(text)
    if path.is_file():
        return resource_of(path)
    if path.is_dir():
        raise InvalidArgument(f"Expected a BPMN file at {path}, but it is a folder", path=text)
    if ":" not in text:
        raise NotFound(f"There is no BPMN file at {path}", path=text)
    process, place = import_target(text, "a BPMN file or MODULE:NAME, such as shop:order")
    if not isinstance(process, Process | Definition):
        raise InvalidArgument(
            f"Expected {place} to be a Process, but it is a {type(process).__name__}"
        )
    return resource_of(definition_of(process, text))


@app.command(
    "list",
    epilog=examples(
        "holdfast definitions list",
        "holdfast definitions list --process order",
        "holdfast definitions list --latest --json | jq -r '.items[].processId'",
    ),
)
def list_definitions(
    process: Annotated[str | None, typer.Option(help="Only of the process with this id.")] = None,
    latest: Annotated[bool, typer.Option("--latest", help="Only the latest versions.")] = False,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """List deployed processes, by id and version."""
    from holdfast.cli.output import moment, number, print_json, print_table
    from holdfast.cli.remote import ask
    from holdfast.gateway.processes.shapes import ProcessDefinitionQuery, ProcessDefinitions

    found = ask(url, lambda api: api.processes.find(ProcessDefinitionQuery(process, latest)))
    if json:
        print_json(ProcessDefinitions(found))
        return
    print_table(
        ("PROCESS", "VERSION", "KEY", "DEPLOYED", "NAME"),
        (
            (
                each.process_id, number(each.version), each.process_definition_key,
                moment(each.deployed), each.name,
            )
            for each in found
        ),
        empty="no processes deployed",
    )  # fmt: skip
    _note_missing(found)


@app.command(
    epilog=examples(
        "holdfast definitions source 2251799813685249 > order.bpmn",
        "holdfast definitions source 2251799813685249 --json | jq -r .content",
    )
)
def source(
    key: DefinitionKey,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Print a definition as BPMN: the file that it was deployed from."""
    from holdfast.cli.output import print_json, print_line
    from holdfast.cli.remote import ask

    found = ask(url, lambda api: api.processes.source(key))
    if json:
        print_json(found)
    else:
        print_line(found.content.rstrip("\n"))
