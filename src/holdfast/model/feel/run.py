"""One evaluation of an expression: what it reads, what it has spent, what it warns of."""

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.model.feel.bounds import EVALUATION_NESTING_MAX, WARNINGS_MAX, WORK_MAX
from holdfast.model.feel.problems import FeelError, Problem
from holdfast.model.feel.syntax import Place
from holdfast.model.feel.values import Function, an, kind_of


class Run:
    """The state of one evaluation, handed to every part of the expression."""

    __slots__ = ("depth", "locals", "now_ms", "variables", "warnings", "work")

    def __init__(
        self,
        variables: Mapping[str, Any],
        now_ms: int,
        warnings: list[str] | None,
        locals_: list[Any],
        depth: int,
    ) -> None:
        self.variables = variables
        self.now_ms = now_ms
        self.warnings = warnings
        self.locals = locals_  # the values of names that the expression itself gives, by slot
        self.depth = depth  # levels of nesting, with those of the functions under way
        self.work = 0

    def warn(self, message: str, place: Place) -> None:
        """Say why something is null, and where; null is the result, so that it can be returned."""
        if self.warnings is not None and len(self.warnings) < WARNINGS_MAX:
            self.warnings.append(f"{message} ({place})")

    def spend(self, count: int) -> None:
        """Count work that grows with the values, and end the evaluation when it is too much."""
        self.work += count
        if self.work > WORK_MAX:
            raise FeelError(f"The evaluation takes more than {WORK_MAX} steps")

    def deeper(self, levels: int) -> None:
        """Go into a function that is so deep."""
        self.depth += levels
        if self.depth > EVALUATION_NESTING_MAX:
            raise FeelError(f"Functions call each other beyond {EVALUATION_NESTING_MAX} levels")

    def call(self, function: Function, *arguments: Any) -> Any:
        """The result of a function that was given as an argument."""
        if len(arguments) != len(function.parameters):
            raise Problem(
                f"Expected a function of {len(arguments)} parameters, "
                f"but found one of {len(function.parameters)}"
            )
        return function.call(self, *arguments)


Code = Callable[[Run], Any]  # a part of an expression, ready to be evaluated


def guarded(run: Run, place: Place, operation: Callable[..., Any], *operands: Any) -> Any:
    """The result of an operation, or null with a warning where it has none."""
    try:
        return operation(*operands)
    except Problem as problem:
        run.warn(str(problem), place)
    except (ArithmeticError, ValueError):  # a number or a date beyond what can be kept
        run.warn("The result is out of range", place)
    return None


def as_truth(run: Run, place: Place, value: Any) -> bool | None:
    """A condition's value; what is neither true nor false counts as null."""
    if value is True or value is False or value is None:
        return value
    run.warn(f"Expected a boolean, but found {an(kind_of(value))}", place)
    return None
