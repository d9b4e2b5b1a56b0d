"""A process instance as a tree: the active elements, what they wait for, and the variables."""

import msgspec
from rich.text import Text
from rich.tree import Tree

from holdfast.cli.output import moment
from holdfast.errors import raised_line
from holdfast.gateway.processes.shapes import ElementState, ElementView, ProcessInstanceView
from holdfast.gateway.tasks.shapes import IncidentView

_VALUE_CHARS_MAX = 200  # of a variable; --json has all of it
_STATE_STYLES = {
    ElementState.ACTIVE: "blue",
    ElementState.INCIDENT: "bold red",
    ElementState.TERMINATING: "yellow",
}


def instance_tree(view: ProcessInstanceView, incidents: list[IncidentView]) -> Tree:
    """The instance on top, its elements under it, its variables at the end."""
    title = Text.assemble((view.process_id, "bold"))
    if view.version:
        title.append(f" version {view.version}")
    title.append(f" · {view.process_instance_key} · ")
    title.append(view.state, style="bold")
    if view.created:
        title.append(f" since {moment(view.created)}", style="dim")
    if view.finished:
        title.append(f" at {moment(view.finished)}", style="dim")
    if view.parent_element_key:
        title.append(f" · called by element {view.parent_element_key}", style="dim")
    tree = Tree(title, guide_style="dim")
    errors = {incident.incident_key: incident for incident in incidents}
    for element in view.elements:
        _add(tree, element, errors)
    if view.more_elements:
        tree.add(Text("there are more elements than are shown", style="dim"))
    _add_variables(tree, view)
    return tree


def _add(tree: Tree, element: ElementView, errors: dict[str, IncidentView]) -> None:
    line = Text.assemble((element.element_id, _STATE_STYLES[element.state]))
    if element.item:
        line.append(f" [{element.item}]")
    if element.name and element.name != element.element_id:
        line.append(f" {element.name!r}")
    line.append(f"  {_kind(element)}", style="dim")
    if element.state != ElementState.ACTIVE:
        line.append(f"  {element.state}", style=_STATE_STYLES[element.state])
    if element.items_total:
        line.append(f"  {element.items_done:,} of {element.items_total:,} items done")
    if element.job_key:
        line.append(f"  job {element.job_key}")
    if element.called_instance_key:
        line.append(f"  calls {element.called_instance_key}")
    branch = tree.add(line)
    for wait in element.waits_for:
        branch.add(Text(f"waits for {wait}"))
    if element.incident_key:
        branch.add(_incident_line(element.incident_key, errors.get(element.incident_key)))
    for child in element.children:
        _add(branch, child, errors)


def _kind(element: ElementView) -> str:
    return element.kind.lower().replace("_", " ")


def _incident_line(key: str, incident: IncidentView | None) -> Text:
    line = Text.assemble((f"incident {key}", "red"))
    if incident is not None:
        line.append(f"  {incident.reason}: {raised_line(incident.error)}")
    return line


def _add_variables(tree: Tree, view: ProcessInstanceView) -> None:
    if not isinstance(view.variables, msgspec.Raw):
        return
    variables = msgspec.json.decode(view.variables, type=dict[str, msgspec.Raw])
    if not variables:
        return
    branch = tree.add(Text("variables", style="bold"))
    width = max(map(len, variables))
    for name, value in variables.items():
        text = bytes(value).decode(errors="replace")
        if len(text) > _VALUE_CHARS_MAX:
            text = f"{text[: _VALUE_CHARS_MAX - 3]}..."
        branch.add(Text(f"{name:<{width}}  {text}"))
