"""The instance's side of waiting for a message."""

from holdfast.engine.kernel import Turn
from holdfast.engine.messages.values import (
    NewSubscription,
    Offer,
    OfferAnswer,
    SubscriptionIntent,
    SubscriptionRef,
)
from holdfast.engine.parcels.commands import send
from holdfast.engine.processes import ops
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.walk import Walk
from holdfast.engine.state import EngineState
from holdfast.records import ValueType, partition_for, partition_of

SUBSCRIPTION = ValueType.MESSAGE_SUBSCRIPTION


def subscribe(walk: Walk, key: int, element: int, event: Node, name: str, correlation: str) -> None:
    """The element waits: the partition of the correlation key is told."""
    walk.do(ops.Subscribed(key, element, event.index, name, correlation))
    turn, process_id = walk.turn, walk.plan.process_id
    once = event.element.interrupting
    new = NewSubscription(name, correlation, process_id, once)
    to = partition_for(correlation, turn.state.partitions)
    walk.behind.append(lambda: send(turn, to, SUBSCRIPTION, SubscriptionIntent.OPEN, key, new))


def migrate(walk: Walk, key: int, event: Node) -> None:
    """The element that waits is one of another process: a message is given to one of each."""
    subscription = walk.processes.subscriptions.get(key)
    assert subscription is not None, f"subscription {key} is not there"
    once = event.element.interrupting
    new = NewSubscription(subscription.name, subscription.correlation, walk.plan.process_id, once)
    turn, to = walk.turn, partition_for(subscription.correlation, walk.turn.state.partitions)
    walk.behind.append(lambda: send(turn, to, SUBSCRIPTION, SubscriptionIntent.MIGRATE, key, new))


def unsubscribe(walk: Walk, key: int, element: int, node: int) -> None:
    """The element waits no longer: the partition of the correlation key is told."""
    subscription = walk.processes.subscriptions.get(key)
    assert subscription is not None, f"subscription {key} is not there"
    walk.do(ops.Unsubscribed(key, element, node))
    turn, ref = walk.turn, SubscriptionRef(subscription.name, subscription.correlation)
    to = partition_for(subscription.correlation, turn.state.partitions)
    walk.behind.append(lambda: send(turn, to, SUBSCRIPTION, SubscriptionIntent.CLOSE, key, ref))


def answer(turn: Turn[EngineState], key: int, offer: Offer, taken: bool) -> None:
    """Tells the message's partition what became of its offer."""
    to = partition_of(offer.message)
    told = OfferAnswer(offer.message, offer.process_id, taken)
    send(turn, to, SUBSCRIPTION, SubscriptionIntent.ANSWER, key, told)
