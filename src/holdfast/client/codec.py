"""A user's values as JSON and back: by their types, by the program's own codec, and encrypted."""

from collections.abc import Callable
from typing import Any, NoReturn

import msgspec
import msgspec.inspect

from holdfast.client.exactness import (
    check_bytes,
    check_numbers,
    has_suspects,
    is_known,
    is_plain,
    is_pydantic,
    number_of,
    refuse_other,
)
from holdfast.client.expecting import shown
from holdfast.errors import InvalidArgument
from holdfast.gateway.tasks.shapes import ActivatedJob

_SEALED = "$sealed"  # the one key of the object that stands for an encrypted value
_MARK = b'"$sealed"'


class ValueCodec:
    """Encodes values of other types, and encrypts values. Override what you need.

    Give it to `Holdfast.open(..., codec=...)` and `Holdfast.connect(..., codec=...)`: the same one
    in every program that sends the values or reads them.
    """

    def encode(self, value: Any) -> Any:
        """Encodes a value as JSON: text, a number, a list or a dict. TypeError if it cannot."""
        raise TypeError(
            f"expected a value that JSON carries, but found {type(value).__name__};"
            " a codec can encode it"
        )

    def decode(self, value: Any, kind: type[Any]) -> Any:
        """Decodes what `encode` returned, as a value of the annotated type."""
        raise TypeError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")

    def seal(self, name: str, data: bytes) -> bytes | None:
        """Encrypts an argument, a variable or a `"result"`; None leaves it readable."""
        return None

    def unseal(self, data: bytes) -> bytes:
        """Decrypts what `seal` returned."""
        raise ValueError("this codec opens nothing")


class _Sealed(msgspec.Struct, rename={"data": _SEALED}, forbid_unknown_fields=True):
    """An encrypted value, as it stands in JSON."""

    data: bytes


_encode = msgspec.json.Encoder().encode
_encode_exact = msgspec.json.Encoder(decimal_format="string").encode  # as pydantic reads Decimals
_decode_sealed = msgspec.json.Decoder(_Sealed).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Values:
    """What an app makes of its values, by its codec."""

    def __init__(self, codec: ValueCodec | None = None) -> None:
        self.codec = ValueCodec() if codec is None else codec
        self.seals = type(self.codec).seal is not ValueCodec.seal
        self.encode_unchecked = msgspec.json.Encoder(
            decimal_format="number", enc_hook=self._stand_in
        ).encode
        self.decode = self.decoder_of(Any)

    def has_own(self, kind: Any) -> bool:
        """Whether values of a class are read by pydantic or by the codec."""
        is_own = isinstance(kind, type) and type(self.codec).decode is not ValueCodec.decode
        return is_pydantic(kind) or (is_own and _is_foreign(kind))

    # --- to JSON ------------------------------------------------------------------------------

    def encode(self, value: Any, *, place: str, is_open: bool = True) -> bytes:
        """A value as JSON; InvalidArgument, with the place, for what JSON cannot carry.

        It is open if no annotation says what it is, so that bytes in it would arrive as text.
        """
        try:
            data = self.encode_unchecked(value)
        except (TypeError, ValueError, RecursionError) as error:
            self.refuse(value, place, error)
        if not is_plain(value):
            if is_open:
                check_bytes(value, place)
            if has_suspects(data):
                check_numbers(value, place)
        return data

    def refuse(self, value: Any, place: str, error: Exception) -> NoReturn:
        """InvalidArgument for a value that cannot be encoded, with the place of the culprit."""
        if not isinstance(error, RecursionError):
            refuse_other(value, place, self.encode_unchecked)
        raise InvalidArgument(f"Expected {place} to be JSON, but {error}") from error

    def variables(self, values: Any) -> msgspec.Raw:
        """Variables as they go to the node."""
        data = self.encode(values, place="variables")
        if not data.startswith(b"{"):
            raise InvalidArgument(
                f"Expected variables as a dict, but found {shown(values)} ({type(values).__name__})"
            )
        return msgspec.Raw(self.seal_fields(data) if self.seals else data)

    def _stand_in(self, value: Any) -> Any:
        if is_pydantic(type(value)):
            return value.model_dump(mode="json", by_alias=True, round_trip=True)
        return self.codec.encode(value)

    # --- from JSON ----------------------------------------------------------------------------

    def decoder_of(self, hint: Any) -> Callable[[Any], Any]:
        """Reads values of a type; what msgspec does not know arrives as plain JSON."""
        decode = self.reader_of(hint if is_known(hint) else Any)
        return (lambda data: decode(self.unsealed(data))) if self.seals else decode

    def reader_of(self, hint: Any, *, strict: bool = False) -> Callable[[Any], Any]:
        """Reads what is not encrypted."""
        decoder = msgspec.json.Decoder(
            hint, strict=strict, float_hook=number_of, dec_hook=self._by_type
        )
        return decoder.decode

    def fields(self, data: bytes | msgspec.Raw) -> Any:
        """Variables, or the payload of a task, as plain values."""
        return _plain(self.unsealed_fields(data) if self.seals else data)

    def _by_type(self, kind: type[Any], value: Any) -> Any:
        if is_pydantic(kind):
            return kind.model_validate_json(_encode_exact(value))
        return value if isinstance(value, kind) else self.codec.decode(value, kind)

    # --- encrypted ----------------------------------------------------------------------------

    def sealed(self, name: str, data: bytes) -> bytes:
        """A value as it goes to the node."""
        sealed = self.codec.seal(name, data) if self.seals else None
        return data if sealed is None else _encode(_Sealed(sealed))

    def sealed_result(self, job: ActivatedJob, data: bytes) -> bytes:
        """A result as it goes to the node: of a job of a process, its variables."""
        return self.sealed("result", data) if job.origin is None else self.seal_fields(data)

    def seal_fields(self, data: bytes) -> bytes:
        """An object, each of its fields encrypted: a process finds its variables by their names."""
        try:
            fields = _decode_fields(data)
        except msgspec.ValidationError:
            return data  # the node refuses it
        return _encode(
            {name: msgspec.Raw(self.sealed(name, bytes(each))) for name, each in fields.items()}
        )

    def unsealed(self, data: bytes | msgspec.Raw) -> bytes | msgspec.Raw:
        """A value as `sealed` was given it; one that is not encrypted as it is."""
        if _MARK not in bytes(data):
            return data
        try:
            sealed = _decode_sealed(data)
        except msgspec.ValidationError:
            return data  # it is further down, and somebody else's
        return self.codec.unseal(sealed.data)

    def unsealed_fields(self, data: bytes | msgspec.Raw) -> bytes | msgspec.Raw:
        """An object as `seal_fields` was given it."""
        if _MARK not in bytes(data):
            return data
        try:
            fields = _decode_fields(data)
        except msgspec.ValidationError:
            return data
        return _encode({name: msgspec.Raw(self.unsealed(each)) for name, each in fields.items()})


_plain = msgspec.json.Decoder(float_hook=number_of).decode


def _is_foreign(kind: type[Any]) -> bool:
    """Whether msgspec knows nothing of a class."""
    return isinstance(msgspec.inspect.type_info(kind), msgspec.inspect.CustomType)


PLAIN_VALUES = Values()
"""Those of an app without a codec."""
