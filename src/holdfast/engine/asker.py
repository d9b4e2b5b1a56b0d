"""Who asks, as a record carries it."""

from typing import Any

import msgspec

from holdfast.engine.identity.values import EVERY_ID, OwnerType


class Asker(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who asks, as a record carries it: its claims."""

    sub: str  # the username, or the id of the client
    type: OwnerType = OwnerType.USER
    groups: tuple[str, ...] = ()  # that came with a token: they count like those known here


def asker_of(claims: dict[str, Any]) -> Asker:
    """The user or client that the claims of a record name."""
    return msgspec.convert(claims, Asker)


def permits(allowed: frozenset[str], resource_id: str) -> bool:
    """Whether one resource is among those allowed."""
    return EVERY_ID in allowed or resource_id in allowed
