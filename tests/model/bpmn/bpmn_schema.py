"""The public schema of BPMN 2.0 and of Zeebe's extensions, as names: what a file can have.

Facts only: which types there are, what they are kinds of, their attributes and their children.
`*` marks a type that no element has; `+Type` stands for every element of that type. Attributes have
a kind (flag, number, text or the words that are allowed) and a default, if the schema has one.
"""

from functools import cache
from typing import NamedTuple

_BPMN = """
Activity* < FlowNode | isForCompensation:flag=false default:text startQuantity:number=1
    completionQuantity:number=1 | ioSpecification boundaryEventRefs +Property
    +DataInputAssociation +DataOutputAssociation +ResourceRole +LoopCharacteristics
AdHocSubProcess < SubProcess | ordering:Parallel/Sequential cancelRemainingInstances:flag=true |
    completionCondition
Artifact* < BaseElement | - | -
Assignment < BaseElement | - | from to
Association < Artifact | associationDirection:None/One/Both sourceRef:text targetRef:text | -
Auditing < BaseElement | - | -
BaseElement* < - | id:text | +Documentation extensionDefinitions +ExtensionElements
BoundaryEvent < CatchEvent | cancelActivity:flag=true attachedToRef:text | -
BusinessRuleTask < Task | implementation:text | -
CallActivity < Activity InteractionNode | calledElement:text | -
CallChoreography < ChoreographyActivity | calledChoreographyRef:text | +ParticipantAssociation
CallConversation < ConversationNode | calledCollaborationRef:text | +ParticipantAssociation
CallableElement* < RootElement | name:text | ioSpecification supportedInterfaceRef ioBinding
CancelEventDefinition < EventDefinition | - | -
CatchEvent* < Event | parallelMultiple:flag=false | +DataOutput +DataOutputAssociation
    +OutputSet +EventDefinition eventDefinitionRef
Category < RootElement | name:text | +CategoryValue
CategoryValue < BaseElement | value:text | -
Choreography < Collaboration FlowElementsContainer | - | -
ChoreographyActivity* < FlowNode | initiatingParticipantRef:text
    loopType:None/Standard/MultiInstanceSequential/MultiInstanceParallel=None | participantRef
    +CorrelationKey
ChoreographyTask < ChoreographyActivity | - | messageFlowRef
Collaboration < RootElement | name:text isClosed:flag | +Participant +MessageFlow +Artifact
    +ConversationNode +ConversationAssociation +ParticipantAssociation +MessageFlowAssociation
    +CorrelationKey choreographyRef +ConversationLink
CompensateEventDefinition < EventDefinition | waitForCompletion:flag=true activityRef:text | -
ComplexBehaviorDefinition < BaseElement | - | +FormalExpression +ImplicitThrowEvent
ComplexGateway < Gateway | default:text | activationCondition
ConditionalEventDefinition < EventDefinition | - | condition
Conversation < ConversationNode | - | -
ConversationAssociation < BaseElement | innerConversationNodeRef:text
    outerConversationNodeRef:text | -
ConversationLink < BaseElement | sourceRef:text targetRef:text name:text | -
ConversationNode* < InteractionNode BaseElement | name:text | participantRef messageFlowRefs
    +CorrelationKey
CorrelationKey < BaseElement | name:text | correlationPropertyRef
CorrelationProperty < RootElement | name:text type:text |
    +CorrelationPropertyRetrievalExpression
CorrelationPropertyBinding < BaseElement | correlationPropertyRef:text | +FormalExpression
CorrelationPropertyRetrievalExpression < BaseElement | messageRef:text | +FormalExpression
CorrelationSubscription < BaseElement | correlationKeyRef:text | +CorrelationPropertyBinding
DataAssociation < BaseElement | - | sourceRef targetRef transformation +Assignment
DataInput < ItemAwareElement | name:text isCollection:flag=false | -
DataInputAssociation < DataAssociation | - | -
DataObject < FlowElement ItemAwareElement | isCollection:flag=false | -
DataObjectReference < ItemAwareElement FlowElement | dataObjectRef:text | -
DataOutput < ItemAwareElement | name:text isCollection:flag=false | -
DataOutputAssociation < DataAssociation | - | -
DataState < BaseElement | name:text | -
DataStore < RootElement ItemAwareElement | name:text capacity:number isUnlimited:flag=true | -
DataStoreReference < ItemAwareElement FlowElement | dataStoreRef:text | -
Definitions < BaseElement | name:text targetNamespace:text
    expressionLanguage:text=http://www.w3.org/1999/XPath
    typeLanguage:text=http://www.w3.org/2001/XMLSchema exporter:text exporterVersion:text |
    +Import +Extension +RootElement +Relationship
Documentation < BaseElement | textFormat:text=text/plain | -
EndEvent < ThrowEvent | - | -
EndPoint < RootElement | - | -
Error < RootElement | structureRef:text name:text errorCode:text | -
ErrorEventDefinition < EventDefinition | errorRef:text | -
Escalation < RootElement | structureRef:text name:text escalationCode:text | -
EscalationEventDefinition < EventDefinition | escalationRef:text | -
Event* < FlowNode InteractionNode | - | +Property
EventBasedGateway < Gateway | instantiate:flag=false
    eventGatewayType:Parallel/Exclusive=Exclusive | -
EventDefinition* < RootElement | - | -
ExclusiveGateway < Gateway | default:text | -
Expression < BaseElement | - | -
Extension < - | mustUnderstand:flag=false definition:text | -
ExtensionAttributeDefinition < - | name:text type:text isReference:flag=false
    extensionDefinition:text | -
ExtensionDefinition < - | name:text | +ExtensionAttributeDefinition
ExtensionElements < - | valueRef:text extensionAttributeDefinition:text | -
FlowElement* < BaseElement | name:text | +Auditing +Monitoring categoryValueRef
FlowElementsContainer* < BaseElement | - | +LaneSet +FlowElement
FlowNode* < FlowElement | - | incoming outgoing
FormalExpression < Expression | language:text evaluatesToTypeRef:text | -
Gateway* < FlowNode | gatewayDirection:Unspecified/Converging/Diverging/Mixed=Unspecified | -
GlobalBusinessRuleTask < GlobalTask | implementation:text | -
GlobalChoreographyTask < Choreography | initiatingParticipantRef:text | -
GlobalConversation < Collaboration | - | -
GlobalManualTask < GlobalTask | - | -
GlobalScriptTask < GlobalTask | scriptLanguage:text script:text | -
GlobalTask < CallableElement | - | +ResourceRole
GlobalUserTask < GlobalTask | implementation:text | +Rendering
Group < Artifact | categoryValueRef:text | -
HumanPerformer < Performer | - | -
ImplicitThrowEvent < ThrowEvent | - | -
Import < - | importType:text location:text namespace:text | -
InclusiveGateway < Gateway | default:text | -
InputOutputBinding < - | inputDataRef:text outputDataRef:text operationRef:text | -
InputOutputSpecification < BaseElement | - | +DataInput +DataOutput +InputSet +OutputSet
InputSet < BaseElement | name:text | dataInputRefs optionalInputRefs whileExecutingInputRefs
    outputSetRefs
InteractionNode* < - | - | -
Interface < RootElement | name:text implementationRef:text | +Operation
IntermediateCatchEvent < CatchEvent | - | -
IntermediateThrowEvent < ThrowEvent | - | -
ItemAwareElement < BaseElement | itemSubjectRef:text | +DataState
ItemDefinition < RootElement | itemKind:Physical/Information structureRef:text
    isCollection:flag=false import:text | -
Lane < BaseElement | name:text partitionElementRef:text | +BaseElement flowNodeRef childLaneSet
LaneSet < BaseElement | name:text | +Lane
LinkEventDefinition < EventDefinition | name:text | target source
LoopCharacteristics* < BaseElement | - | -
ManualTask < Task | - | -
Message < RootElement | name:text itemRef:text | -
MessageEventDefinition < EventDefinition | messageRef:text | operationRef
MessageFlow < BaseElement | name:text sourceRef:text targetRef:text messageRef:text | -
MessageFlowAssociation < BaseElement | innerMessageFlowRef:text outerMessageFlowRef:text | -
Monitoring < BaseElement | - | -
MultiInstanceLoopCharacteristics < LoopCharacteristics | isSequential:flag=false
    behavior:None/One/All/Complex=All oneBehaviorEventRef:text noneBehaviorEventRef:text |
    loopCardinality loopDataInputRef loopDataOutputRef inputDataItem outputDataItem
    +ComplexBehaviorDefinition completionCondition
Operation < BaseElement | name:text implementationRef:text | inMessageRef outMessageRef errorRef
OutputSet < BaseElement | name:text | dataOutputRefs inputSetRefs optionalOutputRefs
    whileExecutingOutputRefs
ParallelGateway < Gateway | - | -
Participant < InteractionNode BaseElement | name:text processRef:text | interfaceRef
    +ParticipantMultiplicity endPointRefs
ParticipantAssociation < BaseElement | innerParticipantRef:text outerParticipantRef:text | -
ParticipantMultiplicity < BaseElement | minimum:number=0 maximum:number=1 | -
PartnerEntity < RootElement | name:text | participantRef
PartnerRole < RootElement | name:text | participantRef
Performer < ResourceRole | - | -
PotentialOwner < HumanPerformer | - | -
Process < FlowElementsContainer CallableElement | processType:None/Public/Private isClosed:flag
    definitionalCollaborationRef:text isExecutable:flag | +Auditing +Monitoring +Property
    +LaneSet +FlowElement +Artifact +ResourceRole +CorrelationSubscription supports
Property < ItemAwareElement | name:text | -
ReceiveTask < Task | implementation:text instantiate:flag=false operationRef:text
    messageRef:text | -
Relationship < BaseElement | type:text direction:None/Forward/Backward/Both | source target
Rendering < BaseElement | - | -
Resource < RootElement | name:text | +ResourceParameter
ResourceAssignmentExpression < BaseElement | - | expression
ResourceParameter < BaseElement | name:text isRequired:flag type:text | -
ResourceParameterBinding < BaseElement | parameterRef:text | expression
ResourceRole < BaseElement | name:text | resourceRef +ResourceParameterBinding
    +ResourceAssignmentExpression
RootElement* < BaseElement | - | -
ScriptTask < Task | scriptFormat:text | script
SendTask < Task | implementation:text operationRef:text messageRef:text | -
SequenceFlow < FlowElement | isImmediate:flag sourceRef:text targetRef:text |
    conditionExpression
ServiceTask < Task | implementation:text operationRef:text | -
Signal < RootElement | structureRef:text name:text | -
SignalEventDefinition < EventDefinition | signalRef:text | -
StandardLoopCharacteristics < LoopCharacteristics | testBefore:flag=false loopMaximum:number |
    loopCondition
StartEvent < CatchEvent | isInterrupting:flag=true | -
SubChoreography < ChoreographyActivity FlowElementsContainer | - | +Artifact
SubConversation < ConversationNode | - | +ConversationNode
SubProcess < Activity FlowElementsContainer InteractionNode | triggeredByEvent:flag=false |
    +Artifact
Task < Activity InteractionNode | - | -
TerminateEventDefinition < EventDefinition | - | -
TextAnnotation < Artifact | textFormat:text=text/plain | text
ThrowEvent* < Event | - | +DataInput +DataInputAssociation +InputSet +EventDefinition
    eventDefinitionRef
TimerEventDefinition < EventDefinition | - | timeDate timeCycle timeDuration
Transaction < SubProcess | protocol:text method:text | -
UserTask < Task | implementation:text | +Rendering
"""

