"""How people type who is meant and what: user:ann, client:robot, TASK:mail."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.engine.identity.values import OwnerType, Permission, ResourceType

OWNER = "OWNER"
OWNER_HELP = "user:NAME, client:ID, group:ID or role:ID."
RESOURCE = "RESOURCE"


def parse_owner(text: str) -> "tuple[OwnerType, str]":
    """Who is meant; InvalidArgument if nobody can be."""
    from holdfast.engine.identity.values import OwnerType
    from holdfast.errors import InvalidArgument

    type_, _, id_ = text.partition(":")
    if type_.upper() not in OwnerType.__members__ or not id_:
        raise InvalidArgument(
            f"Expected user:NAME, client:ID, group:ID or role:ID, but found {text!r}"
        )
    return OwnerType(type_.upper()), id_


def parse_resource(text: str) -> "tuple[ResourceType, str | None]":
    """What is meant: a type, and one of them where one is named."""
    from holdfast.engine.identity.values import ResourceType
    from holdfast.errors import InvalidArgument

    type_, colon, id_ = text.partition(":")
    if type_.upper() not in ResourceType.__members__:
        raise InvalidArgument(
            f"Expected a resource of type {', '.join(ResourceType)}, but found {text!r}"
        )
    if colon and not id_:
        raise InvalidArgument(
            f"Expected an id behind {text!r}, or {type_}:* for every one, but found none"
        )
    return ResourceType(type_.upper()), id_ or None


def parse_permissions(resource: "ResourceType", words: Sequence[str]) -> "list[Permission]":
    """What may be done with a resource; InvalidArgument says what is possible."""
    from holdfast.engine.identity.values import PERMISSIONS, Permission
    from holdfast.errors import InvalidArgument

    possible = sorted(PERMISSIONS[resource])
    if unknown := [word for word in words if word.upper() not in possible]:
        raise InvalidArgument(
            f"Expected permissions of {resource} ({', '.join(possible)}),"
            f" but found {', '.join(unknown)}"
        )
    return [Permission(word.upper()) for word in words]


def owner_text(type_: "OwnerType", id_: str) -> str:
    """An owner as people type it."""
    return f"{type_.lower()}:{id_}"
