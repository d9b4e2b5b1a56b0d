"""What becomes of Zeebe's extension elements, and of single attributes of all elements.

Nothing is read because it stands here: an attribute or an element that no code has read is looked
up here for the reason why, and whether it is worth a word. What is neither read nor here is named
in the answer to a deployment all the same.
"""

from typing import NamedTuple

from holdfast.model.bpmn.support import Verdict


class Extension(NamedTuple):
    """A `zeebe:` extension element."""

    holdfast: Verdict
    note: str
    attributes: tuple[str, ...] = ()  # that are read; for those left over see ATTRIBUTES


def _runs(note: str, *attributes: str) -> Extension:
    return Extension(Verdict.RUNS, note, attributes)


def _ignored(note: str) -> Extension:
    return Extension(Verdict.IGNORED, note)


def _refused(note: str) -> Extension:
    return Extension(Verdict.REFUSED, note)


EXTENSIONS: dict[str, Extension] = {
    "taskDefinition": _runs("the job of a task; both may be expressions", "type", "retries"),
    "ioMapping": _runs("inputs and outputs"),
    "input": _runs("in `zeebe:ioMapping`", "source", "target"),
    "output": _runs("in `zeebe:ioMapping`", "source", "target"),
    "taskHeaders": _runs("given to the worker as they are"),
    "header": _runs("in `zeebe:taskHeaders`", "key", "value"),
    "subscription": _runs("the correlation key of a message", "correlationKey"),
    "calledElement": _runs(
        "the process of a call activity", "processId", "propagateAllChildVariables",
        "propagateAllParentVariables", "bindingType", "versionTag",
    ),
    "loopCharacteristics": _runs(
        "of multi-instance activities", "inputCollection", "inputElement", "outputCollection",
        "outputElement",
    ),
    "script": _runs("of script tasks", "expression", "resultVariable"),
    "versionTag": _runs("of a process: calls find the version by it", "value"),
    "assignmentDefinition": _runs(
        "of user tasks: headers of the job", "assignee", "candidateGroups", "candidateUsers"
    ),
    "formDefinition": _runs(
        "of user tasks: headers of the job", "formKey", "formId", "externalReference"
    ),
    "taskSchedule": _runs("of user tasks: headers of the job", "dueDate", "followUpDate"),
    "priorityDefinition": _runs("of user tasks: a header of the job", "priority"),
    "userTask": _ignored("every user task is a job of the type `io.camunda.zeebe:userTask`"),
    "userTaskForm": _ignored("forms are not kept: the worker gets the form's key"),
    "properties": _ignored("nothing here reads properties"),
    "property": _ignored("nothing here reads properties"),
    "linkedResources": _ignored("nothing but BPMN is deployed"),
    "linkedResource": _ignored("nothing but BPMN is deployed"),
    "calledDecision": _refused("there is no DMN"),
    "executionListeners": _refused("a task before or after does the same"),
    "executionListener": _refused("a task before or after does the same"),
    "taskListeners": _refused("a task before or after does the same"),
    "taskListener": _refused("a task before or after does the same"),
    "publishMessage": _refused("a worker publishes it"),
    "adHoc": _refused("there are no ad-hoc sub-processes"),
    "conditionalFilter": _refused("there are no conditional events"),
    "jobPriorityDefinition": _refused("jobs of processes all have the same priority"),
    "agentDefinition": _refused("there are no agents"),
}  # fmt: skip

HARMLESS_ATTRIBUTES = frozenset({
    "id", "name",
    "definitions targetNamespace", "definitions exporter", "definitions exporterVersion",
    "definitions typeLanguage",
    "process processType", "process isClosed", "process definitionalCollaborationRef",
    "exclusiveGateway gatewayDirection", "inclusiveGateway gatewayDirection",
    "parallelGateway gatewayDirection", "eventBasedGateway gatewayDirection",
    "sequenceFlow isImmediate",  # the standard forbids it in what is executed
    "scriptTask scriptFormat",  # a `<script>` that is left over is named itself
})  # fmt: skip
"""What is for the reader of a file, in every element or in one: it asks for nothing."""

DEFAULTS: dict[str, str] = {
    "expressionLanguage": "http://www.w3.org/1999/XPath",
    "isInterrupting": "true",
    "implementation": "##WebService",
    "bindingType": "latest",
}
"""What the schema says where a file says nothing; modelers write some of it out."""

ATTRIBUTES: dict[str, str] = {
    "definitions expressionLanguage": "every expression is read as FEEL",
    "startEvent isInterrupting": "only event sub-processes are interrupted by their start",
    "implementation": "how a service is called is the worker's affair",
    "operationRef": "how a service is called is the worker's affair",
    "sendTask messageRef": "what is sent is the worker's affair",
    "messageEventDefinition messageRef": "what is thrown is the worker's affair",
    "default": "only exclusive and inclusive gateways decide between their flows",
    "language": "every expression is read as FEEL",
    "evaluatesToTypeRef": "types are not declared",
    "itemRef": "types are not declared",
    "structureRef": "types are not declared",
    "oneBehaviorEventRef": "an activity throws no events of its own",
    "noneBehaviorEventRef": "an activity throws no events of its own",
    "calledElement": "`zeebe:calledElement` names the process",
    "calledElement processIdExpression": "`processId` may be an expression",
    "calledElement businessId": "there are no business ids",
    "calledElement versionTag": "`bindingType` is not `versionTag`",
    "formDefinition bindingType": "forms are not kept: the worker gets the form's key or id",
    "formDefinition versionTag": "forms are not kept: the worker gets the form's key or id",
    "zeebe:retryCounter": "Zeebe does not read it either",
}
"""Why an attribute is not read: of one element, or of all that can have it."""

MODELER_ATTRIBUTES = frozenset({
    "modelerTemplate", "modelerTemplateVersion", "modelerTemplateIcon",
    "modelerConfigurationTemplate", "modelerConfigurationName",
})  # fmt: skip
"""`zeebe:` attributes, and `zeebe:modelerTemplate...`, by which a modeler remembers a template."""

HARMLESS_SPACES = frozenset({
    "http://www.omg.org/spec/BPMN/20100524/DI",
    "http://www.omg.org/spec/DD/20100524/DC",
    "http://www.omg.org/spec/DD/20100524/DI",
    "http://www.w3.org/2001/XMLSchema-instance",
    "http://www.w3.org/XML/1998/namespace",
    "http://camunda.org/schema/modeler/1.0",
    "http://bpmn.io/schema/bpmn/biocolor/1.0",
    "http://www.omg.org/spec/BPMN/non-normative/color/1.0",
})  # fmt: skip
"""Namespaces of pictures, colours and modelers: they say how a file looks."""

FOREIGN_SPACES: dict[str, str] = {
    "http://camunda.org/schema/1.0/bpmn": ("these are extensions of Camunda 7: use those of Zeebe"),
}
"""What is told about another maker's namespace, where more than its name is known."""
