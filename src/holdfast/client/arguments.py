"""A function's arguments as JSON: checked by signature and types when submitted, and when run."""

import inspect
import typing
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn, Optional

import msgspec
from msgspec.structs import asdict, astuple

from holdfast.client.codec import PLAIN_VALUES, Values
from holdfast.client.exactness import check_bytes, check_numbers, has_suspects, is_known, is_open
from holdfast.client.fitting import UnfitArguments, fit_of, misfit, plain_test, unreadable
from holdfast.errors import InvalidArgument

RESERVED = frozenset({"key", "delay", "due", "priority"})  # what `submit` itself takes

_Field = tuple[str, Any] | tuple[str, Any, Any]


class Arguments:
    """Binds, checks, encodes and decodes the arguments of one function."""

    def __init__(self, function: Callable[..., Any], values: Values = PLAIN_VALUES) -> None:
        self._function = function
        self._values = values
        self._encode = values.encode_unchecked
        self._seals = values.seals
        hints = _hints(function)
        positional, named = _fields(function, hints)
        fields = [*positional, *named]
        self.names = [field[0] for field in fields]
        base = msgspec.defstruct("PositionalArguments", positional, forbid_unknown_fields=True)
        self._struct = msgspec.defstruct("Arguments", named, bases=(base,), kw_only=True)
        self._fits = [fit_of(field[1], values) for field in fields]
        self._are_plain = plain_test(self.names, self._fits)
        self._are_open = [is_open(field[1]) for field in fields]
        readable = _readable(self._struct, fields)
        self._decode = values.reader_of(readable)
        self._decode_strictly = values.reader_of(readable, strict=True)
        self.result_decoder = values.decoder_of(hints.get("return", Any))
        self.is_result_open = is_open(hints.get("return", Any))

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The payload for these arguments; InvalidArgument if they do not fit the signature."""
        try:
            arguments = self._struct(*args, **kwargs)
        except TypeError as error:
            self._refuse(args, kwargs, error)
        try:
            data = self._encode(arguments)
        except (TypeError, ValueError, RecursionError) as error:
            self._refuse_values(arguments, error)
        if not self._are_plain(arguments):
            self._check(astuple(arguments), data)
        return self._values.seal_fields(data) if self._seals else data

    def _check(self, held: tuple[Any, ...], data: bytes) -> None:
        """InvalidArgument for an argument that would not arrive as it is."""
        may_be_wrong = has_suspects(data)
        is_unsure = False
        looks = zip(self.names, held, self._fits, self._are_open, strict=True)
        for name, value, fit, is_open_ in looks:
            if not fit.takes(value):
                if fit.only:
                    raise misfit(self._function.__name__, name, fit, value)
                is_unsure = True
            if is_open_:
                check_bytes(value, name)
            if may_be_wrong:
                check_numbers(value, name)
        if is_unsure:
            try:
                self._decode_strictly(data)
            except msgspec.ValidationError as error:
                raise self._unfit(error) from error

    def _refuse(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> NoReturn:
        """InvalidArgument in the words that Python has for a wrong call."""
        signature = inspect.signature(self._function)
        said = str(error)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as python:
            said = str(python)
        raise InvalidArgument(
            f"Expected arguments that fit {self._function.__name__}{signature}, but {said}"
        ) from error

    def _refuse_values(self, arguments: msgspec.Struct, error: Exception) -> NoReturn:
        """InvalidArgument for arguments that cannot be encoded: by type, or by their place."""
        for name, value, fit in zip(self.names, astuple(arguments), self._fits, strict=True):
            if fit.only and not fit.takes(value):
                raise misfit(self._function.__name__, name, fit, value) from error
            self._values.encode(value, place=name)
        raise InvalidArgument(f"Expected arguments that are JSON, but {error}") from error

    def _unfit(self, error: msgspec.ValidationError) -> UnfitArguments:
        wanted = {name: fit.wanted for name, fit in zip(self.names, self._fits, strict=True)}
        return unreadable(self._function.__name__, error, wanted)

    def decode(self, payload: bytes | msgspec.Raw) -> dict[str, Any]:
        """The arguments in a payload, by name; UnfitArguments if they are not the function's."""
        if self._seals:
            payload = self._values.unsealed_fields(payload)
        try:
            arguments = self._decode(payload)
        except msgspec.ValidationError as error:
            raise self._unfit(error) from None
        return asdict(arguments)


def _fields(
    function: Callable[..., Any], hints: dict[str, Any]
) -> tuple[list[_Field], list[_Field]]:
    """The parameters that may be given by place, and those by name alone."""
    where = f"Task {function.__qualname__}"
    positional: list[_Field] = []
    named: list[_Field] = []
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
        hint = hints.get(name, Any)
        field: _Field = (name, hint)
        if parameter.default is not parameter.empty:
            default = msgspec.field(default_factory=lambda value=parameter.default: value)
            # `limit: int = None` is often written, and means that it may be None
            field = (name, Optional[hint] if parameter.default is None else hint, default)  # noqa: UP045
        (named if parameter.kind is parameter.KEYWORD_ONLY else positional).append(field)
    return positional, named


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The types of the parameters; one that cannot be resolved counts as any."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        written = getattr(function, "__annotations__", {})
        return {name: _resolved(function, name, hint) for name, hint in written.items()}


def _resolved(function: Callable[..., Any], name: str, hint: Any) -> Any:
    alone = SimpleNamespace(__annotations__={name: hint})
    try:
        return typing.get_type_hints(alone, function.__globals__, include_extras=True)[name]
    except (NameError, TypeError):
        return Any


def _readable(struct: type[msgspec.Struct], fields: list[_Field]) -> type[msgspec.Struct]:
    """What msgspec can read: an argument of a type that it does not know arrives as plain JSON."""
    if is_known(struct):
        return struct
    plain: list[Any] = [
        (field[0], field[1] if is_known(field[1]) else Any, *field[2:]) for field in fields
    ]
    return msgspec.defstruct("PlainArguments", plain, kw_only=True, forbid_unknown_fields=True)
