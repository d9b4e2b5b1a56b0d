"""Sending commands to other partitions, and taking in theirs."""

from enum import IntEnum
from typing import Any

import msgspec

from holdfast.engine.kernel import Turn
from holdfast.engine.parcels.values import (
    Parcel,
    ParcelIntent,
    ParcelReady,
    ParcelsReceived,
    ParcelsUpTo,
)
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.limits import PARCEL_PAUSE_MS_MAX
from holdfast.records import Record, ValueType

PARCEL = ValueType.PARCEL

_encode = msgspec.msgpack.Encoder().encode


def send(
    turn: Turn[EngineState], partition: int, value_type: ValueType, intent: IntEnum, key: int,
    value: Any,
) -> None:  # fmt: skip
    """A command for a partition, its own included; it is processed there once."""
    if partition == turn.partition:
        turn.command(value_type, intent, key, value)
        return
    number = turn.state.parcels.line(partition).sent + 1
    parcel = Parcel(
        turn.partition, partition, number, int(value_type), int(intent), key, _encode(value)
    )
    turn.event(PARCEL, ParcelIntent.SENT, key, parcel)
    turn.effect(ParcelReady(parcel))


def receive(turn: Turn[EngineState], command: Record) -> None:
    """A parcel came. One that came before is only acknowledged; one too early comes again."""
    parcel: Parcel = command.value
    last = turn.state.parcels.received(parcel.sender)
    if parcel.number != last + 1:
        reason = f"Expected parcel {last + 1} of {parcel.sender}, but {parcel.number} came"
        code = Code.ALREADY_EXISTS if parcel.number <= last else Code.INVALID_STATE
        turn.reject(command, code, reason)
    else:
        turn.event(PARCEL, ParcelIntent.RECEIVED, command.key, parcel)
        value = turn.tables.decode_value(parcel.value_type, parcel.intent, parcel.value)
        intent = turn.tables.intent(parcel.value_type, parcel.intent)
        turn.command(ValueType(parcel.value_type), intent, parcel.key, value)
        last = parcel.number
    turn.effect_once(ParcelsReceived(parcel.sender, turn.partition, last))


def acknowledge(turn: Turn[EngineState], command: Record) -> None:
    """A partition has our parcels up to a number."""
    told: ParcelsUpTo = command.value
    line = turn.state.parcels.line(told.receiver)
    if not line.acknowledged < told.number <= line.sent:
        reason = (
            f"Expected news of parcels {line.acknowledged + 1} to {line.sent} to partition"
            f" {told.receiver}, but it is of {told.number}"
        )
        return turn.reject(command, Code.NOT_FOUND, reason)
    turn.event(PARCEL, ParcelIntent.ACKNOWLEDGED, command.key, told)


def resend(turn: Turn[EngineState], command: Record) -> None:
    """Nothing was heard for a while: everything that is open goes out again."""
    receiver = command.value.receiver
    line = turn.state.parcels.line(receiver)
    parcels = turn.state.parcels.open(receiver)
    pause_ms = min(line.pause_ms * 2, PARCEL_PAUSE_MS_MAX)
    due_ms = turn.now_ms + pause_ms
    value = ParcelsUpTo(receiver, line.sent, due_ms)
    turn.event(PARCEL, ParcelIntent.RESENT, command.key, value)
    for parcel in parcels:
        turn.effect(ParcelReady(parcel))
