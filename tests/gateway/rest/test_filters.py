"""What a filter may ask of a field is what the OpenAPI says, for the node and the tables.

A batch operation is asked for with the same filters, and its tables are opened later: what is wrong
with a filter has to be found before.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import jsonschema_rs
import pytest

from holdfast.errors import InvalidArgument
from holdfast.gateway import rest
from holdfast.gateway.http.endpoints import ENDPOINTS
from holdfast.gateway.rest.fields import Resource, columns_of
from holdfast.gateway.rest.queries import filter_of
from holdfast.limits import FILTER_PATTERN_CHARS_MAX


def resources_in(found: Any) -> Iterator[Resource]:
    if isinstance(found, Resource):
        yield found
    elif isinstance(found, dict):
        yield from resources_in(list(found.values()))
    elif isinstance(found, list | tuple):
        for each in found:
            yield from resources_in(each)


assert ENDPOINTS  # imported first: the packages of the gateway know each other
MODULES = [import_module(f"{rest.__name__}.{each.name}") for each in iter_modules(rest.__path__)]
RESOURCES = {
    (each.table, name): each
    for module in MODULES
    for each in resources_in(list(vars(module).values()))
    for name in each.fields
}
VALUES: list[Any] = [
    None, True, False, 0, 7, -1, 1.5, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, 2**70,
    "", "7", "-7", "7\n", "seven", "1.5", "0x7", " 7", "\u0667", "9" * 20, "9" * 21,
    "2026-01-31T12:00:00Z", "ACTIVE", "<default>", [], ["7"], [7], [None], {}, {"a": 1},
    {"$eq": {"$eq": "7"}},
]  # fmt: skip
OPERATORS = [
    "$eq",
    "$neq",
    "$in",
    "$notIn",
    "$exists",
    "$like",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$or",
]


def asked() -> Iterator[Any]:
    yield from VALUES
    for operator in OPERATORS:
        for value in VALUES:
            yield {operator: value}
            yield {operator: [value]}
            yield {"$exists": True, operator: value}


@pytest.mark.parametrize(("table", "name"), RESOURCES)
def test_what_does_not_fit_the_document_is_refused_and_what_fits_is_not(
    table: str, name: str
) -> None:
    resource = RESOURCES[table, name]
    schema = filter_of(resource).extra_json_schema
    assert schema is not None
    document = jsonschema_rs.validator_for(schema)
    for each in asked():
        where = {name: each}
        for filter_ in (where, {"$or": [where]}):
            fits = document.is_valid(filter_)
            try:
                columns_of(resource, filter_)
            except InvalidArgument as error:
                assert not fits, (filter_, error.message)
                assert error.fields["field"] == name
            else:
                assert fits, f"{filter_} is taken"


@pytest.mark.parametrize("either", [None, {}, [], [{}], [None], [{"state": "ACTIVE"}, {}]])
def test_alternatives_have_conditions(either: Any) -> None:
    resource = RESOURCES["process_instances", "state"]
    schema = filter_of(resource).extra_json_schema
    assert schema is not None
    assert not jsonschema_rs.is_valid(schema, {"$or": either})
    with pytest.raises(InvalidArgument, match="filters"):
        columns_of(resource, {"$or": either})


def test_a_pattern_is_bounded() -> None:
    resource = RESOURCES["process_instances", "processDefinitionId"]
    longest = "a" * FILTER_PATTERN_CHARS_MAX
    columns_of(resource, {"processDefinitionId": {"$like": longest}})
    with pytest.raises(InvalidArgument, match="at most"):
        columns_of(resource, {"processDefinitionId": {"$like": f"{longest}a"}})
