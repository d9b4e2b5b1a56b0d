"""The shapes of the API about processes and messages."""

from datetime import datetime
from enum import StrEnum

import msgspec

from holdfast.gateway.numbers import Limit, PauseMs, SpanMs, TtlMs, Version
from holdfast.gateway.shapes import ListScope, Question, Shape, no_variables


def _variables() -> msgspec.Raw:
    """No variables as a default; by a factory, because JSON Schema cannot be made from a Raw."""
    return msgspec.field(default_factory=no_variables)


# --- definitions ------------------------------------------------------------------------------


class Resource(Question, frozen=True):
    """A BPMN file."""

    name: str
    content: str  # the XML


class NewDeployment(Question, frozen=True):
    """BPMN files to deploy together."""

    resources: list[Resource]


class IgnoredPart(Shape, frozen=True):
    """A part of a BPMN file that holdfast ignores."""

    element: str  # the id of the element that has it; empty: the file as a whole
    line: int  # in the file, from 1
    what: str  # the element or the attribute
    why: str


class ProcessDefinition(Shape, frozen=True):
    """A version of a process."""

    process_definition_key: str
    process_id: str
    version: int
    name: str
    deployed: datetime
    created: bool = False  # in the answer to a deployment: False if this version existed already
    distributed: bool = True  # False until every partition has it
    # in the answer to a deployment: parts of the file that holdfast ignores
    ignored: list[IgnoredPart] = msgspec.field(default_factory=list)


class ProcessDefinitions(Shape, frozen=True):
    """Versions of processes, by id and version."""

    items: list[ProcessDefinition]


class ProcessDefinitionQuery(Question, frozen=True):
    """Which definitions to list."""

    process_id: str | None = None
    latest: bool = False


class ProcessSource(Shape, frozen=True):
    """A definition as BPMN."""

    process_definition_key: str
    content: str


class ElementCount(Shape, frozen=True):
    """An element of a version, and what is there now."""

    element_id: str
    tokens: int  # without those that an incident stops
    incidents: int


class ElementCounts(Shape, frozen=True):
    """Where the running instances of a version are."""

    items: list[ElementCount]  # those that have something
    looked_at: int  # active elements that were read, of all versions
    is_whole: bool = True  # False: there are more than were looked at


# --- instances --------------------------------------------------------------------------------


class NewProcessInstance(Question, frozen=True):
    """A process to start."""

    process_id: str
    version: Version = 0  # 0: the latest
    variables: msgspec.Raw = _variables()  # a JSON object
    key: str | None = (
        None  # idempotency key: the same key within its window names the same instance
    )
    window_ms: PauseMs | None = None  # how long the key is remembered; None: the node's setting
    keep_ms: SpanMs | None = None  # how long the outcome is kept; None: the node's setting
    # for the workers of its jobs, such as W3C's traceparent
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class NewProcessInstances(Question, frozen=True):
    """Processes to start together."""

    instances: list[NewProcessInstance]


class ProcessInstanceReceipt(Shape, frozen=True):
    """The instance is durable."""

    process_instance_key: str
    created: bool  # False: an instance with this idempotency key existed already


class ProcessInstanceReceipts(Shape, frozen=True):
    """One receipt for each instance, in the order of the request."""

    instances: list[ProcessInstanceReceipt]


class ElementState(StrEnum):
    """Where an element instance stands."""

    ACTIVE = "ACTIVE"
    INCIDENT = "INCIDENT"
    TERMINATING = "TERMINATING"


class ElementView(Shape, frozen=True, omit_defaults=True):
    """An active element, and those inside it."""

    element_instance_key: str
    element_id: str
    kind: str
    state: ElementState
    created: datetime
    name: str = ""
    item: int = 0  # of a multi-instance activity: its number from 1
    job_key: str | None = None
    called_instance_key: str | None = None
    incident_key: str | None = None
    waits_for: list[str] = msgspec.field(default_factory=list)  # times and messages
    items_total: int = 0
    items_done: int = 0
    children: list["ElementView"] = msgspec.field(default_factory=list)


class InstanceState(StrEnum):
    """Where a process instance stands."""

    ACTIVE = "ACTIVE"
    TERMINATING = "TERMINATING"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"


class ProcessInstanceView(Shape, frozen=True, omit_defaults=True):
    """A process instance."""

    process_instance_key: str
    process_id: str
    state: InstanceState
    version: int = 0
    process_definition_key: str | None = None
    parent_element_key: str | None = None
    created: datetime | None = None
    finished: datetime | None = None
    variables: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    elements: list[ElementView] = msgspec.field(default_factory=list)
    more_elements: bool = False  # there are more than are shown
    incidents: int = 0


