"""One evaluation of an expression: what it reads, what it has spent, what it warns of."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from holdfast.model.feel.bounds import BYTES_MAX, EVALUATION_NESTING_MAX, STEPS_MAX, WARNINGS_MAX
from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.syntax import Place
from holdfast.model.feel.values import Function, an, kind_of

BLOCK_STEPS = 1_024  # that a loop draws ahead, and gives back what it did not need
CHARS_PER_STEP = 256  # copied or compared by Python in the time of a step
ITEMS_PER_STEP = 16  # of a list, copied as a whole in the time of a step
SLOT_BYTES = 8  # of an item in a list
PROBLEM_STEPS = 20  # raising, catching and wording a problem


class Run:
    """The state of one evaluation, handed to every part of the expression.

    `steps` and `bytes` count up. Small constants are added without a look at the bound: whatever
    repeats them (a loop, a call) looks, and what an expression does without repeating is bounded
    by its length.
    """

    __slots__ = (
        "bytes", "depth", "locals", "now_ms", "patterns", "steps", "variables", "warnings",
    )  # fmt: skip

    patterns: dict[Any, Any]  # regular expressions that were paid for; there once one is used

    def __init__(
        self,
        variables: Mapping[str, Any],
        now_ms: int,
        warnings: list[str] | None,
        locals_: list[Any],
        depth: int,
        steps: int = 0,
    ) -> None:
        self.variables = variables
        self.now_ms = now_ms
        self.warnings = warnings
        self.locals = locals_  # the values of names that the expression itself gives, by slot
        self.depth = depth  # levels of nesting, with those of the functions under way
        self.steps = steps
        self.bytes = 0

    def warn(self, message: str, place: Place) -> None:
        """Say why something is null, and where; null is the result, so that it can be returned."""
        self.steps += PROBLEM_STEPS
        if self.warnings is not None and len(self.warnings) < WARNINGS_MAX:
            self.warnings.append(f"{message} ({place})")

    def spend(self, steps: int, made_bytes: int = 0) -> None:
        """Draw from the budget, and end the evaluation when it is used up."""
        self.steps = steps = self.steps + steps
        self.bytes = made_bytes = self.bytes + made_bytes
        if steps > STEPS_MAX:
            raise Spent(f"The evaluation takes more than {STEPS_MAX} steps")
        if made_bytes > BYTES_MAX:
            raise Spent(f"The evaluation makes values of more than {BYTES_MAX} bytes")

    def read(self, text: str) -> None:
        """Pay for going through a text once."""
        if len(text) > CHARS_PER_STEP:
            self.spend(len(text) // CHARS_PER_STEP)

    def make(self, text: str, chars: int) -> str:
        """Pay for so many characters of a text, which is then returned."""
        if chars > CHARS_PER_STEP:
            self.spend(chars // CHARS_PER_STEP, chars if text.isascii() else 4 * chars)
        else:
            self.bytes += 4 * chars
        return text

    def copy(self, items: int) -> None:
        """Pay for a list of so many items that are there already."""
        self.spend(items // ITEMS_PER_STEP, SLOT_BYTES * items)

    def deeper(self, levels: int) -> None:
        """Go into a function that is so deep."""
        self.depth += levels
        if self.depth > EVALUATION_NESTING_MAX:
            raise Spent(f"Functions call each other beyond {EVALUATION_NESTING_MAX} levels")

    def call(self, function: Function, *arguments: Any) -> Any:
        """The result of a function that was given as an argument."""
        if len(arguments) != len(function.parameters):
            raise Problem(
                f"Expected a function of {len(arguments)} parameters, "
                f"but found one of {len(function.parameters)}"
            )
        return function.call(self, *arguments)


class Cost(NamedTuple):
    """What a part of an expression draws each time, but for what depends on the values."""

    steps: int
    bytes: int

    def plus(self, steps: int, made_bytes: int = 0) -> "Cost":
        return Cost(self.steps + steps, self.bytes + made_bytes)


Code = Callable[[Run], Any]  # a part of an expression, ready to be evaluated


def guarded(run: Run, place: Place, operation: Callable[..., Any], *operands: Any) -> Any:
    """The result of an operation, or null with a warning where it has none."""
    try:
        return operation(*operands)
    except Problem as problem:
        run.warn(str(problem), place)
    except Spent as spent:
        raise spent.at(place) from None
    except (ArithmeticError, ValueError):  # a number or a date beyond what can be kept
        run.warn("The result is out of range", place)
    return None


def as_truth(run: Run, place: Place, value: Any) -> bool | None:
    """A condition's value; what is neither true nor false counts as null."""
    if value is True or value is False or value is None:
        return value
    run.warn(f"Expected a boolean, but found {an(kind_of(value))}", place)
    return None
