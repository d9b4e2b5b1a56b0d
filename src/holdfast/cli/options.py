"""Options that several verbs share, so that they are called and explained the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from holdfast.limits import PAGE_ITEMS_MAX

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_FOLDER = Path("data")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
LogLevel = Annotated[
    str,
    typer.Option(
        "--log-level",
        envvar="HOLDFAST_LOG_LEVEL",
        help="debug, info, warning or error.",
        metavar="LEVEL",
    ),
]
Url = Annotated[
    str, typer.Option("--url", envvar="HOLDFAST_URL", help="Where the node is.", metavar="URL")
]
Folder = Annotated[Path, typer.Argument(help="The data folder of a node.", metavar="FOLDER")]
TaskKey = Annotated[str, typer.Argument(help="The key of a task.", metavar="KEY")]
IncidentKey = Annotated[str, typer.Argument(help="The key of an incident.", metavar="KEY")]
InstanceKey = Annotated[str, typer.Argument(help="The key of a process instance.", metavar="KEY")]
Limit = Annotated[int, typer.Option(min=1, max=PAGE_ITEMS_MAX, help="How many at most.")]
After = Annotated[
    str | None, typer.Option(help="Go on where the page before ended, as its last line says.")
]
Payload = Annotated[
    str,
    typer.Argument(help="The arguments as JSON; - reads them from standard input.", metavar="JSON"),
]
Variables = Annotated[
    str,
    typer.Option(
        "--variables",
        help="A JSON object; @FILE reads it from a file, - from standard input.",
        metavar="JSON",
    ),
]
