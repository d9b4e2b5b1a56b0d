"""The OpenAPI document, written from the table of endpoints and the shapes themselves."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.gateway.endpoint import FORM, Endpoint
from holdfast.gateway.http.problems import PROBLEM_JSON
from holdfast.gateway.operation import BYTES
from holdfast.gateway.shapes import Problem
from holdfast.version import VERSION


def openapi_document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """OpenAPI 3.1, whose schemas are JSON Schema as msgspec writes it."""
    endpoints = list(endpoints)
    schemas, components = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "holdfast", "version": VERSION},
        "paths": paths,
        "components": {"schemas": components},
    }


def _schemas(endpoints: list[Endpoint]) -> tuple[dict[type[Any], Any], dict[str, Any]]:
    shapes = [Problem] + [
        shape
        for endpoint in endpoints
        for shape in (endpoint.request, endpoint.answer)
        if shape is not None and shape is not bytes
    ]
    references, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    return dict(zip(shapes, references, strict=True)), components


def _operation(endpoint: Endpoint, schemas: dict[type[Any], Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "responses": {
            str(endpoint.status): _success(endpoint, schemas),
            "503": _problem("Not now: the node is busy, or has no tables.", schemas)
            | {"headers": {"Retry-After": _RETRY_AFTER}},
            "default": _problem("The request could not be served.", schemas),
        },
    }
    if "await_completion" in getattr(endpoint.request, "__struct_fields__", ()):
        operation["responses"]["504"] = _problem(
            "It has not ended in time, and continues.", schemas
        )
    if endpoint.parameters:
        operation["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": _KEY if name.endswith("_key") else {"type": "string"},
            }
            for name in endpoint.parameters
        ]
    if endpoint.is_ranged:
        operation.setdefault("parameters", []).append(_RANGE)
        operation["responses"] |= {"206": _success(endpoint, schemas), "416": _OUTSIDE}
    if endpoint.request is bytes:
        operation["requestBody"] = {"required": True, "content": {BYTES: {"schema": _OCTETS}}}
    elif endpoint.request:
        content = {"application/json": {"schema": schemas[endpoint.request]}}
        if endpoint.form:
            content[FORM] = {"schema": _FORM}
        operation["requestBody"] = {"required": not endpoint.may_be_empty, "content": content}
    return operation


_KEY = {"type": "string", "pattern": "^[0-9]+$"}
_OCTETS = {"type": "string", "format": "binary"}
_RANGE = {
    "name": "Range",
    "in": "header",
    "required": False,
    "description": "The part that is wanted, such as bytes=0-1048575.",
    "schema": {"type": "string"},
}
_OUTSIDE = {"description": "The part begins behind the end."}
_RETRY_AFTER = {
    "description": "Seconds until it may be worth another try.",
    "schema": {"type": "integer", "minimum": 1},
}
_FORM = {
    "type": "object",
    "properties": {
        "resources": {"type": "array", "items": {"type": "string", "format": "binary"}},
        "tenantId": {"type": "string"},
    },
    "required": ["resources"],
    "additionalProperties": False,
}


def _problem(description: str, schemas: dict[type[Any], Any]) -> dict[str, Any]:
    return {
        "description": description,
        "content": {PROBLEM_JSON: {"schema": schemas[Problem]}},
    }


def _success(endpoint: Endpoint, schemas: dict[type[Any], Any]) -> dict[str, Any]:
    if endpoint.answer is None:
        return {"description": "Done."}
    schema = schemas.get(endpoint.answer, {"type": "string"})
    return {
        "description": (endpoint.answer.__doc__ or "").partition("\n")[0],
        "content": {endpoint.media_type: {"schema": schema}},
    }