_ZEEBE = """
ioMapping | - | input output
subscription | correlationKey | -
input | source target modelerConfigurationTemplate modelerConfigurationName | -
output | source target | -
taskHeaders | - | header
header | id key value | -
taskDefinition | type retries | -
loopCharacteristics | inputCollection inputElement outputCollection outputElement | -
calledElement | processId processIdExpression propagateAllChildVariables
    propagateAllParentVariables businessId bindingType versionTag | -
userTaskForm | id | -
formDefinition | formKey formId externalReference bindingType versionTag | -
linkedResource | resourceId resourceType linkName bindingType versionTag | -
linkedResources | - | linkedResource
userTask | - | -
calledDecision | decisionId resultVariable bindingType versionTag | -
assignmentDefinition | assignee candidateGroups candidateUsers | -
priorityDefinition | priority | -
jobPriorityDefinition | priority | -
taskSchedule | dueDate followUpDate | -
properties | - | property
property | name value modelerConfigurationTemplate modelerConfigurationName | -
script | expression resultVariable | -
executionListeners | - | executionListener
executionListener | eventType retries type | taskHeaders
taskListeners | - | taskListener
taskListener | eventType retries type | -
versionTag | value | -
adHoc | activeElementsCollection outputCollection outputElement | -
conditionalFilter | variableNames variableEvents | -
agentDefinition | agentType | -
"""


