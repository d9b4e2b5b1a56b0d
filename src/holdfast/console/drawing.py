"""Processes drawn for pages: tokens, incidents and counts on the elements that have them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from markupsafe import Markup

from holdfast.errors import Forbidden, NotFound
from holdfast.gateway.processes.shapes import ElementCounts, ElementView, ProcessInstanceView
from holdfast.gateway.rest.common import RestApi
from holdfast.limits import CONSOLE_DEFINITIONS_KEPT_MAX
from holdfast.model.bpmn import read_bpmn
from holdfast.model.definition import Definition
from holdfast.model.drawing import draw_svg


@dataclass
class KnownDefinitions:
    """Definitions that were read lately, by what they were read from: to read one takes a while.

    Not by their keys: a program may have several nodes, and each of them has the same keys.
    """

    _read: dict[tuple[bytes, str], Definition] = field(default_factory=dict)

    async def get(self, api: RestApi, key: str | None, process_id: str) -> Definition | None:
        """A version, as far as the visitor may see it."""
        if not key:
            return None
        try:
            source = await api.processes.source(key)
        except (Forbidden, NotFound):
            return None
        place = sha256(source.content.encode()).digest(), process_id
        found = self._read.get(place)
        if found is None:
            found = next(each for each in read_bpmn(source.content) if each.id == process_id)
            while len(self._read) >= CONSOLE_DEFINITIONS_KEPT_MAX:
                del self._read[next(iter(self._read))]
            self._read[place] = found
        return found


DEFINITIONS = KnownDefinitions()


def draw(
    definition: Definition,
    tokens: Mapping[str, int] | None = None,
    incidents: Mapping[str, int] | None = None,
    done: Sequence[str] = (),
) -> Markup:
    """A process as SVG for a page. Names of others in it are escaped by what draws."""
    return Markup(draw_svg(definition, tokens or {}, incidents or {}, done))


def draw_version(definition: Definition, counts: ElementCounts | None) -> Markup:
    """A version, with the tokens and incidents of its instances; None: they may not be seen."""
    items = counts.items if counts is not None else []
    tokens = {each.element_id: each.tokens for each in items if each.tokens}
    incidents = {each.element_id: each.incidents for each in items if each.incidents}
    return draw(definition, tokens, incidents)


def draw_instance(definition: Definition, view: ProcessInstanceView) -> Markup:
    """An instance: a token is where nothing is inside, what holds others is where theirs are."""
    tokens: Counter[str] = Counter()
    incidents: Counter[str] = Counter()
    _count(view.elements, tokens, incidents)
    return draw(definition, tokens, incidents)


def _count(elements: list[ElementView], tokens: "Counter[str]", incidents: "Counter[str]") -> None:
    for element in elements:
        if element.incident_key:
            incidents[element.element_id] += 1
        elif not element.children:
            tokens[element.element_id] += 1
        _count(element.children, tokens, incidents)


def flat(elements: list[ElementView], depth: int = 0) -> list[tuple[int, ElementView]]:
    """The tree of active elements as rows with their depth."""
    rows: list[tuple[int, ElementView]] = []
    for each in elements:
        rows.append((depth, each))
        rows += flat(each.children, depth + 1)
    return rows
