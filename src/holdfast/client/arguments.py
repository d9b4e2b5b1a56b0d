"""A function's arguments as JSON: bound when submitted, checked by their types when run."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import InvalidArgument

RESERVED = frozenset({"key", "delay", "due", "priority"})  # what `submit` itself takes


class Arguments:
    """Binds, encodes and decodes the arguments of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        where = f"Task {function.__qualname__}"
        fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
        positional: list[tuple[str, Any, Any] | tuple[str, Any]] = []
        hints = _hints(function)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise InvalidArgument(
                    f"{where}: expected named parameters, but found {parameter}:"
                    " work that is stored needs a name for each of its arguments"
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                raise InvalidArgument(f"{where}: expected named parameters, but {name} has no name")
            if name in RESERVED:
                raise InvalidArgument(f"{where}: the parameter name {name!r} belongs to submit()")
            field = (name, hints.get(name, Any))
            if parameter.default is not parameter.empty:
                field = (
                    *field,
                    msgspec.field(default_factory=lambda value=parameter.default: value),
                )
            (fields if parameter.kind is parameter.KEYWORD_ONLY else positional).append(field)
        self.names = [field[0] for field in (*positional, *fields)]
        base = msgspec.defstruct("PositionalArguments", positional, forbid_unknown_fields=True)
        self._struct = msgspec.defstruct("Arguments", fields, bases=(base,), kw_only=True)
        self._encode = msgspec.json.Encoder(order=None).encode
        self._decode = _decoder(self._struct, [*positional, *fields])
        self.result_decoder = _result_decoder(hints.get("return", Any))

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The payload for these arguments; InvalidArgument if they do not fit the signature."""
        try:
            return self._encode(self._struct(*args, **kwargs))
        except (TypeError, msgspec.ValidationError) as error:
            raise InvalidArgument(f"Expected arguments that fit the task, but {error}") from error

    def decode(self, payload: bytes | msgspec.Raw) -> dict[str, Any]:
        """The arguments in a payload, by name."""
        arguments = self._decode(payload)
        return {name: getattr(arguments, name) for name in self.names}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters; what cannot be resolved counts as any."""
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):
        return {}


def _decoder(struct: type[msgspec.Struct], fields: list[Any]) -> Callable[[Any], Any]:
    """Checks the types that msgspec knows; an argument of another type arrives as plain JSON."""
    try:
        return msgspec.json.Decoder(struct, strict=False).decode
    except TypeError:
        plain = [
            (field[0], Any if not _known(field[1]) else field[1], *field[2:]) for field in fields
        ]
        return msgspec.json.Decoder(
            msgspec.defstruct("PlainArguments", plain, kw_only=True, forbid_unknown_fields=True),
            strict=False,
        ).decode


def _known(hint: Any) -> bool:
    try:
        msgspec.json.Decoder(hint)
    except TypeError:
        return False
    return True


def _result_decoder(hint: Any) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(hint if _known(hint) else Any, strict=False).decode
