"""The tables of the incidents room."""

from holdfast.engine.incidents import commands, events, needs
from holdfast.engine.incidents.values import VALUES, IncidentIntent
from holdfast.engine.kernel import Domain
from holdfast.records import ValueType

INCIDENT: Domain = Domain(
    value_type=ValueType.INCIDENT,
    intents=IncidentIntent,
    values=VALUES,
    commands={
        IncidentIntent.RESOLVE: commands.resolve,
        IncidentIntent.DISCARD: commands.discard,
    },
    appliers={
        IncidentIntent.CREATED: events.created,
        IncidentIntent.RESOLVED: events.ended,
        IncidentIntent.DISCARDED: events.ended,
        IncidentIntent.MIGRATED: events.migrated,
    },
    needs={IncidentIntent.RESOLVE: needs.end, IncidentIntent.DISCARD: needs.end},
)
