"""Built-in functions about booleans and missing values."""

from typing import Any

from holdfast.model.feel.builtins.registry import builtin
from holdfast.model.feel.compare import same
from holdfast.model.feel.problems import Problem, Unmet
from holdfast.model.feel.run import Run
from holdfast.model.feel.temporal import text_of_temporal
from holdfast.model.feel.values import KINDS, an, kind_of, shown


@builtin("not(negand: any)", "True for false, false for true, else null.", "not(true)", "false")
def negation(run: Run, value: Any) -> bool | None:
    """The other of the two; null stays null."""
    if value is None or type(value) is bool:
        return None if value is None else not value
    raise Problem(f"Expected a boolean, but found {an(kind_of(value))}")


@builtin("is defined(value: any)", "Whether a value is not null.", "is defined(null)", "false")
def is_defined(run: Run, value: Any) -> bool:
    return value is not None


@builtin(
    "get or else(value: any, default: any)",
    "The value, or another one when it is null.",
    'get or else(null, "none")',
    '"none"',
)
def get_or_else(run: Run, value: Any, default: Any) -> Any:
    return default if value is None else value


@builtin(
    "assert(value: any, condition: any, cause: string?)",
    "The value if the condition is true; else the evaluation fails, for the cause if one is given.",
    "assert(5, 5 > 0)",
    "5",
)
def assert_that(run: Run, value: Any, condition: Any, cause: str | None) -> Any:
    """The value, unless the condition is false, null or no condition: that is an error."""
    if condition is not True:
        found = str(condition).lower() if type(condition) is bool else an(kind_of(condition))
        raise Unmet(shown(cause) if cause else f"Expected the condition to hold, but it is {found}")
    return value


@builtin(
    "is(value1: any?, value2: any?)",
    "Whether two values are the same, in the same time zone too.",
    'is(@"10:00:00Z", @"11:00:00+01:00")',
    "false",
)
def is_same(run: Run, a: Any, b: Any) -> bool:
    """Like `=`, but moments must also be written the same; other kinds are told apart quietly."""
    if kind_of(a) != kind_of(b):
        return False
    if KINDS.get(type(a), "").startswith(("date", "time")):
        return text_of_temporal(a) == text_of_temporal(b)
    return same(run, a, b)
