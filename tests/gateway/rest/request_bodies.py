"""Requests made from the OpenAPI: one for each place in which a number can stand.

A place is an integer, the text of a key, or JSON that the node carries unread. Everything around it
is valid, so that the number is what the request is refused for, if it is.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

NUMBER, KEY = "@number", "@key"  # stand for the number, and for a text that it is in

Known = Mapping[str, list[str]]
Schema = dict[str, Any]

# what is behind JSON that has no schema
_RAW: dict[str, list[Any]] = {
    "variables": [{"orderId": NUMBER}],
    "payload": [NUMBER],
    "result": [{"denied": NUMBER}],
    "filter": [{"type": "mail", each: NUMBER} for each in ("retries", "priority", "failures")]
    + [{"jobKey": {"$in": [KEY]}}, {"jobKey": {"$lt": NUMBER}}],
}
_RAW_VALID = {"filter": {"type": "mail"}, "variables": {}}
_ALSO_NEEDED = {"intervalMs"}  # beside what the schema says: a schedule has a rule
_KEYS = ("Key", "Keys", "lease", "leases", "jobLeaseToken")


class Bodies:
    """The bodies of all requests of a document."""

    def __init__(self, document: Schema, known: Known) -> None:
        self._components = document["components"]["schemas"]
        self._known = known

    def of(self, schema: Schema) -> Iterator[Any]:
        """A body for each place of a schema."""
        return self._at("", self._resolved(schema))

    def least(self, schema: Schema) -> Any:
        """The least that a schema takes."""
        return self._valid("", schema)

    def _at(self, name: str, schema: Schema) -> Iterator[Any]:
        schema = self._resolved(schema)
        if "anyOf" in schema:
            for each in schema["anyOf"]:
                yield from self._at(name, each)
        elif schema.get("type") == "integer":
            yield NUMBER
        elif schema.get("type") == "string":
            if "pattern" in schema or name.endswith(_KEYS):
                yield KEY
        elif schema.get("type") == "array":
            yield from ([each] for each in self._at(name, schema.get("items", {})))
        elif "properties" in schema:
            yield from self._in_object(schema)
        elif not schema or schema.get("description"):
            yield from _RAW.get(name, ())

    def _in_object(self, schema: Schema) -> Iterator[Any]:
        around = self._valid("", schema)
        for name, of in schema["properties"].items():
            if name != "$or":  # the same fields once more
                for each in self._at(name, of):
                    yield around | {name: each}

    def _valid(self, name: str, schema: Schema) -> Any:
        schema = self._resolved(schema)
        if known := self._known.get(name.removesuffix("s")):
            return [known[0]] if schema.get("type") == "array" else known[0]
        if "enum" in schema:
            return schema["enum"][0]
        match schema.get("type"):
            case "object":
                properties = schema.get("properties", {})
                needed = schema.get("required") or [*properties][: schema.get("minProperties", 0)]
                rest = _ALSO_NEEDED & properties.keys() - {*needed}
                return {each: self._valid(each, properties[each]) for each in (*needed, *rest)}
            case "array":
                return [self._valid(name, schema.get("items", {}))]
            case "integer":
                return max(schema["minimum"], 1)
            case "string":
                return "x"
            case "boolean":
                return False
            case _:
                either = schema.get("anyOf")
                return self._valid(name, either[0]) if either else _RAW_VALID.get(name)

    def _resolved(self, schema: Schema) -> Schema:
        name = schema.get("$ref", "").rpartition("/")[2]
        return self._components[name] if name else schema


def text_of(body: Any, number: str) -> str:
    """A body as JSON with a number in its place."""
    text = json.dumps(body)
    return text.replace(f'"{NUMBER}"', number).replace(f'"{KEY}"', f'"{number}"')


def unbounded(document: Schema) -> list[str]:
    """The integers of requests that have no range."""
    components, found, seen = document["components"]["schemas"], [], set[str]()

    def walk(path: str, schema: Any) -> None:
        if isinstance(schema, list):
            for each in schema:
                walk(path, each)
        if not isinstance(schema, dict):
            return
        if (name := schema.get("$ref", "").rpartition("/")[2]) and name not in seen:
            seen.add(name)
            walk(name, components[name])
        if schema.get("type") in ("integer", "number") and not {"minimum", "maximum"} <= {*schema}:
            found.append(path)
        for key, each in schema.items():
            walk(f"{path}.{key}" if key not in ("properties", "items", "anyOf") else path, each)

    for path, operations in document["paths"].items():
        for operation in operations.values():
            walk(path, operation.get("requestBody"))
    return found
