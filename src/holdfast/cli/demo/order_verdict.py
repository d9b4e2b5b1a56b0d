"""What the journal and the ledger say of the orders, and whether it adds up."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from holdfast.cli.demo.ledger import Ledger
from holdfast.cli.demo.log_walk import LogWalk
from holdfast.cli.demo.orders import Orders
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.processes import ops
from holdfast.engine.processes.values import InstanceIntent
from holdfast.records import Record, RecordKind, ValueType


class OrderAudit(LogWalk):
    """Counts what happened to process instances."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.started: Counter[int] = Counter()  # by the number of the order
        self.completed: Counter[int] = Counter()
        self.results: dict[int, dict[str, Any]] = {}  # the variables at the end
        self.jobs: set[int] = set()  # that their steps asked for and that are done
        self.thrown: set[int] = set()  # that ended in an error that the process knows
        self.payments = 0
        self.incidents: set[int] = set()
        self.resolved = 0
        self._order: dict[int, int] = {}  # instance -> order
        self._asked: set[int] = set()  # the jobs that their steps asked for

    def take_up(self, record: Record) -> None:
        """Counts what is about an order."""
        match record.kind, record.value_type, record.intent:
            case RecordKind.EVENT, ValueType.PROCESS_INSTANCE, InstanceIntent.CREATED:
                began: ops.Began = record.value.ops[0]
                if "order" not in began.variables:  # of another process, which is another audit's
                    return
                order = self._order[record.key] = int(began.variables["order"])
                self.started[order] += 1
            case RecordKind.EVENT, ValueType.PROCESS_INSTANCE, InstanceIntent.COMPLETED:
                if (order := self._order.get(record.key)) is None:
                    return
                self.completed[order] += 1
                [ended] = (op for op in record.value.ops if isinstance(op, ops.Ended))
                self.results[order] = msgspec.json.decode(ended.result)
            case RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED:
                if record.value.instance_key in self._order:
                    self._asked.add(record.key)
            case RecordKind.EVENT, ValueType.JOB, JobIntent.COMPLETED:
                if record.key in self._asked:
                    self.jobs.add(record.key)
            case RecordKind.EVENT, ValueType.JOB, JobIntent.ERROR_THROWN:
                if record.key in self._asked:
                    self.thrown.add(record.key)
            case RecordKind.EVENT, ValueType.MESSAGE, MessageIntent.PUBLISHED:
                self.payments += 1
            case RecordKind.EVENT, ValueType.INCIDENT, IncidentIntent.CREATED:
                if record.value.instance_key in self._order:
                    self.incidents.add(record.key)
            case RecordKind.EVENT, ValueType.INCIDENT, IncidentIntent.RESOLVED:
                self.resolved += record.key in self.incidents
            case _:
                pass


class OrderVerdict(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Everything that was counted of the orders."""

    started: int
    completed: int
    paid: int
    declined: int
    reviewed: int
    jobs: int
    errors_thrown: int
    payments: int
    incidents_raised: int
    incidents_resolved: int
    effects: int
    lost: int
    doubled: int
    seconds: float
    picture: str
    faults: list[str]


def reach_order_verdict(
    orders: Orders, data: Path, ledger: Ledger, seconds: float, picture: Path
) -> OrderVerdict:
    """Reads the whole log anew, and the ledger, and compares order by order."""
    audit = OrderAudit(data)
    audit.read_on()
    effects, counts = ledger.references(), (*audit.started.items(), *audit.completed.items())
    results = audit.results.values()
    verdict = OrderVerdict(
        started=audit.started.total(),
        completed=audit.completed.total(),
        paid=sum(1 for each in results if "paid" in each),
        declined=sum(1 for each in results if "declined" in each),
        reviewed=sum(1 for each in results if "reviewed" in each),
        jobs=len(audit.jobs),
        errors_thrown=len(audit.thrown),
        payments=audit.payments,
        incidents_raised=len(audit.incidents),
        incidents_resolved=audit.resolved,
        effects=len(effects),
        lost=sum(1 for each in orders.all if each.order not in audit.completed),
        doubled=sum(1 for _, count in counts if count > 1),
        seconds=round(seconds, 1),
        picture=str(picture),
        faults=[],
    )
    return msgspec.structs.replace(verdict, faults=_faults(verdict, orders, audit, effects))


def _faults(
    verdict: OrderVerdict, orders: Orders, audit: OrderAudit, effects: set[str]
) -> list[str]:
    """All that does not add up; none is what the demo is about."""
    unpaid = [
        each.order
        for each in orders.charged
        if audit.results.get(each.order, {}).get("paid") != each.total
    ]
    checks = {
        f"{verdict.lost} orders are lost": verdict.lost == 0,
        f"{verdict.doubled} orders or effects are doubled": verdict.doubled == 0,
        f"{len(unpaid)} orders ended without their payment": not unpaid,
        f"{verdict.effects} effects are in the ledger instead of {len(orders.effects())}": (
            effects == orders.effects()
        ),
        f"{verdict.incidents_raised} orders came to an incident and {verdict.incidents_resolved}"
        f" were resolved instead of {orders.stuck}": (
            verdict.incidents_raised == verdict.incidents_resolved == orders.stuck
        ),
    }
    return [fault for fault, holds in checks.items() if not holds]
