"""A value of any type of the API, with something in every field."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import inspect

NOON = datetime(2030, 1, 2, 12, tzinfo=UTC)
_DEPTH_MAX = 4  # of elements that have elements


def sample(type_: Any, name: str = "") -> Any:
    """The same value each time; optional fields are set, texts are not plain ASCII.

    What is called a key is a number.
    """
    return _of(inspect.type_info(type_), name, 0)


def _of(type_: inspect.Type, name: str, depth: int) -> Any:
    match type_:
        case inspect.StructType():
            fields = {each.name: _of(each.type, each.name, depth + 1) for each in type_.fields}
            return type_.cls(**fields)
        case inspect.UnionType():
            kinds = [each for each in type_.types if not isinstance(each, inspect.NoneType)]
            return _of(kinds[0], name, depth)
        case inspect.ListType():
            return [] if depth > _DEPTH_MAX else [_of(type_.item_type, name, depth)]
        case inspect.DictType():
            return {"ü": _of(type_.value_type, name, depth)}
        case inspect.StrType():
            return "7" if "key" in name else f"{name} ü?"
        case inspect.IntType():
            return max(type_.ge or 0, 3)
        case inspect.EnumType():
            return list(type_.cls)[-1]
        case inspect.DateTimeType():
            return NOON
        case inspect.RawType():
            return msgspec.Raw('{"total":"ü"}'.encode())
        case inspect.BoolType():
            return True
        case inspect.FloatType():
            return 1.5
        case inspect.BytesType():
            return b"\xff\x00"
        case inspect.LiteralType():
            return type_.values[-1]
        case inspect.AnyType():
            return {"ü": [1, None]}
        case inspect.NoneType():
            return None
        case _:
            raise AssertionError(f"no sample of {type_}")
