"""The tables of the parcels room."""

from holdfast.engine.kernel import Domain
from holdfast.engine.parcels import commands, events
from holdfast.engine.parcels.values import PARCEL_VALUES, ParcelIntent
from holdfast.records import ValueType

PARCEL: Domain = Domain(
    value_type=ValueType.PARCEL,
    intents=ParcelIntent,
    values=PARCEL_VALUES,
    commands={
        ParcelIntent.RECEIVE: commands.receive,
        ParcelIntent.ACKNOWLEDGE: commands.acknowledge,
        ParcelIntent.RESEND: commands.resend,
    },
    appliers={
        ParcelIntent.SENT: events.sent,
        ParcelIntent.RECEIVED: events.received,
        ParcelIntent.ACKNOWLEDGED: events.acknowledged,
        ParcelIntent.RESENT: events.resent,
    },
)
