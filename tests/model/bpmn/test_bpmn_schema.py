"""A walk over the public schema: what a file can have runs, is refused or is named as ignored."""

from typing import NamedTuple

import pytest
from bpmn_schema import ELEMENTS, EXPRESSIONS, EXTENSIONS, ZEEBE_ATTRIBUTES

from holdfast.limits import IGNORED_PARTS_MAX
from holdfast.model.bpmn import BpmnError, Ignored, read_processes
from holdfast.model.bpmn.elements import KINDS
from holdfast.model.bpmn.support import SUPPORT, Verdict, verdict
from holdfast.model.bpmn.support_extensions import (
    ATTRIBUTES,
    HARMLESS_ATTRIBUTES,
    MODELER_ATTRIBUTES,
)
from holdfast.model.bpmn.support_extensions import EXTENSIONS as SUPPORTED
from holdfast.model.definition import Definition

START, END = '<startEvent id="start"/>', '<endEvent id="end"/>'
TIMER = "<timerEventDefinition><timeDuration>PT1S</timeDuration></timerEventDefinition>"
MESSAGE = '<messageEventDefinition messageRef="message"/>'
LOOP = '<zeebe:loopCharacteristics inputCollection="=items"/>'
FLOW_NODES = {row.element for row in SUPPORT if row.holdfast in (Verdict.RUNS, Verdict.REFUSED)}
FLOW_NODES &= {tag for tag, (_, children) in ELEMENTS.items() if "incoming" in children}

# What an element needs beside an id, so that it runs: its attributes, and what is in it.
ATTRIBUTES_OF = {
    "receiveTask": {"messageRef": "message"},
    "callActivity": {"calledElement": "other"},
    "boundaryEvent": {"attachedToRef": "host"},
    "sequenceFlow": {"sourceRef": "gate", "targetRef": "end"},
    "messageEventDefinition": {"messageRef": "message"},
    "errorEventDefinition": {"errorRef": "error"},
    "message": {"name": "m"},
    "error": {"errorCode": "E"},
    "process": {"isExecutable": "true"},
}
INSIDE = {
    "message": '<extensionElements><zeebe:subscription correlationKey="=k"/></extensionElements>',
    "intermediateCatchEvent": TIMER,
    "boundaryEvent": TIMER,
    "subProcess": '<startEvent id="inner"/>',
    "multiInstanceLoopCharacteristics": f"<extensionElements>{LOOP}</extensionElements>",
    "timerEventDefinition": "<timeDuration>PT1S</timeDuration>",
}
EVENT_OF = {
    "timerEventDefinition": "intermediateCatchEvent",
    "messageEventDefinition": "intermediateCatchEvent",
    "errorEventDefinition": "endEvent",
    "terminateEventDefinition": "endEvent",
}
# Where an element stands that can stand in many: the first of these that can have it.
PLACES = (
    "serviceTask", "multiInstanceLoopCharacteristics", "timerEventDefinition", "sequenceFlow",
    "process", "definitions", "collaboration", "participant",
)  # fmt: skip


NONE: dict[str, str] = {}


class Part(NamedTuple):
    """An element in a file, with what is added to it."""

    tag: str
    attributes: dict[str, str] = NONE
    inside: str = ""


def snippet(part: Part, marked: bool = False) -> str:
    """An element with what it needs; on a line of its own, if something is asked about it."""
    attributes = {"id": "it", **ATTRIBUTES_OF.get(part.tag, {}), **part.attributes}
    said = " ".join(f'{name}="{value}"' for name, value in attributes.items())
    inside = part.inside
    if not any(f"<{each}" in inside for each in ("timerEvent", "messageEvent", "errorEvent")):
        inside += INSIDE.get(part.tag, "")
    if part.tag in EXPRESSIONS:
        inside += "PT1S" if part.tag.startswith("time") else "1 = 1"
    line = "\n" if marked else ""
    return f"{line}<{part.tag} {said}>{inside}</{part.tag}>{line}"


def path_to(tag: str) -> list[str]:
    """The elements around an element, from the file to the nearest."""
    if tag == "definitions":
        return []
    parents = [parent for parent, (_, children) in ELEMENTS.items() if tag in children]
    # A lane can have every element in it, as if it were a place of its own.
    parents = [each for each in parents if each not in (tag, "lane")] or parents
    wanted = [EVENT_OF.get(tag), *PLACES]
    parent = next((each for each in wanted if each in parents), parents[0])
    assert parent != tag, f"there is no place for <{tag}>"
    return [*path_to(parent), parent]


