"""Tokens that cannot go on: why, and the values for want of which they cannot."""

from reprlib import Repr
from typing import Any

from holdfast.engine.incidents.values import IncidentReason
from holdfast.engine.kernel import Turn
from holdfast.engine.processes.plan import Node
from holdfast.engine.processes.variables import Seen
from holdfast.engine.state import EngineState
from holdfast.limits import NAME_CHARS_MAX, VARIABLES_BYTES_MAX
from holdfast.model.feel import Expression, FeelError


class Stuck(Exception):
    """A token cannot go on until a person has looked; becomes an incident."""

    def __init__(self, reason: IncidentReason, message: str, *, holds: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.holds = holds  # everything that its tree of calls has put off waits with it

    @classmethod
    def beyond(cls, message: str) -> "Stuck":
        """A loop has used up what it is allowed."""
        return cls(IncidentReason.LOOP_LIMIT, message, holds=True)

    @classmethod
    def of(cls, problem: "Stuck | FeelError", node: Node) -> "Stuck":
        """Itself, or a value that cannot be read or written as JSON."""
        if isinstance(problem, Stuck):
            return problem
        return cls(IncidentReason.EXPRESSION_FAILED, f"A value of {node.id!r}: {problem.message}")


def braked() -> Stuck:
    """Why nothing is tried once more that ended the process."""
    return Stuck(
        IncidentReason.SET_ASIDE,
        "The node ended while it went on from here, and did so again after a restart; it was not"
        " tried a third time. Find the cause before you resolve this",
    )


def check_size(values: dict[str, bytes]) -> int:
    """How many bytes of variables these are; Stuck if they are more than can be set at once."""
    size = sum(map(len, values.values()))
    if size > VARIABLES_BYTES_MAX:
        raise Stuck(
            IncidentReason.LIMIT_REACHED,
            f"Expected at most {VARIABLES_BYTES_MAX} bytes of new variables, but found {size}",
        )
    return size


_KINDS = {bool: "boolean", str: "string", list: "list", int: "whole number"}


_REPR = Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 2, 60, 60


def shown(value: Any) -> str:
    """A value in a message: its beginning, however large and however nested it is."""
    text = "null" if value is None else _REPR.repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


# --- values -----------------------------------------------------------------------------------


def value_of(turn: Turn[EngineState], expression: Expression, seen: Seen, what: str) -> Any:
    """The value of an expression; Stuck where it has none at all."""
    if turn.is_braked:
        raise braked()
    try:
        return expression.evaluate(seen, turn.now_ms)
    except FeelError as error:
        raise Stuck(IncidentReason.EXPRESSION_FAILED, f"{what}: {error.message}") from error


def typed_of(
    turn: Turn[EngineState], expression: Expression, seen: Seen, kind: type, what: str
) -> Any:
    """The value of an expression that must be of a kind."""
    warnings: list[str] = []
    if turn.is_braked:
        raise braked()
    try:
        value = expression.evaluate(seen, turn.now_ms, warnings)
    except FeelError as error:
        raise Stuck(IncidentReason.EXPRESSION_FAILED, f"{what}: {error.message}") from error
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        why = f" ({'; '.join(warnings)})" if warnings else ""
        raise Stuck(
            IncidentReason.EXPRESSION_FAILED,
            f"Expected {what} {expression.text!r} to give a {_KINDS.get(kind, kind.__name__)},"
            f" but it gave {shown(value)}{why}",
        )
    return value


def name_of(turn: Turn[EngineState], expression: Expression, seen: Seen, what: str) -> str:
    """A name that an expression gives, and that records have to carry."""
    name = typed_of(turn, expression, seen, str, what)
    if not 0 < len(name) <= NAME_CHARS_MAX:
        raise Stuck(
            IncidentReason.EXPRESSION_FAILED,
            f"Expected {what} {expression.text!r} to give 1 to {NAME_CHARS_MAX} characters,"
            f" but it gave {len(name)}",
        )
    return name
