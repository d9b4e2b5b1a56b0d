"""What is asked of identity: decided on one partition, then told to all others in their order."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from holdfast.engine.distribution.distributing import distribute
from holdfast.engine.identity.state import owner
from holdfast.engine.identity.values import (
    DECIDING_PARTITION,
    PERMISSIONS,
    QUEUE,
    Authorization,
    AuthorizationRef,
    Group,
    GroupRef,
    Membership,
    OwnerType,
    Token,
    TokenRef,
    User,
    UserRef,
)
from holdfast.engine.kernel import Command, Distributed, Turn
from holdfast.engine.state import EngineState
from holdfast.errors import (
    AlreadyExists,
    HoldfastError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
)
from holdfast.limits import (
    AUTHORIZATIONS_PER_OWNER_MAX,
    GROUP_MEMBERS_MAX,
    MEMBERSHIPS_MAX,
    NAME_CHARS_MAX,
)
from holdfast.records import Record, ValueType

Check = Callable[[EngineState, Any], object]
"""Raises what stands against a command."""


def decided(value_type: ValueType, intent: IntEnum, event: IntEnum, check: Check) -> Distributed:
    """The two functions of a command: it is checked where it is decided, and done everywhere."""

    def on_new(turn: Turn[EngineState], command: Record) -> None:
        try:
            if turn.partition != DECIDING_PARTITION:
                raise InvalidArgument(
                    f"Expected partition {DECIDING_PARTITION}, but {turn.partition} was asked"
                )
            check(turn.state, command.value)
        except HoldfastError as error:
            return turn.reject(command, error.code, error.message)
        key = turn.new_key()
        turn.event(value_type, event, key, command.value)
        told = Command(value_type, intent, key, command.value, command.claims)
        distribute(turn, told, in_queue=QUEUE)

    def on_distributed(turn: Turn[EngineState], command: Record) -> None:
        try:
            check(turn.state, command.value)  # what stands against it is that it came before
        except HoldfastError as error:
            return turn.reject(command, error.code, error.message)
        turn.event(value_type, event, command.key, command.value)

    return Distributed(on_new, on_distributed)


# --- users and tokens -------------------------------------------------------------------------


def new_user(state: EngineState, new: User) -> None:
    """A name that nobody has."""
    _check_name(new.username, "username")
    _check_text(new.name, "name")
    _check_text(new.email, "email")
    if state.identities.users.get(new.username) is not None:
        raise AlreadyExists(f"Expected a new user, but {new.username!r} is there already")


def changed_user(state: EngineState, changed: User) -> None:
    """Somebody who is known."""
    _check_text(changed.name, "name")
    _check_text(changed.email, "email")
    known_user(state, changed)


def known_user(state: EngineState, named: User | UserRef) -> None:
    """Somebody who is known."""
    if state.identities.users.get(named.username) is None:
        raise NotFound(f"There is no user {named.username!r}")


def new_token(state: EngineState, new: Token) -> None:
    """An id that no token has."""
    _check_name(new.id, "id")
    _check_name(new.client_id, "client id")
    if not new.digest:
        raise InvalidArgument("Expected the digest of a token, but there is none")
    if state.identities.tokens.get(new.id) is not None:
        raise AlreadyExists(f"Expected a new token, but {new.id!r} is there already")


def known_token(state: EngineState, named: TokenRef) -> None:
    """A token that is known."""
    if state.identities.tokens.get(named.id) is None:
        raise NotFound(f"There is no token {named.id!r}")


# --- groups and roles -------------------------------------------------------------------------


def new_group(type_: OwnerType, state: EngineState, new: Group) -> None:
    """An id that no other has."""
    _check_name(new.id, "id")
    _check_text(new.name, "name")
    _check_text(new.description, "description")
    if state.identities.family(type_).get(new.id) is not None:
        raise AlreadyExists(f"Expected a new {_word(type_)}, but {new.id!r} is there already")


def changed_group(type_: OwnerType, state: EngineState, changed: Group) -> None:
    """One that is known."""
    _check_text(changed.name, "name")
    _check_text(changed.description, "description")
    known_group(type_, state, changed)


def known_group(type_: OwnerType, state: EngineState, named: Group | GroupRef | Membership) -> None:
    """One that is known."""
    if state.identities.family(type_).get(named.id) is None:
        raise NotFound(f"There is no {_word(type_)} {named.id!r}")


def new_member(type_: OwnerType, state: EngineState, new: Membership) -> None:
    """Somebody who can be in it, is not yet, and for whom there is room."""
    known_group(type_, state, new)
    _check_name(new.member_id, "member id")
    # A role can be given to a group; a group has no groups and no roles in it.
    can_be = {OwnerType.USER, OwnerType.CLIENT}
    if type_ is OwnerType.ROLE:
        can_be.add(OwnerType.GROUP)
    if new.member_type not in can_be:
        expected = ", ".join(sorted(can_be))
        raise InvalidArgument(f"Expected a member of type {expected}, but found {new.member_type}")
    identities = state.identities
    member = owner(new.member_type, new.member_id)
    stored = identities.family(type_).get(new.id)
    assert stored is not None
    if member in stored.members:
        raise AlreadyExists(
            f"Expected a new member, but {new.member_id!r} is in {_word(type_)} {new.id!r} already"
        )
    if len(stored.members) >= GROUP_MEMBERS_MAX:
        raise ResourceExhausted(
            f"Expected fewer than {GROUP_MEMBERS_MAX} members of {_word(type_)} {new.id!r}"
        )
    if len(identities.memberships(member)) >= MEMBERSHIPS_MAX:
        raise ResourceExhausted(
            f"Expected {new.member_id!r} to be in fewer than {MEMBERSHIPS_MAX} groups and roles"
        )


def known_member(type_: OwnerType, state: EngineState, named: Membership) -> None:
    """Somebody who is in it."""
    known_group(type_, state, named)
    stored = state.identities.family(type_).get(named.id)
    assert stored is not None
    if owner(named.member_type, named.member_id) not in stored.members:
        raise NotFound(
            f"Expected {named.member_id!r} in {_word(type_)} {named.id!r}, but it is not"
        )


# --- authorizations ---------------------------------------------------------------------------


def new_authorization(state: EngineState, new: Authorization) -> None:
    """For an owner that has none for that resource."""
    _check_name(new.owner_id, "owner id")
    _check_resource(new.resource_id)
    _check_permissions(new)
    grants = state.identities.grants(owner(new.owner_type, new.owner_id))
    if any(
        (each.resource_type, each.resource_id) == (new.resource_type, new.resource_id)
        for each in grants
    ):
        raise AlreadyExists(
            f"Expected a new authorization, but {new.owner_type} {new.owner_id!r} has one for"
            f" {new.resource_type} {new.resource_id!r}: change that one"
        )
    if len(grants) >= AUTHORIZATIONS_PER_OWNER_MAX:
        raise ResourceExhausted(
            f"Expected fewer than {AUTHORIZATIONS_PER_OWNER_MAX} authorizations of"
            f" {new.owner_type} {new.owner_id!r}: use a role"
        )


def changed_authorization(state: EngineState, changed: Authorization) -> None:
    """One that is known, and stays its owner's."""
    known = known_authorization(state, changed)
    if (known.owner_type, known.owner_id) != (changed.owner_type, changed.owner_id):
        raise InvalidArgument(
            f"Expected the authorization of {known.owner_type} {known.owner_id!r} to stay theirs,"
            f" but {changed.owner_type} {changed.owner_id!r} was named"
        )
    _check_resource(changed.resource_id)
    _check_permissions(changed)


