"""The bar that shows how far a batch operation is, while it runs."""

from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from holdfast.cli.output import number

if TYPE_CHECKING:
    from holdfast.gateway.batch.shapes import BatchOperationView


class Bar:
    """A line on the terminal: state, bar, counts, rate, and when it will be over."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[counts]}"),
            TextColumn("{task.fields[pace]}", style="dim"),
            console=Console(stderr=True, highlight=False),
        )
        self._task = self._progress.add_task("CREATED", total=None, counts="", pace="")

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, view: "BatchOperationView") -> None:
        done = (
            view.operations_completed_count + view.operations_failed_count
            + view.operations_skipped_count + view.operations_canceled_count
        )  # fmt: skip
        total = view.operations_total_count
        counts = f"{number(done)} of {number(total)}{'' if view.is_selected else ' so far'}"
        if view.operations_failed_count:
            counts += f", {number(view.operations_failed_count)} failed"
        self._progress.update(
            self._task,
            description=str(view.state),
            completed=done,
            total=total if view.is_selected else None,
            counts=counts,
            pace=_pace(view),
        )


def _pace(view: "BatchOperationView") -> str:
    if view.items_per_second is None:
        return ""
    said = f"{view.items_per_second:,.0f}/s"
    if view.estimated_end is None:
        return said
    return f"{said}, {_span((view.estimated_end - datetime.now(UTC)).total_seconds())} left"


def _span(seconds: float) -> str:
    """A time to wait, in the largest unit that tells enough: the bar needs the room."""
    for unit, size, enough in (("s", 1, 100), ("min", 60, 6_000)):
        if seconds < enough:
            return f"{max(round(seconds / size), 0)} {unit}"
    return f"{round(seconds / 3_600)} h"
