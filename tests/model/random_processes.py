"""Random programs of the DSL, and a token game that plays what they become."""

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

from hypothesis import strategies as st

from holdfast.model.definition import Definition, Element, ElementKind, Flow
from holdfast.model.dsl import (
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
from holdfast.model.graph import Graph

DEPTH_MAX = 3
PLAY_STEPS_MAX = 2_000  # a way back is taken by chance; a game that is still going has not stopped


class Author:
    """Writes one process, choice by choice; ids are unique, ways back stay with their token."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.number = 0

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def id(self) -> str:
        self.number += 1
        return f"e{self.number}"

    def given(self) -> str:
        return self.pick("", self.id())

    def steps(self, said: Path, depth: int, earlier: list[str], may_stop: bool) -> Path:
        """Goes on with a path; `may_stop` is false where a join waits for all that goes on."""
        for _ in range(self.draw(st.integers(0, 3))):
            said = self.step(said, depth, earlier, may_stop)
        ends = ["on", "on", "fail", "terminate"]
        ends += ["end"] if may_stop else []
        ends += ["back"] if earlier else []
        match self.pick(*ends) if depth else "on":
            case "fail":
                return said.fail(self.id(), error="E")
            case "terminate":
                return said.terminate(self.id())
            case "end":
                return said.end(self.given())
            case "back":
                return said.go_to(self.pick(*earlier))
            case _:
                return said

    def path(self, depth: int, earlier: list[str], may_stop: bool) -> Path:
        return self.steps(path(), depth + 1, list(earlier), may_stop)

    def step(self, said: Path, depth: int, earlier: list[str], may_stop: bool) -> Path:
        simple = ("task", "compute", "pause", "wait", "call")
        nested = ("choose", "include", "parallel", "race", "sub") if depth < DEPTH_MAX else ()
        what = self.pick(*simple, *nested)
        id_ = self.id()

        def inner() -> Path:
            return self.path(depth, earlier, may_stop)

        def alone(may_stop: bool) -> Path:
            return self.path(depth, [], may_stop)

        match what:
            case "task":
                said = said.task(id_, on=self.events(inner, alone, depth))
            case "compute":
                said = said.compute(id_, "a + 1", result="b")
            case "pause":
                said = said.pause(id_, "PT5M")
            case "wait" if self.pick("in time", "ever") == "ever":
                said = said.wait(id_, message="m", key="k")
            case "wait":
                said = said.wait(id_, message="m", key="k", within="PT5M", late=inner())
            case "call":
                said = said.call(id_, process="other", each=over("items"))
            case "sub":
                said = said.sub(id_, alone(True), on=self.events(inner, alone, depth))
            case "race":
                catches = (
                    on_message(id_, "m", "k", inner()),
                    after(self.id(), "PT1H", inner()),
                )
                return self.open(said, said.race(*catches, id=self.given()))
            case "choose":
                ways = [when("a", inner()), when("b", inner())]
                ways += [otherwise(inner())] if self.pick("all", "some") == "all" else []
                return self.open(said, said.choose(*ways, id=self.given()))
            case "include":
                ways = [when("a", alone(may_stop)), when("b", alone(may_stop))]
                return said.include(*ways, id=self.given())
            case _:
                paths = [alone(False) for _ in range(self.draw(st.integers(2, 3)))]
                return self.open(said, said.parallel(*paths, id=self.given()))
        earlier.append(id_)
        return said

    def open(self, before: Path, built: Path) -> Path:
        """What ends in all its ways is left out, for something may have to follow."""
        return before if is_closed(built.steps) else built

    def events(
        self, inner: Callable[[], Path], alone: Callable[[bool], Path], depth: int
    ) -> list[Event]:
        if depth >= DEPTH_MAX:
            return []
        kinds = self.draw(st.sets(st.sampled_from(["error", "timeout", "message", "every"])))
        made: dict[str, Callable[[], Event]] = {
            "error": lambda: error("E", inner()),
            "timeout": lambda: timeout("PT5M", inner()),
            "message": lambda: message("m", alone(True), key="k", interrupting=False),
            "every": lambda: every("R/PT1H", alone(True), id=self.given()),
        }
        return [made[kind]() for kind in sorted(kinds)]


@st.composite
def processes(draw: st.DrawFn) -> Process:
    """A process that the DSL has no reason to refuse."""
    author = Author(draw)
    process = Process("random")
    for index in range(draw(st.integers(0, 2))):
        process = process.starts(message=f"m{index}")
    said = author.steps(path(), 0, [], True)
    return process._with(said.steps)


# --- reading and playing --------------------------------------------------------------------------


def unreachable(definition: Definition) -> set[str]:
    """The elements that no token can get to."""
    graph = Graph(definition)
    found: set[str] = set()
    open_ = [start.id for start in graph.starts("")]
    while open_:
        id_ = open_.pop()
        if id_ not in found:
            found.add(id_)
            open_ += [flow.target for flow in graph.outgoing(id_)]
            open_ += [event.id for event in graph.boundaries(id_)]
            open_ += [start.id for start in graph.starts(id_)]
    return graph.elements.keys() - found


class Game:
    """One scope of a definition played by chance; sub-processes are played by themselves."""

    def __init__(self, definition: Definition, scope: str, seed: int) -> None:
        self.graph = Graph(definition)
        self.random = Random(seed)
        self.tokens: Counter[str] = Counter()  # by flow
        start = self.random.choice(self.graph.starts(scope))
        self.put(self.graph.outgoing(start.id))
        self.over = False

    def put(self, flows: Iterable[Flow]) -> None:
        self.tokens.update(flow.id for flow in flows)

    def play(self) -> set[str]:
        """The flows on which tokens are left for ever."""
        for _ in range(PLAY_STEPS_MAX):
            if self.over or not self.tokens.total():
                return set()
            held = sorted(flow for flow, count in self.tokens.items() if count)
            moves = [flow for flow in held if self.can_move(flow, held)]
            if not moves:
                return set(held)
            self.move(self.target(self.random.choice(moves)))
        return set()

    def target(self, flow: str) -> Element:
        return self.graph.elements[self.graph.flows[flow].target]

    def can_move(self, flow: str, held: list[str]) -> bool:
        target = self.target(flow)
        if target.kind is ElementKind.PARALLEL:
            return all(self.tokens[each.id] for each in self.graph.incoming(target.id))
        if target.kind is not ElementKind.INCLUSIVE:
            return True
        # A token is waited for that can still come by a way that is empty, unless it can come by
        # one that is not: then it is of the next round. So says BPMN.
        incoming = [each.id for each in self.graph.incoming(target.id)]
        empty = self.upstream([each for each in incoming if not self.tokens[each]], target.id)
        filled = self.upstream([each for each in incoming if self.tokens[each]], target.id)
        return not any(each in empty and each not in filled for each in held)

    def upstream(self, flows: list[str], join: str) -> set[str]:
        """The flows from which some of these can be reached without passing the join."""
        found: set[str] = set()
        while flows:
            flow = flows.pop()
            source = self.graph.elements[self.graph.flows[flow].source]
            if flow not in found:
                found.add(flow)
                if source.id != join:
                    before = self.graph.incoming(source.host or source.id)
                    flows += [each.id for each in before]
        return found

    def move(self, element: Element) -> None:
        incoming = [flow for flow in self.graph.incoming(element.id) if self.tokens[flow.id]]
        joining = element.kind in (ElementKind.PARALLEL, ElementKind.INCLUSIVE)
        for flow in incoming if joining else [self.random.choice(incoming)]:
            self.tokens[flow.id] -= 1
        self.leave(element)

    def leave(self, element: Element) -> None:
        outgoing = list(self.graph.outgoing(element.id))
        match element.kind:
            case ElementKind.END:
                self.over = element.terminate or element.error is not None
            case ElementKind.EXCLUSIVE | ElementKind.EVENT_GATEWAY:
                self.put([self.random.choice(outgoing)])
            case ElementKind.INCLUSIVE:
                self.put(self.random.sample(outgoing, self.random.randint(1, len(outgoing))))
            case _:
                events = self.graph.boundaries(element.id)
                beside = [event for event in events if self.random.random() < 0.5]
                interrupting = [event for event in beside if event.interrupting]
                for event in beside:
                    if not event.interrupting:
                        self.put(self.graph.outgoing(event.id))
                if interrupting:
                    outgoing = list(self.graph.outgoing(interrupting[0].id))
                self.put(outgoing)
