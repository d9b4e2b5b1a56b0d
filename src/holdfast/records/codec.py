"""The one codec: records to bytes and back. Garbage gives an error that carries the bytes."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.errors import DataLoss
from holdfast.records.record import Record, RecordKind, Rejection

Tag = tuple[int, int]  # (value type, intent)


class Schema:
    """Which struct the value of a (value type, intent) is. Built once from the domains' tables."""

    def __init__(self, values: Mapping[Tag, type[msgspec.Struct]]) -> None:
        self.values = dict(values)


class _Envelope(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record whose value is still bytes: a reader decodes only the values that it wants."""

    position: int
    kind: RecordKind
    value_type: int
    intent: int
    key: int
    source_position: int
    timestamp_ms: int
    value: msgspec.Raw
    claims: dict[str, Any] | None = None
    rejection: Rejection | None = None


class Codec:
    """Encodes records as msgpack arrays and decodes them by the schema."""

    def __init__(self, schema: Schema) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._envelope = msgspec.msgpack.Decoder(_Envelope).decode
        self._values = {
            tag: msgspec.msgpack.Decoder(kind | None).decode for tag, kind in schema.values.items()
        }

    def encode(self, record: Record) -> bytes:
        return self._encode(record)

    def encode_many(self, records: Iterable[Record]) -> list[bytes]:
        encode = self._encode
        return [encode(record) for record in records]

    def decode(self, payload: bytes) -> Record:
        """The record in these bytes; DataLoss with the bytes if there is none."""
        try:
            envelope = self._envelope(payload)
            return self._open(envelope)
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, ValueError) as error:
            raise DataLoss(
                f"Expected a record, but {len(payload)} bytes could not be decoded: {error!r}",
                payload=payload,
            ) from error

    def decode_replayable(self, payload: bytes) -> Record | _Envelope:
        """Like `decode`, but leaves the value of commands and rejections as bytes.

        Replay applies events only; most commands it meets were processed long ago.
        """
        try:
            envelope = self._envelope(payload)
            return self._open(envelope) if envelope.kind == RecordKind.EVENT else envelope
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, ValueError) as error:
            raise DataLoss(
                f"Expected a record, but {len(payload)} bytes could not be decoded: {error!r}",
                payload=payload,
            ) from error

    def _open(self, envelope: _Envelope) -> Record:
        value = self._values[envelope.value_type, envelope.intent](envelope.value)
        return Record(
            envelope.position,
            envelope.kind,
            envelope.value_type,
            envelope.intent,
            envelope.key,
            envelope.source_position,
            envelope.timestamp_ms,
            value,
            envelope.claims,
            envelope.rejection,
        )
