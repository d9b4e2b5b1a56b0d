"""What a search may ask for, as JSON Schema: the OpenAPI has it beside the request's shape."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.gateway.rest.fields import Field, Resource, Schema


def filter_of(
    resource: Resource, more: Mapping[str, Schema] | None = None, conditions_min: int = 0
) -> msgspec.Meta:
    """The filter of a resource, with what only its first level has beside its fields."""
    fields = {name: _condition(field) for name, field in resource.fields.items()}
    either = {"type": "array", "minItems": 1, "items": _object(fields, 1)}
    first = {**fields, **(more or {}), "$or": either}
    return msgspec.Meta(extra_json_schema=_object(first, conditions_min))


def sort_of(resource: Resource) -> msgspec.Meta:
    """The order of a resource."""
    sortable = [name for name, field in resource.fields.items() if field.column is not None]
    by = {"field": {"enum": sortable}, "order": {"enum": ["ASC", "DESC", "asc", "desc"]}}
    return msgspec.Meta(extra_json_schema={"items": _object(by) | {"required": ["field"]}})


def _condition(field: Field) -> Schema:
    if not field.operators:
        return field.value
    operands: dict[str, Schema] = {
        "$in": {"type": "array", "items": field.value},
        "$notIn": {"type": "array", "items": field.value},
        "$exists": {"type": "boolean"},
        "$like": {"type": "string"},
    }
    operators = {name: operands.get(name, field.value) for name in field.operators}
    return {"anyOf": [field.value, _object(operators, 1)]}


def _object(fields: Mapping[str, Any], fields_min: int = 0) -> Schema:
    schema: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return schema | ({"minProperties": fields_min} if fields_min else {})
