"""Random processes with data: every kind of element, conditions over a few small variables."""

from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from holdfast.model.check import ModelError, problems
from holdfast.model.definition import Definition, Element, ElementKind, Loop
from holdfast.model.dsl import (
    Branch,
    Event,
    Path,
    Process,
    after,
    error,
    every,
    message,
    on_message,
    otherwise,
    over,
    path,
    timeout,
    when,
)
from holdfast.model.dsl.steps import is_closed
from holdfast.model.graph import RECEIVE_TASK

DEPTH_MAX = 3
TYPES = ("t0", "t1", "t2")
MESSAGES = ("m0", "m1")
CODES = ("E", "F")
CONDITIONS = ("a > 1", "b = a", "a + b > 3", "a < 2", "true", "false", "missing > 1", "b")
VALUES = ("a + 1", "b", "a * 2 - b", "items[1]", "missing", "count(items)", '"text"')
COLLECTIONS = ("items", "items", "[1, 2, 3, 4, 5]", "[]", "for i in 1..a return i", "a")
UNTILS = ("", "", "numberOfCompletedInstances >= 2", "a > 2", "missing")


class Author:
    """Writes one process, choice by choice; ways back stay with their token."""

    def __init__(self, random: Random, calls: tuple[str, ...] = ("nobody",)) -> None:
        self.random = random
        self.calls = calls  # never itself: items that call themselves are more than the stars
        self.number = 0

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def id(self) -> str:
        self.number += 1
        return f"e{self.number}"

    def process(self, id_: str) -> Definition:
        """A process that can be deployed."""
        while True:
            process = Process(id_)
            if self.often(0.3):
                process = process.starts().starts(message=self.pick(*MESSAGES))
            if self.often(0.15):
                process = process.starts().starts(every=self.pick("R2/PT20S", "R/PT45S"))
            said = self.steps(path(), 0, [], may_stop=True)
            try:
                found = process._with(said.steps).definition()
            except ModelError:
                continue  # two kinds of starts without a trigger, and the like
            for _ in range(self.random.randrange(4)):
                found = self.changed(found)
            return found

    def steps(self, said: Path, depth: int, earlier: list[str], *, may_stop: bool) -> Path:
        for _ in range(self.random.randint(1 if depth else 2, 3)):
            said = self.step(said, depth, earlier, may_stop)
        ends = ["on"] * 5 + ["fail", "terminate"]
        ends += ["end"] if may_stop else []
        ends += ["back"] if earlier else []
        match self.pick(*ends) if depth else "on":
            case "fail":
                return said.fail(self.id(), error=self.pick(*CODES))
            case "terminate":
                return said.terminate(self.id())
            case "end":
                return said.end(self.id())
            case "back":
                return said.go_to(self.pick(*earlier))
            case _:
                return said

    def step(self, said: Path, depth: int, earlier: list[str], may_stop: bool) -> Path:
        simple = ("task", "task", "task", "compute", "pause", "wait", "call")
        nested = ("choose", "include", "parallel", "race", "sub") if depth < DEPTH_MAX else ()
        id_ = self.id()

        def inner() -> Path:
            return self.steps(path(), depth + 1, list(earlier), may_stop=may_stop)

        def alone(may_stop: bool = True) -> Path:
            return self.steps(path(), depth + 1, [], may_stop=may_stop)

        match self.pick(*simple, *nested):
            case "task":
                said = said.task(
                    id_, type=self.pick(*TYPES), retries=self.pick("0", "1", "=a"),
                    inputs=self.mappings(), outputs=self.mappings(),
                    result=self.pick("", "", "", "r"), each=self.each(),
                    on=self.events(inner, alone, depth),
                )  # fmt: skip
            case "compute":
                said = said.compute(id_, self.pick(*VALUES), result=self.pick("a", "b", "c"))
            case "pause":
                said = said.pause(id_, self.pick("PT5S", "PT10S", "PT20S", "=duration(missing)"))
            case "wait":
                events = self.events(inner, alone, depth)
                said = said.wait(id_, message=self.pick(*MESSAGES), key="k", on=events)
            case "call":
                said = said.call(
                    id_, process=self.pick(*self.calls), inputs=self.mappings(),
                    outputs=self.mappings(), pass_all=self.often(0.5), take_all=self.often(0.5),
                    each=self.each(), on=self.events(inner, alone, depth),
                )  # fmt: skip
            case "sub":
                said = said.sub(
                    id_, alone(), inputs=self.mappings(), outputs=self.mappings(),
                    each=self.each(), on=self.events(inner, alone, depth),
                )  # fmt: skip
            case "race":
                catches = (
                    on_message(id_, self.pick(*MESSAGES), "k", inner()),
                    after(self.id(), self.pick("PT5S", "PT15S"), inner()),
                )
                return self.open(said, said.race(*catches))
            case "choose":
                return self.open(said, said.choose(*self.branches(inner)))
            case "include":
                ways = self.branches(lambda: alone(may_stop))
                return self.open(said, said.include(*ways))
            case _:
                paths = [alone(False) for _ in range(self.random.randint(2, 3))]
                return self.open(said, said.parallel(*paths))
        earlier.append(id_)
        return said

    def branches(self, inner: Callable[[], Path]) -> list[Branch]:
        ways = [when(self.pick(*CONDITIONS), inner()) for _ in range(self.random.randint(1, 3))]
        return [*ways, otherwise(inner())] if self.often(0.5) else ways

    def open(self, before: Path, built: Path) -> Path:
        return before if is_closed(built.steps) else built

    def mappings(self) -> dict[str, str]:
        if self.often(0.7):
            return {}
        return {self.pick("a", "c", "d.e", "d.f"): self.pick(*VALUES)}

    def each(self) -> Loop | None:
        if self.often(0.75):
            return None
        collect = self.pick("", "all")
        return over(
            self.pick(*COLLECTIONS), sequential=self.often(0.5), collect=collect,
            result=self.pick("item", "item + a", "c") if collect else "", until=self.pick(*UNTILS),
        )  # fmt: skip

    def events(
        self, inner: Callable[[], Path], alone: Callable[[], Path], depth: int
    ) -> list[Event]:
        if depth >= DEPTH_MAX or self.often(0.6):
            return []
        made: dict[str, Callable[[], Event]] = {
            "all": lambda: error("", inner()),
            "error": lambda: error(self.pick(*CODES), inner()),
            "timeout": lambda: timeout("PT15S", inner()),
            "reminder": lambda: timeout("PT5S", alone(), interrupting=False, id=self.id()),
            "message": lambda: message(self.pick(*MESSAGES), inner(), key="k"),
            "news": lambda: message("m0", alone(), key="k", interrupting=False, id=self.id()),
            "every": lambda: every("R2/PT7S", alone(), id=self.id()),
        }
        return [made[kind]() for kind in sorted(made) if self.often(0.3)]

    # --- changes ------------------------------------------------------------------------------

    def changed(self, definition: Definition) -> Definition:
        """The same process with a small change; itself where none was found that can be run."""
        changes = (
            self._lead_elsewhere, self._repeat, self._reorder, self._drop_boundary, self._rename,
            self._drop_condition,
        )  # fmt: skip
        for _ in range(5):
            other = self.random.choice(changes)(definition)
            if other != definition and not problems(other):
                return other
        return definition

    def _lead_elsewhere(self, definition: Definition) -> Definition:
        flow = self.random.choice(definition.flows)
        scopes = {element.id: element.scope for element in definition.elements}
        targets = [each for each in scopes if scopes[each] == scopes[flow.target]]
        other = replace(flow, target=self.random.choice(targets))
        flows = tuple(other if each is flow else each for each in definition.flows)
        return replace(definition, flows=flows)

    def _repeat(self, definition: Definition) -> Definition:
        """Loops where the DSL has none: over expressions and receive tasks."""
        found = [
            element
            for element in definition.elements
            if element.kind == ElementKind.EXPRESSION or (element.message and not element.host)
        ]
        if not found:
            return definition
        element = self.random.choice(found)
        drawn_as = RECEIVE_TASK if element.kind == ElementKind.CATCH else element.drawn_as
        other = replace(element, loop=self.each(), drawn_as=drawn_as)
        return self._with(definition, element, other)

    def _reorder(self, definition: Definition) -> Definition:
        """Elements stand elsewhere: their numbers are others, their ids are not."""
        elements = list(definition.elements)
        self.random.shuffle(elements)
        return replace(definition, elements=tuple(elements))

    def _drop_boundary(self, definition: Definition) -> Definition:
        found = [element for element in definition.elements if element.host]
        if not found:
            return definition
        gone = self.random.choice(found)
        return replace(
            definition,
            elements=tuple(each for each in definition.elements if each is not gone),
            flows=tuple(each for each in definition.flows if each.source != gone.id),
        )

    def _rename(self, definition: Definition) -> Definition:
        """An element that is there no longer, and one that is new."""
        element = self.random.choice(definition.elements)
        new = f"{element.id}n"

        def name(id_: str) -> str:
            return new if id_ == element.id else id_

        elements = tuple(
            replace(each, id=name(each.id), scope=name(each.scope), host=name(each.host))
            for each in definition.elements
        )
        flows = tuple(
            replace(each, source=name(each.source), target=name(each.target))
            for each in definition.flows
        )
        return replace(definition, elements=elements, flows=flows)

    def _drop_condition(self, definition: Definition) -> Definition:
        """A gateway without a default: perhaps no way is open."""
        found = [element for element in definition.elements if element.default]
        if not found:
            return definition
        element = self.random.choice(found)
        flows = tuple(
            replace(each, condition=self.pick(*CONDITIONS)) if each.id == element.default else each
            for each in definition.flows
        )
        other = self._with(definition, element, replace(element, default=""))
        return replace(other, flows=flows)

    def _with(self, definition: Definition, element: Element, other: Element) -> Definition:
        elements = tuple(other if each is element else each for each in definition.elements)
        return replace(definition, elements=elements)
