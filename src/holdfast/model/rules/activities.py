"""Activities: what is done says what, how often, and where its values go."""

import re
from collections.abc import Iterator

from holdfast.limits import RETRIES_MAX
from holdfast.model.definition import Binding, Element, ElementKind, JobSpec, Loop
from holdfast.model.graph import Graph, is_activity
from holdfast.model.rules.parts import uses
from holdfast.model.rules.problem import Problem

_NAME = r"[^\W\d]\w*"
_VARIABLE = re.compile(_NAME)
_PATH = re.compile(rf"{_NAME}(\.{_NAME})*")
_DIGITS_MAX = 9  # what is longer is no count, and is not worth converting


def work(graph: Graph) -> Iterator[Problem]:
    """Each activity has what its kind cannot do without."""
    for element in graph.definition.elements:
        match element.kind:
            case ElementKind.JOB:
                yield from _job(element, element.job)
            case ElementKind.CALL if not element.called:
                yield Problem(
                    element.id,
                    f"Expected call '{element.id}' to name the process that it starts, "
                    "but it names none",
                )
            case ElementKind.CALL if (element.binding is Binding.VERSION_TAG) != bool(
                element.version_tag
            ):
                has = "a version tag" if element.version_tag else "no version tag"
                yield Problem(
                    element.id,
                    f"Expected call '{element.id}' to have a version tag if it is bound by one, "
                    f"but it is bound by {element.binding.name} and has {has}",
                )
            case ElementKind.EXPRESSION:
                for name in ("expression", "result"):
                    if not getattr(element, name):
                        yield Problem(
                            element.id,
                            f"Expected '{element.id}' to have an expression and the variable that "
                            f"gets its result, but it has no {name}",
                        )
            case _:
                pass


def _job(element: Element, job: JobSpec | None) -> Iterator[Problem]:
    if job is None or not job.type:
        yield Problem(
            element.id,
            f"Expected task '{element.id}' to have a job with a type, for workers are found by "
            "it, but it has none",
        )
    if job is not None and not job.retries.startswith("=") and not _is_retries(job.retries):
        yield Problem(
            element.id,
            f"Expected the retries of task '{element.id}' to be a whole number from 0 to "
            f"{RETRIES_MAX:,}, but they are '{job.retries}'",
        )


def _is_retries(text: str) -> bool:
    plain = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return plain and int(text) <= RETRIES_MAX


def loops(graph: Graph) -> Iterator[Problem]:
    """A repeated activity knows over what, and what becomes of the results."""
    for element in graph.definition.elements:
        if element.loop is None or "loop" not in uses(element):
            continue
        found = _wrong_loop(element, element.loop)
        if found:
            yield Problem(
                element.id,
                f"Expected '{element.id}' to be an activity, repeated over a collection, with both "
                f"or neither of output collection and output item, but it has {found}",
            )


def _wrong_loop(element: Element, loop: Loop) -> str:
    if not is_activity(element):
        return "the form of an event, which happens once"
    if not loop.collection:
        return "no collection"
    if loop.output_collection and not loop.output_item:
        return "no output item"
    return "no output collection" if loop.output_item and not loop.output_collection else ""


def variables(graph: Graph) -> Iterator[Problem]:
    """Values go to variables, or into them by a path of names; a loop has variables of its own."""
    for element in graph.definition.elements:
        targets = [("target of an input", mapping.target) for mapping in element.inputs]
        targets += [("target of an output", mapping.target) for mapping in element.outputs]
        if element.result:
            targets.append(("result", element.result))
        for what, target in targets:
            if not _PATH.fullmatch(target):
                yield _not_a_name(element, what, target, "a variable or a path like 'order.total'")
        if element.loop is not None:
            for what, name in (
                ("item variable", element.loop.item),
                ("output collection", element.loop.output_collection),
            ):
                if name and not _VARIABLE.fullmatch(name):
                    yield _not_a_name(element, what, name, "a variable")


def _not_a_name(element: Element, what: str, found: str, wanted: str) -> Problem:
    return Problem(
        element.id,
        f"Expected the {what} of '{element.id}' to be {wanted} (letters, digits and underscores, "
        f"not a digit first), but it is '{found}'",
    )
