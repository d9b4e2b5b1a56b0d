"""The one table of built-in functions: what they are called with, what they do, an example.

A function is declared by the line that its users read, such as
`substring(string: string, start position: number, length: number?)`. A type with `?` may be left
out or null, a name with `...` stands for any number of arguments, `|` separates types, and `/` the
names that a parameter has: all of a call are the first ones, or the second.
Functions of one name with different parameters are different rows. Arguments arrive checked.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Run
from holdfast.model.feel.values import an, clean, cleaned, kind_of


class Parameter(msgspec.Struct, frozen=True):
    """What a function takes at one position."""

    names: tuple[str, ...]  # as one set of names has it, or as another one
    kinds: frozenset[str]  # empty: anything
    optional: bool
    variadic: bool


class Builtin(msgspec.Struct, frozen=True):
    """A row of the table."""

    name: str
    signature: str
    subject: str  # the module that it is in
    description: str
    example: str
    result: str  # what the example evaluates to, as an expression
    parameters: tuple[Parameter, ...]
    call: Callable[..., Any]
    steps: int  # of a call, beside those of all calls and of what depends on its arguments

    def takes(self, count: int) -> bool:
        """Whether it can be called with so many arguments by position."""
        if self.parameters and self.parameters[-1].variadic:
            return count >= len(self.parameters)
        needed = sum(not parameter.optional for parameter in self.parameters)
        return needed <= count <= len(self.parameters)

    def order(self, names: list[str]) -> list[int | None] | None:
        """Which of the named arguments goes where; None when they do not fit."""
        if any(parameter.variadic for parameter in self.parameters):
            return None
        fitting: list[list[int | None]] = []
        for number in range(max((len(each.names) for each in self.parameters), default=0)):
            known = [each.names[min(number, len(each.names) - 1)] for each in self.parameters]
            if set(names) - set(known) or len(set(names)) != len(names):
                continue
            places = [names.index(name) if name in names else None for name in known]
            missing = zip(places, self.parameters, strict=True)
            if all(place is not None or parameter.optional for place, parameter in missing):
                fitting.append(places)
        # `before(point, range)` and `before(range, point)` both exist: the order written decides.
        return min(fitting, key=lambda places: places != sorted(places, key=str), default=None)


BUILTINS: dict[str, list[Builtin]] = {}  # by name; filled by the modules beside this one

CLEANED_PER_STEP = 4  # items that are looked at for what came from outside, in a step
SIGNATURE = re.compile(r"(?P<name>[^(]+)\((?P<parameters>.*)\)")
Body = Callable[..., Any]


def builtin(
    signature: str, description: str, example: str, result: str, steps: int = 0
) -> Callable[[Body], Body]:
    """Add a row: the decorated function gets the run, then the arguments in order."""
    found = SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    parts = [part for part in found["parameters"].split(", ") if part]

    def add(body: Body) -> Body:
        row = Builtin(
            found["name"], signature, body.__module__.rpartition(".")[2], description, example,
            result, tuple(_parameter(part) for part in parts), body, steps,
        )  # fmt: skip
        BUILTINS.setdefault(row.name, []).append(row)
        return body

    return add


def _parameter(text: str) -> Parameter:
    name, _, kinds = text.partition(": ")
    optional = kinds.endswith("?")
    named = frozenset(kinds.rstrip("?").split("|")) - {"any"}
    names = tuple(name.removesuffix("...").split("/"))
    return Parameter(names, named, optional, name.endswith("..."))


def chosen(name: str, names: list[str | None]) -> list[tuple[Builtin, list[int | None]]] | str:
    """The rows that a call may mean, each with the order of its arguments, or why there is none."""
    rows = BUILTINS[name]
    given = [found for found in names if found is not None]
    fitting: list[tuple[Builtin, list[int | None]]] = []
    for row in rows:
        if given and (places := row.order(given)) is not None:
            fitting.append((row, places))
        if not given and row.takes(len(names)):
            fitting.append((row, list(range(len(names)))))
    if fitting:
        return fitting
    known = " or ".join(row.signature for row in rows)
    shown = f"the arguments {', '.join(given)}" if given else f"{len(names)} arguments"
    return f"Expected {known}, but found {shown}"


def invoked(run: Run, row: Builtin, arguments: list[Any]) -> Any:
    """Call a function with arguments that fit its parameters, or raise a Problem."""
    return row.call(run, *fitted(run, row, arguments))


def fitted(run: Run, row: Builtin, arguments: list[Any]) -> list[Any]:
    """The arguments as the parameters want them, or a Problem."""
    count = len(row.parameters)
    fitting: list[Any] = []
    for index, value in enumerate(arguments):
        parameter = row.parameters[min(index, count - 1)]
        fitting.append(_fitting(run, row, parameter, value))
    return fitting + [None] * (count - len(fitting))


def invoked_fitting(run: Run, rows: list[Builtin], arguments: list[Any]) -> Any:
    """Call the first of several functions whose parameters the arguments fit."""
    for row in rows[:-1]:
        try:
            fitting = fitted(run, row, arguments)
        except Problem:
            continue
        return row.call(run, *fitting)
    return invoked(run, rows[-1], arguments)


def _fitting(run: Run, row: Builtin, parameter: Parameter, value: Any) -> Any:
    value = clean(value)
    kinds = parameter.kinds
    kind = kind_of(value)
    if not kinds or kind in kinds:
        if kind == "list":
            if len(value) > CLEANED_PER_STEP:
                run.spend(len(value) // CLEANED_PER_STEP)
            return cleaned(value)
        return value
    if value is None:
        if parameter.optional:
            return None
    elif "list" in kinds:
        return [value]  # a value stands for a list of it alone
    elif kind == "list" and len(value) == 1 and kind_of(value[0]) in kinds:
        return clean(value[0])  # and such a list for its value
    wanted = " or ".join(sorted(kinds))
    raise Problem(
        f"Expected '{parameter.names[0]}' of '{row.name}' to be {an(wanted)}, but found {an(kind)}"
    )
