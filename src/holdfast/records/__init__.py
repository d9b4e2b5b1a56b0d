"""The words of the system: records, their keys, their types, and the one codec for them. No I/O."""

from holdfast.records.codec import Codec, Schema
from holdfast.records.keys import counter_of, key_of, partition_for, partition_of
from holdfast.records.record import Delivery, Record, RecordKind, Rejection, Value
from holdfast.records.value_types import ValueType

__all__ = [
    "Codec",
    "Delivery",
    "Record",
    "RecordKind",
    "Rejection",
    "Schema",
    "Value",
    "ValueType",
    "counter_of",
    "key_of",
    "partition_for",
    "partition_of",
]
