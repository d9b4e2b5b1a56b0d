"""FEEL, the expression language of DMN: conditions, mappings, correlation keys and timers."""

from holdfast.model.feel.builtins import BUILTINS, Builtin
from holdfast.model.feel.expression import Expression, SharedBudget, parse
from holdfast.model.feel.problems import FeelError
from holdfast.model.feel.temporal import parse_date_time, parse_duration
from holdfast.model.feel.values import Function, Range, YearsMonths
from holdfast.model.feel.wire import decode_json, encode_json, to_json

__all__ = [
    "BUILTINS",
    "Builtin",
    "Expression",
    "FeelError",
    "Function",
    "Range",
    "SharedBudget",
    "YearsMonths",
    "decode_json",
    "encode_json",
    "parse",
    "parse_date_time",
    "parse_duration",
    "to_json",
]