def document(parts: list[Part]) -> str:
    """A file with nested parts, from the outermost to the one that is asked about."""
    named = [each.tag for each in parts]
    text = ""
    for depth, part in reversed(list(enumerate(parts))):
        inside = part.inside + text
        if part.tag == "process":
            node = named[depth + 1] if len(named) > depth + 1 else ""
            inside = _connected(node) + inside
            part = part._replace(attributes={"id": "p", **part.attributes})
        if part.tag == "definitions":
            break
        text = snippet(part._replace(inside=inside), marked=depth == len(parts) - 1)
    head = parts[0] if named[0] == "definitions" else Part("definitions")
    said = " ".join(f'{name}="{value}"' for name, value in head.attributes.items())
    extra = head.inside if len(parts) > 1 or named[0] != "definitions" else f"\n{head.inside}\n"
    plain = "" if "process" in named else _process(named)
    return (
        '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"'
        ' xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"\n'
        f' id="file" {said}>{extra}{text}{plain}'
        '<message id="message" name="m"><extensionElements>'
        '<zeebe:subscription correlationKey="=k"/></extensionElements></message>'
        '<error id="error" errorCode="E"/></definitions>'
    )


def _process(named: list[str]) -> str:
    """A process beside the element; it refers to a message or an error."""
    inside = _connected("")
    if "message" in named:
        inside += '<receiveTask id="waits" messageRef="it"/>'
    if "error" in named:
        inside += '<endEvent id="throws"><errorEventDefinition errorRef="it"/></endEvent>'
    return f'<process id="p" isExecutable="true">{inside}</process>'


def _connected(node: str) -> str:
    """What else is in the process: a start and an end, and flows that lead to the element."""

    def flow(number: int, source: str, target: str) -> str:
        return f'<sequenceFlow id="f{number}" sourceRef="{source}" targetRef="{target}"/>'

    if node == "startEvent":
        return END + flow(1, "it", "end")
    if node == "endEvent":
        return START + flow(1, "start", "it")
    if node == "boundaryEvent":
        host = '<task id="host"/>'
        return START + host + END + flow(1, "start", "host") + flow(2, "it", "end")
    if node == "eventBasedGateway":
        waits = [
            f'<intermediateCatchEvent id="w{n}">{TIMER}</intermediateCatchEvent>' for n in "12"
        ]
        ways = flow(2, "it", "w1") + flow(3, "it", "w2")
        return START + "".join(waits) + flow(1, "start", "it") + ways
    if node in FLOW_NODES:
        return START + END + flow(1, "start", "it") + flow(2, "it", "end")
    if node == "sequenceFlow":
        return f'{START}<exclusiveGateway id="gate"/>{END}{flow(1, "start", "gate")}'
    return START + END + flow(1, "start", "end")


class Read(NamedTuple):
    """What a file becomes."""

    definitions: list[Definition]
    ignored: list[Ignored]
    refused: bool


def read(text: str) -> Read:
    try:
        found = read_processes(text.encode())
    except BpmnError as error:
        assert all(problem.line for problem in error.problems if problem.element), error
        return Read([], [], True)
    return Read(
        [each.definition for each in found],
        [part for each in found for part in each.ignored],
        False,
    )


def outcome(around: list[str], plain: str, asked: str) -> str:
    """What became of what one file has and the other has not."""
    before, after = read(plain), read(asked)
    if after.refused:
        return "refused"
    assert all(part.what and part.why for part in after.ignored)
    whole = {f"<{tag}>" for tag in around}
    if before.definitions != after.definitions:
        return "runs"
    if any(part not in before.ignored or part.what in whole for part in after.ignored):
        return "ignored"  # itself, or an element that it is in
    if any(verdict(tag) is Verdict.SKIPPED for tag in around):
        return "skipped"  # it is in an element that is for the reader
    return "silent"


REACHED = {"definitions"}
while _more := {child for tag in REACHED for child in ELEMENTS.get(tag, ([], []))[1]} - REACHED:
    REACHED |= _more


# Elements that no file can have, and those that stand only in one of them.
NOT_READ = {row.element for row in SUPPORT if row.holdfast is Verdict.REFUSED} - {
    row.element for row in SUPPORT if row.holdfast is not Verdict.REFUSED
}
NOT_READ |= {tag for tag, (_, children) in ELEMENTS.items() if "incoming" in children} - set(KINDS)


