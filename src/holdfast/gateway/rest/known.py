"""Searching what the node itself knows: users, groups, roles and authorizations.

They are few and in memory, so that a search needs no tables. Filters, orders and pages are those of
all searches.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from functools import cmp_to_key
from typing import Any, TypeVar

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.gateway.rest.common import PageAnswer, SearchQuery
from holdfast.gateway.rest.fields import Resource, columns_of, fits, order_of, refuse
from holdfast.limits import CURSOR_CHARS_MAX, PAGE_ITEMS_MAX
from holdfast.limits import PAGE_OFFSET_MAX as OFFSET_MAX

Item = dict[str, Any]  # by the names that the API has for its fields
Order = list[tuple[str, bool]]  # a field, and whether it descends
_S = TypeVar("_S", bound=msgspec.Struct)

PAGE_ITEMS = 100  # by default
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[str]).decode


def search_known(
    resource: Resource, items: Iterable[_S], query: SearchQuery | None
) -> tuple[list[_S], PageAnswer]:
    """A page of the items that meet a filter, in an order."""
    query = query or SearchQuery()
    wanted = columns_of(resource, query.filter)
    order = _order(resource, query.sort)
    found = [(item, each) for each in items if _meets(item := msgspec.to_builtins(each), wanted)]
    places = {id(each): _place(item, order) for item, each in found}

    def compare(one: list[str], other: list[str]) -> int:
        return _compare(one, other, order)

    ranked = cmp_to_key(compare)
    chosen = sorted((each for _, each in found), key=lambda each: ranked(places[id(each)]))
    page = _page(query.page, [places[id(each)] for each in chosen], order)
    shown = chosen[page]
    return shown, PageAnswer(
        len(chosen),
        False,
        _cursor(places[id(shown[0])]) if shown else None,
        _cursor(places[id(shown[-1])]) if shown else None,
    )


# --- filters ----------------------------------------------------------------------------------


def _meets(item: Item, wanted: Mapping[str, Any]) -> bool:
    return all(
        any(_meets(item, each) for each in asked)
        if name == "$or"
        else all(_holds(item.get(name), *each) for each in asked.items())
        for name, asked in wanted.items()
    )


def _holds(value: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "$eq" | "$neq":
            return (value == operand) is (operator == "$eq")
        case "$in" | "$notIn":
            return (value in operand) is (operator == "$in")
        case "$exists":
            return bool(value) is operand
        case _:
            return fits(value or "", operand)


# --- orders and pages -------------------------------------------------------------------------


def _order(resource: Resource, sort: list[dict[str, Any]]) -> Order:
    """The fields to sort by; the last is the one that tells all items apart."""
    order: Order = []
    for each in sort:
        by = order_of(resource, each)
        direction = by.get("order", "ASC")
        if not isinstance(direction, str) or direction.upper() not in ("ASC", "DESC"):
            refuse("sort", "ASC or DESC", direction)
        order.append((by["field"], direction.upper() == "DESC"))
    if all(field != resource.key for field, _ in order):
        order.append((resource.key, order[-1][1] if order else False))
    return order


def _place(item: Item, order: Order) -> list[str]:
    return [str(item.get(field) or "") for field, _ in order]


def _compare(one: list[str], other: list[str], order: Order) -> int:
    for left, right, (_, descends) in zip(one, other, order, strict=True):
        if left != right:
            return 1 if (left > right) is not descends else -1
    return 0


def _page(asked: Mapping[str, Any], places: list[list[str]], order: Order) -> slice:
    """Which of the places in an order are asked for."""
    for name in asked:
        if name not in ("limit", "from", "after", "before"):
            refuse("page", "one of limit, from, after, before", name)
    limit = _whole(asked, "limit", PAGE_ITEMS, PAGE_ITEMS_MAX)
    start, after, before = (asked.get(each) for each in ("from", "after", "before"))
    if sum(each is not None for each in (start, after, before)) > 1:
        refuse("page", "only one of from, after and before", "several")
    if before is not None:
        place = _read_cursor("before", before, order)
        end = sum(_compare(each, place, order) < 0 for each in places)
        return slice(max(end - limit, 0), end)
    first = _whole(asked, "from", 0, OFFSET_MAX)
    if after is not None:
        place = _read_cursor("after", after, order)
        first = sum(_compare(each, place, order) <= 0 for each in places)
    return slice(first, first + limit)


def _whole(asked: Mapping[str, Any], name: str, default: int, high: int) -> int:
    found = asked.get(name)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= high:
        refuse(name, f"a whole number from 0 to {high}", found)
    return found


def _cursor(place: list[str]) -> str:
    return base64.b64encode(_encode(place)).decode()


def _read_cursor(field: str, text: Any, order: Order) -> list[str]:
    try:
        if not isinstance(text, str) or len(text) > CURSOR_CHARS_MAX:
            raise ValueError
        place = _decode(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error, msgspec.MsgspecError) as error:
        raise InvalidArgument(
            f"Expected a cursor of an earlier page for {field}, but found another text", field=field
        ) from error
    if len(place) != len(order):
        refuse(field, "a cursor of an answer in the same order", "another")
    return place
