"""What is asked of messages and subscriptions."""

from holdfast.engine.kernel import Turn
from holdfast.engine.messages.starting import start_instances, start_next
from holdfast.engine.messages.values import (
    MessageIntent,
    MessageRef,
    NewMessage,
    NewSubscription,
    Offer,
    OfferAnswer,
    SubscriptionIntent,
    SubscriptionRef,
    id_of,
)
from holdfast.engine.parcels.commands import send
from holdfast.engine.processes.variables import from_json
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import RESERVED_MESSAGE
from holdfast.errors import Code, InvalidArgument
from holdfast.records import Record, ValueType, partition_of

MESSAGE, SUBSCRIPTION = ValueType.MESSAGE, ValueType.MESSAGE_SUBSCRIPTION


def publish(turn: Turn[EngineState], command: Record) -> None:
    """The message goes to those that wait, one instance of each process, and is kept for others."""
    new: NewMessage = command.value
    known = turn.state.messages.by_id(new)
    if known is not None:
        reason = f"Expected a new message id, but {new.message_id!r} was published and is kept"
        return turn.reject(command, Code.ALREADY_EXISTS, reason, key=known)
    by = turn.state.transactions.reserver(RESERVED_MESSAGE, id_of(new)) if new.message_id else None
    if by is not None:
        reason = f"Message id {new.message_id!r} is reserved by transaction {by}; try again"
        return turn.reject(command, Code.UNAVAILABLE, reason, key=by)
    try:
        from_json(new.variables)
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    key = command.key or turn.new_key()
    turn.event(MESSAGE, MessageIntent.PUBLISHED, key, new)
    started = start_instances(turn, key, new)
    for subscription, process_id in turn.state.messages.next_of_each(new.name, new.correlation):
        _offer(turn, subscription, process_id, key, new)
    turn.answer(started, key)


def _offer(
    turn: Turn[EngineState], subscription: int, process_id: str, key: int, message: NewMessage
) -> None:
    turn.event(SUBSCRIPTION, SubscriptionIntent.OFFERED, subscription, Offer(key, process_id))
    offer = Offer(key, process_id, message.variables)
    to = partition_of(subscription)
    send(turn, to, SUBSCRIPTION, SubscriptionIntent.CORRELATE, subscription, offer)


def expire(turn: Turn[EngineState], command: Record) -> None:
    """The time of a message is over."""
    if turn.state.messages.messages.get(command.key) is None:
        reason = f"There is no message with key {command.key}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    turn.event(MESSAGE, MessageIntent.EXPIRED, command.key, MessageRef())


def start(turn: Turn[EngineState], command: Record) -> None:
    """An instance ended that a message had started: the next one may."""
    start_next(turn, command)


# --- subscriptions, on the partition of their key ---------------------------------------------


def open_(turn: Turn[EngineState], command: Record) -> None:
    """An element waits; perhaps the message is here already."""
    new: NewSubscription = command.value
    turn.event(SUBSCRIPTION, SubscriptionIntent.OPENED, command.key, new)
    _offer_kept(turn, command.key, new)


def _offer_kept(turn: Turn[EngineState], subscription: int, new: NewSubscription) -> None:
    """The oldest kept message that no instance of the process has had."""
    messages = turn.state.messages
    for key in messages.kept(new.name, new.correlation):
        if not messages.is_taken(key, new.process_id):
            stored = messages.messages.get(key)
            assert stored is not None
            _offer(turn, subscription, new.process_id, key, stored.message)
            return


def migrate(turn: Turn[EngineState], command: Record) -> None:
    """The element is one of another process, which may not have had a message that is kept."""
    new: NewSubscription = command.value
    turn.event(SUBSCRIPTION, SubscriptionIntent.MIGRATED, command.key, new)
    row = turn.state.messages.subscriptions.get(command.key)
    if row is not None and not row.offered:
        _offer_kept(turn, command.key, new)


def close(turn: Turn[EngineState], command: Record) -> None:
    """The element waits no longer. A message that is on its way comes back with the answer."""
    turn.event(SUBSCRIPTION, SubscriptionIntent.CLOSED, command.key, SubscriptionRef())


def answer(turn: Turn[EngineState], command: Record) -> None:
    """What became of an offer. A message that was not taken goes to the next that waits."""
    told: OfferAnswer = command.value
    messages = turn.state.messages
    turn.event(SUBSCRIPTION, SubscriptionIntent.ANSWERED, command.key, told)
    if told.taken:
        row = messages.subscriptions.get(command.key)
        if row is not None and not row.offered:
            _offer_kept(turn, command.key, row.subscription)
        return
    stored = messages.messages.get(told.message)
    if stored is None:
        return
    message = stored.message
    for key, process_id in messages.next_of_each(message.name, message.correlation):
        if process_id == told.process_id:
            _offer(turn, key, process_id, told.message, message)
