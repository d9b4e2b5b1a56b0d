"""Whether a definition can be run: refuses a wrong graph before anything is stored of it.

The DSL asks when a process is defined, BPMN import when a file is read, the engine at deployment.
"""

from holdfast.errors import InvalidArgument
from holdfast.model.definition import Definition
from holdfast.model.graph import Graph
from holdfast.model.rules import activities, events, gateways, parts, structure, texts
from holdfast.model.rules.problem import Problem, Rule

__all__ = ["ModelError", "Problem", "check", "problems"]

RULES: tuple[Rule, ...] = (
    structure.ids,
    structure.scopes,
    structure.flows,
    events.starts,
    events.inner_starts,
    parts.parts,
    gateways.conditions,
    gateways.defaults,
    gateways.races,
    events.waits,
    events.messages,
    events.boundaries,
    events.cycles,
    events.ends,
    activities.work,
    activities.loops,
    activities.variables,
    texts.expressions,
    texts.timers,
)
"""What is asked of every definition, the coarse before the fine: the first answer is told."""


_LOCAL: tuple[Rule, ...] = (
    events.waits,
    events.messages,
    events.cycles,
    activities.work,
    activities.loops,
    activities.variables,
    texts.expressions,
    texts.timers,
)
"""What is asked of each element alone: it makes sense in a graph that is not whole, too."""


class ModelError(InvalidArgument):
    """The process cannot be run as it is; `fields["element"]` names what is wrong with it."""


def check(definition: Definition) -> None:
    """Raises the first problem of a definition, and says how many more there are."""
    found = problems(definition)
    if found:
        first, more = found[0], len(found) - 1
        rest = f" (and {more} more problem{'s' if more > 1 else ''})" if more else ""
        told = [{"element": each.element, "message": each.message} for each in found]
        raise ModelError(first.message + rest, element=first.element, problems=told)


def problems(definition: Definition, *, is_whole: bool = True) -> list[Problem]:
    """Everything that is wrong with a definition; nothing if it can be run.

    Of one that lacks elements, since they could not be read, only what each of the others says.
    """
    graph = Graph(definition)
    # What is too large is not looked at any further: the list would be as large.
    too_large = list(structure.sizes(graph))
    rules = RULES if is_whole else _LOCAL
    return too_large or [problem for rule in rules for problem in rule(graph)]
