"""What the demo shows while it runs: a bar and the tables in a terminal, lines elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
)
from rich.text import Text
from rich.tree import Tree

from holdfast.cli.demo.tables_text import answers, compared_table, look_line, look_table
from holdfast.cli.demo.verdict import Verdict
from holdfast.cli.demo.verdict_text import verdict_tables
from holdfast.cli.output import console

if TYPE_CHECKING:
    from holdfast.cli.demo.tables_look import TablesLook

_LINE_EVERY = 0.1  # of the work, where lines take the place of the bar
_REPAIR_LINE_EVERY = 0.25  # of the repair
_TABLES_SECONDS = 1  # between lines about the tables


class Stage:
    """Tells the demo's story."""

    def __init__(self, tasks: int, *, silent: bool) -> None:
        self._tasks = tasks
        self._console = console()
        self._console.quiet = silent
        self._is_live = self._console.is_terminal and not silent
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:>7,.0f}/s"),
            expand=True,
        )
        self._look: TablesLook | None = None
        self._told, self._told_line = 0.0, ""
        self._live = Live(
            console=self._console, get_renderable=self._now, transient=True, auto_refresh=True
        )
        self._bar = self._progress.add_task("completed", total=tasks, rate=0.0)
        self._repairing = ""
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

    def say_command(self, command: str) -> None:
        """What a person would type, to be copied: no line of it is broken by us."""
        self._console.print(Text(f"  $ {command}", style="bold"), soft_wrap=True)

    def show_tree(self, tree: Tree) -> None:
        """A tree, a little to the right of the story."""
        self._console.print(Padding(tree, (0, 0, 0, 2), expand=False))

    def completed(self, count: int, seconds: float) -> None:
        """How far the work is."""
        rate = count / max(seconds, 0.1)
        self._progress.update(self._bar, completed=count, rate=rate)
        share = count / self._tasks
        if not self._is_live and share >= self._last_line + _LINE_EVERY:
            self._last_line = share
            self.say(f"{count:,} of {self._tasks:,} completed ({rate:,.0f}/s)")

    def repairing(self, what: str, done: int, count: int, seconds: float) -> None:
        """How far a step of the repair is: its bar takes the place of the one before."""
        rate = done / max(seconds, 0.1)
        if what != self._repairing:
            self._repairing, self._last_line = what, 0.0
            self._progress.update(self._bar, visible=False)
            self._bar = self._progress.add_task(what, total=count, rate=0.0)
        self._progress.update(self._bar, completed=done, rate=rate)
        share = done / count
        if not self._is_live and share >= self._last_line + _REPAIR_LINE_EVERY:
            self._last_line = share
            self.say(f"{done:,} of {count:,} {what} ({rate:,.0f}/s)")

    def tables(self, look: "TablesLook") -> None:
        """How far the tables are; where there is no terminal, once in a while and only news."""
        if not look.records:
            return
        self._look = look
        if not self._is_live and time.monotonic() - self._told >= _TABLES_SECONDS:
            self.say_tables(look)

    def say_tables(self, look: "TablesLook") -> None:
        """The tables at one moment, to be seen later too."""
        line = look_line(look)
        if line != self._told_line:
            self._told, self._told_line = time.monotonic(), line
            self.say(f"tables: {line}")

    def _now(self) -> Group:
        """What is renewed in its place: the bar, and under it the tables."""
        parts: list[RenderableType] = [self._progress]
        if self._look is not None:
            parts.append(look_table(self._look))
        return Group(*parts)

    def show(self, verdict: Verdict) -> None:
        """The tables at the end."""
        orders, repair, content = verdict.orders, verdict.repair, verdict.content
        for table in verdict_tables(verdict):
            self._console.print(table)
        if verdict.tables is not None:
            self._console.print(compared_table(verdict.tables))
            for answer in answers(verdict.tables):
                self.say(answer)
        if verdict.is_good:
            killed = ", with a worker killed" if verdict.taken_over_after_kill else ""
            repaired = ""
            if repair is not None:
                repaired = f"; {repair.completed:,} broken ones repaired in {repair.seconds:.1f} s"
            sent = ""
            if content is not None:
                sent = f"; a site sent to three places in {content.seconds:.1f} s"
            self._console.print(
                f"[bold green]Nothing lost, nothing doubled:[/] {verdict.completed:,} tasks in"
                f" {verdict.seconds:.1f} s{killed}; {orders.completed:,} orders in"
                f" {orders.seconds:.1f} s{repaired}{sent}. Each is accounted for once."
            )
        for fault in verdict.all_faults:
            self._console.print(f"[bold red]Wrong:[/] {fault}")
