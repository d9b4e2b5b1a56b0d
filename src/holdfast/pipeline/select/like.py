"""Patterns: `*` is any text, `?` one character, and a backslash makes the next one plain.

Case counts, and a wildcard takes line ends too. Whatever the pattern, a match takes time in
proportion to the text: a filter from outside must not be able to keep a core busy.
"""

import re

from holdfast.pipeline.select.tree import Like

_PLAIN = re.compile(r"[A-Za-z0-9]|[^\x00-\x7f]")


def pieces_of(pattern: str) -> tuple[tuple[str | None, ...], ...] | None:
    """What is between the stars; None if the pattern ends within an escape."""
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "*":
            pieces.append([])
        elif character == "?":
            pieces[-1].append(None)
        elif character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                return None
            pieces[-1].append(escaped)
        else:
            pieces[-1].append(character)
    first, *rest = pieces
    # Two stars in a row are one: only the last piece may be empty.
    kept = [first, *(piece for piece in rest[:-1] if piece), *rest[-1:]]
    return tuple(tuple(_joined(piece)) for piece in kept)


def _joined(piece: list[str | None]) -> list[str | None]:
    """Characters that stand beside one another as one text."""
    joined: list[str | None] = []
    for each in piece:
        if each is not None and joined and joined[-1] is not None:
            joined[-1] += each
        else:
            joined.append(each)
    return joined


def plain_text(piece: tuple[str | None, ...]) -> str | None:
    """A piece without wildcards as text."""
    if not piece:
        return ""
    return piece[0] if len(piece) == 1 else None


def prefix_of(like: Like) -> str | None:
    """The text that the column has to begin with, if the pattern asks for nothing else."""
    if len(like.pieces) == 2 and not like.pieces[1]:
        return plain_text(like.pieces[0])
    return None


def backtracking_regex(like: Like) -> str:
    """For Java: each piece is looked for once, from left to right, and never given back."""
    first, *rest = (_regex(piece) for piece in like.pieces)
    if not rest:
        return rf"(?s)\A{first}\z"
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1])
    return rf"(?s)\A{first}{middle}.*{rest[-1]}\z"


def automaton_regex(like: Like) -> str:
    """For RE2, which never goes back; the whole text has to fit."""
    return "(?s)" + ".*".join(_regex(piece) for piece in like.pieces)


def _regex(piece: tuple[str | None, ...]) -> str:
    return "".join("." if each is None else "".join(map(_quoted, each)) for each in piece)


def _quoted(character: str) -> str:
    if _PLAIN.match(character):
        return character
    return f"\\x{ord(character):02x}"
