"""One value for each kind of record about who may do what."""

from enum import IntEnum

import msgspec

from holdfast.engine.identity.values import (
    Authorization,
    AuthorizationIntent,
    AuthorizationRef,
    Group,
    GroupIntent,
    GroupRef,
    Membership,
    OwnerType,
    Permission,
    ResourceType,
    Token,
    TokenIntent,
    TokenRef,
    User,
    UserIntent,
    UserRef,
)
from holdfast.records import ValueType

_USER = User("ada", "Ada", "ada@example", b"\x01\x02")
_LET = Authorization(
    OwnerType.ROLE,
    "sender",
    ResourceType.TASK,
    "mail",
    (Permission.CREATE, Permission.READ),
)
_MEMBER = Membership("crew", OwnerType.USER, "ada")

_OF_GROUPS: dict[GroupIntent, msgspec.Struct] = {
    GroupIntent.CREATE: Group("crew", "Crew", "all hands"),
    GroupIntent.CREATED: Group("crew", "Crew", "all hands"),
    GroupIntent.UPDATE: Group("crew", "The crew"),
    GroupIntent.UPDATED: Group("crew", "The crew"),
    GroupIntent.DELETE: GroupRef("crew"),
    GroupIntent.DELETED: GroupRef("crew"),
    GroupIntent.ADD_MEMBER: _MEMBER,
    GroupIntent.MEMBER_ADDED: _MEMBER,
    GroupIntent.REMOVE_MEMBER: _MEMBER,
    GroupIntent.MEMBER_REMOVED: _MEMBER,
}

IDENTITY_EXAMPLES: dict[tuple[ValueType, IntEnum], msgspec.Struct] = {
    (ValueType.USER, UserIntent.CREATE): _USER,
    (ValueType.USER, UserIntent.CREATED): _USER,
    (ValueType.USER, UserIntent.UPDATE): User("ada", "Ada L."),
    (ValueType.USER, UserIntent.UPDATED): User("ada", "Ada L."),
    (ValueType.USER, UserIntent.DELETE): UserRef("ada"),
    (ValueType.USER, UserIntent.DELETED): UserRef("ada"),
    **{(ValueType.GROUP, intent): value for intent, value in _OF_GROUPS.items()},
    **{(ValueType.ROLE, intent): value for intent, value in _OF_GROUPS.items()},
    (ValueType.TOKEN, TokenIntent.CREATE): Token("t1", "robot", b"\x07\x08", 1_700_000_000_000),
    (ValueType.TOKEN, TokenIntent.CREATED): Token("t1", "robot", b"\x07\x08", 1_700_000_000_000),
    (ValueType.TOKEN, TokenIntent.DELETE): TokenRef("t1"),
    (ValueType.TOKEN, TokenIntent.DELETED): TokenRef("t1"),
    (ValueType.AUTHORIZATION, AuthorizationIntent.CREATE): _LET,
    (ValueType.AUTHORIZATION, AuthorizationIntent.CREATED): _LET,
    (ValueType.AUTHORIZATION, AuthorizationIntent.UPDATE): msgspec.structs.replace(
        _LET, resource_id="*", authorization=9
    ),
    (ValueType.AUTHORIZATION, AuthorizationIntent.UPDATED): msgspec.structs.replace(
        _LET, resource_id="*", authorization=9
    ),
    (ValueType.AUTHORIZATION, AuthorizationIntent.DELETE): AuthorizationRef(9),
    (ValueType.AUTHORIZATION, AuthorizationIntent.DELETED): AuthorizationRef(9),
}
