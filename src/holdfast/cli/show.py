"""`holdfast show`: one process instance as a tree, or drawn on its diagram."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import DEFAULT_URL, InstanceKey, Json, Url

if TYPE_CHECKING:
    from holdfast.gateway.api import Api
    from holdfast.gateway.processes.shapes import ProcessInstanceView
    from holdfast.gateway.tasks.shapes import IncidentView


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast show 2251799813685301",
            "holdfast show 2251799813685301 --png order.png",
            "holdfast show 2251799813685301 --json | jq .variables",
        )
    )(show)


def show(
    key: InstanceKey,
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Draw it here as SVG.", metavar="FILE")
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", help="Draw it here as PNG.", metavar="FILE")
    ] = None,
    url: Url = DEFAULT_URL,
    json: Json = False,
) -> None:
    """Show a process instance: what is active, what it waits for, incidents, variables.

    One that ended recently is shown with its end and, where they are kept, its last variables.
    --svg and --png draw its process with tokens in blue and incidents in red.
    """
    from holdfast.cli.output import print_json, print_note, print_tree
    from holdfast.cli.remote import ask

    if svg or png:
        view, incidents, source = ask(url, lambda api: _look(api, key, with_source=True))
        _draw(view, source, svg, png)
    else:
        view, incidents, _ = ask(url, lambda api: _look(api, key, with_source=False))
    if json:
        print_json(view)
    else:
        from holdfast.cli.processes.tree import instance_tree

        print_tree(instance_tree(view, incidents))
    for path in filter(None, (svg, png)):
        print_note(f"drawn: {path}")


async def _look(
    api: "Api", key: str, *, with_source: bool
) -> "tuple[ProcessInstanceView, list[IncidentView], str]":
    """All that is asked of the node: the instance, its incidents, its process as BPMN."""
    from holdfast.errors import InvalidState
    from holdfast.gateway.tasks.shapes import IncidentQuery
    from holdfast.limits import PAGE_ITEMS_MAX

    view = await api.instances.get(key)
    source, incidents = "", []
    if view.incidents:
        query = IncidentQuery(limit=PAGE_ITEMS_MAX, process_instance_key=key)
        incidents = (await api.incidents.page(query)).items
    if with_source:
        if view.finished is not None or view.process_definition_key is None:
            raise InvalidState(f"Expected a running instance to draw, but {key} is {view.state}")
        source = (await api.processes.source(view.process_definition_key)).content
    return view, incidents, source


def _draw(view: "ProcessInstanceView", source: str, svg: Path | None, png: Path | None) -> None:
    from holdfast.cli.processes.picture import instance_svg
    from holdfast.errors import InvalidArgument
    from holdfast.model.drawing import draw_png

    picture = instance_svg(view, source)
    try:
        if svg is not None:
            svg.write_text(picture)
        if png is not None:
            png.write_bytes(draw_png(picture))
    except OSError as error:
        raise InvalidArgument(f"Expected a file that can be written, but {error}") from error
