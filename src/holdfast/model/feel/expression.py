"""A parsed expression: its text, the variables that it reads, and how to evaluate it."""

from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from types import NoneType
from typing import Any

from holdfast.model.feel.access import MISSING
from holdfast.model.feel.bounds import (
    EXPRESSION_SHORT_CHARS_MAX,
    EXPRESSIONS_CACHED_MAX,
    EXPRESSIONS_LONG_CACHED_MAX,
    STEPS_MAX,
)
from holdfast.model.feel.builtins import BUILTINS
from holdfast.model.feel.compiler import Compiler
from holdfast.model.feel.problems import FeelError, Spent
from holdfast.model.feel.reader import read, refused
from holdfast.model.feel.run import Run
from holdfast.model.feel.syntax import Name, Place

SPACED = frozenset(name for name in BUILTINS if " " in name)


# What a variable alone evaluates to as it is: half of all expressions are one, so they take no run.
PLAIN = frozenset({str, int, bool, NoneType, dict, list, Decimal})


NOTED_STEPS = 500  # from here on an evaluation counts with others; 0.05 ms
NO_LOCALS: list[Any] = []  # of expressions that give no names; nobody writes to it


class SharedBudget(dict[str, Any]):
    """Variables whose evaluations draw from one budget of steps, like those of one element."""

    spent = 0


class Expression:
    """An expression, compiled; made by `parse`."""

    __slots__ = ("_code", "_depth", "_name", "_slots", "_steps", "names", "text")

    def __init__(self, text: str) -> None:
        node = read(text, SPACED)
        compiler = Compiler()
        self.text = text
        self._code = compiler.compile(node)
        self._slots = compiler.slots
        self._depth = node.depth
        self._steps = compiler.cost.steps
        self._name = node.name if isinstance(node, Name) else None
        self.names = frozenset(compiler.names)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(
        self, variables: Mapping[str, Any], now_ms: int, warnings: list[str] | None = None
    ) -> Any:
        """The value; null where the expression has none, with the reason among the warnings.

        Raises FeelError only when the evaluation takes more than the bounds allow, or when what it
        asserts does not hold.
        """
        if self._name is not None:
            value = variables.get(self._name, MISSING)
            if type(value) in PLAIN:
                return value
        slots = self._slots
        locals_ = [None] * slots if slots else NO_LOCALS
        run = Run(variables, now_ms, warnings, locals_, self._depth, self._steps)
        try:
            value = self._code(run)
        except Spent as spent:
            raise self._ended(spent) from None
        except RecursionError:  # the caller was too deep already: the bounds leave a margin
            raise self._ended(Spent("The evaluation is nested too deep")) from None
        if run.steps > NOTED_STEPS and isinstance(variables, SharedBudget):
            self._note(variables, run.steps)
        return value

    def _note(self, variables: SharedBudget, steps: int) -> None:
        """Count an evaluation that is not small with those that share its budget."""
        variables.spent += steps
        if variables.spent > STEPS_MAX:
            message = f"The evaluations of one element take more than {STEPS_MAX} steps"
            raise self._ended(Spent(message))

    def _ended(self, spent: Spent) -> FeelError:
        """The error for an evaluation that had to end: why, where, and what to do."""
        what = f", in {spent.what}" if spent.what else ""
        error = refused(self.text, f"{spent.message}{what}", spent.place or Place(1, 1))
        return FeelError(f"{error.message}{spent.advice}", **error.fields)


_short = lru_cache(maxsize=EXPRESSIONS_CACHED_MAX)(Expression)
_long = lru_cache(maxsize=EXPRESSIONS_LONG_CACHED_MAX)(Expression)


def parse(text: str) -> Expression:
    """The expression that a text is; a FeelError says what was expected, what found, and where."""
    return _short(text) if len(text) <= EXPRESSION_SHORT_CHARS_MAX else _long(text)