class ProcessInstanceQuery(Question, frozen=True):
    """Which instances to list."""

    process_id: str | None = None
    version: Version | None = None
    with_incidents: bool = False
    limit: Limit = 100
    after: str | None = None  # from the previous page
    scope: ListScope = ListScope.OPEN
    state: InstanceState | None = None  # one that only ended instances have lists those


class ProcessInstancePage(Shape, frozen=True):
    """Running instances in the order of their keys; then ended ones, the last first."""

    items: list[ProcessInstanceView]
    after: str | None = None
    # everything that ended since then is listed; None: no limit, or ended ones were not requested
    ended_since: datetime | None = None


class NewVariables(Question, frozen=True):
    """New values for variables, as seen from a process instance or an element instance."""

    variables: msgspec.Raw = _variables()
    local: bool = False  # set them in exactly this scope, not in the scope that defines them


class ActivateElement(Question, frozen=True):
    """An element that gets a token."""

    element_id: str
    ancestor_key: str | None = None  # the scope, if there are several
    variables: msgspec.Raw = _variables()


class MoveTokens(Question, frozen=True):
    """Moves every token of one element to another."""

    source_id: str
    target_id: str


class NewModification(Question, frozen=True):
    """Tokens to add, remove and move in an instance."""

    activate: list[ActivateElement] = msgspec.field(default_factory=list)
    terminate: list[str] = msgspec.field(default_factory=list)  # element instance keys
    terminate_ids: list[str] = msgspec.field(default_factory=list)  # all instances of elements
    move: list[MoveTokens] = msgspec.field(default_factory=list)
    variables: msgspec.Raw = _variables()


class MapElement(Question, frozen=True):
    """Which element becomes which."""

    source_id: str = msgspec.field(name="sourceElementId")
    target_id: str = msgspec.field(name="targetElementId")


class NewMigration(Question, frozen=True):
    """Another version for a running instance."""

    process_definition_key: str = msgspec.field(name="targetProcessDefinitionKey")
    elements: list[MapElement] = msgspec.field(
        default_factory=list, name="mappingInstructions"
    )  # those that are not named keep their ids


# --- messages and jobs ------------------------------------------------------------------------


class NewMessage(Question, frozen=True):
    """A message to publish."""

    name: str
    correlation_key: str = ""
    variables: msgspec.Raw = _variables()
    message_id: str | None = None  # published once with this id while it is buffered
    ttl_ms: TtlMs = 0  # how long it is buffered for instances that wait later


class MessagePublication(Question, frozen=True):
    """A message to publish, as it goes over the wire."""

    name: str
    correlation_key: str = ""
    variables: msgspec.Raw = _variables()
    message_id: str | None = None
    time_to_live: TtlMs = 0  # ms
    tenant_id: str | None = None
    business_id: str | None = None


class MessageQuery(Question, frozen=True):
    """Which of the messages to list that are kept for those that wait later."""

    name: str | None = None
    limit: Limit = 100
    after: str | None = None


class MessageView(Shape, frozen=True):
    """A message that is kept for those that wait later."""

    message_key: str
    name: str
    correlation_key: str
    message_id: str | None
    published: datetime | None
    expires: datetime | None
    size_bytes: int  # of its variables


class MessagePage(Shape, frozen=True):
    """Messages in the order of their keys."""

    items: list[MessageView]
    after: str | None = None


class MessageSubscriptionQuery(Question, frozen=True):
    """Which of the elements to list that wait for messages."""

    name: str | None = None
    correlation_key: str | None = None
    process_id: str | None = None
    limit: Limit = 100
    after: str | None = None


class MessageSubscriptionView(Shape, frozen=True):
    """An element of a process instance that waits for a message."""

    subscription_key: str
    name: str
    correlation_key: str
    process_id: str
    interrupting: bool  # it waits for one message only
    process_instance_key: str | None = None  # None: it ends, or is given up, right now
    element_instance_key: str | None = None
    element_id: str | None = None
    offered_message_key: str | None = None  # that it was given and has not answered


class MessageSubscriptionPage(Shape, frozen=True):
    """Subscriptions, partition by partition."""

    items: list[MessageSubscriptionView]
    after: str | None = None


class MessageStartView(Shape, frozen=True):
    """A process that a message starts, in its latest version."""

    name: str
    process_id: str
    process_definition_key: str


class MessageStarts(Shape, frozen=True):
    """The processes that messages start, by the names of the messages."""

    items: list[MessageStartView]


class MessageReceipt(Shape, frozen=True):
    """The message is durable."""

    message_key: str
    started_instance_keys: list[str] = msgspec.field(default_factory=list)  # by the message
