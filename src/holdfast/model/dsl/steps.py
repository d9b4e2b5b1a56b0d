"""The steps that a path is made of: before they become elements and flows."""

from collections.abc import Iterable, Iterator

import msgspec

from holdfast.model.definition import Element, ElementKind


class _Said(msgspec.Struct, frozen=True):
    """What all steps have in common: they are values."""


class Event(_Said, frozen=True):
    """A boundary event; it gets its host when it is given to one."""

    element: Element  # without host; without an id where nobody gave one
    suffix: str  # what its id adds to its host's, where nobody gave one
    steps: "tuple[Step, ...]"


class Place(_Said, frozen=True):
    """One element with one way in and one way out, and the events beside it."""

    element: Element
    events: tuple[Event, ...] = ()


class Sub(_Said, frozen=True):
    """A sub-process: an element with steps inside."""

    element: Element
    body: "tuple[Step, ...]"
    events: tuple[Event, ...] = ()


class Branch(_Said, frozen=True):
    """One of the paths of a split."""

    steps: "tuple[Step, ...]"
    condition: str = ""
    otherwise: bool = False  # taken when no condition holds
    name: str = ""


class Split(_Said, frozen=True):
    """A gateway, its paths, and the gateway where they meet again."""

    kind: ElementKind
    branches: tuple[Branch, ...]
    id: str = ""
    name: str = ""


class Catch(_Said, frozen=True):
    """One of the events of a race, and what happens when it is the first."""

    element: Element
    steps: "tuple[Step, ...]"


class Race(_Said, frozen=True):
    """An event gateway, its events, and the gateway where their paths meet again."""

    catches: tuple[Catch, ...]
    id: str = ""
    name: str = ""


class Finish(_Said, frozen=True):
    """An end."""

    element: Element  # without an id where nobody gave one


class GoTo(_Said, frozen=True):
    """The way to an element that is somewhere else in the process."""

    target: str


Step = Place | Sub | Split | Race | Finish | GoTo

_VERBS = {
    ElementKind.EXCLUSIVE: "choose",
    ElementKind.INCLUSIVE: "include",
    ElementKind.PARALLEL: "parallel",
}


def is_closed(steps: "tuple[Step, ...]") -> bool:
    """Whether no way leads beyond the last step."""
    return bool(steps) and _closes(steps[-1])


def _closes(step: Step) -> bool:
    match step:
        case Finish() | GoTo():
            return True
        case Split(kind, branches):
            return all(is_closed(branch.steps) for branch in branches) and (
                kind is ElementKind.PARALLEL or any(branch.otherwise for branch in branches)
            )
        case Race(catches):
            return all(is_closed(catch.steps) for catch in catches)
        case Place() | Sub():
            return False


def given_ids(steps: "Iterable[Step]") -> Iterator[str]:
    """Every id that somebody gave, so that none that is derived takes it."""
    for step in steps:
        match step:
            case Place(element, events):
                yield element.id
                yield from _given_to_events(events)
            case Sub(element, body, events):
                yield element.id
                yield from given_ids(body)
                yield from _given_to_events(events)
            case Split(_, branches, id_):
                yield id_
                for branch in branches:
                    yield from given_ids(branch.steps)
            case Race(catches, id_):
                yield id_
                for catch in catches:
                    yield catch.element.id
                    yield from given_ids(catch.steps)
            case Finish(element):
                yield element.id
            case GoTo():
                pass


def _given_to_events(events: tuple[Event, ...]) -> Iterator[str]:
    for event in events:
        yield event.element.id
        yield from given_ids(event.steps)


def outline(steps: "Iterable[Step]") -> str:
    """The steps in one line: `charge, choose(review | ship), end`."""
    return ", ".join(_outline(step) for step in steps) or "..."


def _outline(step: Step) -> str:
    match step:
        case Place(element):
            return element.id
        case Sub(element, body):
            return f"{element.id}({outline(body)})"
        case Split(kind, branches):
            return f"{_VERBS[kind]}({' | '.join(outline(branch.steps) for branch in branches)})"
        case Race(catches):
            ways = (outline((Place(catch.element), *catch.steps)) for catch in catches)
            return f"race({' | '.join(ways)})"
        case Finish(element):
            return element.id or "end"
        case GoTo(target):
            return f"go_to({target})"
