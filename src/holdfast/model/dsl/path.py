"""Paths: a sequence of steps, written as a chain of calls.

Each call gives a new path and leaves the old one as it was.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self, final

from holdfast.model.check import ModelError
from holdfast.model.definition import Binding, Element, ElementKind, JobSpec, Loop, Message
from holdfast.model.dsl.steps import (
    Branch,
    Catch,
    Event,
    Finish,
    GoTo,
    Place,
    Race,
    Split,
    Step,
    Sub,
    is_closed,
    outline,
)
from holdfast.model.dsl.values import (
    Duration,
    Mappings,
    Moment,
    date_timer,
    duration_timer,
    expression,
    mappings,
)
from holdfast.model.graph import RECEIVE_TASK


class Steps:
    """The methods that a process and the paths inside it share.

    In all steps `id` is the name by which people and programs find the element: while it runs, in
    incidents, when an instance is modified or migrated. `name` is what a drawing shows. `inputs`
    and `outputs` are `{"target": "expression"}`. `on` are the events that are waited for beside
    the step: `error`, `timeout`, `message`, `every`. `each` repeats it, see `over`.
    """

    __slots__ = ("_steps",)

    def __init__(self, steps: tuple[Step, ...] = ()) -> None:
        self._steps = steps

    def __repr__(self) -> str:
        return f"path({outline(self._steps)})"

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps so far."""
        return self._steps

    def _with(self, steps: tuple[Step, ...]) -> Self:
        return type(self)(steps)

    def _then(self, step: Step) -> Self:
        if is_closed(self._steps):
            before, after = outline(self._steps[-1:]), outline((step,))
            raise ModelError(
                f"Expected nothing to follow '{before}', for every way ends there, "
                f"but '{after}' does",
                element=after if isinstance(step, Place | Sub) else before,
            )
        return self._with((*self._steps, step))

    # --- work ---------------------------------------------------------------------------------

    def task(
        self,
        id: str,
        *,
        type: str | None = None,
        retries: int | str = 3,
        headers: Mapping[str, str] | None = None,
        inputs: Mappings | None = None,
        outputs: Mappings | None = None,
        result: str = "",
        each: Loop | None = None,
        on: Iterable[Event] = (),
        name: str = "",
    ) -> Self:
        """A job for a worker that takes jobs of this type, which is the id if none is given.

        `result` is the variable that gets all the worker gives back; without it, and without
        `outputs`, each value of the result becomes a variable.
        """
        job = JobSpec(type or id, str(retries), tuple((headers or {}).items()))
        element = Element(
            id, ElementKind.JOB, name, job=job, inputs=mappings(inputs),
            outputs=mappings(outputs), result=result, loop=each,
        )  # fmt: skip
        return self._then(Place(element, tuple(on)))

    def compute(self, id: str, expr: str, *, result: str, name: str = "") -> Self:
        """Sets a variable to the value of an expression, without a worker."""
        element = Element(
            id, ElementKind.EXPRESSION, name, expression=expression(expr), result=result
        )
        return self._then(Place(element))

    def sub(
        self,
        id: str,
        body: "Path",
        *,
        inputs: Mappings | None = None,
        outputs: Mappings | None = None,
        each: Loop | None = None,
        on: Iterable[Event] = (),
        name: str = "",
    ) -> Self:
        """A path with a scope of its own: its variables, its ends, its events."""
        element = Element(
            id, ElementKind.SUBPROCESS, name, inputs=mappings(inputs),
            outputs=mappings(outputs), loop=each,
        )  # fmt: skip
        return self._then(Sub(element, body.steps, tuple(on)))

    def call(
        self,
        id: str,
        *,
        process: str,
        inputs: Mappings | None = None,
        outputs: Mappings | None = None,
        together: bool = False,
        version_tag: str = "",
        pass_all: bool = True,
        take_all: bool = True,
        each: Loop | None = None,
        on: Iterable[Event] = (),
        name: str = "",
    ) -> Self:
        """Starts another process and waits for it; its id, or an expression that gives it.

        It is the latest version when the call is made; with `together` the one that was deployed in
        the same `deploy` as this process, with a `version_tag` the latest that has the tag.

        It gets all variables unless `pass_all` is false, and gives all of its own back unless
        `take_all` is: then only `inputs` and `outputs` count.
        """
        if together and version_tag:
            raise ModelError(
                f"Expected '{id}' to have together or a version_tag, but it has both", element=id
            )
        binding = Binding.DEPLOYMENT if together else Binding.LATEST
        element = Element(
            id, ElementKind.CALL, name, inputs=mappings(inputs), outputs=mappings(outputs),
            called=process, pass_all=pass_all, take_all=take_all, loop=each,
            binding=Binding.VERSION_TAG if version_tag else binding, version_tag=version_tag,
        )  # fmt: skip
        return self._then(Place(element, tuple(on)))

    # --- waiting ------------------------------------------------------------------------------

    def wait(
        self,
        id: str,
        *,
        message: str,
        key: str,
        within: Duration | None = None,
        late: "Path | None" = None,
        outputs: Mappings | None = None,
        on: Iterable[Event] = (),
        name: str = "",
    ) -> Self:
        """Waits for a message with the key that an expression gives.

        When it has not come `within` a time, the `late` path is taken, which leads back to what
        follows unless it ends. Without such a path it is an error with the code `<id>-late`, which
        a person gets to see if nothing catches it.
        """
        if late is not None and within is None:
            raise ModelError(
                f"Expected '{id}' to have within, because it has a late path, but it has none",
                element=id,
            )
        events = tuple(on)
        if within is not None:
            late = late if late is not None else Path().fail(f"{id}-late", error=f"{id}-late")
            timer = Element("", ElementKind.BOUNDARY, timer=duration_timer(within, id))
            events = (Event(timer, "timeout", late.steps), *events)
        element = Element(
            id, ElementKind.CATCH, name, drawn_as=RECEIVE_TASK if events else "",
            message=Message(message, expression(key)), outputs=mappings(outputs),
        )  # fmt: skip
        return self._then(Place(element, events))

    def pause(
        self,
        id: str,
        duration: Duration | None = None,
        *,
        until: Moment | None = None,
        name: str = "",
    ) -> Self:
        """Waits for a duration, or until a time."""
        if duration is not None and until is None:
            timer = duration_timer(duration, id)
        elif until is not None and duration is None:
            timer = date_timer(until, id)
        else:
            found = "both" if until is not None else "neither"
            raise ModelError(
                f"Expected pause '{id}' to have a duration or a moment, but it has {found}",
                element=id,
            )
        return self._then(Place(Element(id, ElementKind.CATCH, name, timer=timer)))

    def race(self, *events: Catch, id: str = "", name: str = "") -> Self:
        """Waits for several events and takes the path of the first: `on_message`, `after`."""
        self._at_least(2, events, "events", "race", id)
        return self._then(Race(events, id, name))

    # --- several ways -------------------------------------------------------------------------

    def choose(self, *branches: Branch, id: str = "", name: str = "") -> Self:
        """Takes the first path whose condition holds: `when`, `otherwise`.

        Without an `otherwise` nothing is done where no condition holds. Paths that do not end
        lead to what follows.
        """
        return self._decide(ElementKind.EXCLUSIVE, "choose", branches, id, name)

    def include(self, *branches: Branch, id: str = "", name: str = "") -> Self:
        """Takes all paths whose conditions hold, in parallel, and continues when they are done."""
        return self._decide(ElementKind.INCLUSIVE, "include", branches, id, name)

    def parallel(self, *paths: "Path", id: str = "", name: str = "") -> Self:
        """Takes all paths in parallel, and continues when all that do not end are done."""
        self._at_least(2, paths, "paths", "parallel", id)
        branches = tuple(Branch(each.steps) for each in paths)
        return self._then(Split(ElementKind.PARALLEL, branches, id, name))

    def _decide(
        self, kind: ElementKind, verb: str, branches: tuple[Branch, ...], id: str, name: str
    ) -> Self:
        conditions = [branch for branch in branches if not branch.otherwise]
        self._at_least(1, conditions, "conditions", verb, id)
        if len(branches) - len(conditions) > 1:
            raise self._refusal(verb, id, "at most one otherwise, but there are more")
        return self._then(Split(kind, branches, id, name))

    def _at_least(self, least: int, given: Sequence[object], what: str, verb: str, id: str) -> None:
        if len(given) < least:
            raise self._refusal(verb, id, f"at least {least} {what}, but there are {len(given)}")

    def _refusal(self, verb: str, id: str, wanted: str) -> ModelError:
        place = f"'{id}'" if id else f"after '{outline(self._steps[-1:])}'"
        return ModelError(f"Expected {verb} {place} to have {wanted}", element=id)

    # --- ends ---------------------------------------------------------------------------------

    def end(self, id: str = "", *, name: str = "") -> Self:
        """Ends the path. Without it a process or sub-process ends after its last step."""
        return self._then(Finish(Element(id, ElementKind.END, name)))

    def fail(self, id: str, *, error: str, name: str = "") -> Self:
        """Ends with an error, which the innermost matching boundary event catches."""
        return self._then(Finish(Element(id, ElementKind.END, name, error=error)))

    def terminate(self, id: str, *, name: str = "") -> Self:
        """Terminates everything that is still active in the process or sub-process."""
        return self._then(Finish(Element(id, ElementKind.END, name, terminate=True)))

    def go_to(self, id: str) -> Self:
        """Continues at another element, most often an earlier one."""
        return self._then(GoTo(id))


@final
class Path(Steps):
    """Steps inside a process. Unless they end or go elsewhere, they lead to what follows them."""

    __slots__ = ()


def path() -> Path:
    """Starts a path: `path().task("pack").task("ship")`."""
    return Path()
