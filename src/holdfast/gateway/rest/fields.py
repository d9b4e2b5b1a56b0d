"""What the API calls the columns of a table, for filters and orders."""

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.gateway.rest.common import TENANT, PageAnswer, SearchQuery
from holdfast.gateway.rest.tables import FoundRows, SearchTables
from holdfast.limits import FILTER_PATTERN_CHARS_MAX

Condition = dict[str, Any]  # operators and operands for one column
Reader = Callable[[str, Any], tuple[str, Condition] | None]
"""Reads what is asked of a field: a column with a condition, or None for what always holds."""

_NEVER: Condition = {"$exists": False}  # of a column that is never empty
_ALWAYS: Condition = {"$exists": True}  # of the same
_NOTHING = object()


Schema = dict[str, Any]

# what a column holds, as JSON Schema has it
KEY: Schema = {"type": "string", "pattern": "^-?[0-9]+$", "maxLength": 20}
TEXT: Schema = {"type": "string"}
TIME: Schema = {"type": "string", "format": "date-time"}
WHOLE: Schema = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}

_KEY = re.compile("-?[0-9]+")
_EQUAL = ("$eq", "$neq", "$in", "$notIn", "$exists")
_ORDER = ("$gt", "$gte", "$lt", "$lte")


class Field(msgspec.Struct, frozen=True):
    """One field of a resource, as a filter and an order may name it."""

    read: Reader
    column: str | None  # in camelCase, to sort by; None: it cannot be sorted by
    value: Schema  # what it is compared with
    operators: tuple[str, ...] = ()  # instead of a value there may be an object of these


class Resource(msgspec.Struct, frozen=True):
    """What is searched for: a table, its key, and the fields that the API has for its columns."""

    table: str
    key: str  # the column that is never empty
    fields: Mapping[str, Field]
    always: dict[str, Condition] = {}  # conditions that hold for every search


# --- fields -----------------------------------------------------------------------------------


def plain(column: str, value: Schema = TEXT) -> Field:
    """A column under another name."""

    operators = (*_EQUAL, *(("$like",) if value is TEXT else _ORDER))

    def read(field: str, asked: Any) -> tuple[str, Condition]:
        condition = dict(asked) if isinstance(asked, dict) else {"$eq": asked}
        if not condition:
            refuse(field, "a value or operators", asked)
        for operator, operand in condition.items():
            if operator not in operators:
                refuse(field, f"one of {', '.join(operators)}", operator)
            _check_operand(field, value, operator, operand)
        return column, condition

    return Field(read, column, value, operators)


def _check_operand(field: str, value: Schema, operator: str, operand: Any) -> None:
    """Refuses what does not fit the document, here and not where the tables would find it."""
    if operator == "$exists":
        if not isinstance(operand, bool):
            refuse(field, "true or false for $exists", operand)
    elif operator == "$like":
        if not isinstance(operand, str) or len(operand) > FILTER_PATTERN_CHARS_MAX:
            refuse(field, f"a text of at most {FILTER_PATTERN_CHARS_MAX} for $like", operand)
    elif operator in ("$in", "$notIn"):
        if not isinstance(operand, list):
            refuse(field, f"a list for {operator}", operand)
        for each in operand:
            _check_value(field, value, each)
    else:
        _check_value(field, value, operand)


def _check_value(field: str, value: Schema, found: Any) -> None:
    if value is WHOLE:
        low, high = value["minimum"], value["maximum"]
        if type(found) is not int or not low <= found <= high:
            refuse(field, f"a whole number from {low} to {high}", found)
    elif not isinstance(found, str):
        refuse(field, "a key in a text" if value is KEY else "a text", found)
    elif value is KEY and (len(found) > value["maxLength"] or not _KEY.fullmatch(found)):
        refuse(field, "a key, which is a number in a text", found)


def with_unused(words: Mapping[str, tuple[str, ...]], *unused: str) -> dict[str, tuple[str, ...]]:
    """Words beside those that the API has and that nothing here ever is: they find nothing."""
    return dict(words) | {each: () for each in unused if each not in words}


def word(column: str, words: Mapping[str, tuple[str, ...]]) -> Field:
    """A column with words of its own; one word of the API may stand for several of them."""

    def read(field: str, asked: Any) -> tuple[str, Condition]:
        wanted = _words(field, asked, words)
        columns = [each for name in wanted for each in words[name]]
        return column, {"$in": columns} if columns else _NEVER

    return Field(read, column, {"enum": list(words)}, (*_EQUAL, "$like"))


def constant(value: str) -> Field:
    """A field that has the same value everywhere: a filter finds everything or nothing."""

    def read(field: str, asked: Any) -> tuple[str, Condition] | None:
        return None if _words(field, asked, {value: ()}, is_open=True) else ("", _NEVER)

    return Field(read, None, TEXT, (*_EQUAL, "$like"))


def member_of(column: str) -> Field:
    """A list of values, of which a column has to have one."""

    def read(field: str, asked: Any) -> tuple[str, Condition]:
        if not isinstance(asked, list) or not all(isinstance(each, str) for each in asked):
            refuse(field, "a list of texts", asked)
        return column, {"$in": asked}

    return Field(read, None, {"type": "array", "items": TEXT})