@pytest.mark.parametrize("tag", sorted(tag for tag in ELEMENTS if tag in REACHED))
def test_an_element_by_itself_is_read_unless_it_is_refused_as_such(tag: str) -> None:
    """So that what is found of its parts is about these."""
    around = [*path_to(tag), tag]
    found = read(document([Part(each) for each in around]))
    assert found.refused == bool(NOT_READ & set(around))


def attribute_outcomes(tag: str) -> dict[str, str]:
    """What becomes of each attribute of an element, with a value that is not its default."""
    path = path_to(tag)
    around = [Part(each) for each in path]
    plain = document([*around, Part(tag)])
    found: dict[str, str] = {}
    for name, other in ELEMENTS[tag][0]:
        if ATTRIBUTES_OF.get(tag, {}).get(name) == other:
            other = "false"  # it is true already, for the element to run
        asked = document([*around, Part(tag, {name: other})])
        found[name] = outcome([*path, tag], plain, asked)
    return found


@pytest.mark.parametrize("tag", sorted(tag for tag in ELEMENTS if tag in REACHED))
def test_every_attribute_runs_is_refused_or_is_named(tag: str) -> None:
    for name, found in attribute_outcomes(tag).items():
        harmless = {name, f"{tag} {name}"} & HARMLESS_ATTRIBUTES
        assert found != "silent" or harmless, f"{name} of <{tag}> is dropped"


@pytest.mark.parametrize("tag", sorted(tag for tag in ELEMENTS if tag in REACHED))
def test_every_element_in_every_other_runs_is_refused_or_is_named(tag: str) -> None:
    path = path_to(tag)
    around = [Part(each) for each in path]
    plain = document([*around, Part(tag)])
    for child in ELEMENTS[tag][1]:
        inner = [Part(tag), Part(child, {"id": "inside"})]
        found = outcome([*path, tag, child], plain, document([*around, *inner]))
        # Messages and errors are for those that refer to them.
        plain_part = child in ("extensionElements", "message", "error")
        assert found != "silent" or plain_part, f"<{child}> in <{tag}> is dropped"


def extended(tag: str, extension: str) -> str:
    """A file with an extension element in an element."""
    inside = f"<extensionElements>{extension}</extensionElements>"
    return document([*(Part(each) for each in path_to(tag)), Part(tag, inside=inside)])


def zeebe(name: str, attributes: dict[str, str], inside: str = "") -> str:
    said = " ".join(f'{attribute}="{value}"' for attribute, value in attributes.items())
    return f"<zeebe:{name} {said}>{inside}</zeebe:{name}>"


def whole(name: str) -> str:
    """An extension element with all its attributes, and with all that it can have in it."""
    attributes, children = EXTENSIONS[name]
    values = {each: VALUES.get((name, each), "=x") for each in attributes}
    return zeebe(name, values, "".join(map(whole, children)))


VALUES = {
    ("input", "target"): "target",
    ("output", "target"): "target",
    ("script", "resultVariable"): "result",
    ("loopCharacteristics", "inputElement"): "item",
    ("loopCharacteristics", "outputCollection"): "results",
    ("calledElement", "propagateAllChildVariables"): "false",
    ("calledElement", "propagateAllParentVariables"): "false",
    ("calledElement", "bindingType"): "versionTag",
    ("calledElement", "versionTag"): "stable",
    ("calledDecision", "bindingType"): "deployment",
    ("formDefinition", "bindingType"): "deployment",
    ("linkedResource", "bindingType"): "deployment",
    ("taskDefinition", "retries"): "7",
}
EXTENDED = [tag for tag in ELEMENTS if tag in REACHED and "extensionElements" in ELEMENTS[tag][1]]


def test_the_tables_have_every_extension_of_the_schema() -> None:
    assert EXTENSIONS.keys() <= SUPPORTED.keys()


@pytest.mark.parametrize("name", sorted(EXTENSIONS))
def test_every_extension_in_every_element_runs_is_refused_or_is_named(name: str) -> None:
    ran: set[str] = set()
    for tag in EXTENDED:
        found = outcome([], extended(tag, ""), extended(tag, whole(name)))
        assert found != "silent", f"<zeebe:{name}> in <{tag}> is dropped"
        if SUPPORTED[name].holdfast is Verdict.REFUSED:
            assert found == "refused", f"<zeebe:{name}> in <{tag}> is {found}"
        if found == "runs":
            ran.add(tag)
    if name != "subscription":  # it is for those that wait for the message
        assert bool(ran) == (SUPPORTED[name].holdfast is Verdict.RUNS and name not in AROUND), ran


