"""The tables of the messages room."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.engine.messages import commands, events
from holdfast.engine.messages.values import (
    MESSAGE_VALUES,
    SUBSCRIPTION_VALUES,
    MessageIntent,
    MessageRef,
    SubscriptionIntent,
)
from holdfast.engine.needs import with_named
from holdfast.engine.processes.correlating import correlate
from holdfast.records import ValueType

MESSAGE: Domain = Domain(
    value_type=ValueType.MESSAGE,
    intents=MessageIntent,
    values=MESSAGE_VALUES,
    commands={
        MessageIntent.PUBLISH: commands.publish,
        MessageIntent.EXPIRE: commands.expire,
        MessageIntent.START: commands.start,
    },
    appliers={
        MessageIntent.PUBLISHED: events.published,
        MessageIntent.EXPIRED: events.expired,
        MessageIntent.STARTED: events.started,
    },
    needs={
        MessageIntent.PUBLISH: with_named(
            ResourceType.MESSAGE, Permission.CREATE, lambda new: new.name
        )
    },
    answers={MessageIntent.PUBLISH: list[int]},
    due={DueKind.MESSAGE: WhenDue(MessageIntent.EXPIRE, lambda _: MessageRef())},
)

MESSAGE_SUBSCRIPTION: Domain = Domain(
    value_type=ValueType.MESSAGE_SUBSCRIPTION,
    intents=SubscriptionIntent,
    values=SUBSCRIPTION_VALUES,
    commands={
        SubscriptionIntent.OPEN: commands.open_,
        SubscriptionIntent.CLOSE: commands.close,
        SubscriptionIntent.CORRELATE: correlate,
        SubscriptionIntent.ANSWER: commands.answer,
        SubscriptionIntent.MIGRATE: commands.migrate,
    },
    appliers={
        SubscriptionIntent.OPENED: events.opened,
        SubscriptionIntent.CLOSED: events.closed,
        SubscriptionIntent.OFFERED: events.offered,
        SubscriptionIntent.ANSWERED: events.answered,
        SubscriptionIntent.MIGRATED: events.migrated,
    },
)
