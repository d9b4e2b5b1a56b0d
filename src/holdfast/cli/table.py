"""Tables on a terminal of any width: keys are whole on one line, whatever else has to give way.

A line that is too long loses, in this order: columns without a word in them, the seconds of times,
columns that matter less, the ends of long texts, the ends of long names. Keys are never cut.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

GAP = "  "
_TEXT_CHARS_MIN = 16  # a text that is cut shorter than this tells nothing
_NAME_CHARS_MIN = 12
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d):\d\d")

# What people copy into other commands, and what numbers them.
_KEYS = frozenset(
    ("KEY", "ID", "INSTANCE", "TASK", "ITEM", "OFFSET", "CUT", "PARTITION", "NUMBER", "TOKEN")
)
_NAMES = frozenset(
    ("TYPE", "PROCESS", "ELEMENT", "PACKAGE", "OWNER", "RESOURCE", "CLIENT", "SUBSCRIBER", "MEMBER",
     "PUBLISHER", "GROUP", "TOPIC", "USERNAME", "QUEUE", "SLOWEST", "URL", "WHERE"),
)  # fmt: skip
# What is left out first where a line is too long.
_SPARE = (
    "RETRIES LEFT", "PROCESSED", "HOST", "HEARD", "NEXT", "EPOCH", "HOME", "FROM", "READY", "SIZE",
    "SINCE", "OPEN SINCE", "ADDRESS", "VERSION", "QUEUE", "CREATED", "DEPLOYED", "STARTED",
    "ATTEMPTS", "FAILURES", "REASON", "EMAIL", "DUE",
)  # fmt: skip
_REASONS = frozenset(("ERROR", "WHY"))


@dataclass
class _Column:
    name: str
    cells: list[str]
    is_first: bool

    @property
    def is_key(self) -> bool:
        return self.name in _KEYS

    @property
    def is_name(self) -> bool:
        return self.is_first or self.name in _NAMES

    @property
    def width(self) -> int:
        return max(width_of(self.name), *map(width_of, self.cells))

    @property
    def width_min(self) -> int:
        return max(_NAME_CHARS_MIN if self.is_name else _TEXT_CHARS_MIN, width_of(self.name))

    def give(self, *, with_names: bool) -> int:
        """By how much it can be narrower, with names cut or whole."""
        if self.is_key or (self.is_name and not with_names):
            return 0
        return max(self.width - self.width_min, 0)


def lines_of(
    names: Sequence[str], rows: Sequence[Sequence[str]], width_max: int | None
) -> tuple[list[str], list[str]]:
    """The lines of a table, the names of its columns first; and which columns had no room.

    Without a greatest width nothing is left out and nothing is cut.
    """
    columns = [
        _Column(name, [_on_one_line(row[at]) for row in rows], is_first=at == 0)
        for at, name in enumerate(names)
    ]
    left_out: list[str] = []
    if width_max is not None:
        columns, left_out = _fitted(columns, width_max)
    widths = [column.width for column in columns]
    texts = [[column.name for column in columns]]
    texts += [[column.cells[row] for column in columns] for row in range(len(rows))]
    return [_line(each, widths) for each in texts], left_out


def _fitted(columns: list[_Column], width_max: int) -> tuple[list[_Column], list[str]]:
    """Columns that fit, as far as they can; and the names of those that are gone."""
    if _excess(columns, width_max) <= 0:
        return columns, []
    columns = [each for each in columns if each.is_key or any(each.cells)]
    for each in columns:
        if _excess(columns, width_max) > 0:
            each.cells = [_MOMENT.sub(r"\1", cell) for cell in each.cells]
    left_out: list[str] = []
    for name in _spare(columns):
        saved = sum(each.give(with_names=name not in _SPARE) for each in columns)
        if _excess(columns, width_max) <= saved:
            break
        columns = [each for each in columns if each.name != name]
        left_out.append(name)
    _cut([each for each in columns if not each.is_key and not each.is_name], columns, width_max)
    _cut([each for each in columns if each.is_name and not each.is_key], columns, width_max)
    return columns, left_out


def _spare(columns: list[_Column]) -> list[str]:
    """What may be left out, the least important first: last of all what is wrong with a thing."""
    free = [each for each in columns if not each.is_key and not each.is_first]
    named = [name for name in _SPARE if any(each.name == name for each in free)]
    others = [each for each in reversed(free) if each.name not in _SPARE]
    others.sort(key=lambda each: (each.name in _REASONS, each.is_name))
    return named + [each.name for each in others]


def _cut(those: list[_Column], columns: list[_Column], width_max: int) -> None:
    """Shortens the cells of the widest of those columns, until the line fits or they are short."""
    while (excess := _excess(columns, width_max)) > 0:
        long = [each for each in those if each.width > each.width_min]
        if not long:
            return
        widest = max(long, key=lambda each: each.width)
        width = max(widest.width - excess, widest.width_min)
        widest.cells = [_shortened(cell, width) for cell in widest.cells]


def _excess(columns: list[_Column], width_max: int) -> int:
    return sum(each.width for each in columns) + len(GAP) * (len(columns) - 1) - width_max


def _shortened(cell: str, width: int) -> str:
    if width_of(cell) <= width:
        return cell
    while width_of(cell) > width - 1:
        cell = cell[:-1]
    return f"{cell}…"


def _line(cells: list[str], widths: list[int]) -> str:
    padded = (
        cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=True)
    )
    return GAP.join(padded).rstrip()


def _on_one_line(cell: str) -> str:
    """A cell without characters that move the cursor or colour the terminal: users wrote them."""
    return "".join(each if each.isprintable() else " " for each in cell)


def width_of(text: str) -> int:
    """The columns of a terminal that a text takes: some characters take two, some none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )
