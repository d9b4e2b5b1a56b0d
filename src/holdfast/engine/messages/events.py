"""What happens to the state when something happened to a message or a subscription."""

from holdfast.engine.messages.values import (
    MessageStart,
    NewMessage,
    NewSubscription,
    Offer,
    OfferAnswer,
)
from holdfast.engine.state import EngineState
from holdfast.records import Record


def published(state: EngineState, event: Record) -> None:
    message: NewMessage = event.value
    if message.ttl_ms:
        state.messages.keep(event.key, message, event.timestamp_ms + message.ttl_ms)


def expired(state: EngineState, event: Record) -> None:
    state.messages.expire(event.key)


def started(state: EngineState, event: Record) -> None:
    start: MessageStart = event.value
    state.messages.take(event.key, start.process_id)


def opened(state: EngineState, event: Record) -> None:
    new: NewSubscription = event.value
    state.messages.open(event.key, new)


def migrated(state: EngineState, event: Record) -> None:
    new: NewSubscription = event.value
    state.messages.migrate(event.key, new)


def closed(state: EngineState, event: Record) -> None:
    state.messages.close(event.key)


def offered(state: EngineState, event: Record) -> None:
    offer: Offer = event.value
    state.messages.offer(event.key, offer.message)
    state.messages.take(offer.message, offer.process_id)


def answered(state: EngineState, event: Record) -> None:
    answer: OfferAnswer = event.value
    messages = state.messages
    subscription = messages.subscriptions.get(event.key)
    if not answer.taken:
        messages.give_back(answer.message, answer.process_id)
        messages.close(event.key)
    elif subscription is not None and subscription.subscription.interrupting:
        messages.close(event.key)
    else:
        messages.offer(event.key, 0)
