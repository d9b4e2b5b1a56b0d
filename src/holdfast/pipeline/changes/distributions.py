"""What the events of distributions change."""

from holdfast.engine.distribution.values import (
    Decision,
    Distribution,
    DistributionIntent,
    Refusal,
    Resending,
    Targets,
)
from holdfast.engine.partition import DISPATCH as ENGINE
from holdfast.pipeline.changes.rows import Applier, Rows, add
from holdfast.pipeline.schema import DISTRIBUTIONS
from holdfast.records import Record, ValueType


def _started(rows: Rows, event: Record) -> None:
    new: Distribution = event.value
    row = rows.row(DISTRIBUTIONS, event.key, event)
    row["value_type"] = ValueType(new.value_type).name
    row["intent"] = ENGINE.intent(new.value_type, new.intent).name
    row["state"] = "DISTRIBUTING"
    row["acknowledged"] = row["given_up"] = row["refusals"] = row["resent"] = 0
    row["started"] = event.timestamp_ms
    if new.queue:
        row["queue"] = new.queue


def _acknowledged(rows: Rows, event: Record) -> None:
    told: Targets = event.value
    add(rows.row(DISTRIBUTIONS, event.key, event), "acknowledged", len(told.partitions))


def _given_up(rows: Rows, event: Record) -> None:
    decision: Decision = event.value
    row = rows.row(DISTRIBUTIONS, event.key, event)
    add(row, "given_up", len(decision.partitions))
    row["decided_by"] = decision.by


def _refused(rows: Rows, event: Record) -> None:
    refusal: Refusal = event.value
    row = rows.row(DISTRIBUTIONS, event.key, event)
    add(row, "refusals")
    row["refusal"] = refusal.reason


def _redistributed(rows: Rows, event: Record) -> None:
    sent: Resending = event.value
    for key in sent.keys:
        add(rows.row(DISTRIBUTIONS, key, event), "resent")


def _finished(rows: Rows, event: Record) -> None:
    row = rows.row(DISTRIBUTIONS, event.key, event)
    row["state"] = "FINISHED"
    row["finished"] = event.timestamp_ms


APPLIERS: dict[DistributionIntent, Applier] = {
    DistributionIntent.STARTED: _started,
    DistributionIntent.ACKNOWLEDGED: _acknowledged,
    DistributionIntent.SKIPPED: _given_up,
    DistributionIntent.CANCELED: _given_up,
    DistributionIntent.REFUSED: _refused,
    DistributionIntent.REDISTRIBUTED: _redistributed,
    DistributionIntent.FINISHED: _finished,
}
