"""What a person sees: progress while it runs, a line as each figure is done, a table at the end."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.harness import Result


def number(value: float) -> str:
    """Three digits that matter, with separators, and no exponent."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.{2 if abs(value) >= 1 else 3}f}"


def state(row: dict[str, Any]) -> str:
    """The word for a row: met, not met or skipped."""
    if row["ratio"] is None:
        return "skipped"
    return "met" if row["met"] else "not met"


COLOURS = {"met": "green", "not met": "red", "skipped": "yellow"}


class Watcher:
    """Shows the run on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._title = ""
        self._started = False

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

    def preparing(self, name: str) -> None:
        """A benchmark is about to open what it needs."""
        self._progress.reset(self._task, description=f"[bold]{name}[/] · preparing", total=None)
        self._console.print(f"[bold]{name}[/]")

    def begin(self, name: str, figure: str, measurements: int) -> None:
        self._title = f"[bold]{name}[/] · {figure}"
        self._started = False
        self._progress.reset(self._task, description=self._title, total=measurements)

    def measuring(self, what: str) -> None:
        advance = 1 if self._started else 0
        self._started = True
        self._progress.update(self._task, advance=advance, description=f"{self._title} · {what}")

    def end(self, result: Result) -> None:
        row = result.row()
        word = state(row)
        text = f"  {result.figure}: [{COLOURS[word]}]{word}[/]"
        if row["ratio"] is not None:
            low, high = row["spread"]
            text += f"  {number(row['ratio'])} ({number(low)}..{number(high)}), goal {row['goal']}"
        self._console.print(text, highlight=False, soft_wrap=True)
        for line in cost_lines(row):
            self._console.print(f"    {line}", style="dim", highlight=False, soft_wrap=True)


def parts(costs: Mapping[str, float]) -> str:
    """What each part took, and all together: `42.1 (node 25.3, worker 9.2, client 7.6)`."""
    each = ", ".join(f"{name} {number(value)}" for name, value in costs.items() if name != "all")
    return f"{number(costs['all'])} ({each})" if "all" in costs else each


def cost_lines(row: dict[str, Any]) -> list[str]:
    """What a unit of a figure cost, in lines; none where nothing is known of it."""
    cost = row.get("cost")
    if not cost:
        return []
    lines = [f"processor time of a {cost['of']}: {parts(cost['ours'])} µs"]
    for label, theirs in cost["peers"].items():
        lines.append(f"  {label}: {parts(theirs)} µs")
    if cost["ratio"] is not None:
        lines.append(f"  ours by the least of theirs: {number(cost['ratio'])}")
    counted = cost["instructions"]
    if isinstance(counted, str):
        lines.append(f"instructions: {counted}")
    else:
        for label, theirs in counted.items():
            lines.append(f"instructions of a {cost['of']}, {label}: {parts(theirs)}")
    return [*lines, f"against recorded: {against_recorded(cost['recorded'])}"]


def against_recorded(compared: dict[str, Any]) -> str:
    """The comparison with the recorded cost, with its null run, in words."""
    text = str(compared["word"])
    if compared["ratio"] is not None:
        text += f", {compared['ratio']:.2f} times; tolerance {compared['tolerance']:.0%}"
    null = compared["null"]
    return text if null is None else f"{text}; the same code twice {null:.3f}"


def print_costs(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """What units cost, below the table: a busy machine changes ratios of rates more than these."""
    for row in rows:
        lines = cost_lines(row)
        if lines:
            console.print(f"[bold]{row['name']}[/] · {row['figure']}", highlight=False)
        for line in lines:
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def print_table(console: Console, rows: Sequence[dict[str, Any]]) -> None:
    """All figures, with what was left out below."""
    table = Table(title="holdfast, each figure against a limit or peer of the same run")
    table.add_column("figure", overflow="fold", ratio=1)
    for column in ("ratio", "min..max", "goal"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("")
    table.add_column("ours / peer", justify="right", style="dim")
    for row in rows:
        word = state(row)
        title = f"[bold]{row['name']}[/] · {row['figure']}\n[dim]against {row['against']}[/]"
        numbers = ("", "", row["goal"])
        medians = ""
        if row["ratio"] is not None:
            low, high = row["spread"]
            numbers = (number(row["ratio"]), f"{number(low)}..{number(high)}", row["goal"])
            medians = f"{number(row['ours'])} / {number(row['peer'])}\n{row['unit']}"
        table.add_row(title, *numbers, f"[{COLOURS[word]}]{word}[/]", medians)
    console.print(table)
    for row in rows:
        if row.get("peers"):
            each = ", ".join(f"{label} {number(value)}" for label, value in row["peers"].items())
            console.print(f"{row['figure']}: {each} {row['unit']}", style="dim", highlight=False)
        if row.get("skipped"):
            console.print(f"{row['figure']} was skipped: {row['skipped']}", markup=False)
        for label, why in row.get("left_out", {}).items():
            if not row.get("skipped"):
                console.print(f"{row['figure']} went without {label}: {why}", markup=False)
