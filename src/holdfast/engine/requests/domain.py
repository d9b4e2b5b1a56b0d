"""The tables of the requests room."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.engine.requests import commands, events
from holdfast.engine.requests.values import VALUES, PurgeRequests, RequestIntent
from holdfast.records import ValueType

REQUEST: Domain = Domain(
    value_type=ValueType.REQUEST,
    intents=RequestIntent,
    values=VALUES,
    commands={RequestIntent.PURGE: commands.purge},
    appliers={
        RequestIntent.ACCEPTED: events.accepted,
        RequestIntent.ANSWERED: events.answered,
        RequestIntent.PURGED: events.purged,
    },
    due={
        DueKind.REQUESTS: WhenDue(RequestIntent.PURGE, lambda _: PurgeRequests(), names_key=False),
    },
)
