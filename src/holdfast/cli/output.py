"""What commands print: tables for people, JSON for programs, errors beside them."""

import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree


def print_json(value: Any) -> None:
    """One JSON document on one line, at once: somebody may wait at the end of a pipe."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """A plain line, at once."""
    print(text, flush=True)


def print_note(text: str) -> None:
    """A line beside the output: progress, and what a program does not need to read."""
    print(text, file=sys.stderr, flush=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], empty: str) -> None:
    """Rows under their columns; a sentence when there are none. In a pipe, lines are not cut."""
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    if not rows:
        print_line(empty)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # no cell is markup: users wrote them
    _console().print(table)


def print_tree(tree: "Tree") -> None:
    """A tree; in a pipe, lines are not cut."""
    _console().print(tree)


def _console() -> "Console":
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000
    return console


def print_fields(fields: Iterable[tuple[str, str]]) -> None:
    """One thing, a field a line; fields without a value are left out."""
    known = [(name, value) for name, value in fields if value]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        first, *rest = value.splitlines() or [""]
        print_line(f"{name:<{width}}  {first}")
        for line in rest:
            print_line(f"{'':<{width}}  {line}")


def print_error(error: HoldfastError, *, as_json: bool) -> None:
    """One line that says what is wrong, or a problem in JSON."""
    if as_json:
        fields = {name: _scalar(value) for name, value in error.fields.items()}
        problem = {"code": error.code, "detail": error.message, "fields": fields}
        print_note(msgspec.json.encode(problem).decode())
    else:
        text = error.message
        if text[1:2].islower():  # a sentence, and not a name such as C.4.0.bpmn
            text = text[:1].lower() + text[1:]
        print_note(f"error: {text}")


def _scalar(value: Any) -> str | int | float | None:
    return value if isinstance(value, str | int | float | None) else repr(value)


def moment(value: datetime | None) -> str:
    """A point in time in the reader's time zone."""
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(since: datetime) -> str:
    """How long ago something was, in the largest unit that fits: 12 s, 3 min, 5 h, 2 d."""
    seconds = max(int((datetime.now(UTC) - since).total_seconds()), 0)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def number(value: int | None) -> str:
    """A number with its thousands apart."""
    return "" if value is None else f"{value:,}"


def last_line(error: str) -> str:
    """What an error says; the lines before it are the traceback."""
    return (error.splitlines() or [""])[-1]


def bytes_text(count: int) -> str:
    """A number of bytes as people say it."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def raw_text(value: Any) -> str:
    """A JSON value that was left as bytes; empty where there is none."""
    return bytes(value).decode(errors="replace") if isinstance(value, msgspec.Raw) else ""
