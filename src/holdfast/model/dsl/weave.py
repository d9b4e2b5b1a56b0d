"""From steps to elements and flows: each step takes the loose ways of the one before it.

A way is made when the element that it leaves is placed, so that the ways of a gateway keep the
order in which they were written; it gets its target when the next element is placed.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from holdfast.model.check import ModelError
from holdfast.model.definition import Definition, Element, ElementKind, Flow
from holdfast.model.dsl.names import Names
from holdfast.model.dsl.steps import (
    Branch,
    Event,
    Finish,
    GoTo,
    Place,
    Race,
    Split,
    Step,
    Sub,
    given_ids,
)

_SUFFIXES = {
    ElementKind.EXCLUSIVE: ("choice", "merge"),
    ElementKind.INCLUSIVE: ("include", "include-join"),
    ElementKind.PARALLEL: ("fork", "join"),
    ElementKind.EVENT_GATEWAY: ("race", "race-merge"),
}
"""What gateways add to their neighbour's id where ways part, and where they meet again."""


class _Way:
    """A flow to be; loose until it has a target."""

    def __init__(self, source: str, branch: Branch | None = None) -> None:
        self.source = source
        self.branch = branch
        self.target = ""


class _Where(NamedTuple):
    """Where steps are put."""

    scope: str
    region: int  # of one token: no way leads from one region into another
    neighbour: str  # the id before, from which others are derived
    end: str = ""  # the id of an end that nobody names; empty: derived from the neighbour


class _Woven(NamedTuple):
    """What steps have left behind."""

    ways: list[_Way]  # loose
    ended: str = ""  # an end at which a token may have stopped instead; empty: there is none


