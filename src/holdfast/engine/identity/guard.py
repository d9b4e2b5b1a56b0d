"""Whether the asker may have a command done."""

from collections.abc import Iterable

from holdfast.engine.asker import Asker, asker_of, permits
from holdfast.engine.kernel import Need, Required
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, Rejection


def guard(state: EngineState, command: Record, need: Need | None) -> Rejection | None:
    """The reason why not; None if they may."""
    assert command.claims is not None
    asker = asker_of(command.claims)
    if need is None:
        return Rejection(
            Code.FORBIDDEN, "This command is internal: users and clients may not send it"
        )
    missing = missing_of(state, asker, need(state, command))
    return None if missing is None else Rejection(Code.FORBIDDEN, refused(asker.sub, *missing))


def missing_of(
    state: EngineState, asker: Asker, required: Iterable[Required]
) -> tuple[Required, str] | None:
    """The first thing that is required and not permitted, and for which resource."""
    for each in required:
        allowed = state.identities.allowed(asker, each.resource_type, each.permissions)
        for id_ in each.ids:
            if not permits(allowed, id_):
                return each, id_
    return None


def refused(asker: str, required: Required, id_: str) -> str:
    """The reason of a rejection for a missing permission."""
    words = " or ".join(required.permissions)
    return (
        f"{asker!r} lacks the permission {words} on {required.resource_type} {id_!r};"
        " an administrator can grant it"
    )