class Attribute(NamedTuple):
    """An attribute, with a value that is not its default."""

    name: str
    other: str


class _Type(NamedTuple):
    bases: list[str]
    attributes: list[Attribute]
    children: list[str]
    is_abstract: bool


def _rows(text: str) -> list[list[str]]:
    joined = text.strip().replace("\n    ", " ").splitlines()
    return [[part.strip() for part in row.split("|")] for row in joined]


def _words(text: str) -> list[str]:
    return [] if text == "-" else text.split()


def _attribute(text: str) -> Attribute:
    name, _, rest = text.partition(":")
    kind, _, default = rest.partition("=")
    match kind:
        case "flag":
            other = "false" if default == "true" else "true"
        case "number":
            other = str(int(default or 1) + 1)
        case "text":
            other = "elsewhere"
        case _:
            other = next(word for word in kind.split("/") if word != default)
    return Attribute(name, other)


_TYPES: dict[str, _Type] = {}
for _head, _attributes, _children in _rows(_BPMN):
    _name, _, _bases = _head.partition(" < ")
    _TYPES[_name.removesuffix("*")] = _Type(
        _words(_bases),
        [_attribute(each) for each in _words(_attributes)],
        _words(_children),
        _name.endswith("*"),
    )

EXTENSIONS: dict[str, tuple[list[str], list[str]]] = {
    tag: (_words(attributes), _words(children)) for tag, attributes, children in _rows(_ZEEBE)
}
"""Zeebe's extension elements: their attributes and their children."""
ZEEBE_ATTRIBUTES = (
    "retryCounter",
    "modelerTemplate",
    "modelerTemplateVersion",
    "modelerTemplateIcon",
)
"""Zeebe's attributes of BPMN elements."""


