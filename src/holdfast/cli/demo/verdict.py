"""The demo's end: what was counted, and whether it adds up."""

from pathlib import Path

import msgspec

from holdfast.cli.demo.audit import Audit
from holdfast.cli.demo.content_verdict import ContentVerdict
from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.order_verdict import OrderVerdict
from holdfast.cli.demo.repair_verdict import RepairVerdict
from holdfast.cli.demo.tables_verdict import TablesVerdict
from holdfast.cli.demo.workload import Workload


class Submitted(msgspec.Struct):
    """What the node answered to the demo's submissions."""

    created: int = 0
    refused: int = 0  # their idempotency key named a task that was there already


class Verdict(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Everything that was counted, by three witnesses: the answers, the journal, the ledger."""

    submitted: int
    duplicates_refused: int
    created: int
    completed: int
    attempts: int
    failed_attempts: int
    taken_over_after_kill: int
    repeats_without_effect: int
    incidents_raised: int
    incidents_resolved: int
    effects: int
    lost: int
    doubled: int
    records_read: int
    seconds: float
    faults: list[str]
    orders: OrderVerdict
    repair: RepairVerdict | None = None  # where there is no Spark: nothing to select from
    content: ContentVerdict | None = None  # of the last act, which is counted by itself
    tables: TablesVerdict | None = None  # where there is no Spark

    @property
    def all_faults(self) -> list[str]:
        parts = (self.repair, self.content, self.tables)
        more = [fault for part in parts if part is not None for fault in part.faults]
        return [*self.faults, *self.orders.faults, *more]

    @property
    def is_good(self) -> bool:
        return not self.all_faults


def reach_verdict(
    workload: Workload,
    submitted: Submitted,
    data: Path,
    ledger: Ledger,
    seconds: float,
    orders: OrderVerdict,
    repair: RepairVerdict | None,
) -> Verdict:
    """Reads the whole log anew, and the ledger, and compares."""
    audit = Audit(data)
    audit.read_on()
    effects, expected = ledger.references(), workload.references()
    finished = effects & audit.completed.keys()
    verdict = Verdict(
        submitted=submitted.created + submitted.refused,
        duplicates_refused=submitted.refused,
        created=audit.created.total(),
        completed=audit.completed.total(),
        attempts=ledger.attempts(),
        failed_attempts=audit.failures,
        taken_over_after_kill=len(audit.expired),
        repeats_without_effect=ledger.repeats(),
        incidents_raised=audit.incidents_raised,
        incidents_resolved=audit.incidents_resolved,
        effects=len(effects),
        lost=len(expected - finished),
        doubled=len(audit.doubled()),
        records_read=audit.records,
        seconds=round(seconds, 1),
        faults=[],
        orders=orders,
        repair=repair,
    )
    return msgspec.structs.replace(
        verdict,
        faults=_faults(verdict, workload, audit, (effects | audit.created.keys()) - expected),
    )


def _faults(verdict: Verdict, workload: Workload, audit: Audit, unexpected: set[str]) -> list[str]:
    """All that does not add up; none is what the demo is about."""
    checks = {
        f"{verdict.lost} tasks or effects are lost": verdict.lost == 0,
        f"{verdict.doubled} tasks are doubled": verdict.doubled == 0,
        f"{len(unexpected)} tasks or effects were never asked for": not unexpected,
        f"{verdict.duplicates_refused} duplicates were refused instead of {workload.duplicates}": (
            verdict.duplicates_refused == audit.duplicates == workload.duplicates
        ),
        f"{verdict.incidents_raised} incidents were raised and {verdict.incidents_resolved}"
        f" resolved instead of {workload.stuck}": (
            verdict.incidents_raised == verdict.incidents_resolved == workload.stuck
        ),
        f"{verdict.repeats_without_effect} tasks ran again after taking effect, but only"
        f" {verdict.taken_over_after_kill} were taken over": (
            verdict.repeats_without_effect <= verdict.taken_over_after_kill
        ),
    }
    return [fault for fault, holds in checks.items() if not holds]