class Weaver:
    """One process being put together."""

    def __init__(self, process: str, starts: Iterable[Element], steps: tuple[Step, ...]) -> None:
        self.process = process
        self.starts = tuple(starts)
        self.steps = steps
        given = [*given_ids(steps), *(start.id for start in self.starts)]
        self.names = Names((process, *given))
        self.elements: dict[str, Element] = {}
        self.ways: list[_Way] = []
        self.regions: dict[str, int] = {}
        self.regions_made = 0
        self.forks: list[str] = []
        self.joins: set[str] = set()
        self.jumps: list[tuple[_Way, GoTo, int]] = []

    def definition(self, name: str) -> Definition:
        """The process as elements and flows, in the order in which they were written."""
        where = _Where("", self._region(), "start", self.names.wish("end"))
        ways: list[_Way] = []
        for start in self.starts or (Element("", ElementKind.START),):
            id_ = start.id or self._start_id(start)
            ways += self._place(replace(start, id=id_), where, [])
        self._whole(self.steps, where, ways)
        self._jump()
        self._merge_before_forks()
        return self._written(name)

    def _start_id(self, start: Element) -> str:
        if start.message:
            return self.names.derive("start", start.message.name)
        if start.timer:
            return self.names.derive("start", "timer")
        return self.names.wish("start")

    # --- steps ------------------------------------------------------------------------------------

    def _whole(self, steps: tuple[Step, ...], where: _Where, ways: list[_Way]) -> None:
        """Steps that nothing follows: what they leave loose comes to an end."""
        woven, where = self._line(steps, where, ways)
        if woven.ways:
            self._finish(Finish(Element("", ElementKind.END)), where, woven.ways)

    def _line(
        self, steps: tuple[Step, ...], where: _Where, ways: list[_Way]
    ) -> tuple[_Woven, _Where]:
        ended = ""
        for step in steps:
            woven, neighbour = self._step(step, where, ways)
            ways, ended = woven.ways, ended or woven.ended
            where = where._replace(neighbour=neighbour)
        return _Woven(ways, ended), where

    def _step(self, step: Step, where: _Where, ways: list[_Way]) -> tuple[_Woven, str]:
        """What a step leaves, and the id from which the next ones are derived."""
        match step:
            case Place() | Sub():
                return self._activity(step, where, ways), step.element.id
            case Split():
                return self._split(step, where, ways), step.id or where.neighbour
            case Race():
                return self._race(step, where, ways), step.id or where.neighbour
            case Finish():
                return self._finish(step, where, ways), where.neighbour
            case GoTo():
                self.jumps += [(way, step, where.region) for way in ways]
                return _Woven([]), where.neighbour

    def _activity(self, step: Place | Sub, where: _Where, ways: list[_Way]) -> _Woven:
        id_ = step.element.id
        onward = self._place(step.element, where, ways)
        if isinstance(step, Sub):
            inner = _Where(id_, self._region(), id_, self.names.derive(id_, "end"))
            start = Element(self.names.derive(id_, "start"), ElementKind.START)
            self._whole(step.body, inner, self._place(start, inner, []))
        ended = ""
        for event in step.events:
            woven = self._event(event, id_, where)
            onward, ended = onward + woven.ways, ended or woven.ended
        return _Woven(onward, ended)

    def _event(self, event: Event, host: str, where: _Where) -> _Woven:
        id_ = event.element.id or self.names.derive(host, event.suffix)
        element = replace(event.element, id=id_, host=host)
        beside = where._replace(neighbour=id_, end="")
        if element.interrupting:
            return self._line(event.steps, beside, self._place(element, where, []))[0]
        # The host goes on by itself: this token is another one, and ends with its own path.
        beside = beside._replace(region=self._region())
        self._whole(event.steps, beside, self._place(element, beside, []))
        return _Woven([])

    def _split(self, step: Split, where: _Where, ways: list[_Way]) -> _Woven:
        id_, meeting = self._gateway_ids(step.kind, step.id, where)
        self._place(Element(id_, step.kind, step.name), where, ways, leave=False)
        branches = step.branches
        if step.kind is not ElementKind.EXCLUSIVE:
            self.forks.append(id_)
        if step.kind is not ElementKind.PARALLEL and not any(each.otherwise for each in branches):
            branches += (Branch((), otherwise=True),)
        paths: list[_Woven] = []
        for branch, way in [(branch, self._leave(id_, branch)) for branch in branches]:
            exclusive = step.kind is ElementKind.EXCLUSIVE
            region = where.region if exclusive else self._region()
            inside = _Where(where.scope, region, step.id or where.neighbour)
            paths.append(self._line(branch.steps, inside, [way])[0])
        meet = Element(meeting, step.kind)
        if step.kind is ElementKind.PARALLEL:
            return self._join_all(id_, meet, paths, where)
        return self._meet(meet, paths, where)

    def _race(self, step: Race, where: _Where, ways: list[_Way]) -> _Woven:
        id_, meeting = self._gateway_ids(ElementKind.EVENT_GATEWAY, step.id, where)
        gateway = Element(id_, ElementKind.EVENT_GATEWAY, step.name)
        self._place(gateway, where, ways, leave=False)
        paths: list[_Woven] = []
        for catch, way in [(catch, self._leave(id_)) for catch in step.catches]:
            inside = where._replace(neighbour=catch.element.id, end="")
            onward = self._place(catch.element, where, [way])
            paths.append(self._line(catch.steps, inside, onward)[0])
        return self._meet(Element(meeting, ElementKind.EXCLUSIVE), paths, where)

    def _finish(self, step: Finish, where: _Where, ways: list[_Way]) -> _Woven:
        id_ = step.element.id or where.end or self.names.derive(where.neighbour, "end")
        self._place(replace(step.element, id=id_), where, ways, leave=False)
        plain = step.element.error is None and not step.element.terminate
        return _Woven([], id_ if plain else "")

    # --- where ways meet --------------------------------------------------------------------------

    def _gateway_ids(self, kind: ElementKind, given: str, where: _Where) -> tuple[str, str]:
        first, second = _SUFFIXES[kind]
        if given:
            return given, self.names.derive(given, second.removeprefix(f"{first}-"))
        return self.names.derive_pair(where.neighbour, first, second)

    def _meet(self, meeting: Element, paths: list[_Woven], where: _Where) -> _Woven:
        """One of the paths is taken, or some of them; where several go on, a gateway waits."""
        ended = next((path.ended for path in paths if path.ended), "")
        onward = [path.ways for path in paths if path.ways]
        if len(onward) < 2:
            return _Woven([way for ways in onward for way in ways], ended)
        if meeting.kind is ElementKind.EXCLUSIVE:
            loose = [way for ways in onward for way in ways]
        else:
            loose = [self._one(ways, where) for ways in onward]
            self.joins.add(meeting.id)
        return _Woven(self._place(meeting, where, loose), ended)

    def _join_all(self, fork: str, meeting: Element, paths: list[_Woven], where: _Where) -> _Woven:
        """All paths are taken: the join waits for each one that goes on, so each has to."""
        onward = [path for path in paths if path.ways]
        if len(onward) < 2:
            stopped = onward or paths
            return _Woven(
                [way for path in onward for way in path.ways],
                next((path.ended for path in stopped if path.ended), ""),
            )
        for path in onward:
            if path.ended:
                raise ModelError(
                    f"Expected each path of '{fork}' either to continue or to end, but one can end "
                    f"at '{path.ended}' and can continue after '{path.ways[0].source}': "
                    f"'{meeting.id}' would wait for it for ever",
                    element=path.ended,
                )
        self.joins.add(meeting.id)
        return _Woven(self._place(meeting, where, [self._one(path.ways, where) for path in onward]))

    def _one(self, ways: list[_Way], where: _Where) -> _Way:
        """A join counts flows, so a path comes to it by one."""
        if len(ways) == 1:
            return ways[0]
        merge = self.names.derive(ways[0].source, "merge")
        return self._place(Element(merge, ElementKind.EXCLUSIVE), where, ways)[0]

    def _merge_before_forks(self) -> None:
        """What can split into several tokens would also join, were it reached by several flows."""
        arriving = Counter(way.target for way in self.ways)
        before: dict[str, Element] = {}
        for fork in self.forks:
            if arriving[fork] > 1:
                merge = Element(self.names.derive(fork, "entry"), ElementKind.EXCLUSIVE)
                before[fork] = replace(merge, scope=self.elements[fork].scope)
        for way in self.ways:
            if way.target in before:
                way.target = before[way.target].id
        for fork, merge in before.items():
            self._leave(merge.id).target = fork
        self.elements = {
            element.id: element
            for id_, found in self.elements.items()
            for element in ((before[id_], found) if id_ in before else (found,))
        }

    def _jump(self) -> None:
        for way, step, region in self.jumps:
            target = step.target
            if target not in self.elements:
                found = "there is none"
            elif target in self.joins:
                found = "it is a join, which waits for its own paths"
            elif self.regions[target] != region:
                found = "it is beyond the sub-process, parallel or event path that they are in"
            else:
                way.target = target
                continue
            raise ModelError(
                f"Expected go_to('{target}') after '{way.source}' to name an element that the same "
                f"token can reach, but {found}",
                element=target,
            )

    # --- elements and flows -----------------------------------------------------------------------

    def _region(self) -> int:
        self.regions_made += 1
        return self.regions_made

    def _place(
        self, element: Element, where: _Where, ways: list[_Way], *, leave: bool = True
    ) -> list[_Way]:
        """Puts an element at the end of ways; gives the one that leaves it."""
        id_ = element.id
        if id_ in self.elements:
            raise ModelError(
                f"Expected each id to be used once in process '{self.process}', "
                f"but two elements are called '{id_}'",
                element=id_,
            )
        self.elements[id_] = replace(element, scope=where.scope)
        self.regions[id_] = where.region
        for way in ways:
            way.target = id_
        return [self._leave(id_)] if leave else []

    def _leave(self, source: str, branch: Branch | None = None) -> _Way:
        way = _Way(source, branch)
        self.ways.append(way)
        return way

    def _written(self, name: str) -> Definition:
        flows: list[Flow] = []
        for way in self.ways:
            id_ = self.names.flow(way.source, way.target)
            branch = way.branch or Branch(())
            flows.append(Flow(id_, way.source, way.target, branch.condition, branch.name))
            if branch.otherwise:
                gateway = self.elements[way.source]
                self.elements[way.source] = replace(gateway, default=id_)
        return Definition(self.process, tuple(self.elements.values()), tuple(flows), name)
