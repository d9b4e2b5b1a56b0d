"""What the journal and the ledger say of the orders that one operation repaired."""

from collections import Counter
from pathlib import Path

import msgspec

from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.log_walk import LogWalk
from holdfast.cli.demo.sale_tasks import SALE
from holdfast.engine.batch.values import (
    BatchOperationChunkIntent,
    BatchOperationExecutionIntent,
    Executed,
)
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.processes import ops
from holdfast.engine.processes.values import InstanceIntent
from holdfast.records import Record, RecordKind, ValueType


class RepairAudit(LogWalk):
    """Counts what happened to the orders of the sale, from where the log was when it began."""

    def __init__(self, folder: Path, start: dict[int, int]) -> None:
        super().__init__(folder, start)
        self.started: Counter[int] = Counter()  # by the number of the order
        self.completed: Counter[int] = Counter()
        self.incidents: set[int] = set()
        self.resolved: Counter[int] = Counter()  # by incident
        self.jobs: set[int] = set()  # that are done
        self.chosen: Counter[int] = Counter()  # by item
        self.repaired: Counter[int] = Counter()  # by item
        self.not_repaired = 0  # items with another outcome
        self._order: dict[int, int] = {}  # instance -> order

    def take_up(self, record: Record) -> None:
        """Counts what is about an order of the sale, or about the operation."""
        if record.kind is not RecordKind.EVENT:
            return
        match record.value_type, record.intent:
            case ValueType.PROCESS_INSTANCE, InstanceIntent.CREATED:
                began: ops.Began = record.value.ops[0]
                order = self._order[record.key] = int(began.variables["sale"])
                self.started[order] += 1
            case ValueType.PROCESS_INSTANCE, InstanceIntent.COMPLETED:
                self.completed[self._order[record.key]] += 1
            case ValueType.JOB, JobIntent.COMPLETED:
                self.jobs.add(record.key)
            case ValueType.INCIDENT, IncidentIntent.CREATED:
                assert record.value.process_id == SALE.id, "nothing else runs in this act"
                self.incidents.add(record.key)
            case ValueType.INCIDENT, IncidentIntent.RESOLVED:
                self.resolved[record.key] += 1
            case ValueType.BATCH_OPERATION_CHUNK, BatchOperationChunkIntent.CREATED:
                self.chosen.update(record.value.items)
            case ValueType.BATCH_OPERATION_EXECUTION, BatchOperationExecutionIntent.EXECUTED:
                done: Executed = record.value
                self.repaired.update(done.completed)
                self.not_repaired += done.count - len(done.completed)
            case _:
                pass


class RepairVerdict(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Everything that was counted of the repair."""

    batch_operation_key: str
    started: int
    incidents_raised: int
    previewed: int  # by the dry run
    chosen: int
    repaired: int  # items
    incidents_resolved: int
    jobs: int
    completed: int
    effects: int
    lost: int
    doubled: int
    seconds: float  # from the first item to the last order's end
    faults: list[str]


class Repair(msgspec.Struct, frozen=True):
    """What the story knows of the operation."""

    key: str
    previewed: int
    seconds: float


def reach_repair_verdict(
    count: int, repair: Repair, audit: RepairAudit, ledger: Ledger
) -> RepairVerdict:
    """Compares, order by order, what the journal has counted since the act began."""
    effects, wanted = ledger.references(), {f"sale-{order}" for order in range(1, count + 1)}
    counts = (audit.started, audit.completed, audit.resolved, audit.chosen, audit.repaired)
    verdict = RepairVerdict(
        batch_operation_key=repair.key,
        started=audit.started.total(),
        incidents_raised=len(audit.incidents),
        previewed=repair.previewed,
        chosen=audit.chosen.total(),
        repaired=audit.repaired.total(),
        incidents_resolved=audit.resolved.total(),
        jobs=len(audit.jobs),
        completed=audit.completed.total(),
        effects=len(effects),
        lost=sum(1 for order in range(1, count + 1) if order not in audit.completed),
        doubled=sum(1 for each in counts for times in each.values() if times > 1)
        + ledger.repeats(),
        seconds=round(repair.seconds, 1),
        faults=[],
    )
    checks = {
        f"{verdict.lost} orders of the sale are lost": verdict.lost == 0,
        f"{verdict.doubled} orders, items or effects of the sale are doubled": verdict.doubled == 0,
        f"{verdict.incidents_raised} orders of the sale came to an incident instead of {count}": (
            verdict.incidents_raised == count
        ),
        f"{verdict.chosen} items were chosen, {verdict.previewed} by the dry run, instead of the"
        f" {verdict.incidents_raised} incidents": (
            audit.chosen.keys() == audit.incidents and verdict.previewed == len(audit.incidents)
        ),
        f"{verdict.repaired} items were repaired and {audit.not_repaired} were not": (
            audit.repaired.keys() == audit.incidents == audit.resolved.keys()
            and not audit.not_repaired
        ),
        f"{verdict.effects} effects are in the ledger of the sale instead of {count}": (
            effects == wanted
        ),
    }
    faults = [fault for fault, holds in checks.items() if not holds]
    return msgspec.structs.replace(verdict, faults=faults)
