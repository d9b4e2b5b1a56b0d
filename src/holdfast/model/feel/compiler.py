"""From the parts of an expression to code: closures over closures, names resolved beforehand.

A name is looked for from the inside out: names that the expression gives (in slots of the run),
inside filters also the entries of the item, and at last the variables.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.model.feel import access, compare, loops, operators
from holdfast.model.feel import syntax as s
from holdfast.model.feel.access import MISSING
from holdfast.model.feel.builtins import BUILTINS
from holdfast.model.feel.builtins.registry import chosen
from holdfast.model.feel.costs import cost_of
from holdfast.model.feel.functions import defined, dynamic_call, static_call
from holdfast.model.feel.problems import Problem
from holdfast.model.feel.run import Code, Cost, Run, guarded
from holdfast.model.feel.temporal import literal
from holdfast.model.feel.types import instance
from holdfast.model.feel.values import Range, an, clean, kind_of

QUIET = {"is defined", "get or else"}  # they ask whether there is something: no warning if not


class Scope(NamedTuple):
    """Names that are known in a part: given ones by slot, or whatever an item contains."""

    slots: dict[str, int]
    item: int | None = None  # the slot of a filter's item


class Compiler:
    """Compiles one expression; afterwards `names` are the variables and `slots` the room needed."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.slots = 0
        self.cost = Cost(0, 0)  # of what is being compiled, up to the loop or function around it
        self.scopes: list[Scope] = []

    def slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def compile(self, node: s.Node) -> Code:
        self.cost = self.cost.plus(*cost_of(node))
        return _COMPILERS[type(node)](self, node)

    def inside(self, scope: Scope, node: s.Node) -> Code:
        """The code of a part in which more names are known."""
        self.scopes.append(scope)
        code = self.compile(node)
        self.scopes.pop()
        return code

    def repeated(self, scope: Scope, node: s.Node) -> tuple[Code, Cost]:
        """The same of a part that may be evaluated often, with what it costs each time."""
        outside, self.cost = self.cost, Cost(0, 0)
        code = self.inside(scope, node)
        cost, self.cost = self.cost, outside
        return code, cost

    # --- values -------------------------------------------------------------------------------

    def literal(self, node: s.Literal) -> Code:
        value = node.value
        return lambda run: value

    def temporal(self, node: s.Temporal) -> Code:
        try:
            value = literal(node.text)
        except Problem as problem:
            message = str(problem)
            return lambda run: run.warn(message, node.place)
        return lambda run: value

    def name(self, node: s.Name) -> Code:
        items: list[int] = []
        for scope in reversed(self.scopes):
            if scope.item is not None:
                items.append(scope.item)
            if (slot := scope.slots.get(node.name)) is not None:
                self.more(len(items))
                return _item_entry(node.name, items, _local(slot))
        self.names.add(node.name)
        self.more(len(items))
        return _item_entry(node.name, items, _variable(node.name, node.place))

    def more(self, steps: int) -> None:
        """A part costs more steps than its kind says."""
        self.cost = self.cost.plus(steps)

    def list_of(self, node: s.ListOf) -> Code:
        items = [self.compile(item) for item in node.items]
        return lambda run: [item(run) for item in items]

    def context_of(self, node: s.ContextOf) -> Code:
        known: dict[str, int] = {}
        entries: list[tuple[str, int, Code]] = []
        for name, value in node.entries:
            code = self.inside(Scope(dict(known)), value)
            known[name] = self.slot()
            entries.append((name, known[name], code))

        def code_of(run: Run) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for name, slot, code in entries:
                found[name] = run.locals[slot] = code(run)
            return found

        return code_of

    def range_of(self, node: s.RangeOf) -> Code:
        start, end = self.compile(node.start), self.compile(node.end)

        def checked(low: Any, high: Any) -> Range:
            if kind_of(low) != kind_of(high) or low is None:
                raise Problem(
                    f"Expected two ends of one type, but found {an(kind_of(low))} "
                    f"and {an(kind_of(high))}"
                )
            return Range(low, high, node.start_included, node.end_included)

        if isinstance(node.start, s.Literal) and isinstance(node.end, s.Literal):
            low, high = node.start.value, node.end.value
            if low is not None and kind_of(low) == kind_of(high):
                constant = checked(low, high)
                return lambda run: constant
        return lambda run: guarded(run, node.place, checked, start(run), end(run))

    def unary_range(self, node: s.UnaryRange) -> Code:
        operand, symbol = self.compile(node.operand), node.symbol

        def checked(end: Any) -> Range:
            if kind_of(end) not in compare.ORDERED:
                raise Problem(f"Expected an end that has an order, but found {an(kind_of(end))}")
            return compare.unary_range(symbol, end)

        return lambda run: guarded(run, node.place, checked, operand(run))

    # --- operators ----------------------------------------------------------------------------

    def logic(self, node: s.Logic) -> Code:
        join = operators.conjunction if node.conjunction else operators.disjunction
        return join([self.compile(part) for part in node.parts], node.place)

    def arithmetic(self, node: s.Arithmetic) -> Code:
        rest = [(symbol, self.compile(part), place) for symbol, part, place in node.rest]
        return operators.chain(self.compile(node.first), rest)

    def negate(self, node: s.Negate) -> Code:
        return operators.negation(self.compile(node.operand), node.place)

    def compare(self, node: s.Compare) -> Code:
        left = self.compile(node.left)
        if isinstance(node.right, s.Literal) and type(node.right.value) in (int, str):
            constant = node.right.value
            code = operators.comparison_with(node.symbol, left, constant, node.place)
            if isinstance(node.left, s.Name) and not self.scopes:
                return operators.variable_comparison(node.left.name, node.symbol, constant, code)
            return code
        return operators.comparison(node.symbol, left, self.compile(node.right), node.place)

    def between(self, node: s.Between) -> Code:
        value, low, high = self.compile(node.value), self.compile(node.low), self.compile(node.high)
        return operators.between(value, low, high, node.place)

    def membership(self, node: s.Membership) -> Code:
        tests: list[operators.Test] = []
        for test in node.tests:
            operand = self.compile(test.operand)
            if test.symbol is None:
                tests.append(operators.value_test(operand, node.place))
            else:
                tests.append(operators.operator_test(test.symbol, operand, node.place))
        return operators.membership(self.compile(node.value), tests)

    def instance_of(self, node: s.InstanceOf) -> Code:
        value, kind = self.compile(node.value), node.type
        return lambda run: instance(run, value(run), kind)

    def if_else(self, node: s.If) -> Code:
        condition, then = self.compile(node.condition), self.compile(node.then)
        otherwise = self.compile(node.otherwise)
        return lambda run: then(run) if condition(run) is True else otherwise(run)

    # --- paths, loops and functions -----------------------------------------------------------

    def path(self, node: s.Path) -> Code:
        return access.path(self.compile(node.value), node.name, node.place)

    def filter(self, node: s.Filter) -> Code:
        value = self.compile(node.value)
        if isinstance(node.condition, s.Literal) and kind_of(node.condition.value) == "number":
            return access.indexed(value, node.condition.value, node.place)
        slot = self.slot()
        condition, cost = self.repeated(Scope({"item": slot}, slot), node.condition)
        return access.filtered(value, condition, cost, slot, node.place)

    def sources(self, iterations: list[s.Iteration]) -> tuple[list[loops.Source], Scope]:
        """Where the names of a loop come from; each may use those before it."""
        known: dict[str, int] = {}
        sources: list[loops.Source] = []
        for each in iterations:
            start, cost = self.repeated(Scope(dict(known)), each.start)
            end, more = None, Cost(0, 0)
            if each.end is not None:
                end, more = self.repeated(Scope(dict(known)), each.end)
            known[each.name] = self.slot()
            cost = cost.plus(*more)
            sources.append(loops.Source(known[each.name], start, end, each.place, cost))
        return sources, Scope(known)

    def for_each(self, node: s.For) -> Code:
        sources, scope = self.sources(node.iterations)
        slot = self.slot()
        used = _Used({"partial": slot, **scope.slots})
        body, cost = self.repeated(Scope(used), node.body)
        partial = slot if "partial" in used.asked else None
        return loops.for_each(sources, body, cost, partial, node.place)

    def quantified(self, node: s.Quantified) -> Code:
        sources, scope = self.sources(node.iterations)
        condition, cost = self.repeated(scope, node.condition)
        return loops.quantified(node.every, sources, condition, cost, node.place)

    def define(self, node: s.Define) -> Code:
        slots = {name: self.slot() for name, _ in node.parameters}
        body, cost = self.repeated(Scope(slots), node.body)
        return defined(node, list(slots.values()), body, cost)

    def call(self, node: s.Call) -> Code:
        """A built-in function unless the expression gives the name another meaning."""
        names = [name for name, _ in node.arguments]
        codes = [self.compile(value) for _, value in node.arguments]
        function = node.function
        given = isinstance(function, s.Name) and any(
            function.name in scope.slots for scope in self.scopes
        )
        if not isinstance(function, s.Name) or given or function.name not in BUILTINS:
            return dynamic_call(self.compile(function), names, codes, node.place)
        found = chosen(function.name, names)
        if isinstance(found, str):
            return lambda run: run.warn(found, node.place)
        self.more(max(row.steps for row, _ in found))
        alike = [row for row, places in found if places == found[0][1]]
        ordered = [codes[place] if place is not None else _null for place in found[0][1]]
        return static_call(alike, ordered, node.place, quiet=function.name in QUIET)