NATURAL = {
    "subscription": "receiveTask", "loopCharacteristics": "multiInstanceLoopCharacteristics",
    "calledElement": "callActivity", "script": "scriptTask", "versionTag": "process",
    "assignmentDefinition": "userTask", "formDefinition": "userTask", "taskSchedule": "userTask",
    "priorityDefinition": "userTask",
}  # fmt: skip
AROUND = {"input": "ioMapping", "output": "ioMapping", "header": "taskHeaders"}


@pytest.mark.parametrize("name", sorted(name for name in EXTENSIONS if name != "subscription"))
def test_every_attribute_of_an_extension_runs_is_refused_or_is_named(name: str) -> None:
    tag = NATURAL.get(name, "serviceTask")

    def file(attributes: dict[str, str]) -> str:
        part = zeebe(name, attributes)
        return extended(tag, zeebe(AROUND[name], {}, part) if name in AROUND else part)

    full = {each: VALUES.get((name, each), "=x") for each in EXTENSIONS[name][0]}
    for attribute in full:
        without = {each: value for each, value in full.items() if each != attribute}
        found = outcome([f"zeebe:{name}"], file(without), file(full))
        if read(file(without)).refused and not read(file(full)).refused:
            found = "runs"  # it cannot do without
        harmless = attribute in HARMLESS_ATTRIBUTES | MODELER_ATTRIBUTES
        assert found != "silent" or harmless, f"{attribute} of <zeebe:{name}> is dropped"
        wanted = attribute in SUPPORTED[name].attributes
        if SUPPORTED[name].holdfast is Verdict.RUNS and not harmless:
            assert (found == "runs") == wanted, f"{attribute} of <zeebe:{name}> is {found}"


@pytest.mark.parametrize("tag", sorted(tag for tag in EXTENDED if tag != "definitions"))
def test_every_zeebe_attribute_of_an_element_is_harmless_or_named(tag: str) -> None:
    path = path_to(tag)
    around = [Part(each) for each in path]
    plain = document([*around, Part(tag)])
    for name in ZEEBE_ATTRIBUTES:
        found = outcome([*path, tag], plain, document([*around, Part(tag, {f"zeebe:{name}": "9"})]))
        assert found != "silent" or name in MODELER_ATTRIBUTES, (
            f"zeebe:{name} of <{tag}> is dropped"
        )


def test_what_no_schema_has_yet_is_refused_or_named() -> None:
    plain = document([Part("definitions"), Part("process"), Part("serviceTask")])
    asked = plain.replace('<serviceTask id="it"', '<serviceTask id="it" tomorrow="yes"')
    [found] = [each for each in read(asked).ignored if each.element == "it"]
    assert (found.element, found.what) == ("it", "tomorrow='yes' of <serviceTask>")
    assert asked.splitlines()[found.line - 1].startswith("<serviceTask")
    assert outcome([], extended("serviceTask", ""), extended("serviceTask", zeebe("new", {}))) == (
        "refused"
    )
    foreign = read(extended("serviceTask", '<x:y xmlns:x="urn:other" a="1"><x:z/></x:y>'))
    [found] = [each for each in foreign.ignored if each.element == "it"]
    assert found.what == "1 part of the namespace urn:other"


def test_every_reason_is_about_something_that_the_schema_has() -> None:
    names = {name for attributes, _ in ELEMENTS.values() for name, _ in attributes}
    names |= {name for attributes, _ in EXTENSIONS.values() for name in attributes}
    names |= {f"zeebe:{name}" for name in ZEEBE_ATTRIBUTES} | {"exporterVersion"}
    for row in (*ATTRIBUTES, *HARMLESS_ATTRIBUTES):
        tag, _, name = row.rpartition(" ")
        assert name in names, row
        assert not tag or tag in ELEMENTS or tag in EXTENSIONS, row


def test_a_process_that_is_not_executable_is_named_as_a_whole() -> None:
    beside = '<process id="draft" tomorrow="yes"><transaction id="t"/></process>'
    found = read(document([Part("definitions", inside=beside), Part("process")]))
    [draft] = [each for each in found.ignored if each.element == "draft"]
    assert (draft.what, "isExecutable" in draft.why) == ("<process>", True)


def test_of_very_many_ignored_parts_the_rest_is_counted() -> None:
    tasks = "".join(f'<task id="t{n}" tomorrow="yes"/>' for n in range(IGNORED_PARTS_MAX + 7))
    found = read(document([Part("definitions"), Part("process", inside=tasks)])).ignored
    assert len(found) == IGNORED_PARTS_MAX + 1
    assert found[-1].what == "7 more"
