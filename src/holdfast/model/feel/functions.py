"""Functions as code: defining them and calling them."""

from typing import Any

from holdfast.model.feel.builtins.registry import Builtin, invoked, invoked_fitting
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Code, Run, guarded
from holdfast.model.feel.syntax import Define, Place
from holdfast.model.feel.types import instance
from holdfast.model.feel.values import Function, an, kind_of

CALL_LEVELS = 3  # what a call adds to the levels of its body: itself, and who calls it back


def defined(node: Define, slots: list[int], body: Code) -> Code:
    """`function(a, b) body`, which keeps the values that it sees where it is defined."""
    names = tuple(name for name, _ in node.parameters)
    kinds = [kind for _, kind in node.parameters]
    levels = node.depth + CALL_LEVELS

    def code(run: Run) -> Function:
        seen = run.locals.copy()
        run.spend(1 + len(seen) // 16)

        def call(run: Run, *arguments: Any) -> Any:
            run.spend(1 + len(seen) // 16)  # copying sixteen values takes as long as a step
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

        return Function(names, call)

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

    def code(run: Run) -> Any:
        values = [argument(run) for argument in arguments]
        return guarded(run, place, invoke, run, which, values)

    def silent(run: Run) -> Any:
        warnings, run.warnings = run.warnings, None
        try:
            values = [argument(run) for argument in arguments]
        finally:
            run.warnings = warnings
        return guarded(run, place, invoke, run, which, values)

    return silent if quiet else code
