"""What the events of messages and subscriptions change."""

from holdfast.engine.messages.values import (
    MessageIntent,
    NewMessage,
    OfferAnswer,
    SubscriptionIntent,
)
from holdfast.pipeline.changes.rows import Applier, Rows, add
from holdfast.pipeline.schema import MESSAGES
from holdfast.records import Record


def _published(rows: Rows, event: Record) -> None:
    new: NewMessage = event.value
    row = rows.row(MESSAGES, event.key, event)
    row["name"] = new.name
    row["correlation_key"] = new.correlation
    row["state"] = "PUBLISHED" if new.ttl_ms else "EXPIRED"
    row["correlations"] = row.get("correlations", 0)
    row["published"] = event.timestamp_ms
    row["expires"] = event.timestamp_ms + new.ttl_ms
    row["variables"] = new.variables.decode()
    if new.message_id:
        row["message_id"] = new.message_id


def _expired(rows: Rows, event: Record) -> None:
    rows.row(MESSAGES, event.key, event)["state"] = "EXPIRED"


def _started(rows: Rows, event: Record) -> None:
    add(rows.row(MESSAGES, event.key, event), "correlations")


def _answered(rows: Rows, event: Record) -> None:
    answer: OfferAnswer = event.value
    if answer.taken:
        add(rows.row(MESSAGES, answer.message, event), "correlations")


APPLIERS: dict[MessageIntent, Applier] = {
    MessageIntent.PUBLISHED: _published,
    MessageIntent.EXPIRED: _expired,
    MessageIntent.STARTED: _started,
}
SUBSCRIPTION_APPLIERS: dict[SubscriptionIntent, Applier] = {
    SubscriptionIntent.ANSWERED: _answered,
}
