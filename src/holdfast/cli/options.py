"""Options that several verbs share, so that they are called and explained the same everywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli import spans
from holdfast.limits import PAGE_ITEMS_MAX

DEFAULT_URL = "http://127.0.0.1:8080"
DEFAULT_FOLDER = Path("data")

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
LogLevel = Annotated[
    str,
    typer.Option(
        "--log-level",
        envvar="HOLDFAST_LOG_LEVEL",
        help="debug, info, warning, error or critical.",
        metavar="LEVEL",
    ),
]
Url = Annotated[
    str, typer.Option("--url", envvar="HOLDFAST_URL", help="Where the node is.", metavar="URL")
]
Folder = Annotated[Path, typer.Argument(help="The data folder of a node.", metavar="FOLDER")]


def key_argument(what: str) -> Any:
    """An argument that is a key: digits, which is checked before the node is asked."""

    def checked(value: str) -> str:
        from holdfast.errors import InvalidArgument

        if not (value.isascii() and value.isdecimal()):
            raise InvalidArgument(f"Expected the key of {what}, but found {value!r}")
        return value

    return typer.Argument(help=f"The key of {what}.", metavar="KEY", callback=checked)


TaskKey = Annotated[str, key_argument("a task")]
IncidentKey = Annotated[str, key_argument("an incident")]
InstanceKey = Annotated[str, key_argument("a process instance")]
DefinitionKey = Annotated[str, key_argument("a process definition")]
Limit = Annotated[int, typer.Option(min=1, max=PAGE_ITEMS_MAX, help="How many at most.")]
After = Annotated[
    str | None, typer.Option(help="Continue after this key: the last line of the previous page.")
]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        help="How long this command waits at most; exit code 8 if it is not done by then.",
        metavar=spans.METAVAR,
    ),
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


def wait_ms(wait: bool, timeout: str | None) -> int | None:
    """What --wait and --timeout say together: 0 without --wait, None without an end."""
    from holdfast.errors import InvalidArgument

    if timeout is not None and not wait:
        raise InvalidArgument("--timeout needs --wait: it limits how long the command waits")
    return spans.maybe_span_ms(timeout) if wait else 0
