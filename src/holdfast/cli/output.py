"""What commands print: tables for people, JSON for programs, errors beside them."""

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.tree import Tree

_PIPE_CHARS_MAX = 1_000_000  # of a line: longer than any that holdfast writes
_TREE_INDENT_CHARS = 4  # a level of a tree
_TREE_WORD_CHARS = 24  # room for a key on the deepest level


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
    """Rows under their columns; a sentence when there are none. In a pipe, nothing is cut.

    In a terminal keys are never cut; `table` says what gives way to them.
    """
    from holdfast.cli.table import lines_of

    shown = list(rows)
    if not shown:
        print_line(empty)
        return
    (head, *lines), left_out = lines_of(columns, shown, terminal_width())
    print_line(f"\033[1m{head}\033[0m" if _has_styles() else head)
    for line in lines:
        print_line(line)
    if left_out:
        print_note(f"no room for {', '.join(left_out)}: widen the terminal, or use --json")


def terminal_width() -> int | None:
    """The columns of the terminal that is written to; None where it is none, as in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _has_styles() -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return sys.stdout.isatty() and not plain


def print_tree(tree: "Tree") -> None:
    """A tree; in a pipe, lines are not folded, and in a terminal only between words."""
    shown = console()
    shown.width = max(shown.width, _TREE_INDENT_CHARS * _depth(tree) + _TREE_WORD_CHARS)
    shown.print(tree)


def _depth(tree: "Tree") -> int:
    return 1 + max(map(_depth, tree.children), default=0)


def console() -> "Console":
    """Where styled output goes. In a pipe a line is as long as it has to be."""
    from rich.console import Console

    made = Console(highlight=False)
    if not made.is_terminal:
        made.width = _PIPE_CHARS_MAX
    return made


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
        fields = {name: _plain(value) for name, value in error.fields.items()}
        problem = {"code": error.code, "detail": error.message, "fields": fields}
        print_note(msgspec.json.encode(problem).decode())
    else:
        text = error.message
        if text[1:2].islower():  # a sentence, and not a name such as C.4.0.bpmn
            text = text[:1].lower() + text[1:]
        print_note(f"error: {text}")


def _plain(value: Any) -> Any:
    """A field of an error as JSON; what cannot be JSON as Python shows it."""
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return repr(value)


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
