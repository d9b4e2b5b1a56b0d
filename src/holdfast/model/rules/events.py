"""Events: where a process begins, what it waits for, and how it ends."""

from collections import Counter
from collections.abc import Iterator

from holdfast.model.definition import Element, ElementKind, TimerKind
from holdfast.model.graph import Graph, is_activity, is_receive_task
from holdfast.model.rules.problem import Problem


def starts(graph: Graph) -> Iterator[Problem]:
    """A process begins somewhere, and without an event in at most one place."""
    process = graph.definition.id
    found = graph.starts("")
    if not found:
        yield Problem(process, f"Expected process '{process}' to have a start, but it has none")
    plain = [start for start in found if start.timer is None and start.message is None]
    for start in plain[1:]:
        yield Problem(
            start.id,
            f"Expected process '{process}' to have one start without a timer or message, "
            f"but '{start.id}' is another beside '{plain[0].id}'",
        )
    names = Counter(start.message.name for start in found if start.message)
    for start in found:
        if start.message and names[start.message.name] > 1:
            yield Problem(
                start.id,
                f"Expected one start to wait for message '{start.message.name}', "
                f"but '{start.id}' is not the only one",
            )


def inner_starts(graph: Graph) -> Iterator[Problem]:
    """A sub-process begins in exactly one place, and when its token comes."""
    for element in graph.definition.elements:
        if element.kind is not ElementKind.SUBPROCESS:
            continue
        found = graph.starts(element.id)
        if len(found) != 1:
            yield Problem(
                element.id,
                f"Expected sub-process '{element.id}' to have exactly one start, "
                f"but it has {len(found)}",
            )
        for start in found:
            if start.timer or start.message:
                yield Problem(
                    start.id,
                    f"Expected the start '{start.id}' of sub-process '{element.id}' to have "
                    "neither timer nor message, but it has",
                )


def waits(graph: Graph) -> Iterator[Problem]:
    """An event waits for one thing."""
    for element in graph.definition.elements:
        timer, message = element.timer is not None, element.message is not None
        error = element.error is not None
        match element.kind:
            case ElementKind.START if timer and message:
                yield Problem(
                    element.id,
                    f"Expected start '{element.id}' to have a timer or a message, but it has both",
                )
            case ElementKind.CATCH if timer + message != 1:
                yield Problem(
                    element.id,
                    f"Expected event '{element.id}' to wait for either a timer or a message, "
                    f"but it waits for {'both' if timer else 'neither'}",
                )
            case ElementKind.CATCH if is_receive_task(element) and not message:
                yield Problem(
                    element.id,
                    f"Expected receive task '{element.id}' to wait for a message, "
                    "but it waits for a timer",
                )
            case ElementKind.BOUNDARY if timer + message + error != 1:
                yield Problem(
                    element.id,
                    f"Expected boundary event '{element.id}' to wait for exactly one of timer, "
                    f"message and error, but it waits for {timer + message + error}",
                )
            case _:
                pass


def messages(graph: Graph) -> Iterator[Problem]:
    """A message has a name; an element that waits inside an instance has a key for it."""
    for element in graph.definition.elements:
        message = element.message
        if message is None:
            continue
        if not message.name:
            yield Problem(
                element.id,
                f"Expected the message of '{element.id}' to have a name, but it is empty",
            )
        if element.kind is ElementKind.START and message.key:
            yield Problem(
                element.id,
                f"Expected the message of start '{element.id}' to have no key, for there is no "
                f"instance yet that could give it, but it has '{message.key}'",
            )
        if element.kind is not ElementKind.START and not message.key:
            yield Problem(
                element.id,
                f"Expected the message of '{element.id}' to have a key, for it finds the "
                "instance, but it has none",
            )


def boundaries(graph: Graph) -> Iterator[Problem]:
    """A boundary event waits beside an activity of its scope; errors end what they come from."""
    for element in graph.definition.elements:
        if element.kind is not ElementKind.BOUNDARY:
            continue
        found = _wrong_host(element, graph.elements.get(element.host))
        if found:
            yield Problem(
                element.id,
                f"Expected the host '{element.host}' of boundary event '{element.id}' to be an "
                f"activity of the same scope, but {found}",
            )
        if element.error is not None and not element.interrupting:
            yield Problem(
                element.id,
                f"Expected error boundary event '{element.id}' to interrupt its host, "
                "for the host has failed, but it does not",
            )
    yield from _same_codes(graph)


def _wrong_host(element: Element, host: Element | None) -> str:
    if host is None:
        return "there is no such element"
    if not is_activity(host):
        drawn = f", drawn as {host.drawn_as}" if host.drawn_as else ""
        return f"it is of kind {host.kind.name}{drawn}"
    return "it is in another scope" if host.scope != element.scope else ""


def _same_codes(graph: Graph) -> Iterator[Problem]:
    seen: dict[tuple[str, str], str] = {}
    for element in graph.definition.elements:
        if element.kind is ElementKind.BOUNDARY and element.error is not None:
            first = seen.setdefault((element.host, element.error), element.id)
            if first != element.id:
                code = f"error '{element.error}'" if element.error else "all errors"
                yield Problem(
                    element.id,
                    f"Expected one boundary event of '{element.host}' to catch {code}, "
                    f"but both '{first}' and '{element.id}' do",
                )


def cycles(graph: Graph) -> Iterator[Problem]:
    """Only what does not end what it began can begin it again."""
    for element in graph.definition.elements:
        if element.timer is None or element.timer.kind is not TimerKind.CYCLE:
            continue
        again = element.kind is ElementKind.START or not element.interrupting
        if not again:
            yield Problem(
                element.id,
                f"Expected the timer of '{element.id}' to be a duration or a date, for it can "
                "happen once, but it is a cycle",
            )


def ends(graph: Graph) -> Iterator[Problem]:
    """An end throws an error that has a name, or ends everything, or neither."""
    for element in graph.definition.elements:
        if element.kind is not ElementKind.END:
            continue
        if element.error == "":
            yield Problem(
                element.id,
                f"Expected the error of end '{element.id}' to have a code, but it is empty",
            )
        if element.error is not None and element.terminate:
            yield Problem(
                element.id,
                f"Expected end '{element.id}' to throw an error or to terminate, but it does both",
            )
