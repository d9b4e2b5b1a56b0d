"""What the tables say at the end, and whether the journal says the same."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from holdfast.cli.demo.tables_look import TablesLook
    from holdfast.cli.demo.verdict import Verdict


class Found(msgspec.Struct, frozen=True, rename="camel"):
    """What a search answered."""

    total: int
    orders: list[int]  # the numbers of the first of them
    milliseconds: float


class Compared(msgspec.Struct, frozen=True, rename="camel"):
    """One number that two count: the tables, and the demo's own walk through the journal."""

    table: str
    state: str  # empty: all rows
    in_tables: int
    in_journal: int


class TablesVerdict(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Everything that was asked of the tables."""

    compared: list[Compared]
    declined: Found
    picture: str
    seconds: float  # from the end of the node until the tables had all of its log
    faults: list[str]


def reach_tables_verdict(
    look: "TablesLook",
    verdict: "Verdict",
    declined: Found,
    picture: Path,
    seconds: float,
) -> TablesVerdict:
    """Compares every state of every table that was counted; one that nobody expects is a fault."""
    expected, states = _expected(verdict), look.states
    counted = {(table, state): count for table in states for state, count in states[table].items()}
    compared = [
        Compared(*name, counted.get(name, 0), expected.get(name, 0))
        for name in dict.fromkeys((*expected, *counted))
    ]
    compared.append(Compared("records", "", look.records, verdict.records_read))
    if (content := verdict.content) is not None:
        counts = {
            "content_packages": content.published,
            "content_deliveries": content.imported + content.refused,
        }
        compared += [
            Compared(name, "", look.content.get(name, 0), count) for name, count in counts.items()
        ]
    faults = [
        f"the table {each.table} has {each.in_tables:,} rows {each.state or 'in all'}, but the"
        f" journal says {each.in_journal:,}"
        for each in compared
        if each.in_tables != each.in_journal
    ]
    if declined.total != verdict.orders.declined:
        faults.append(
            f"the search found {declined.total:,} orders that were declined, but the journal says"
            f" {verdict.orders.declined:,}"
        )
    return TablesVerdict(
        compared=compared, declined=declined, picture=str(picture), seconds=round(seconds, 1),
        faults=faults,
    )  # fmt: skip


def _expected(verdict: "Verdict") -> dict[tuple[str, str], int]:
    """All has ended well by then, or other faults are told."""
    orders, repair = verdict.orders, verdict.repair
    instances, jobs = orders.completed, verdict.completed + orders.jobs
    incidents = verdict.incidents_resolved + orders.incidents_resolved
    repaired: dict[tuple[str, str], int] = {}
    if repair is not None:
        instances, jobs = instances + repair.completed, jobs + repair.jobs
        incidents += repair.incidents_resolved
        repaired = {("batch_operation_items", "COMPLETED"): repair.repaired}
    return {
        ("process_instances", "COMPLETED"): instances,
        ("jobs", "COMPLETED"): jobs,
        ("jobs", "ERROR_THROWN"): orders.errors_thrown,
        ("incidents", "RESOLVED"): incidents,
        **repaired,
    }
