"""`holdfast worker`: runs the tasks of a user's app until it is told to stop."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from holdfast.cli import spans
from holdfast.cli.help_text import examples
from holdfast.cli.options import Json, LogLevel

if TYPE_CHECKING:
    from holdfast.client import Holdfast, Worker

_PROGRESS_SECONDS = 5.0  # between two lines of progress, where something happened


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast worker shop:app",
            "holdfast worker shop:app --concurrency 16 --tasks charge,send_invoice",
            "holdfast worker shop.tasks:app --mode processes --concurrency 2",
            "holdfast worker shop:app --log-level info",
            "HOLDFAST_URL=http://127.0.0.1:9000 holdfast worker shop:app",
        )
    )(worker)


def worker(
    target: Annotated[
        str, typer.Argument(help="A module and the Holdfast in it.", metavar="MODULE:APP")
    ],
    concurrency: Annotated[int, typer.Option(min=1, help="How many tasks run at a time.")] = 4,
    mode: Annotated[
        Literal["threads", "processes"], typer.Option(help="Where plain functions run.")
    ] = "threads",
    prefetch: Annotated[
        int | None,
        typer.Option(min=0, help="Tasks held beyond those that run. [default: 4 x concurrency]"),
    ] = None,
    lease: Annotated[
        str,
        typer.Option(
            help="How soon others get this worker's tasks if it dies.", metavar=spans.METAVAR
        ),
    ] = "30s",
    tasks: Annotated[
        str | None, typer.Option(help="Only these tasks, by name: a,b.", metavar="NAMES")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name of this worker.")] = None,
    log_level: LogLevel = "warning",
    json: Json = False,
) -> None:
    """Run the tasks of an app until SIGINT or SIGTERM.

    The first signal stops gracefully: running tasks are finished, the others are returned to the
    node. The second signal stops at once; others get the work when the leases run out.

    An exception in a task is logged with its traceback, and so is what the app itself logs by
    Python's logging, unless its module sets up logging itself.
    """
    from holdfast.logs import configure, join_program

    configure(json=json, level=log_level)
    app = _import_app(target)
    join_program()
    chosen = None if tasks is None else _known_tasks(app, tasks)
    made = app.worker(
        concurrency=concurrency, mode=mode, prefetch=prefetch,
        lease=spans.parse_span_ms(lease) / 1000, name=name, tasks=chosen,
    )  # fmt: skip
    try:
        _run(app, made, chosen or list(app.tasks), json)
    finally:
        app.close()


def _import_app(target: str) -> "Holdfast":
    """The app that MODULE:APP names."""
    from holdfast.cli.imports import import_target
    from holdfast.client import Holdfast
    from holdfast.errors import InvalidArgument

    app, place = import_target(target, "MODULE:APP, such as shop:app")
    if not isinstance(app, Holdfast):
        raise InvalidArgument(f"Expected {place} to be a Holdfast, but found {app!r}")
    return app


def _known_tasks(app: "Holdfast", names: str) -> list[str]:
    from holdfast.errors import InvalidArgument

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in app.tasks]:
        raise InvalidArgument(
            f"Expected tasks among {', '.join(app.tasks) or 'none'}, but found {', '.join(unknown)}"
        )
    return chosen


def _run(app: "Holdfast", worker: "Worker", tasks: list[str], as_json: bool) -> None:
    """Works in another thread, so that this one is free for signals."""
    import os
    import signal
    import threading
    from concurrent.futures import ThreadPoolExecutor, wait

    from holdfast.cli.exit_codes import ExitCode

    stop = threading.Event()

    def on_signal(*_: Any) -> None:
        if stop.is_set():
            os._exit(ExitCode.INTERRUPTED)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    report = _Report(worker, as_json)
    report.started(tasks)
    _say_if_nobody_answers(app, report)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(worker.run)
        while not stop.is_set() and not running.done():
            # Short, because a signal is noticed between two waits.
            wait([running], timeout=0.1)
            report.progress()
        if not running.done():
            report.say("stopping", "stopping: finishes the running tasks and takes no more")
            worker.stop()
        running.result()
    report.stopped()


def _say_if_nobody_answers(app: "Holdfast", report: "_Report") -> None:
    from holdfast.client.patience import no_later_than
    from holdfast.errors import Unavailable

    try:
        with no_later_than(app.portal.loop.time()):  # the worker is patient, this is not
            app.portal.call(app.api.node.topology())
    except Unavailable as error:
        report.say("waiting", f"waiting for the node: {error.message}")


class _Report:
    """Tells what the worker does: lines for people, JSON lines for programs."""

    def __init__(self, worker: "Worker", as_json: bool) -> None:
        import time

        self._worker = worker
        self._as_json = as_json
        self._now = time.monotonic
        self._told_at = self._now()
        self._told = 0

    def started(self, tasks: list[str]) -> None:
        self.say("started", f"worker {self._worker.name} runs {', '.join(tasks)}", tasks=tasks)

    def progress(self) -> None:
        """A line now and then, where there is something new."""
        finished = self._worker.completed + self._worker.failed
        seconds = self._now() - self._told_at
        if seconds < _PROGRESS_SECONDS or finished == self._told:
            return
        rate = (finished - self._told) / seconds
        self._told, self._told_at = finished, self._now()
        self.say("progress", f"{self._counts()} · {rate:,.0f}/s")

    def stopped(self) -> None:
        self.say("stopped", f"stopped: {self._counts()}")

    def say(self, event: str, text: str, **more: Any) -> None:
        from holdfast.cli.output import print_json, print_line

        if not self._as_json:
            print_line(text)
            return
        worker = self._worker
        counts = {"completed": worker.completed, "failed": worker.failed, "lost": worker.lost}
        print_json({"event": event, "worker": worker.name, **counts, **more})

    def _counts(self) -> str:
        worker = self._worker
        late = f", {worker.lost:,} too late" if worker.lost else ""
        return f"{worker.completed:,} completed, {worker.failed:,} failed{late}"
