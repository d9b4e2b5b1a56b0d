"""BPMN files read into definitions: what runs, with everything else refused by name and line.

What is neither run nor refused is named as ignored; skipped are parts that ask for nothing.
`SUPPORT` lists them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.model import check, feel
from holdfast.model.bpmn.elements import KINDS, read_element
from holdfast.model.bpmn.errors import BpmnError, Problem, Problems
from holdfast.model.bpmn.events import File
from holdfast.model.bpmn.leftovers import Ignored, leftovers
from holdfast.model.bpmn.names import (
    Node,
    child,
    children,
    extension,
    is_true,
    leave,
    local_id,
    tag_of,
    take,
    text_of,
)
from holdfast.model.bpmn.parse import parse
from holdfast.model.bpmn.picture import read_drawing
from holdfast.model.bpmn.support import BESIDE, Verdict, verdict
from holdfast.model.bpmn.texts import expression
from holdfast.model.definition import Definition, Element, Flow
from holdfast.model.rules.structure import loose_ends


class ReadProcess(NamedTuple):
    """A process of a file, and what the file asks for beside it that does not happen."""

    definition: Definition
    ignored: list[Ignored]


def read_bpmn(xml: bytes | str, *, drafts: bool = False) -> list[Definition]:
    """All executable processes of a file; with `drafts` also those that are not marked so.

    Raises BpmnError, with all that is wrong, when one of them has something that does not run here.
    """
    return [each.definition for each in read_processes(xml, drafts=drafts)]


def read_processes(xml: bytes | str, *, drafts: bool = False) -> list[ReadProcess]:
    """Like `read_bpmn`, with what of the file is ignored."""
    root = parse(xml)
    alive = list(root.iter())  # so that none forgets what was read of it
    problems = Problems()
    file = File(
        problems,
        {node.get("id", ""): node for node in root if tag_of(node) == "message"},
        {node.get("id", ""): node for node in root if tag_of(node) == "error"},
        {node.get("id", "") for node in root if tag_of(node).startswith("global")},
    )
    for node in root:
        if tag_of(node) not in ("", "process") and verdict(tag_of(node)) is Verdict.REFUSED:
            problems.refuse(node, "a process")
    nodes = [node for node in children(root, "process") if is_true(node, "isExecutable") or drafts]
    if not nodes:
        drawn = sum(1 for _ in children(root, "process"))
        found = f"none of its {drawn} has isExecutable='true'" if drawn else "it has no process"
        problems.append(Problem(f"Expected an executable process, but {found}", "", 0))
    definitions = [_read_process(file, node) for node in nodes]
    ignored = list(leftovers(root, nodes, problems))
    del alive
    blamed = {problem.element for problem in problems}
    for definition, node in zip(definitions, nodes, strict=True):
        found = _check(definition, node, is_whole=not blamed)
        problems += [each for each in found if each.element not in blamed]
    if problems:
        raise BpmnError.of(problems)
    return [ReadProcess(*each) for each in zip(definitions, ignored, strict=True)]


def _read_process(file: File, node: Node) -> Definition:
    if not node.get("id"):
        file.problems.refuse(node, "an id", "without one")
    elements: list[Element] = []
    flows: list[Flow] = []
    _read_scope(file, node, "", elements, flows)
    drawing = read_drawing(node.getroottree().getroot(), elements, flows)
    tag = extension(node, "versionTag")
    return Definition(
        node.get("id", ""), tuple(elements), tuple(flows), node.get("name", ""), drawing,
        "" if tag is None else tag.get("value", "").strip(),
    )  # fmt: skip


def _read_scope(
    file: File, node: Node, scope: str, elements: list[Element], flows: list[Flow]
) -> None:
    """Read the elements and flows of a process or a sub-process, and those inside them.

    They keep the order of the file: it is the order in which conditions are tried. A sub-process is
    followed by its elements. libxml2 ends the depth at 256.
    """
    for each in node:
        tag = tag_of(each)
        if tag == "sequenceFlow":
            flows += _read_flow(file, take(each))
        elif tag in KINDS:
            if not each.get("id"):
                file.problems.refuse(each, "an id", "without one")
            elements.append(read_element(file, each, scope))
            if tag == "subProcess":
                _read_scope(file, each, each.get("id", ""), elements, flows)
        elif tag and tag not in _PARTS and verdict(tag) not in BESIDE:
            file.problems.refuse(each, "elements that holdfast runs")


_PARTS = {"multiInstanceLoopCharacteristics", "standardLoopCharacteristics"}
"""What is in a sub-process and read with it."""


def _read_flow(file: File, node: Node) -> Iterator[Flow]:
    identity, source, target = (node.get(name, "") for name in ("id", "sourceRef", "targetRef"))
    if not (identity and source and target):
        file.problems.refuse(node, "an id, a sourceRef and a targetRef", "without one of them")
        return
    condition = child(node, "conditionExpression")
    text = expression(text_of(condition))  # modelers write empty ones, which are none
    if text and (problem := _foreign(condition, text)):
        file.problems.refuse(condition, "a condition in FEEL", problem)
    yield Flow(identity, local_id(source), local_id(target), text, node.get("name", ""))


def _foreign(condition: Node, text: str) -> str:
    """Why a condition is in another language; empty when it is FEEL, whatever it calls itself."""
    language = condition.get("language", "")
    if text.startswith(("${", "#{")):
        return f"in the language of another engine: {text[:60]!r}"
    if language and "FEEL" not in language.upper():
        leave(condition, "language")
        return "" if _is_feel(text) else f"in the language {language!r}"
    return ""


def _is_feel(text: str) -> bool:
    try:
        feel.parse(text)
    except feel.FeelError:
        return False
    return True


def _check(definition: Definition, node: Node, *, is_whole: bool) -> Iterator[Problem]:
    """Whether the definition makes sense as a process, told with the line of what does not."""
    found = check.problems(definition, is_whole=is_whole)
    if not is_whole:  # elements that could not be read are there nevertheless
        there = {each.get("id", "") for each in node.iter()}
        found += [each for flow in definition.flows for each in loose_ends(flow, there)]
    lines = {each.get("id"): each.sourceline for each in node.iter()} if found else {}
    for problem in found:
        line = lines.get(problem.element) or node.sourceline or 0
        yield Problem(f"{problem.message} (line {line})", problem.element, line)
