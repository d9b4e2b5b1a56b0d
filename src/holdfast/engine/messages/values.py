"""The words of messages and of the subscriptions that wait for them."""

from enum import IntEnum

import msgspec

from holdfast.records import Value


class MessageIntent(IntEnum):
    """Commands and events of a message. The numbers are on disk."""

    PUBLISH = 0
    PUBLISHED = 1
    EXPIRE = 2
    EXPIRED = 3
    START = 4  # an instance ended: the next message with its key may start another
    STARTED = 5  # an instance was started by the message


class SubscriptionIntent(IntEnum):
    """Commands and events of a subscription. The numbers are on disk.

    A subscription lives on the partition of its key's hash; the instance may live elsewhere.
    """

    OPEN = 0
    OPENED = 1
    CLOSE = 2
    CLOSED = 3
    OFFERED = 4  # it was correlated with a message
    CORRELATE = 5  # to the instance's partition: here is the message
    ANSWER = 6  # back: whether it was still waited for
    ANSWERED = 7
    MIGRATE = 8  # the element that waits is one of another process
    MIGRATED = 9


class NewMessage(Value, frozen=True, tag=72):
    """A message as it was published: PUBLISH and PUBLISHED."""

    name: str
    correlation: str
    variables: bytes = b"{}"  # JSON
    message_id: str = ""  # published once with this id while it is buffered
    ttl_ms: int = 0  # how long it is buffered for later subscriptions


def id_of(message: NewMessage) -> str:
    """What is not published twice: the id counts for a name and a key."""
    return f"{message.name}\x01{message.correlation}\x01{message.message_id}"


class MessageRef(Value, frozen=True, tag=73):
    """Only the message: EXPIRE and EXPIRED."""


class NextStart(Value, frozen=True, tag=74):
    """Which process may start again, and for which key: START."""

    process_id: str
    correlation: str


class MessageStart(Value, frozen=True, tag=75):
    """The instance that a message started: STARTED."""

    process_id: str
    instance: int


class NewSubscription(Value, frozen=True, tag=76):
    """An element that waits: OPEN(ED) and MIGRATE(D). Its key is the subscription's."""

    name: str
    correlation: str
    process_id: str  # a message is given to one instance of each process
    interrupting: bool  # it waits for one message only


class SubscriptionRef(Value, frozen=True, tag=77):
    """Only the subscription: CLOSE and CLOSED."""

    name: str = ""
    correlation: str = ""


class Offer(Value, frozen=True, tag=78):
    """A message for a subscription: OFFERED and CORRELATE."""

    message: int
    process_id: str
    variables: bytes = b"{}"


class OfferAnswer(Value, frozen=True, tag=79):
    """The outcome of the offer: ANSWER and ANSWERED."""

    message: int
    process_id: str
    taken: bool


MESSAGE_VALUES: dict[MessageIntent, type[msgspec.Struct]] = {
    MessageIntent.PUBLISH: NewMessage,
    MessageIntent.PUBLISHED: NewMessage,
    MessageIntent.EXPIRE: MessageRef,
    MessageIntent.EXPIRED: MessageRef,
    MessageIntent.START: NextStart,
    MessageIntent.STARTED: MessageStart,
}

SUBSCRIPTION_VALUES: dict[SubscriptionIntent, type[msgspec.Struct]] = {
    SubscriptionIntent.OPEN: NewSubscription,
    SubscriptionIntent.OPENED: NewSubscription,
    SubscriptionIntent.CLOSE: SubscriptionRef,
    SubscriptionIntent.CLOSED: SubscriptionRef,
    SubscriptionIntent.OFFERED: Offer,
    SubscriptionIntent.CORRELATE: Offer,
    SubscriptionIntent.ANSWER: OfferAnswer,
    SubscriptionIntent.ANSWERED: OfferAnswer,
    SubscriptionIntent.MIGRATE: NewSubscription,
    SubscriptionIntent.MIGRATED: NewSubscription,
}
