"""What could have stood where an expression goes wrong, in words."""

from collections.abc import Collection
from typing import Any

from holdfast.model.feel.syntax import Place

OPERAND = "an operand"
WORDS = {
    "RPAR": "')'", "RSQB": "']'", "RBRACE": "'}'", "COMMA": "','", "COLON": "':'", "LPAR": "'('",
    "THEN": "'then'", "ELSE": "'else'", "RETURN": "'return'", "SATISFIES": "'satisfies'",
    "IN": "'in'", "AND": "'and'", "NAME": "a name", "KEY": "a name", "TYPE": "a type",
}  # fmt: skip
OPERATORS = {"PLUS_MINUS", "TIMES", "POWER", "COMPARE", "OR", "LSQB", "LPAR", "DOT", "BETWEEN"}
TOKEN_CHARS_SHOWN = 30


def expected(accepted: Collection[str]) -> str:
    """The things that the parser would have taken, the shortest way to say them."""
    if {"NUMBER", "STRING", "MINUS"} <= set(accepted):
        return OPERAND
    operator = "PLUS_MINUS" in accepted
    hidden = {"LPAR", "IN", "COMMA"} if operator else set()
    if "COMPARE" in accepted:  # otherwise it is the `and` of `between`
        hidden.add("AND")
    words = ["an operator"] if operator else []
    words += [word for name, word in WORDS.items() if name in accepted and name not in hidden]
    words = list(dict.fromkeys(words)) or ["the end of the expression"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def at_token(text: str, wrong: Any) -> tuple[str, Place]:
    """The sentence and the place for a token that does not fit."""
    if wrong.token.type == "RANGE_END":  # it may have been meant to begin a filter
        return f"Expected {OPERAND} after '['", Place(wrong.token.line, wrong.token.column)
    wanted = expected(wrong.accepts or wrong.expected)
    if wrong.token.type == "$END":
        return f"Expected {wanted}, but found the end", end_of(text)
    return f"Expected {wanted}, but found '{_short(wrong.token.value)}'", Place(
        wrong.token.line, wrong.token.column
    )


def at_character(text: str, wrong: Any) -> tuple[str, Place]:
    """The sentence and the place for a character that begins nothing."""
    place = Place(wrong.line, wrong.column)
    rest = text[wrong.pos_in_stream :]
    for opening, closing in (('"', '"'), ('@"', '"'), ("`", "`"), ("/*", "*/")):
        if rest.startswith(opening):
            return f"Expected {closing} to end what begins with {opening}, but found the end", place
    allowed = set(wrong.allowed or ())
    wanted = "an operator" if "PLUS_MINUS" in allowed else expected(allowed)
    return f"Expected {wanted}, but found '{_short(rest.split()[0])}'", place


def end_of(text: str) -> Place:
    """The place just behind the last character."""
    lines = text.split("\n")
    return Place(len(lines), len(lines[-1]) + 1)


def _short(found: str) -> str:
    return found if len(found) <= TOKEN_CHARS_SHOWN else f"{found[:TOKEN_CHARS_SHOWN]}..."
