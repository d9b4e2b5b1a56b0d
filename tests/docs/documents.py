"""Reads the code blocks and links of Markdown files.

A comment in the line before a block says what it is for:

    <!-- not run -->        it needs something that a test does not have;
                            with `: fragment` type checkers skip it, too
    <!-- file: shop.py -->  it is written to this file
    <!-- background -->     it goes on running beside the blocks that follow;
                            with `: logs failures` the page tells that it does
    <!-- first time -->     a second run prints something else
    <!-- numbers differ --> any number will do where the page shows one
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r"^(?:<!-- ?(.*?) ?-->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """One fenced block."""

    language: str
    marker: str
    text: str

    @property
    def background(self) -> bool:
        """Does it go on running beside the blocks that follow?"""
        return self.marker.startswith("background")

    @property
    def file(self) -> str | None:
        """The file that it is to be written to."""
        found = re.fullmatch(r"file: (\S+)", self.marker)
        return found[1] if found else None


def blocks_of(path: Path) -> list[Block]:
    """All blocks of a file that are to be used, in their order."""
    found = [
        Block(language, marker, text) for marker, language, text in _BLOCK.findall(path.read_text())
    ]
    return [block for block in found if not block.marker.startswith("not run")]


def links_of(path: Path) -> Iterator[tuple[str, str]]:
    """The relative links of a file outside of code: the target and its anchor."""
    text = _BLOCK.sub("", path.read_text())
    for link in _LINK.findall(text):
        if not re.match(r"[a-z]+:", link):
            target, _, anchor = link.partition("#")
            yield target, anchor


@cache
def anchors_of(path: Path) -> set[str]:
    """What the headings of a file can be reached by."""
    text = _BLOCK.sub("", path.read_text())
    return {_anchor(heading) for heading in _HEADING.findall(text)}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def documents() -> list[Path]:
    """All Markdown files that people read."""
    return sorted((*ROOT.glob("*.md"), *DOCS.rglob("*.md")))
