"""From text to the parts of an expression, or to an error that says what was expected where."""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from holdfast.model.feel import syntax as s
from holdfast.model.feel.bounds import (
    EXPRESSION_CHARS_MAX,
    EXPRESSION_CHARS_SHOWN,
    ITERATIONS_MAX,
    NESTING_MAX,
)
from holdfast.model.feel.grammar import parser
from holdfast.model.feel.numeric import whole
from holdfast.model.feel.problems import FeelError

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", '"': '"', "'": "'", "\\": "\\"}
SURROGATE = re.compile("[\ud800-\udfff]")
ESCAPE = re.compile(
    r"\\(?:u(?P<pair>[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<four>[0-9a-fA-F]{4})|U(?P<six>[0-9a-fA-F]{6})|(?P<one>[ntrfb\"'\\]))"
)


class Misplaced(Exception):
    """Something that the grammar allows and the language does not, at a place."""

    def __init__(self, message: str, place: s.Place) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


def place_of(token: Any) -> s.Place:
    return s.Place(token.line, token.column)


def unquoted(token: Any, text: str) -> str:
    """What a string in quotes stands for; escapes that are none stay, as regular expressions do."""

    def one(found: re.Match[str]) -> str:
        if found["one"]:
            return ESCAPES[found["one"]]
        if found["pair"]:
            high, low = found["pair"].split("\\u")
            return chr(0x10000 + (int(high, 16) - 0xD800) * 0x400 + int(low, 16) - 0xDC00)
        point = int(found["four"] or found["six"], 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            raise Misplaced(f"Expected a character, but found '{found[0]}'", place_of(token))
        return chr(point)

    return ESCAPE.sub(one, text)


def node(kind: type, place: s.Place, below: Iterable[s.Node], *fields: Any) -> Any:
    """A part over those below it, unless they are nested too deep."""
    depth = 1 + max((part.depth for part in below), default=0)
    if depth > NESTING_MAX:
        raise Misplaced(f"Expected at most {NESTING_MAX} levels of nesting, but found more", place)
    return kind(place, depth, *fields)


class Builder:
    """What lark calls for every rule that it recognises, with the parts and tokens in it."""

    def number(self, parts: list[Any]) -> s.Node:
        token = parts[0]
        try:
            value = whole(Decimal(token.value))
        except ArithmeticError:
            raise Misplaced("Expected a smaller number", place_of(token)) from None
        return node(s.Literal, place_of(token), (), value)

    def string(self, parts: list[Any]) -> s.Node:
        token = parts[0]
        return node(s.Literal, place_of(token), (), unquoted(token, token.value[1:-1]))

    def temporal(self, parts: list[Any]) -> s.Node:
        token = parts[0]
        text = unquoted(token, token.value[1:].lstrip()[1:-1])
        return node(s.Temporal, place_of(token), (), text)

    def constant(self, parts: list[Any]) -> s.Node:
        value = {"true": True, "false": False, "null": None}[parts[0].value]
        return node(s.Literal, place_of(parts[0]), (), value)

    def name(self, parts: list[Any]) -> s.Node:
        return node(s.Name, place_of(parts[0]), (), _word(parts[0]))

    def list_of(self, parts: list[Any]) -> s.Node:
        items = parts[1:]
        return node(s.ListOf, place_of(parts[0]), items, items)

    def context(self, parts: list[Any]) -> s.Node:
        entries = [entry for entry in parts[1:] if entry is not None]
        seen: set[str] = set()
        for name, value in entries:
            if name in seen:
                raise Misplaced(f"Expected each key once, but found '{name}' twice", value.place)
            seen.add(name)
        below = [value for _, value in entries]
        return node(s.ContextOf, place_of(parts[0]), below, entries)

    def entry(self, parts: list[Any]) -> tuple[str, s.Node]:
        return parts[0], parts[1]

    def key(self, parts: list[Any]) -> str:
        token = parts[0]
        if token.type == "STRING":
            return unquoted(token, token.value[1:-1])
        return " ".join(_word(part) for part in parts)

    def range_of(self, parts: list[Any]) -> s.Node:
        opening, start, end, closing = parts
        return node(
            s.RangeOf, place_of(opening), (start, end), start, end,
            opening.value == "[", closing.value == "]",
        )  # fmt: skip

    def unary_range(self, parts: list[Any]) -> s.Node:
        opening, sign, operand = parts
        return node(s.UnaryRange, place_of(opening), (operand,), sign.value, operand)

    # --- operators ----------------------------------------------------------------------------

    def disjunction(self, parts: list[Any]) -> s.Node:
        return node(s.Logic, place_of(parts[1]), parts[::2], False, parts[::2])

    def conjunction(self, parts: list[Any]) -> s.Node:
        return node(s.Logic, place_of(parts[1]), parts[::2], True, parts[::2])

    def additive(self, parts: list[Any]) -> s.Node:
        rest = [(sign.value, part, place_of(sign)) for sign, part in _pairs(parts)]
        return node(s.Arithmetic, place_of(parts[1]), parts[::2], parts[0], rest)

    multiplicative = power = additive

    def negate(self, parts: list[Any]) -> s.Node:
        sign, operand = parts
        if isinstance(operand, s.Literal) and type(operand.value) in (int, Decimal):
            return node(s.Literal, place_of(sign), (), -operand.value)
        return node(s.Negate, place_of(sign), (operand,), operand)

    def compare(self, parts: list[Any]) -> s.Node:
        left, sign, right = parts
        return node(s.Compare, place_of(sign), (left, right), sign.value, left, right)

    def between(self, parts: list[Any]) -> s.Node:
        value, word, low, _, high = parts
        return node(s.Between, place_of(word), (value, low, high), value, low, high)

    def test(self, parts: list[Any]) -> s.Node:
        symbol = parts[0].value if len(parts) == 2 else None
        return node(s.Test, parts[-1].place, parts[-1:], symbol, parts[-1])

    def tests(self, parts: list[Any]) -> list[s.Node]:
        return [part if isinstance(part, s.Test) else self.test([part]) for part in parts]

    def membership(self, parts: list[Any]) -> s.Node:
        value, word, test = parts
        return node(s.Membership, place_of(word), (value, test), value, [test])

    def memberships(self, parts: list[Any]) -> s.Node:
        value, word, _, tests = parts
        return node(s.Membership, place_of(word), (value, *tests), value, tests)

    def instance_of(self, parts: list[Any]) -> s.Node:
        value, word, kind = parts
        return node(s.InstanceOf, place_of(word), (value,), value, kind)

    def type_name(self, parts: list[Any]) -> s.TypeName:
        name = " ".join(parts[0].value.rstrip("<").split())
        for part in parts:
            if getattr(part, "type", "") == "COMPARE" and part.value != ">":
                raise Misplaced(f"Expected '>', but found '{part.value}'", place_of(part))
        if name not in TYPES:
            raise Misplaced(f"Expected a type, but found '{name}'", place_of(parts[0]))
        items = [part for part in parts if isinstance(part, s.TypeName)]
        fields = dict(part for part in parts if type(part) is tuple)
        return s.TypeName(name, items, fields)

    def field(self, parts: list[Any]) -> tuple[str, s.TypeName]:
        return parts[0].value, parts[1]

    # --- paths, calls and everything with names of its own ------------------------------------

    def path(self, parts: list[Any]) -> s.Node:
        value, token = parts
        return node(s.Path, place_of(token), (value,), value, _word(token))

    def filtered(self, parts: list[Any]) -> s.Node:
        value, bracket, condition = parts
        return node(s.Filter, place_of(bracket), (value, condition), value, condition)

    def call(self, parts: list[Any]) -> s.Node:
        function = parts[0]
        arguments = parts[2] if len(parts) > 2 else []
        if isinstance(function, s.Name) and function.name in REFUSED:
            raise Misplaced(f"'{function.name}' is refused: {REFUSED[function.name]}; found it",
                            function.place)  # fmt: skip
        below = (function, *(value for _, value in arguments))
        return node(s.Call, function.place, below, function, arguments)

    def arguments(self, parts: list[Any]) -> list[tuple[str | None, s.Node]]:
        found: list[Any] = [part if type(part) is tuple else (None, part) for part in parts]
        if len({name is None for name, _ in found}) > 1:
            raise Misplaced("Expected all arguments to have names, or none; found both",
                            found[0][1].place)  # fmt: skip
        return found

    def named(self, parts: list[Any]) -> tuple[str, s.Node]:
        return parts[0], parts[1]

    def words(self, parts: list[Any]) -> str:
        return " ".join(part.value for part in parts)

    def if_else(self, parts: list[Any]) -> s.Node:
        word, condition, _, then, _, otherwise = parts
        below = (condition, then, otherwise)
        return node(s.If, place_of(word), below, *below)

    def iterations(self, parts: list[Any]) -> list[s.Node]:
        if len(parts) > ITERATIONS_MAX:
            raise Misplaced(f"Expected at most {ITERATIONS_MAX} names to go through lists",
                            parts[-1].place)  # fmt: skip
        return parts

    def iteration(self, parts: list[Any]) -> s.Node:
        token, _, start, end = parts
        below = (start,) if end is None else (start, end)
        return node(s.Iteration, place_of(token), below, _word(token), start, end)

    def for_each(self, parts: list[Any]) -> s.Node:
        word, iterations, _, body = parts
        return node(s.For, place_of(word), (*iterations, body), iterations, body)

    def quantified(self, parts: list[Any]) -> s.Node:
        word, iterations, _, condition = parts
        every = word.type == "EVERY"
        below = (*iterations, condition)
        return node(s.Quantified, place_of(word), below, every, iterations, condition)

    def parameter(self, parts: list[Any]) -> tuple[str, s.TypeName | None]:
        return parts[0].value, parts[1]

    def function(self, parts: list[Any]) -> s.Node:
        word, *parameters, body = parts
        parameters = [parameter for parameter in parameters if parameter is not None]
        if len({name for name, _ in parameters}) < len(parameters):
            raise Misplaced("Expected each parameter once, but found one twice", place_of(word))
        return node(s.Define, place_of(word), (body,), parameters, body)


REFUSED = {
    "random number": "a replay has to give the same result",
    "uuid": "a replay has to give the same result",
}  # functions that other engines have, and why this one does not
TYPES = {
    "Any", "Null", "boolean", "context", "date", "date and time", "days and time duration",
    "function", "list", "number", "range", "string", "time", "years and months duration",
}  # fmt: skip


def _word(token: Any) -> str:
    return token.value[1:-1] if token.type == "BACKTICKED" else " ".join(token.value.split())


def _pairs(parts: list[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(parts[1::2], parts[2::2], strict=True)


BUILDER = Builder()


def read(text: str, function_names: frozenset[str]) -> s.Node:
    """The expression that a text is; a FeelError with line and column when it is none."""
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    from holdfast.model.feel.expected import at_character, at_token

    if len(text) > EXPRESSION_CHARS_MAX:
        raise FeelError(
            f"Expected an expression of at most {EXPRESSION_CHARS_MAX} characters, "
            f"but found {len(text)}"
        )
    if (half := SURROGATE.search(text)) is not None:
        before = text[: half.start()].split("\n")
        place = s.Place(len(before), len(before[-1]) + 1)
        shown = SURROGATE.sub("?", text)
        raise refused(shown, "Expected Unicode, but found half a surrogate pair", place)
    names = frozenset({*function_names, *REFUSED, "and", "or"})
    try:
        found: Any = parser(names, BUILDER).parse(text)
    except Misplaced as wrong:
        raise refused(text, wrong.message, wrong.place) from None
    except UnexpectedToken as wrong:
        raise refused(text, *at_token(text, wrong)) from None
    except UnexpectedCharacters as wrong:
        raise refused(text, *at_character(text, wrong)) from None
    return found


def refused(text: str, message: str, place: s.Place) -> FeelError:
    """The error for a place in an expression."""
    shown = " ".join(text.split())
    if len(shown) > EXPRESSION_CHARS_SHOWN:
        shown = f"{shown[: EXPRESSION_CHARS_SHOWN - 3]}..."
    return FeelError(
        f'{message} at {place} of the expression "{shown}"',
        line=place.line, column=place.column, expression=text,
    )  # fmt: skip
