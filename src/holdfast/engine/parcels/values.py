"""The words of parcels."""

from enum import IntEnum

import msgspec

from holdfast.records import Value


class ParcelIntent(IntEnum):
    """Commands and events of parcels. The numbers are on disk."""

    SENT = 0  # kept by the sender until it is acknowledged
    RECEIVE = 1
    RECEIVED = 2
    ACKNOWLEDGE = 3
    ACKNOWLEDGED = 4
    RESEND = 5
    RESENT = 6


class Parcel(Value, frozen=True, tag=64):
    """A command for another partition: SENT, RECEIVE, RECEIVED."""

    sender: int  # partitions
    receiver: int
    number: int  # counts up from 1 for each pair of partitions
    value_type: int
    intent: int
    key: int
    value: bytes  # encoded


class ParcelsUpTo(Value, frozen=True, tag=65):
    """All parcels to a partition up to a number: ACKNOWLEDGE(D), RESEND, RESENT."""

    receiver: int
    number: int
    due_ms: int = 0  # RESENT: when they are sent again


PARCEL_VALUES: dict[ParcelIntent, type[msgspec.Struct]] = {
    ParcelIntent.SENT: Parcel,
    ParcelIntent.RECEIVE: Parcel,
    ParcelIntent.RECEIVED: Parcel,
    ParcelIntent.ACKNOWLEDGE: ParcelsUpTo,
    ParcelIntent.ACKNOWLEDGED: ParcelsUpTo,
    ParcelIntent.RESEND: ParcelsUpTo,
    ParcelIntent.RESENT: ParcelsUpTo,
}


# --- effects ----------------------------------------------------------------------------------


class ParcelReady(msgspec.Struct, frozen=True, gc=False):
    """A parcel is to be handed to its receiver."""

    parcel: Parcel


class ParcelsReceived(msgspec.Struct, frozen=True, gc=False):
    """The sender is to be told how far its parcels have come."""

    sender: int
    receiver: int
    number: int
