"""Compares what a program printed with what a page shows.

Keys, times, durations, sizes and digests differ from run to run: only their kind is compared.
Columns are as wide as what is in them, so the number of blanks is not compared. In a page `…`
stands for anything: the rest of a line, or, in a line of its own, any number of lines.
"""

import re
import socket

_HOST_OF_THE_PAGES = "web"

# The first pattern that matches decides, so longer ones come first.
_KINDS = (
    (re.compile(r"\b[0-9a-f]{32}\b"), "<digest>"),
    (re.compile(r"\b\d{15,}\b"), "<key>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:(\d\d(\.\d+)?(Z|\+00(:00)?)?|\.\.\.)"), "<time>"),
    (re.compile(r"(\d+ days )?\b\d\d:\d\d:\d\d(\.\d+)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|min|h)\b"), "<duration>"),
    (re.compile(r"\b\d+(\.\d+)? (B|kB|MB|KiB|MiB)\b"), "<size>"),
    (re.compile(r"─+"), "─"),
    (re.compile(r"-{3,}"), "---"),
)
_SURPRISE = re.compile(r"Traceback|\bwarn(ing)?\b|Warning\b|\berror: |\bERROR\b", re.IGNORECASE)


def surprises(printed: str) -> list[str]:
    """The lines that a new user would stop at."""
    return [line for line in printed.splitlines() if _SURPRISE.search(line)]


def matches(shown: str, printed: str, *, any_number: bool = False) -> bool:
    """Is this what the page shows?"""
    lines = [_plain(line, any_number) for line in shown.splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in lines
    )
    host = re.sub(rf"\b{re.escape(socket.gethostname())}\b", _HOST_OF_THE_PAGES, printed)
    found = "".join(_plain(line, any_number) + "\n" for line in host.rstrip().splitlines())
    return re.fullmatch(pattern, found) is not None


def _plain(line: str, any_number: bool) -> str:
    for pattern, kind in _KINDS:
        line = pattern.sub(kind, line)
    if any_number:
        line = re.sub(r"\b\d+\b", "<number>", line)
    return " ".join(line.split())
