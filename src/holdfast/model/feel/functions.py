"""Functions as code: defining them and calling them."""

from typing import Any

from holdfast.model.feel.builtins.registry import Builtin, invoked, invoked_fitting
from holdfast.model.feel.problems import Problem, Spent
from holdfast.model.feel.run import Code, Cost, Run, guarded
from holdfast.model.feel.syntax import Define, Place
from holdfast.model.feel.types import instance
from holdfast.model.feel.values import Function, an, kind_of

CALL_LEVELS = 3  # what a call adds to the levels of its body: itself, and who calls it back
CALL_STEPS = 10  # of a function that an expression defines; its body is counted beside it
FUNCTION_BYTES = 600  # a function with its code, without the values that it keeps
SEEN_PER_STEP = 16  # values copied in the time of a step


def defined(node: Define, slots: list[int], body: Code, cost: Cost) -> Code:
    """`function(a, b) body`, which keeps the values that it sees where it is defined."""
    names = tuple(name for name, _ in node.parameters)
    kinds = [kind for _, kind in node.parameters]
    levels = node.depth + CALL_LEVELS
    steps, made_bytes = cost.plus(CALL_STEPS)

    def code(run: Run) -> Function:
        copied, copied_bytes = len(run.locals) // SEEN_PER_STEP, 8 * len(run.locals)
        run.spend(copied, FUNCTION_BYTES + copied_bytes)
        seen = run.locals.copy()

        def call(run: Run, *arguments: Any) -> Any:
            run.spend(steps + copied, made_bytes + copied_bytes)
            values = seen.copy()
            for slot, kind, value in zip(slots, kinds, arguments, strict=True):
                if kind is not None and value is not None and not instance(run, value, kind):
                    raise Problem(
                        f"Expected an argument of type {kind.name}, but found {an(kind_of(value))}"
                    )
                values[slot] = value
            outside, run.locals = run.locals, values
            run.deeper(levels)
            try:
                return body(run)
            finally:
                run.locals = outside
                run.depth -= levels

        return Function(names, call, tuple(kinds))

    return code


def dynamic_call(
    function: Code, names: list[str | None], arguments: list[Code], place: Place
) -> Code:
    """A call of whatever turns out to be the function."""

    def called(run: Run, found: Any, values: list[Any]) -> Any:
        if type(found) is not Function:
            raise Problem(f"Expected a function, but found {an(kind_of(found))}")
        if names and names[0] is not None:
            if sorted(found.parameters) != sorted(name or "" for name in names):
                raise Problem(f"Expected the arguments {', '.join(found.parameters)}")
            values = [values[names.index(parameter)] for parameter in found.parameters]
        return run.call(found, *values)

    def code(run: Run) -> Any:
        values = [argument(run) for argument in arguments]
        return guarded(run, place, called, run, function(run), values)

    return code


def static_call(rows: list[Builtin], arguments: list[Code], place: Place, *, quiet: bool) -> Code:
    """A call of a built-in function that is known beforehand, but for the types of arguments."""
    invoke, which = (invoked, rows[0]) if len(rows) == 1 else (invoked_fitting, rows)

    name = f"'{rows[0].name}'"

    def code(run: Run) -> Any:
        values = [argument(run) for argument in arguments]
        try:
            return guarded(run, place, invoke, run, which, values)
        except Spent as spent:
            raise spent.at(place, name) from None

    def silent(run: Run) -> Any:
        warnings, run.warnings = run.warnings, None
        try:
            values = [argument(run) for argument in arguments]
        finally:
            run.warnings = warnings
        return guarded(run, place, invoke, run, which, values)

    return silent if quiet else code
