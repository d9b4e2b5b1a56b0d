"""One example of every value of processes, messages and parcels."""

from enum import IntEnum

import msgspec

from holdfast.engine.jobs.values import JobIntent, Retry, ThrowError
from holdfast.engine.messages.values import (
    MessageIntent,
    MessageRef,
    MessageStart,
    NewMessage,
    NewSubscription,
    NextStart,
    Offer,
    OfferAnswer,
    SubscriptionIntent,
    SubscriptionRef,
)
from holdfast.engine.parcels.values import Parcel, ParcelIntent, ParcelsUpTo
from holdfast.engine.processes import ops
from holdfast.engine.processes.values import (
    Activate,
    Advance,
    Deployment,
    InstanceIntent,
    InstanceRef,
    Migration,
    Modification,
    NewInstance,
    NewVariables,
    ProcessIntent,
    Return,
    StartFiring,
    StartTimer,
    ThrownError,
)
from holdfast.records import ValueType

TIMER = StartTimer(3, 99, -1, "PT1H")
DEPLOYMENT = Deployment("order", b"body", b"digest", 2, b"<xml/>", (TIMER,), 98)
OPS = (
    ops.Began({"total": b"120"}, 1, 2, 3, "key"),
    ops.Activated(4, 1, 3, ops.Phase.ENTERING, 5, -1),
    ops.Passed(6, 2, 3),
    ops.Completed(4, 1, 3, True),
    ops.Terminated(4, 1, 3, False),
    ops.Changed(4, ops.Phase.TERMINATING, 7, 8, 9),
    ops.Counted(3, 2),
    ops.Arrived(3, 5, 1),
    ops.Joined(3, 5),
    ops.VariablesSet(3, {"paid": b"true"}),
    ops.TimerSet(10, 4, 6, 99, -1, "PT1H"),
    ops.TimerGone(10, 4, 6),
    ops.Subscribed(11, 4, 7, "payment", "42"),
    ops.Unsubscribed(11, 4, 7),
    ops.LoopBegan(4, 3, (b"[1,2,3]",)),
    ops.LoopTaken(4, 3),
    ops.LoopDone(4, 2, b"4"),
    ops.LoopEnded(4),
    ops.Ended(b"{}", True, 60_000, "key"),
    ops.Deferred(4, 99),
    ops.Resumed(4, 99),
    ops.Rebased(12),
    ops.Remapped(4, 8),
    ops.TokensRemapped(3, 5, 6, (1, 0)),
    ops.WaitRemapped(4, 6, 7, 10),
    ops.Remembered("key", 60_000),
    ops.TokensGone(3, 5),
)
ADVANCE = Advance(12, OPS, 99)
MESSAGE = NewMessage("payment", "42", b'{"paid":true}', "id", 60_000)
SUBSCRIPTION = NewSubscription("payment", "42", "order", False)
PARCEL = Parcel(1, 2, 3, 8, 0, 4, b"value")

PROCESS_EXAMPLES: dict[tuple[ValueType, IntEnum], msgspec.Struct] = {
    (ValueType.JOB, JobIntent.THROW_ERROR): ThrowError(7, "OUT", "none left", b'{"left":0}'),
    (ValueType.JOB, JobIntent.ERROR_THROWN): ThrowError(7, "OUT", "none left", b'{"left":0}'),
    (ValueType.JOB, JobIntent.UPDATE_RETRIES): Retry(3),
    (ValueType.JOB, JobIntent.RETRIES_UPDATED): Retry(3),
    (ValueType.PROCESS, ProcessIntent.DEPLOY): DEPLOYMENT,
    (ValueType.PROCESS, ProcessIntent.DEPLOYED): DEPLOYMENT,
    (ValueType.PROCESS, ProcessIntent.FIRE): StartFiring(3, 99),
    (ValueType.PROCESS, ProcessIntent.FIRED): StartFiring(3, 99, TIMER),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE): NewInstance(
        "order", 2, b'{"total":120}', "key", 60_000, 3_600_000, 1, 2, 3, "lock"
    ),
    **{
        (ValueType.PROCESS_INSTANCE, intent): ADVANCE
        for intent in (
            InstanceIntent.CREATED,
            InstanceIntent.ADVANCED,
            InstanceIntent.COMPLETED,
            InstanceIntent.CANCELED,
            InstanceIntent.MIGRATED,
        )
    },
    (ValueType.PROCESS_INSTANCE, InstanceIntent.MODIFIED): Advance(
        12, (*OPS, ops.TreePaced(2, 99, 5, 4, 1)), 99
    ),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.CANCEL): InstanceRef(),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.CONTINUE): InstanceRef(99),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.TRIGGER): InstanceRef(99),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.RETURN): Return(5, b'{"paid":true}'),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.CATCH): ThrownError(3, "OUT", "none", b"{}"),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.SET_VARIABLES): NewVariables(b'{"a":1}', True),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.MODIFY): Modification(
        (Activate("ship", 3, b'{"a":1}'),), (4, 5), ("pack",), (("pack", "ship"),), b"{}"
    ),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.MIGRATE): Migration(12, (("pack", "ship"),)),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.DELETE): InstanceRef(),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.DELETED): InstanceRef(),
    (ValueType.PROCESS_INSTANCE, InstanceIntent.PROCEED): InstanceRef(),
    (ValueType.MESSAGE, MessageIntent.PUBLISH): MESSAGE,
    (ValueType.MESSAGE, MessageIntent.PUBLISHED): MESSAGE,
    (ValueType.MESSAGE, MessageIntent.EXPIRE): MessageRef(),
    (ValueType.MESSAGE, MessageIntent.EXPIRED): MessageRef(),
    (ValueType.MESSAGE, MessageIntent.START): NextStart("order", "42"),
    (ValueType.MESSAGE, MessageIntent.STARTED): MessageStart("order", 3),
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.OPEN): SUBSCRIPTION,
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.OPENED): SUBSCRIPTION,
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.MIGRATE): SUBSCRIPTION,
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.MIGRATED): SUBSCRIPTION,
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.CLOSE): SubscriptionRef("payment", "42"),
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.CLOSED): SubscriptionRef(),
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.OFFERED): Offer(3, "order"),
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.CORRELATE): Offer(3, "order", b"{}"),
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.ANSWER): OfferAnswer(3, "order", True),
    (ValueType.MESSAGE_SUBSCRIPTION, SubscriptionIntent.ANSWERED): OfferAnswer(3, "order", True),
    (ValueType.PARCEL, ParcelIntent.SENT): PARCEL,
    (ValueType.PARCEL, ParcelIntent.RECEIVE): PARCEL,
    (ValueType.PARCEL, ParcelIntent.RECEIVED): PARCEL,
    (ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE): ParcelsUpTo(2, 3),
    (ValueType.PARCEL, ParcelIntent.ACKNOWLEDGED): ParcelsUpTo(2, 3),
    (ValueType.PARCEL, ParcelIntent.RESEND): ParcelsUpTo(2, 3),
    (ValueType.PARCEL, ParcelIntent.RESENT): ParcelsUpTo(2, 3, 99),
}
