"""Records of the log as the API shows them."""

from datetime import UTC, datetime

import msgspec

from holdfast.engine.telling import told
from holdfast.gateway.journal.shapes import (
    RecordDelivery,
    RecordRejection,
    RecordType,
    RecordView,
)
from holdfast.records import partition_of


def record_view(partition: int, payload: bytes) -> RecordView:
    """A record of a partition's log."""
    found = told(payload)
    record = found.record
    rejection, delivery = record.rejection, record.delivery
    return RecordView(
        partition_id=partition,
        position=record.position,
        type=RecordType(found.kind),
        value_type=found.value_type,
        intent=found.intent,
        key=str(record.key) if record.key else None,
        source_position=None if record.source_position < 0 else record.source_position,
        timestamp=datetime.fromtimestamp(record.timestamp_ms / 1_000, UTC),
        value=msgspec.Raw(found.value),
        claims=record.claims,
        rejection=None if rejection is None else RecordRejection(rejection.code, rejection.reason),
        delivery=None
        if delivery is None
        else RecordDelivery(partition_of(record.key), delivery.queue, delivery.attempt),
    )