def flag(column: str, yes: Condition, no: Condition) -> Field:
    """True or false, told from a column."""

    def read(field: str, asked: Any) -> tuple[str, Condition]:
        value = asked.get("$eq") if isinstance(asked, dict) and len(asked) == 1 else asked
        if not isinstance(value, bool):
            refuse(field, "true or false", asked)
        return column, yes if value else no

    return Field(read, None, {"type": "boolean"}, ("$eq",))


TENANT_FIELD = constant(TENANT)


def _words(field: str, asked: Any, words: Mapping[str, Any], *, is_open: bool = False) -> list[str]:
    """The words that meet all operators."""
    operators = asked if isinstance(asked, dict) else {"$eq": asked}
    if not operators:
        refuse(field, "a value or operators", asked)
    left = list(words)
    for operator, operand in operators.items():
        if operator in ("$eq", "$neq", "$in", "$notIn"):
            listed = [operand] if operator in ("$eq", "$neq") else operand
            if not isinstance(listed, list):
                refuse(field, f"a list for {operator}", operand)
            for each in listed:
                if not isinstance(each, str) or (each not in words and not is_open):
                    refuse(field, f"one of {', '.join(words)}", each)
            keep = operator in ("$eq", "$in")
            left = [each for each in left if (each in listed) is keep]
        elif operator == "$exists" and isinstance(operand, bool):
            left = left if operand else []
        elif operator == "$like" and isinstance(operand, str):
            left = [each for each in left if fits(each, operand)]
        else:
            refuse(field, "$eq, $neq, $in, $notIn, $exists or $like with what it takes", operator)
    return left


def refuse(field: str, expected: str, found: Any) -> NoReturn:
    """The error for what a field may not be."""
    raise InvalidArgument(f"Expected {expected} for {field!r}, but found {found!r}", field=field)


def fits(word: str, pattern: str) -> bool:
    """Whether a word fits a pattern: `*` is any text, `?` a character, behind a \\ neither.

    In time proportional to both: a regular expression of many stars would try all ways to divide
    the word among them.
    """
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    at = star = 0
    resume: int | None = None  # where the text of the last star may end next
    place = 0
    while place < len(word):
        piece = pieces[at] if at < len(pieces) else None
        if piece == "*":
            star, resume = at, place
            at += 1
        elif piece is not None and (piece == "?" or piece[-1] == word[place]):
            at, place = at + 1, place + 1
        elif resume is not None:  # the star takes one character more
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return all(piece == "*" for piece in pieces[at:])


# --- searching --------------------------------------------------------------------------------


async def search(
    tables: SearchTables,
    resource: Resource,
    query: SearchQuery | None,
    also: Mapping[str, Any] | None = None,
) -> FoundRows:
    """The rows that a request asks for; `also` is a filter that the path names."""
    query = query or SearchQuery()
    wanted = columns_of(resource, query.filter)
    for column, condition in (resource.always | columns_of(resource, also or {})).items():
        wanted = _both(wanted, column, condition)
    page = {
        name: _inward(value) if name in ("after", "before") else value
        for name, value in query.page.items()
    }
    order = [order_of(resource, each) for each in query.sort]
    return await tables.search(resource.table, wanted, order, page)


def page_of(found: FoundRows) -> PageAnswer:
    """Where the page is, as the API says it."""
    return PageAnswer(found.total, found.has_more, _outward(found.start), _outward(found.end))


def columns_of(resource: Resource, source: Mapping[str, Any]) -> dict[str, Any]:
    """A filter of the API as one of columns."""
    wanted: dict[str, Any] = {}
    if (either := source.get("$or", _NOTHING)) is not _NOTHING:
        if not isinstance(either, list) or not all(isinstance(each, dict) for each in either):
            refuse("$or", "a list of filters", either)
        if not either or not all(either):
            refuse("$or", "filters with at least one field each", either)
        wanted["$or"] = [columns_of(resource, each) for each in either]
    for name, asked in source.items():
        if name == "$or":
            continue
        field = resource.fields.get(name)
        if field is None:
            expected = f"one of {', '.join(resource.fields)} or $or"
            raise InvalidArgument(f"Expected {expected}, but found {name!r}", field=name)
        column, condition = field.read(name, asked) or ("", _ALWAYS)
        wanted = _both(wanted, column or resource.key, condition)
    return wanted


def _both(wanted: dict[str, Any], column: str, condition: Condition) -> dict[str, Any]:
    """A filter, and a condition beside it; of a filter alone in `$or` that is what it means."""
    known: Condition = wanted.get(column, {})
    if any(known.get(each, of) != of for each, of in condition.items()):
        return {"$or": [wanted], column: condition}
    return wanted | {column: known | condition}


def order_of(resource: Resource, source: Mapping[str, Any]) -> dict[str, Any]:
    """One part of an order, by the column that it is about."""
    name = source.get("field")
    field = resource.fields.get(name) if isinstance(name, str) else None
    if field is None or field.column is None:
        sortable = (each for each, of in resource.fields.items() if of.column is not None)
        raise InvalidArgument(
            f"Expected one of {', '.join(sortable)} to sort by, but found {name!r}", field="sort"
        )
    return {**source, "field": field.column}


def _outward(cursor: str | None) -> str | None:
    """A cursor as the API has it: base64 of the common kind, with its padding."""
    if cursor is None:
        return None
    return cursor.translate(_OUTWARD) + "=" * (-len(cursor) % 4)


def _inward(cursor: Any) -> Any:
    return cursor.rstrip("=").translate(_INWARD) if isinstance(cursor, str) else cursor


_OUTWARD, _INWARD = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")
