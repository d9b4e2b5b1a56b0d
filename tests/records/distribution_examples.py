"""Examples of the values of distributions."""

from enum import IntEnum

import msgspec

from holdfast.engine.distribution.values import (
    Continuation,
    ContinuationRef,
    Decision,
    Distribution,
    DistributionIntent,
    Postponement,
    QueueReceipt,
    Refusal,
    Resending,
    Targets,
)
from holdfast.records import ValueType

_I = DistributionIntent
TARGETS = Targets((2, 3))
REFUSAL = Refusal(2, "ZeroDivisionError: a bug")
DECISION = Decision("ada", "it can never be done", (2,))

DISTRIBUTION_EXAMPLES: dict[tuple[ValueType, IntEnum], msgspec.Struct] = {
    (ValueType.DISTRIBUTION, intent): value
    for intent, value in {
        _I.STARTED: Distribution("deployment", 5, 0, b"\x93", {"user": "ada"}, (2, 3)),
        _I.ENQUEUED: TARGETS,
        _I.DISTRIBUTING: TARGETS,
        _I.ACKNOWLEDGE: TARGETS,
        _I.ACKNOWLEDGED: TARGETS,
        _I.FINISHED: Targets(),
        _I.REDISTRIBUTE: Resending(2),
        _I.REDISTRIBUTED: Resending(2, (7, 8), (1, 3)),
        _I.RESUME: Resending(2),
        _I.RESUMED: Resending(2, (7, 8)),
        _I.REFUSE: REFUSAL,
        _I.REFUSED: REFUSAL,
        _I.POSTPONE: Postponement(2, (7, 8), 250),
        _I.POSTPONED: Postponement(2, (7, 8), 250, 99),
        _I.SKIP: DECISION,
        _I.SKIPPED: DECISION,
        _I.CANCEL: Decision("ada"),
        _I.CANCELED: DECISION,
        _I.CONTINUATION_REQUESTED: Continuation("deployment", 5, 2, 7, b"\x93", {"user": "ada"}),
        _I.CONTINUE: ContinuationRef("deployment"),
        _I.CONTINUED: ContinuationRef("deployment"),
        _I.RECEIVED: QueueReceipt("deployment"),
    }.items()
}
