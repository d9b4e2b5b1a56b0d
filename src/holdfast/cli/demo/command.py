"""`holdfast demo`: the verb."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import Json, LogLevel

_TASKS = 20_000
_TASKS_MIN = 100  # fewer are over before a worker can be killed in the middle


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast demo",
            "holdfast demo --tasks 100000 --folder ./demo",
            "holdfast demo --json | jq '{lost, doubled}'",
        )
    )(demo)


def demo(
    tasks: Annotated[int, typer.Option(min=_TASKS_MIN, help="How many tasks.")] = _TASKS,
    folder: Annotated[
        Path | None, typer.Option(help="A new folder to work in; it is kept. [default: temporary]")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary folder.")] = False,
    log_level: LogLevel = "warning",
    json: Json = False,
) -> None:
    """See holdfast work: a shop on a fresh node, with a worker killed in the middle.

    Starts a real node and real workers, submits charges, invoices and shipments (some of them
    twice, some failing at first, some until a person looks), kills a worker with SIGKILL, and ends
    with a table that is checked against the journal and against a ledger that the tasks write.
    Then it deploys a process, starts orders and publishes their payments, shows and draws an order
    that is stuck, repairs it, and counts again. Beside all that Spark keeps tables of it, if the
    extra holdfast[pipeline] is installed: they are shown while they fill, compared with the
    journal, searched, and a report is drawn. Where there are tables, orders break by the thousands
    and one batch operation repairs all of them. At the end a site is published to three
    subscribers, of which one is killed and one refuses a package; their stores are compared with
    what was published. Exit code 1 if anything is lost, doubled or differs.
    """
    import asyncio
    import os
    import shutil
    import tempfile

    from holdfast.cli.demo.stage import Stage
    from holdfast.cli.demo.story import Pictures, Story
    from holdfast.cli.demo.workload import Workload
    from holdfast.cli.exit_codes import ExitCode
    from holdfast.cli.output import print_json, print_note
    from holdfast.logs import level_number

    level_number(log_level)  # a wrong one is refused before anything is started
    os.environ["HOLDFAST_LOG_LEVEL"] = log_level  # of the node and the workers: FOLDER/*.log
    place = Path(tempfile.mkdtemp(prefix="holdfast-demo-")) if folder is None else _fresh(folder)
    # Beside a temporary folder, so that the pictures are still there when the folder is not.
    beside = f"{place}-" if folder is None else f"{place}/"
    pictures = Pictures(Path(f"{beside}order.png"), Path(f"{beside}report.png"))
    is_good = False
    stage = Stage(tasks, silent=json)
    try:
        with stage:
            verdict = asyncio.run(Story(place, pictures, Workload(tasks), stage).run())
        is_good = verdict.is_good
        if json:
            print_json(verdict)
        else:
            stage.show(verdict)
    finally:
        if folder is None and is_good and not keep:
            shutil.rmtree(place, ignore_errors=True)
        else:
            print_note(f"everything is in {place}: try holdfast journal cat {place / 'data'}")
    if not is_good:
        raise typer.Exit(ExitCode.FAILURE)


def _fresh(folder: Path) -> Path:
    """The folder, made; AlreadyExists if there is something in it."""
    from holdfast.errors import AlreadyExists

    if folder.exists() and any(folder.iterdir()):
        raise AlreadyExists(f"Expected a new folder, but {folder} has something in it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
