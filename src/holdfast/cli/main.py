"""The `holdfast` command: its verbs, and errors as one line and an exit code."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from holdfast.cli import (
    demo,
    distributions,
    doctor,
    incidents,
    node,
    pipeline,
    schedules,
    settings,
    show,
    tasks,
    transactions,
    worker,
)
from holdfast.cli import (
    groups as sharing,
)
from holdfast.cli.backup import command as backup
from holdfast.cli.batch import command as batch
from holdfast.cli.cluster import command as cluster
from holdfast.cli.content import command as content
from holdfast.cli.exit_codes import ExitCode, exit_code_of
from holdfast.cli.help_text import examples, exit_codes
from holdfast.cli.identity import groups, permissions, tokens, users
from holdfast.cli.journal import command as journal
from holdfast.cli.partitions import command as partitions
from holdfast.cli.processes import definitions, instances, messages, start
from holdfast.cli.report import command as report
from holdfast.errors import HoldfastError
from holdfast.version import VERSION

# Plain help: loading Rich to draw it would triple the time until it shows.
app = typer.Typer(
    name="holdfast",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A durable work log: submit tasks and processes; workers run them at least once.",
    epilog="\n\n".join(
        (
            examples(
                "holdfast demo                        see it work, and survive a killed worker",
                "holdfast start ./data                a node at http://127.0.0.1:8080",
                "holdfast worker shop:app             run the tasks of app in shop.py",
                "holdfast tasks submit send_invoice '{\"order\": 42}' --key invoice-42",
                "holdfast deploy order.bpmn           a process, drawn or written in Python",
                "holdfast start-process order --variables '{\"orderId\": 42}'",
                "holdfast content publish site ./site   send a folder to all subscribers",
                "holdfast journal cat ./data --follow",
                "holdfast pipeline run ./data         tables of what happened, kept fresh by Spark",
            ),
            exit_codes(),
        )
    ),
)
for _verb in (
    node, worker, doctor, demo, definitions, start, show, messages, report, permissions, backup,
):  # fmt: skip
    _verb.register(app)
sharing.register(groups.groups)
for _group in (
    tasks.app, incidents.app, definitions.app, instances.app, batch.app, schedules.app, content.app,
    distributions.app, transactions.app, cluster.app, journal.app, backup.app, partitions.app,
    pipeline.app,
    settings.app, users.app, groups.groups, groups.roles, tokens.app, permissions.app,
):  # fmt: skip
    app.add_typer(_group)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"holdfast {VERSION}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    del version


def main() -> None:
    """The entry point of the `holdfast` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Runs one command and returns its exit code."""
    as_json = "--json" in arguments  # also known where the arguments cannot be understood
    try:
        return _invoke(arguments)
    except HoldfastError as error:
        return _fail(error, as_json=as_json)
    except OSError as error:
        from holdfast.cli.edge import file_error

        return _fail(file_error(error), as_json=as_json, cause=error)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except Exception as error:
        said: Callable[[], str] | None = getattr(error, "format_message", None)
        if said is None:  # a bug, and not about the arguments
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # the help is what it says
            print(said(), file=sys.stderr)
            return ExitCode.USAGE
        from holdfast.cli.edge import usage_error

        return _fail(usage_error(error), as_json=as_json, cause=error)


def _invoke(arguments: Sequence[str]) -> int:
    """Typer's own way out is an exit; its number is the command's."""
    try:
        code = app(args=list(arguments), prog_name="holdfast", standalone_mode=False)
    except SystemExit as end:
        code = end.code
    return code if isinstance(code, int) else ExitCode.OK


def _fail(error: HoldfastError, *, as_json: bool, cause: BaseException | None = None) -> int:
    """Tells what is wrong; the traceback only where it is wanted."""
    if os.environ.get("HOLDFAST_DEBUG") == "1":
        raise cause or error
    from holdfast.cli.output import print_error

    print_error(error, as_json=as_json)
    return exit_code_of(error.code)
