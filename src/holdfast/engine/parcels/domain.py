"""The tables of the parcels room."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.engine.parcels import commands, events
from holdfast.engine.parcels.values import PARCEL_VALUES, ParcelIntent, ParcelsUpTo
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
    due={
        DueKind.PARCEL: WhenDue(
            ParcelIntent.RESEND, lambda rows: ParcelsUpTo(rows[0][2], 0), names_key=False
        ),
    },
)
