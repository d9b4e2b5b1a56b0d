"""What the demo shows while it runs: a bar and the tables in a terminal, lines elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.tree import Tree

from holdfast.cli.demo.order_verdict import OrderVerdict
from holdfast.cli.demo.tables_text import answers, compared_table, look_line, look_table
from holdfast.cli.demo.verdict import Verdict

if TYPE_CHECKING:
    from holdfast.cli.demo.tables_look import Look

_LINE_EVERY = 0.1  # of the work, where lines take the place of the bar
_TABLES_SECONDS = 1  # between lines about the tables


class Stage:
    """Tells the demo's story."""

    def __init__(self, tasks: int, *, silent: bool) -> None:
        self._tasks = tasks
        self._console = Console(quiet=silent, highlight=False)
        self._is_live = self._console.is_terminal and not silent
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:>7,.0f}/s"),
            expand=True,
        )
        self._look: Look | None = None
        self._told, self._told_look = 0.0, self._look
        self._live = Live(
            console=self._console, get_renderable=self._now, transient=True, auto_refresh=True
        )
        self._bar = self._progress.add_task("completed", total=tasks, rate=0.0)
        self._last_line = 0.0

    def __enter__(self) -> Self:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """A sentence of the story."""
        self._console.print(f"[dim]·[/dim] {text}")

    def show_tree(self, tree: Tree) -> None:
        """A tree, a little to the right of the story."""
        self._console.print(Padding(tree, (0, 0, 0, 2)))

    def completed(self, count: int, seconds: float) -> None:
        """How far the work is."""
        rate = count / max(seconds, 0.1)
        self._progress.update(self._bar, completed=count, rate=rate)
        share = count / self._tasks
        if not self._is_live and share >= self._last_line + _LINE_EVERY:
            self._last_line = share
            self.say(f"{count:,} of {self._tasks:,} completed ({rate:,.0f}/s)")

    def tables(self, look: "Look") -> None:
        """How far the tables are; where there is no terminal, once in a while and only news."""
        if not look.records:
            return
        self._look = look
        if not self._is_live and time.monotonic() - self._told >= _TABLES_SECONDS:
            self.say_tables(look)

    def say_tables(self, look: "Look") -> None:
        """The tables at one moment, to be seen later too."""
        if look != self._told_look:
            self._told, self._told_look = time.monotonic(), look
            self.say(f"tables: {look_line(look)}")

    def _now(self) -> Group:
        """What is renewed in its place: the bar, and under it the tables."""
        parts: list[RenderableType] = [self._progress]
        if self._look is not None:
            parts.append(look_table(self._look))
        return Group(*parts)

    def show(self, verdict: Verdict) -> None:
        """The tables at the end."""
        orders = verdict.orders
        self._show_table("tasks", _rows(verdict), verdict.lost, verdict.doubled)
        self._show_table("orders", _order_rows(orders), orders.lost, orders.doubled)
        if verdict.tables is not None:
            self._console.print(compared_table(verdict.tables))
            for answer in answers(verdict.tables):
                self.say(answer)
        if verdict.is_good:
            killed = ", with a worker killed" if verdict.taken_over_after_kill else ""
            self._console.print(
                f"[bold green]Nothing lost, nothing doubled:[/] {verdict.completed:,} tasks in"
                f" {verdict.seconds:.1f} s{killed}; {orders.completed:,} orders in"
                f" {orders.seconds:.1f} s, each accounted for once."
            )
        for fault in verdict.all_faults:
            self._console.print(f"[bold red]Wrong:[/] {fault}")

    def _show_table(
        self, what: str, rows: list[tuple[str, int, str]], lost: int, doubled: int
    ) -> None:
        table = Table(show_header=True, header_style="bold", min_width=60)
        table.add_column(what)
        table.add_column("count", justify="right")
        table.add_column("how it is known", style="dim")
        for name, count, witness in rows:
            table.add_row(name, f"{count:,}", witness)
        table.add_section()
        for name, count in (("lost", lost), ("doubled", doubled)):
            style = "bold green" if count == 0 else "bold red"
            witness = f"journal and ledger, {what} compared one by one"
            table.add_row(f"[{style}]{name}[/]", f"[{style}]{count:,}[/]", witness)
        self._console.print(table)


def _rows(verdict: Verdict) -> list[tuple[str, int, str]]:
    return [
        ("submitted", verdict.submitted, "sent by this process"),
        ("duplicates refused", verdict.duplicates_refused, "same idempotency key"),
        ("stored", verdict.created, f"JOB CREATED among {verdict.records_read:,} records"),
        ("completed", verdict.completed, "JOB COMPLETED in the journal"),
        ("attempts", verdict.attempts, "begun, by the ledger that the tasks write"),
        ("failed and retried", verdict.failed_attempts, "JOB FAILED in the journal"),
        ("taken over from the killed worker", verdict.taken_over_after_kill, "its leases EXPIRED"),
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
