"""What an event waits for or throws: timers, messages, errors, termination."""

from typing import NamedTuple

import msgspec

from holdfast.model.bpmn.errors import Problems
from holdfast.model.bpmn.names import (
    Node,
    child,
    extension,
    local_id,
    tag_of,
    take,
    text_of,
)
from holdfast.model.bpmn.support import Verdict, events_of, verdict
from holdfast.model.bpmn.texts import value_expression
from holdfast.model.definition import Element, Message, Timer, TimerKind


class File(NamedTuple):
    """What the elements of a file refer to, and what is wrong with them so far."""

    problems: Problems
    messages: dict[str, Node]
    errors: dict[str, Node]
    global_tasks: set[str]


TIMERS = {
    "timeDuration": TimerKind.DURATION,
    "timeDate": TimerKind.DATE,
    "timeCycle": TimerKind.CYCLE,
}


def event_definition(file: File, node: Node) -> Node | None:
    """The definition of an event, if it has one that runs in such an event."""
    definitions = [each for each in node if tag_of(each).endswith("EventDefinition")]
    tag = tag_of(node)
    expected = f"{_listed(events_of(tag))} in <{tag}>"
    if not definitions:
        if verdict(tag) is not Verdict.RUNS:
            file.problems.refuse(node, expected, "without one")
        return None
    for surplus in definitions[1:]:
        file.problems.refuse(surplus, f"one event definition in <{tag}>", "which is one more")
    first = take(definitions[0])
    if verdict(tag, tag_of(first)) is not Verdict.RUNS:
        file.problems.refuse(first, expected)
        return None
    return first


def _listed(events: list[str]) -> str:
    """`no event definition, <a> or <b>`, as a sentence has it."""
    words = [f"<{event}>" if event else "no event definition" for event in events]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def read_event(file: File, node: Node, element: Element, definition: Node | None) -> Element:
    """An event with what it waits for; a throwing event with what it throws."""
    replace = msgspec.structs.replace
    match "" if definition is None else tag_of(definition):
        case "timerEventDefinition":
            return replace(element, timer=_timer(file, definition))
        case "messageEventDefinition":
            keyed = tag_of(node) != "startEvent"
            return replace(element, message=read_message(file, definition, keyed))
        case "errorEventDefinition":
            return replace(element, error=_error(file, definition, tag_of(node)))
        case "terminateEventDefinition":
            return replace(element, terminate=True)
        case _:
            return element


def _timer(file: File, definition: Node) -> Timer | None:
    for tag, kind in TIMERS.items():
        if value := text_of(child(definition, tag)):
            return Timer(kind, value)
    expected = "<timeDuration>, <timeDate> or <timeCycle> with a value"
    file.problems.refuse(definition, expected, "without one")
    return None


def read_message(file: File, node: Node, keyed: bool) -> Message | None:
    """The message that an event definition or a receive task refers to."""
    message = file.messages.get(local_id(node.get("messageRef", "")))
    if message is None or not take(message).get("name", "").strip():
        file.problems.refuse(node, "a messageRef to a <message> with a name", "without it")
        return None
    if not keyed:  # an instance that does not exist yet has nothing to correlate with
        return Message(message.get("name").strip())
    subscription = extension(message, "subscription")
    key = "" if subscription is None else subscription.get("correlationKey", "").strip()
    if not key:
        expected = f"a correlationKey in <zeebe:subscription> of the message {message.get('id')!r}"
        file.problems.refuse(node, expected, "which waits for it without one")
        return None
    return Message(message.get("name").strip(), value_expression(key))


def _error(file: File, definition: Node, tag: str) -> str | None:
    reference = local_id(definition.get("errorRef", ""))
    if not reference and tag == "boundaryEvent":
        return ""  # catches whatever is thrown
    error = file.errors.get(reference)
    code = "" if error is None else take(error).get("errorCode", "").strip()
    if not code:
        file.problems.refuse(
            definition, "an errorRef to an <error> with an errorCode", "without it"
        )
        return None
    return code
