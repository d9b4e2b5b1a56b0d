"""Variables as expressions see them, and where new values go."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.engine.processes.plan import Assignment
from holdfast.errors import InvalidArgument
from holdfast.model.feel import SharedBudget, decode_json, encode_json

_MISSING = object()
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

Layer = tuple[int, dict[str, bytes]]
"""A scope and its variables in JSON."""


class Seen(SharedBudget):
    """The variables that can be seen from a place; decoded when they are asked for."""

    def __init__(self, layers: Iterable[Layer], known: dict[str, Any] | None = None) -> None:
        super().__init__(known or ())
        self.layers = layers

    def get(self, name: str, default: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        value = super().get(name, _MISSING)
        if value is not _MISSING:
            return value
        for _, values in self.layers:
            raw = values.get(name)
            if raw is not None:
                value = self[name] = decode_json(raw)
                return value
        return default

    def __missing__(self, name: str) -> Any:
        value = self.get(name, _MISSING)
        if value is _MISSING:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        return self.get(str(name), _MISSING) is not _MISSING


def from_json(raw: bytes) -> dict[str, bytes]:
    """The variables in a JSON object; InvalidArgument for anything else."""
    if raw in (b"{}", b"null", b""):
        return {}
    try:
        values = {name: bytes(value) for name, value in _decode_object(raw).items()}
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidArgument(
            f"Expected variables as a JSON object, but it is not one: {error}"
        ) from error
    if "" in values:
        raise InvalidArgument("Expected every variable to have a name, but one has none")
    return values


def assign(assignment: Assignment, value: Any, into: dict[str, Any], seen: Seen) -> None:
    """Puts a value where a mapping's target says; a path goes into what is there already."""
    name, *path = assignment.path
    if not path:
        into[name] = value
        return
    root = into.get(name, _MISSING)
    if root is _MISSING:
        root = seen.get(name)
    whole = here = dict(root) if isinstance(root, dict) else {}
    for part in path[:-1]:
        inner = here.get(part)
        here[part] = dict(inner) if isinstance(inner, dict) else {}
        here = here[part]
    here[path[-1]] = value
    into[name] = whole


def to_json(values: dict[str, Any]) -> dict[str, bytes]:
    """Values of expressions, in JSON."""
    return {name: encode_json(value) for name, value in values.items()}


def places(layers: list[Layer], values: dict[str, bytes]) -> dict[int, dict[str, bytes]]:
    """Which scope each value goes to: the innermost that knows its name, else the outermost."""
    outermost = layers[-1][0]
    if len(layers) == 1:
        return {outermost: values}
    found: dict[int, dict[str, bytes]] = {}
    for name, raw in values.items():
        scope = next((scope for scope, known in layers if name in known), outermost)
        found.setdefault(scope, {})[name] = raw
    return found
