"""What can be asked of the messages of a partition."""

from itertools import islice

import msgspec

from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.reader import Reader
from holdfast.limits import QUERY_ROWS_MAX


class FoundReceivers(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who a message would be given to now."""

    subscriptions: list[int]  # of each process the one that waits longest
    can_start: bool  # it would start an instance


class FindReceivers(Query[FoundReceivers], frozen=True):
    """Who waits for a message, on the partition of its correlation key."""

    name: str
    correlation: str


def find_receivers(reader: Reader, query: FindReceivers) -> FoundReceivers:
    state = reader.state
    waiting = state.messages.next_of_each(query.name, query.correlation)
    starts = state.processes.start_messages.get(query.name) or ()
    can_start = any(
        not query.correlation
        or state.messages.locked_by(start.process_id, query.correlation) is None
        for start in starts
    )
    return FoundReceivers([key for key, _ in waiting], can_start)


class FoundMessage(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message that is kept for those that wait later."""

    key: int
    name: str
    correlation: str
    message_id: str
    published_ms: int
    deadline_ms: int
    size_bytes: int  # of its variables


class MessageRows(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some messages, and behind which key to go on; 0 if there are no more."""

    items: list[FoundMessage]
    next_after: int = 0


class ListMessages(Query[MessageRows], frozen=True):
    """Kept messages behind a key, in the order of their keys; a bounded look."""

    after: int
    limit: int
    name: str | None = None


def list_messages(reader: Reader, query: ListMessages) -> MessageRows:
    items: list[FoundMessage] = []
    key = looked_at = 0
    rows = reader.state.messages.messages.scan(start=query.after + 1)
    for key, stored in islice(rows, QUERY_ROWS_MAX):
        looked_at += 1
        message = stored.message
        if query.name not in (None, message.name):
            continue
        if not reader.may(ResourceType.MESSAGE, Permission.READ, message.name):
            continue
        items.append(
            FoundMessage(
                key, message.name, message.correlation, message.message_id,
                stored.deadline_ms - message.ttl_ms, stored.deadline_ms, len(message.variables),
            )
        )  # fmt: skip
        if len(items) == query.limit:
            return MessageRows(items, key)
    return MessageRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


class FoundSubscription(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An element that waits for a message."""

    key: int  # its partition is that of the instance, not the one that keeps the subscription
    name: str
    correlation: str
    process_id: str
    interrupting: bool
    offered: int  # the message that it was given and has not answered; 0: none


class SubscriptionRows(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some subscriptions, and behind which key to go on; 0 if there are no more."""

    items: list[FoundSubscription]
    next_after: int = 0


class ListSubscriptions(Query[SubscriptionRows], frozen=True):
    """Who waits for messages whose correlation keys belong to the partition; a bounded look."""

    after: int
    limit: int
    name: str | None = None
    correlation: str | None = None
    process_id: str | None = None


def list_subscriptions(reader: Reader, query: ListSubscriptions) -> SubscriptionRows:
    items: list[FoundSubscription] = []
    key = looked_at = 0
    rows = reader.state.messages.subscriptions.scan(start=query.after + 1)
    for key, row in islice(rows, QUERY_ROWS_MAX):
        looked_at += 1
        found = row.subscription
        if (
            query.name not in (None, found.name)
            or query.correlation not in (None, found.correlation)
            or query.process_id not in (None, found.process_id)
            or not reader.may_read_instance(found.process_id)
        ):
            continue
        items.append(
            FoundSubscription(
                key, found.name, found.correlation, found.process_id, found.interrupting,
                row.offered,
            )
        )  # fmt: skip
        if len(items) == query.limit:
            return SubscriptionRows(items, key)
    return SubscriptionRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


class FoundStart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A process that a message starts."""

    name: str
    process_id: str
    definition: int


class ListStarts(Query[list[FoundStart]], frozen=True):
    """The processes that messages start; the same on every partition."""


def list_starts(reader: Reader, query: ListStarts) -> list[FoundStart]:
    del query
    return [
        FoundStart(name, each.process_id, each.definition)
        for name, starts in reader.state.processes.start_messages.scan()
        for each in starts
        if reader.may_read_definition(each.process_id)
    ]


class FoundWaiting(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The element that a subscription is for."""

    instance: int
    element: int
    element_id: str


class FindWaiting(Query[list[FoundWaiting | None]], frozen=True):
    """The elements of subscriptions, on the partition of their instances, by their keys.

    None where none waits that may be seen.
    """

    subscriptions: tuple[int, ...]


def find_waiting(reader: Reader, query: FindWaiting) -> list[FoundWaiting | None]:
    return [_waiting(reader, key) for key in query.subscriptions]


def _waiting(reader: Reader, key: int) -> FoundWaiting | None:
    processes = reader.state.processes
    subscription = processes.subscriptions.get(key)
    element = processes.elements.get(subscription.element) if subscription else None
    instance = processes.instances.get(element.instance) if element else None
    if subscription is None or element is None or instance is None:
        return None
    plan = processes.plans[instance.definition]
    if not reader.may_read_instance(plan.process_id):
        return None
    return FoundWaiting(element.instance, subscription.element, plan.nodes[subscription.node].id)


QUERIES = questions(find_receivers, list_messages, list_subscriptions, list_starts, find_waiting)
