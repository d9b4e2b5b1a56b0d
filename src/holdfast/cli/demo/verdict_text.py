"""The demo's end on its stage: a table for each act, with how each number is known."""

from collections.abc import Iterator

from rich.table import Table

from holdfast.cli.demo.content_verdict import KILLED, ContentVerdict
from holdfast.cli.demo.order_verdict import OrderVerdict
from holdfast.cli.demo.repair_verdict import RepairVerdict
from holdfast.cli.demo.verdict import Verdict


def verdict_tables(verdict: Verdict) -> Iterator[Table]:
    """What was counted, act by act."""
    orders, repair, content = verdict.orders, verdict.repair, verdict.content
    yield _table("tasks", _rows(verdict), verdict.lost, verdict.doubled)
    yield _table("orders", _order_rows(orders), orders.lost, orders.doubled)
    if repair is not None:
        yield _table("orders of the sale", _repair_rows(repair), repair.lost, repair.doubled)
    if content is not None:
        yield _table("packages of the site", _content_rows(content), content.lost, content.doubled)


def _table(what: str, rows: list[tuple[str, int, str]], lost: int, doubled: int) -> Table:
    table = Table(show_header=True, header_style="bold", min_width=60)
    table.add_column(what)
    table.add_column("count", justify="right")
    table.add_column("how it is known", style="dim")
    for name, count, witness in rows:
        table.add_row(name, f"{count:,}", witness)
    table.add_section()
    for name, count in (("lost", lost), ("doubled", doubled)):
        style = "bold green" if count == 0 else "bold red"
        witness = "compared one by one"
        table.add_row(f"[{style}]{name}[/]", f"[{style}]{count:,}[/]", witness)
    return table


def _rows(verdict: Verdict) -> list[tuple[str, int, str]]:
    return [
        ("submitted", verdict.submitted, "sent by this process"),
        ("duplicates refused", verdict.duplicates_refused, "same idempotency key"),
        ("stored", verdict.created, f"JOB CREATED among {verdict.records_read:,} records"),
        ("completed", verdict.completed, "JOB COMPLETED in the journal"),
        ("attempts", verdict.attempts, "begun, by the tasks' ledger"),
        ("failed and retried", verdict.failed_attempts, "JOB FAILED in the journal"),
        ("taken over after the kill", verdict.taken_over_after_kill, "its leases EXPIRED"),
        ("run again after taking effect", verdict.repeats_without_effect, "refused by the ledger"),
        ("incidents raised", verdict.incidents_raised, "INCIDENT CREATED"),
        ("incidents resolved", verdict.incidents_resolved, "INCIDENT RESOLVED"),
        ("effects", verdict.effects, "one a task, in the ledger"),
    ]


def _order_rows(orders: OrderVerdict) -> list[tuple[str, int, str]]:
    return [
        ("started", orders.started, "PROCESS_INSTANCE CREATED"),
        ("completed", orders.completed, "PROCESS_INSTANCE COMPLETED"),
        ("· paid", orders.paid, "the payment is in the result"),
        ("· declined", orders.declined, "error boundary, no cover"),
        ("reviewed", orders.reviewed, "total > 150"),
        ("payments", orders.payments, "MESSAGE PUBLISHED"),
        ("incidents resolved", orders.incidents_resolved, "INCIDENT RESOLVED"),
        ("effects", orders.effects, "charges and invoices in the ledger"),
    ]


def _repair_rows(repair: RepairVerdict) -> list[tuple[str, int, str]]:
    return [
        ("started", repair.started, "PROCESS_INSTANCE CREATED"),
        ("stuck", repair.incidents_raised, "INCIDENT CREATED"),
        ("would be chosen", repair.previewed, "the dry run's answer"),
        ("chosen by the filter", repair.chosen, "BATCH_OPERATION_CHUNK CREATED"),
        ("repaired", repair.repaired, "BATCH_OPERATION_EXECUTION EXECUTED"),
        ("completed", repair.completed, "PROCESS_INSTANCE COMPLETED"),
        ("effects", repair.effects, "charges in the ledger"),
    ]


def _content_rows(content: ContentVerdict) -> list[tuple[str, int, str]]:
    return [
        ("published", content.published, "the topic of packages"),
        ("imported by three", content.imported, "IMPORTED on the topic of statuses"),
        ("refused by one", content.refused, "REMOVED_FAILED, in its error queue"),
        (f"in {KILLED} when killed", content.killed_after, "its store: exactly these, from 1"),
        ("nodes in the stores", content.nodes, "compared with what was published"),
    ]
