"""A function's arguments as JSON: bound when submitted, checked by their types when run."""

import inspect
import typing
from collections.abc import Callable
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import astuple

from holdfast.client.codec import (
    PLAIN,
    check_bytes,
    check_numbers,
    decoder_of,
    encode_unchecked,
    has_suspects,
    is_known,
    is_open,
)
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
        self._are_open = [is_open(hints.get(name, Any)) for name in self.names]
        self._decode = _decoder(self._struct, [*positional, *fields])
        self.result_decoder = decoder_of(hints.get("return", Any))
        self.is_result_open = is_open(hints.get("return", Any))

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The payload for these arguments; InvalidArgument if they do not fit the signature."""
        try:
            arguments = self._struct(*args, **kwargs)
            data = encode_unchecked(arguments)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"Expected arguments that fit the task, but {error}") from error
        for value in astuple(arguments):
            kind = type(value)
            if kind not in PLAIN and not (kind is float and isfinite(value)):
                self._check(arguments, data)
                break
        return data

    def _check(self, arguments: msgspec.Struct, data: bytes) -> None:
        """InvalidArgument for an argument that would not arrive as it is."""
        may_be_wrong = has_suspects(data)
        values = astuple(arguments)
        for name, value, is_open_ in zip(self.names, values, self._are_open, strict=True):
            if is_open_:
                check_bytes(value, name)
            if may_be_wrong:
                check_numbers(value, name)

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
    if is_known(struct):
        return decoder_of(struct)
    plain = [(field[0], field[1] if is_known(field[1]) else Any, *field[2:]) for field in fields]
    return decoder_of(
        msgspec.defstruct("PlainArguments", plain, kw_only=True, forbid_unknown_fields=True)
    )