class _Used(dict[str, int]):
    """Slots by name that remember which names were asked for."""

    def __init__(self, slots: dict[str, int]) -> None:
        super().__init__(slots)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def _null(run: Run) -> None:
    return None


def _local(slot: int) -> Code:
    return lambda run: run.locals[slot]


def _variable(name: str, place: s.Place) -> Code:
    message = f"No variable '{name}'"

    def code(run: Run) -> Any:
        value = run.variables.get(name, MISSING)
        if value is MISSING:
            return run.warn(message, place)
        kind = type(value)
        return value if kind is not float and kind is not tuple else clean(value)

    return code


def _item_entry(name: str, items: list[int], otherwise: Code) -> Code:
    """An entry of the innermost item that has it, or what the name means outside."""
    if not items:
        return otherwise

    def code(run: Run) -> Any:
        for slot in items:
            item = run.locals[slot]
            if type(item) is dict and name in item:
                return clean(item[name])
        return otherwise(run)

    return code


_COMPILERS: dict[type, Callable[[Compiler, Any], Code]] = {
    s.Literal: Compiler.literal,
    s.Temporal: Compiler.temporal,
    s.Name: Compiler.name,
    s.ListOf: Compiler.list_of,
    s.ContextOf: Compiler.context_of,
    s.RangeOf: Compiler.range_of,
    s.UnaryRange: Compiler.unary_range,
    s.Logic: Compiler.logic,
    s.Arithmetic: Compiler.arithmetic,
    s.Negate: Compiler.negate,
    s.Compare: Compiler.compare,
    s.Between: Compiler.between,
    s.Membership: Compiler.membership,
    s.InstanceOf: Compiler.instance_of,
    s.If: Compiler.if_else,
    s.Path: Compiler.path,
    s.Filter: Compiler.filter,
    s.For: Compiler.for_each,
    s.Quantified: Compiler.quantified,
    s.Define: Compiler.define,
    s.Call: Compiler.call,
}
