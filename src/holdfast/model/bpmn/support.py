"""What of BPMN runs here, what is only drawn, what is refused, and what Zeebe does with it.

The reader decides by this table and the documentation is made from it, so they cannot differ.
"""

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What becomes of an element when a file is read."""

    RUNS = "runs"
    SKIPPED = "skipped"  # it is for the reader of the drawing, and asks for nothing
    IGNORED = "ignored"  # it has no effect; the answer to the deployment names it
    REFUSED = "refused"  # it would change how the process runs; a file that has it is not read


class Row(NamedTuple):
    """One element, or one element with one event definition."""

    element: str  # its BPMN tag
    event: str  # the tag of its event definition, where it has one
    holdfast: Verdict
    zeebe: str  # Zeebe 8.x: `yes`, `no`, `since 8.n`, or `drawn only`
    note: str = ""


def _runs(element: str, zeebe: str = "yes", note: str = "", event: str = "") -> Row:
    return Row(element, event, Verdict.RUNS, zeebe, note)


def _refused(element: str, zeebe: str = "no", note: str = "", event: str = "") -> Row:
    return Row(element, event, Verdict.REFUSED, zeebe, note)


def _skipped(note: str, *elements: str, zeebe: str = "drawn only") -> list[Row]:
    return [Row(element, "", Verdict.SKIPPED, zeebe, note) for element in elements]


def _ignored(note: str, *elements: str, zeebe: str = "drawn only") -> list[Row]:
    return [Row(element, "", Verdict.IGNORED, zeebe, note) for element in elements]


def _events(element: str, **zeebe: str) -> list[Row]:
    """The event definitions that an event can have and holdfast refuses."""
    return [_refused(element, said, event=f"{name}EventDefinition") for name, said in zeebe.items()]


_ACTIVITIES = [
    _runs("task", note="nothing happens: the token passes"),
    _runs("manualTask", note="nothing happens: the token passes"),
    _runs("serviceTask", note="a job; without a task definition its type is the id of the task"),
    _runs("sendTask", note="a job, as a service task"),
    _runs("businessRuleTask", note="a job; `zeebe:calledDecision` is refused, there is no DMN"),
    _runs(
        "scriptTask",
        "jobs, expressions since 8.2",
        note="`zeebe:script` is evaluated; with a task definition it is a job",
    ),
    _runs("userTask", note="a job of the type `io.camunda.zeebe:userTask`, forms are headers"),
    _runs("receiveTask", note="waits for a message; `instantiate` is refused"),
    _runs("subProcess", note="embedded; `triggeredByEvent` is refused, Zeebe runs it"),
    _runs(
        "callActivity", note="by `bindingType`: latest, deployment or versionTag; no global tasks"
    ),
    _refused("transaction"),
    _refused("adHocSubProcess", "since 8.7"),
    _runs("multiInstanceLoopCharacteristics", note="needs `zeebe:loopCharacteristics`"),
    _refused("standardLoopCharacteristics", note="a gateway and a flow back do the same"),
]

_GATEWAYS = [
    _runs("exclusiveGateway"),
    _runs("inclusiveGateway", "split since 8.1, join since 8.6"),
    _runs("parallelGateway"),
    _runs("eventBasedGateway", note="timers and messages; `instantiate` is refused"),
    _refused("complexGateway"),
]

_START = [
    _runs("startEvent"),
    _runs("startEvent", event="timerEventDefinition", note="a date or a cycle"),
    _runs("startEvent", event="messageEventDefinition"),
    *_events(
        "startEvent",
        signal="since 8.2",
        error="in event sub-processes",
        escalation="in event sub-processes, since 8.2",
        compensate="no",
        conditional="since 8.9",
    ),
]

_INTERMEDIATE = [
    _runs("intermediateThrowEvent", note="nothing happens: the token passes"),
    _runs(
        "intermediateThrowEvent",
        event="messageEventDefinition",
        note="a job; without a task definition its type is the id of the event",
    ),
    *_events(
        "intermediateThrowEvent",
        signal="since 8.3",
        escalation="since 8.2",
        compensate="since 8.5",
        link="since 8.2",
    ),
    _runs("intermediateCatchEvent", event="timerEventDefinition", note="a duration or a date"),
    _runs("intermediateCatchEvent", event="messageEventDefinition"),
    *_events(
        "intermediateCatchEvent", signal="since 8.3", conditional="since 8.9", link="since 8.2"
    ),
    _refused("intermediateCatchEvent", note="an event that waits for nothing"),
    _runs(
        "boundaryEvent", event="timerEventDefinition", note="a cycle where it does not interrupt"
    ),
    _runs("boundaryEvent", event="messageEventDefinition"),
    _runs("boundaryEvent", event="errorEventDefinition", note="without a code it catches all"),
    *_events(
        "boundaryEvent",
        signal="since 8.3",
        escalation="since 8.2",
        compensate="since 8.5",
        conditional="since 8.9",
        cancel="no",
    ),
    _refused("boundaryEvent", note="an event that waits for nothing"),
]

_END = [
    _runs("endEvent"),
    _runs("endEvent", event="errorEventDefinition"),
    _runs("endEvent", "since 8.1", event="terminateEventDefinition"),
    _runs(
        "endEvent",
        event="messageEventDefinition",
        note="a job; without a task definition its type is the id of the event",
    ),
    *_events(
        "endEvent", signal="since 8.3", escalation="since 8.2", compensate="since 8.5", cancel="no"
    ),
]

_REST = [
    _runs("sequenceFlow", note="conditions are FEEL, with or without a leading `=`"),
    _runs("message", note="its name, and the key of its `zeebe:subscription`"),
    _runs("error", note="its code"),
    _refused("eventDefinitionRef", note="an event has its definition in itself"),
    _refused("choreography"),
    _refused("globalChoreographyTask"),
    *_skipped("global tasks are not called", "globalTask", "globalUserTask", "globalScriptTask",
              "globalManualTask", "globalBusinessRuleTask", zeebe="no"),
    *_skipped("who is drawn where is not executed", "collaboration", "laneSet", "resource",
              "partnerEntity", "partnerRole", "conversation", "globalConversation"),
    *_ignored("`zeebe:assignmentDefinition` assigns a task", "resourceRole",
              "performer", "humanPerformer", "potentialOwner"),
    *_ignored("messages are correlated by `zeebe:subscription`", "correlationSubscription",
              "correlationProperty"),
    *_skipped("notes are for the reader", "documentation", "textAnnotation", "association",
              "group", "category", "categoryValueRef", "relationship"),
    *_ignored("nothing is measured or audited by it", "auditing", "monitoring"),
    *_skipped("data is drawn for the reader", "dataObject", "dataObjectReference", "dataStore",
              "dataStoreReference", "itemDefinition"),
    *_ignored("data goes by variables and `zeebe:ioMapping`", "ioSpecification", "dataInput",
              "dataOutput", "inputSet", "outputSet", "dataInputAssociation",
              "dataOutputAssociation", "property", "ioBinding"),
    *_skipped("at the root of a file, where only an `operationRef` could refer to it", "interface",
              "endPoint", "import", "supports"),
    *_ignored("how a service is called is the worker's affair", "supportedInterfaceRef",
              "rendering"),
    *_ignored("nothing here knows other languages", "extension", zeebe="no"),
    *_skipped("at the root of a file, where nothing refers to it", "escalation", "signal",
              "timerEventDefinition", "messageEventDefinition", "errorEventDefinition",
              "signalEventDefinition", "escalationEventDefinition", "conditionalEventDefinition",
              "linkEventDefinition",
              "compensateEventDefinition", "cancelEventDefinition", "terminateEventDefinition"),
    *_skipped("defined by the flows", "incoming", "outgoing", zeebe="yes"),
    *_skipped("read where it belongs", "extensionElements", zeebe="yes"),
]  # fmt: skip

SUPPORT: tuple[Row, ...] = (*_ACTIVITIES, *_GATEWAYS, *_START, *_INTERMEDIATE, *_END, *_REST)

_VERDICTS = {(row.element, row.event): row.holdfast for row in SUPPORT}
BESIDE = (Verdict.SKIPPED, Verdict.IGNORED)
"""What may stand in a file without running."""
NOTES = {row.element: row.note for row in SUPPORT if row.holdfast is Verdict.IGNORED}


def verdict(element: str, event: str = "") -> Verdict:
    """What becomes of an element; what the table does not have is refused."""
    return _VERDICTS.get((element, event), Verdict.REFUSED)


def events_of(element: str) -> list[str]:
    """The event definitions that run in an event; empty text stands for none at all."""
    return [row.event for row in SUPPORT if row.element == element and row.holdfast is Verdict.RUNS]
