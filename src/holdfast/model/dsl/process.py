"""A process, defined in Python."""

from typing import Self, final

import msgspec

from holdfast.model.check import ModelError, check
from holdfast.model.definition import Definition, Element, ElementKind, Message
from holdfast.model.dsl.path import Steps
from holdfast.model.dsl.steps import Step, outline
from holdfast.model.dsl.values import Duration, Moment, cycle_timer, date_timer
from holdfast.model.dsl.weave import Weaver


@final
class Process(Steps):
    """A process as its steps; `definition()` makes the graph of it that is deployed.

        order = (
            Process("order")
            .task("charge", on=[error("DECLINED", path().fail("declined", error="DECLINED"))])
            .choose(when("total > 100", path().task("review")))
            .task("ship")
        )

    The same program gives the same definition, byte for byte, and so the same version. A call may
    ask for the latest version with a `version_tag`.
    """

    __slots__ = ("_starts", "id", "name", "version_tag")

    def __init__(self, id: str, *, name: str = "", version_tag: str = "") -> None:
        super().__init__()
        self.id = id
        self.name = name
        self.version_tag = version_tag
        self._starts: tuple[Element, ...] = ()

    def __repr__(self) -> str:
        return f"Process({self.id!r}: {outline(self._steps)})"

    def _with(self, steps: tuple[Step, ...]) -> Self:
        other = type(self)(self.id, name=self.name, version_tag=self.version_tag)
        other._starts, other._steps = self._starts, steps
        return other

    def starts(
        self,
        *,
        message: str | None = None,
        every: Duration | None = None,
        at: Moment | None = None,
        id: str = "",
        name: str = "",
    ) -> Self:
        """A start trigger: a message, an interval or a time; a process can have several.

        A process without a start trigger is started by an explicit call. Add `.starts()` to a
        process that has one and is to be started by a call as well.
        """
        label = id or f"start of {self.id}"
        if sum(given is not None for given in (message, every, at)) > 1:
            raise ModelError(
                f"Expected '{label}' to have one of message, every and at, but it has more; "
                "call starts() for each",
                element=id or self.id,
            )
        timer = None
        if every is not None:
            timer = cycle_timer(every, label)
        elif at is not None:
            timer = date_timer(at, label)
        waited = Message(message) if message is not None else None
        start = Element(id, ElementKind.START, name, timer=timer, message=waited)
        other = self._with(self._steps)
        other._starts = (*self._starts, start)
        return other

    def definition(self) -> Definition:
        """The process as a validated graph; ModelError names the element that is wrong."""
        definition = Weaver(self.id, self._starts, self._steps).definition(self.name)
        definition = msgspec.structs.replace(definition, version_tag=self.version_tag)
        check(definition)
        return definition