def _tag(type_: str) -> str:
    return _NAMED.get(type_, type_[0].lower() + type_[1:])


_NAMED = {"InputOutputSpecification": "ioSpecification", "InputOutputBinding": "ioBinding"}


@cache
def _is(type_: str, base: str) -> bool:
    return type_ == base or any(_is(each, base) for each in _TYPES[type_].bases)


def _elements_of(base: str) -> list[str]:
    return [_tag(each) for each, row in _TYPES.items() if not row.is_abstract and _is(each, base)]


def _all_attributes(type_: str) -> list[Attribute]:
    row = _TYPES[type_]
    return [*row.attributes, *(each for base in row.bases for each in _all_attributes(base))]


def _all_children(type_: str) -> list[str]:
    row = _TYPES[type_]
    return [*row.children, *(each for base in row.bases for each in _all_children(base))]


def _named(child: str) -> list[str]:
    return _elements_of(child[1:]) if child.startswith("+") else [child]


ELEMENTS: dict[str, tuple[list[Attribute], list[str]]] = {
    _tag(type_): (
        list(dict.fromkeys(_all_attributes(type_))),
        list(dict.fromkeys(tag for child in _all_children(type_) for tag in _named(child))),
    )
    for type_, row in _TYPES.items()
    if not row.is_abstract
}
"""Every element of BPMN: its attributes, and the elements that it can have."""

EXPRESSIONS = {
    "conditionExpression", "timeDate", "timeCycle", "timeDuration", "completionCondition",
    "loopCardinality", "loopCondition", "condition", "activationCondition", "from", "to",
    "expression", "transformation", "messagePath", "dataPath",
}  # fmt: skip
"""Elements that are of the type of a formal expression, whatever they are called."""
for _each in EXPRESSIONS:
    ELEMENTS.setdefault(_each, ELEMENTS["formalExpression"])
