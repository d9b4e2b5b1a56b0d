"""The parts of an expression as it was read, each with its place in the text."""

from typing import Any, NamedTuple

import msgspec


class Place(NamedTuple):
    """Where something begins, both from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Node(msgspec.Struct, eq=False):
    """A part of an expression."""

    place: Place
    depth: int  # levels below and with it


class Literal(Node):
    """A value that does not change."""

    value: Any


class Temporal(Node):
    """A date, time or duration in quotes after `@`."""

    text: str


class Name(Node):
    """A variable, or the name of a function before its arguments."""

    name: str


class Logic(Node):
    """Two or more conditions, joined by `and` or by `or`."""

    conjunction: bool
    parts: list[Node]


class Arithmetic(Node):
    """Operands with operators of one precedence between them, from left to right."""

    first: Node
    rest: list[tuple[str, Node, Place]]


class Negate(Node):
    """A minus before an operand."""

    operand: Node


class Compare(Node):
    """Two operands and one of `= != < <= > >=`."""

    symbol: str
    left: Node
    right: Node


class Between(Node):
    """Whether a value lies between two others, both included."""

    value: Node
    low: Node
    high: Node


class Test(Node):
    """What follows `in`: an operator with its operand, or a value, a list or a range."""

    symbol: str | None
    operand: Node


class Membership(Node):
    """Whether a value passes one of the tests."""

    value: Node
    tests: list[Test]


class TypeName(msgspec.Struct):
    """A type: its name, and those in its brackets."""

    name: str
    items: list["TypeName"] = []
    fields: dict[str, "TypeName"] = {}


class InstanceOf(Node):
    """Whether a value is of a type."""

    value: Node
    type: TypeName


class If(Node):
    """One of two expressions, by a condition."""

    condition: Node
    then: Node
    otherwise: Node


class Iteration(Node):
    """A name for each item of a list, or for each number from one to another."""

    name: str
    start: Node
    end: Node | None


class For(Node):
    """An expression for every combination of items."""

    iterations: list[Iteration]
    body: Node


class Quantified(Node):
    """Whether some, or every, combination of items satisfies a condition."""

    every: bool
    iterations: list[Iteration]
    condition: Node


class Define(Node):
    """A function with its parameters."""

    parameters: list[tuple[str, TypeName | None]]
    body: Node


class Path(Node):
    """What is called so in a context, in each context of a list, or in a date."""

    value: Node
    name: str


class Filter(Node):
    """The items of a list for which a condition holds, or the one at an index."""

    value: Node
    condition: Node


class Call(Node):
    """A function with its arguments, by position or by name."""

    function: Node
    arguments: list[tuple[str | None, Node]]


class ListOf(Node):
    """A list, item by item."""

    items: list[Node]


class ContextOf(Node):
    """A context, entry by entry."""

    entries: list[tuple[str, Node]]


class RangeOf(Node):
    """A range with its ends, and whether they belong to it."""

    start: Node
    end: Node
    start_included: bool
    end_included: bool


class UnaryRange(Node):
    """A range with one end, as a comparison says it: `(< 10)`."""

    symbol: str
    operand: Node
