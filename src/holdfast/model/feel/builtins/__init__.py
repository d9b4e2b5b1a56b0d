"""The built-in functions, by subject; `BUILTINS` is the table of them all."""

from holdfast.model.feel.builtins import (
    boolean,
    contexts,
    conversion,
    lists,
    moments,
    numbers,
    range_texts,
    ranges,
    sets,
    statistics,
    strings,
)
from holdfast.model.feel.builtins.registry import BUILTINS, Builtin, Parameter

SUBJECTS = (
    conversion, boolean, strings, numbers, lists, sets, statistics, contexts, moments, ranges,
    range_texts,
)  # fmt: skip

__all__ = ["BUILTINS", "SUBJECTS", "Builtin", "Parameter"]