def known_authorization(
    state: EngineState, named: Authorization | AuthorizationRef
) -> Authorization:
    """The one that is named."""
    known = state.identities.authorizations.get(named.authorization)
    if known is None:
        raise NotFound(f"There is no authorization {named.authorization}")
    return known


def _check_permissions(value: Authorization) -> None:
    if not value.permissions:
        raise InvalidArgument("Expected at least one permission, but found none")
    possible = PERMISSIONS[value.resource_type]
    if unknown := sorted(set(value.permissions) - possible):
        raise InvalidArgument(
            f"Expected permissions of {value.resource_type} ({', '.join(sorted(possible))}),"
            f" but found {', '.join(unknown)}"
        )


# --- words ------------------------------------------------------------------------------------


def _word(type_: OwnerType) -> str:
    return type_.lower()


def _check_name(text: str, what: str) -> None:
    if not 1 <= len(text) <= NAME_CHARS_MAX or not text.isprintable() or "/" in text:
        raise InvalidArgument(
            f"Expected 1 to {NAME_CHARS_MAX} printable characters but no slash as {what},"
            f" but found {text[:NAME_CHARS_MAX]!r}"
        )


def _check_resource(id_: str) -> None:
    """Types of jobs, ids of processes, names of messages: whatever they are called."""
    if not id_:
        raise InvalidArgument("Expected the id of a resource, or *, but found none")
    _check_text(id_, "resource id")


def _check_text(text: str, what: str) -> None:
    if len(text) > NAME_CHARS_MAX:
        raise InvalidArgument(
            f"Expected at most {NAME_CHARS_MAX} characters as {what}, but found {len(text)}"
        )
