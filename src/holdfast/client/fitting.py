"""Whether an argument is of the type that its parameter is annotated with.

It is decided before anything is stored. For plain types it is a look at the argument's class; what
another annotation says is checked by reading the argument's JSON as the worker will.
"""

import re
import types
import typing
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from holdfast.client.codec import Values
from holdfast.client.exactness import PLAIN, is_known
from holdfast.client.expecting import shown
from holdfast.errors import InvalidArgument

_NONE = type(None)
_PLAIN: dict[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    float: (float, int),
    bool: (bool,),
    _NONE: (_NONE,),
    bytes: (bytes, bytearray, memoryview),
}
_LISTS = (list, tuple, set, frozenset)
_QUICK = PLAIN | {float}
_PLACE = re.compile(r"(.*) - at (`key` in )?`\$\.?([^`]*)`", re.DOTALL)  # as msgspec writes it
_MISFIT = re.compile(r"Expected `(.*)`, got `(.*)`")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`")


class UnfitArguments(InvalidArgument):
    """The arguments of a job do not fit its task: no retry helps."""


class Fit(NamedTuple):
    """What a parameter takes."""

    kinds: frozenset[type]  # classes of which every value fits, and can hold nothing else
    sure: tuple[type, ...]  # instances of these fit
    only: bool  # and nothing else does; else its JSON says
    wanted: str  # the annotation, for people

    def takes(self, value: Any) -> bool:
        """Whether a value surely fits. To Python a bool is an int; to JSON it is not."""
        if type(value) is bool:
            return bool in self.sure or object in self.sure
        return isinstance(value, self.sure)


def fit_of(hint: Any, values: Values) -> Fit:
    """What a parameter with this annotation takes."""
    parts = [_part(each, values) for each in _alternatives(hint)]
    sure = tuple(kind for each in parts for kind in each[0])
    only = all(each[1] for each in parts)
    quick = _QUICK if object in sure else _QUICK.intersection(sure)
    return Fit(quick, sure, only, _written(hint))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _part(hint: Any, values: Values) -> tuple[tuple[type, ...], bool]:
    """Instances of which classes fit, and whether nothing else does."""
    while isinstance(hint, typing.NewType):
        hint = hint.__supertype__
    if hint is None:
        hint = _NONE
    if isinstance(hint, type) and hint in _PLAIN:
        return _PLAIN[hint], True
    if hint in (Any, object) or isinstance(hint, typing.TypeVar) or not is_known(hint):
        return (object,), True
    if hint in (dict, dict[str, Any]):
        return (dict,), False
    if hint in (list, list[Any]):
        return _LISTS, False
    if values.has_own(hint):
        return (hint,), True
    return (), False


def _written(hint: Any) -> str:
    if len(parts := _alternatives(hint)) > 1:
        return " | ".join(map(_written, parts))
    if isinstance(hint, type) and not typing.get_args(hint):
        return "None" if hint is _NONE else hint.__name__
    return str(hint).replace("typing.", "")


def plain_test(names: list[str], fits: list[Fit]) -> Callable[[msgspec.Struct], bool]:
    """Whether all arguments are plain values that fit: the one test that most submissions need.

    It is compiled for the function, as a `NamedTuple` is: a loop over its parameters takes four
    times as long, and a submission of many tasks would be slower by a twentieth.
    """
    tests = [
        _plain_source(name, at, fit) for at, (name, fit) in enumerate(zip(names, fits, strict=True))
    ]
    known: dict[str, Any] = {f"kinds_{at}": fit.kinds for at, fit in enumerate(fits)}
    return eval(f"lambda it: {' and '.join(tests) or True}", known | {"isfinite": isfinite})


def _plain_source(name: str, at: int, fit: Fit) -> str:
    if not fit.kinds:
        return "False"
    test = f"type(it.{name}) in kinds_{at}"
    if len(fit.kinds) == 1 and float not in fit.kinds:
        [kind] = fit.kinds
        return f"type(it.{name}) is {kind.__name__}" if kind is not _NONE else f"it.{name} is None"
    if float in fit.kinds:
        return f"({test} and (type(it.{name}) is not float or isfinite(it.{name})))"
    return test


def misfit(function: str, name: str, fit: Fit, value: Any) -> InvalidArgument:
    """The argument is not what its parameter is annotated with."""
    return InvalidArgument(
        f"Argument {name} of task {function}: expected {fit.wanted},"
        f" but found {shown(value)} ({type(value).__name__})",
        field=name,
    )


def unreadable(
    function: str, error: msgspec.ValidationError, wanted: dict[str, str]
) -> UnfitArguments:
    """The worker would refuse an argument, or a part of it."""
    found = _PLACE.fullmatch(str(error))
    said, is_key, place = found.groups() if found else (str(error), None, "")
    if kinds := _MISFIT.fullmatch(said):
        said = (
            f"expected {kinds[1] if is_key else wanted.get(place, kinds[1])}, but found {kinds[2]}"
        )
    elif fields := _FIELD.fullmatch(said):
        said = f"{'missing' if fields[1].startswith('missing') else 'unknown'} {fields[2]}"
    elif parts := _parts(error.__cause__):
        said = "; ".join(parts)
    else:
        said = said[:1].lower() + said[1:]
    where = f"Argument {place} of" if place else "Arguments of"
    where = f"{where} task {function}" + (", a key" if is_key else "")
    return UnfitArguments(f"{where}: {said}", field=place)


def _parts(cause: BaseException | None) -> list[str]:
    """What a pydantic model says about its fields, each in a few words; empty for other errors."""
    errors: Callable[[], list[dict[str, Any]]] | None = getattr(cause, "errors", None)
    if errors is None:
        return []
    parts: list[str] = []
    for each in errors():
        place = ".".join(map(str, each["loc"])) or "the model"
        found = "" if each["type"] == "missing" else f", but found {shown(each['input'])}"
        parts.append(f"{place}: {each['msg'][:1].lower()}{each['msg'][1:]}{found}")
    return parts
