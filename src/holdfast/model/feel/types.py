"""`instance of`: whether a value is of a type."""

from typing import Any

from holdfast.model.feel.run import Run
from holdfast.model.feel.syntax import TypeName
from holdfast.model.feel.values import Function, Range, clean, kind_of


def _takes(declared: TypeName | None, given: TypeName) -> bool:
    """Whether a parameter takes every value of a type."""
    return declared is None or declared.name == "Any" or declared == given


def instance(run: Run, value: Any, wanted: TypeName) -> bool:
    """Whether a value is of a type, and what is in it of those in the type's brackets."""
    if wanted.name == "Any":
        return value is not None
    if wanted.name == "Null":
        return value is None
    if kind_of(value) != wanted.name:
        return False
    if wanted.name == "list" and wanted.items:
        run.spend(10 * len(value))
        return all(instance(run, clean(item), wanted.items[0]) for item in value)
    if wanted.name == "context" and wanted.fields:
        return all(
            name in value and (value[name] is None or instance(run, clean(value[name]), field))
            for name, field in wanted.fields.items()
        )
    if type(value) is Function and wanted.items:
        given = wanted.items[:-1]  # the last one is the result's, which nobody knows beforehand
        return len(given) == len(value.types) and all(map(_takes, value.types, given))
    if type(value) is Range and wanted.items:
        return all(
            end is None or instance(run, end, wanted.items[0]) for end in (value.start, value.end)
        )
    return True
