"""`holdfast doctor`: is this machine, and this folder, fit for a node?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.help_text import examples
from holdfast.cli.options import Json

if TYPE_CHECKING:
    from holdfast.cli.checks import Check


def register(app: typer.Typer) -> None:
    """Adds the verb to the command."""
    app.command(
        epilog=examples(
            "holdfast doctor                      only the machine",
            "holdfast doctor ./data               the machine and a node's folder, running or not",
            "holdfast doctor ./data --json | jq '.items[] | select(.status != \"ok\")'",
        )
    )(doctor)


def doctor(
    folder: Annotated[
        Path | None, typer.Argument(help="The data folder of a node.", metavar="FOLDER")
    ] = None,
    json: Json = False,
) -> None:
    """Check the machine and a node's folder, and suggest a fix for each problem.

    Exit code 0 if nothing failed (warnings may stand), 1 if something did, 6 if stored bytes are
    damaged.
    """
    from holdfast.cli.checks import Status, folder_checks, machine_checks
    from holdfast.cli.exit_codes import ExitCode
    from holdfast.cli.output import print_json, print_note

    checks: list[Check] = []
    for run in (*machine_checks(folder or Path.cwd()), *(folder_checks(folder) if folder else ())):
        check = run()
        checks.append(check)
    if json:
        print_json({"items": checks})
    else:
        _print_checks(checks)
        if folder is None:
            print_note("give a FOLDER to check a node's data too")
    failed = [check for check in checks if check.status is Status.FAIL]
    if failed:
        raise typer.Exit(max((check.exit_code for check in failed), default=ExitCode.FAILURE))


def _print_checks(checks: "list[Check]") -> None:
    """A line for each check, with what to do under it where that does not fit beside."""
    from rich.padding import Padding
    from rich.text import Text

    from holdfast.cli.output import console

    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    shown = console()
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = Text.assemble(f"{check.name:<{width}}  ", check.found)
        status = Text(f"{check.status:<4}  ", style=styles[check.status])
        shown.print(Text.assemble(status, line), soft_wrap=True)
        if check.advice:
            indent = len("warn  ") + width + 2
            shown.print(Padding(Text(check.advice), (0, 0, 0, indent), expand=False))
