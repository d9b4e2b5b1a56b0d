"""What the demo shows while it runs: a bar in a terminal, lines elsewhere, nothing for JSON."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from holdfast.cli.demo.verdict import Verdict

_LINE_EVERY = 0.1  # of the work, where lines take the place of the bar


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
            console=self._console,
            disable=not self._is_live,
            expand=True,
            transient=True,
        )
        self._bar = self._progress.add_task("completed", total=tasks, rate=0.0)
        self._last_line = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        """A sentence of the story."""
        self._console.print(f"[dim]·[/dim] {text}")

    def completed(self, count: int, seconds: float) -> None:
        """How far the work is."""
        rate = count / max(seconds, 0.1)
        self._progress.update(self._bar, completed=count, rate=rate)
        share = count / self._tasks
        if not self._is_live and share >= self._last_line + _LINE_EVERY:
            self._last_line = share
            self.say(f"{count:,} of {self._tasks:,} completed ({rate:,.0f}/s)")

    def show(self, verdict: Verdict) -> None:
        """The table at the end."""
        table = Table(title_justify="left", show_header=True, header_style="bold", min_width=60)
        table.add_column("what")
        table.add_column("count", justify="right")
        table.add_column("how it is known", style="dim")
        for what, count, witness in _rows(verdict):
            table.add_row(what, f"{count:,}", witness)
        table.add_section()
        for what, count in (("lost", verdict.lost), ("doubled", verdict.doubled)):
            style = "bold green" if count == 0 else "bold red"
            witness = "journal and ledger, compared task by task"
            table.add_row(f"[{style}]{what}[/]", f"[{style}]{count:,}[/]", witness)
        self._console.print(table)
        if verdict.is_good:
            self._console.print(
                f"[bold green]Nothing lost, nothing doubled:[/] {verdict.completed:,} tasks in"
                f" {verdict.seconds:.1f} s"
                + (
                    ", with a worker killed in the middle."
                    if verdict.taken_over_after_kill
                    else "."
                )
            )
        for fault in verdict.faults:
            self._console.print(f"[bold red]Wrong:[/] {fault}")


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
