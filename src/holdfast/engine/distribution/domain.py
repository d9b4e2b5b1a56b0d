"""The tables of the distribution room."""

from holdfast.engine.distribution import commands, events
from holdfast.engine.distribution.values import (
    DISTRIBUTION_VALUES,
    DistributionFinished,
    DistributionIntent,
    Resending,
)
from holdfast.engine.due.dates import DueKind
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Domain, WhenDue
from holdfast.engine.needs import with_every
from holdfast.records import ValueType

_I = DistributionIntent
DISTRIBUTION: Domain = Domain(
    value_type=ValueType.DISTRIBUTION,
    intents=DistributionIntent,
    values=DISTRIBUTION_VALUES,
    commands={
        _I.ACKNOWLEDGE: commands.acknowledge,
        _I.REDISTRIBUTE: commands.redistribute,
        _I.RESUME: commands.resume,
        _I.REFUSE: commands.refuse,
        _I.POSTPONE: commands.postpone,
        _I.SKIP: commands.skip,
        _I.CANCEL: commands.cancel,
        _I.CONTINUE: commands.go_on,
    },
    appliers={
        _I.STARTED: events.started,
        _I.ENQUEUED: events.enqueued,
        _I.DISTRIBUTING: events.distributing,
        _I.ACKNOWLEDGED: events.settled,
        _I.FINISHED: events.finished,
        _I.REDISTRIBUTED: events.redistributed,
        _I.RESUMED: events.resumed,
        _I.REFUSED: events.refused,
        _I.POSTPONED: events.postponed,
        _I.SKIPPED: events.settled,
        _I.CANCELED: events.settled,
        _I.CONTINUATION_REQUESTED: events.continuation_requested,
        _I.CONTINUED: events.continued,
        _I.RECEIVED: events.received,
    },
    needs=dict.fromkeys(
        (_I.RESUME, _I.SKIP, _I.CANCEL),
        with_every(ResourceType.DISTRIBUTION, Permission.UPDATE),
    ),
    followed=(DistributionFinished,),
    due={
        DueKind.DISTRIBUTION: WhenDue(
            _I.REDISTRIBUTE, lambda rows: Resending(rows[0][2]), names_key=False
        ),
    },
)
