"""What the events of identity change: the same on every partition.

Those of groups and of roles are told apart by the type that their tables give them.
"""

import msgspec

from holdfast.engine.identity.state import StoredGroup, StoredToken, StoredUser, owner
from holdfast.engine.identity.values import Membership, OwnerType
from holdfast.engine.state import EngineState
from holdfast.records import Record

_replace = msgspec.structs.replace


def user_created(state: EngineState, event: Record) -> None:
    state.identities.users.put(event.value.username, StoredUser(event.key, event.value))


def user_updated(state: EngineState, event: Record) -> None:
    stored = state.identities.users.get(event.value.username)
    assert stored is not None
    # A user's name can be changed without the password.
    password = event.value.password or stored.user.password
    user = _replace(event.value, password=password)
    state.identities.users.put(event.value.username, StoredUser(stored.key, user))


def user_deleted(state: EngineState, event: Record) -> None:
    state.identities.forget(owner(OwnerType.USER, event.value.username))
    state.identities.users.delete(event.value.username)


def token_created(state: EngineState, event: Record) -> None:
    stored = StoredToken(event.key, event.value, event.timestamp_ms)
    state.identities.tokens.put(event.value.id, stored)


def token_deleted(state: EngineState, event: Record) -> None:
    """A client without tokens keeps what it was given: it may get another token."""
    state.identities.tokens.delete(event.value.id)


def group_created(type_: OwnerType, state: EngineState, event: Record) -> None:
    state.identities.family(type_).put(event.value.id, StoredGroup(event.key, event.value))


def group_updated(type_: OwnerType, state: EngineState, event: Record) -> None:
    family = state.identities.family(type_)
    stored = family.get(event.value.id)
    assert stored is not None
    family.put(event.value.id, _replace(stored, group=event.value))


def group_deleted(type_: OwnerType, state: EngineState, event: Record) -> None:
    state.identities.remove_group(type_, event.value.id)


def member_added(type_: OwnerType, state: EngineState, event: Record) -> None:
    state.identities.add_member(type_, event.value)


def member_removed(type_: OwnerType, state: EngineState, event: Record) -> None:
    gone: Membership = event.value
    state.identities.remove_member(type_, gone.id, owner(gone.member_type, gone.member_id))


def authorization_created(state: EngineState, event: Record) -> None:
    state.identities.put_authorization(event.key, event.value)


def authorization_updated(state: EngineState, event: Record) -> None:
    value = _replace(event.value, authorization=0)
    state.identities.put_authorization(event.value.authorization, value)


def authorization_deleted(state: EngineState, event: Record) -> None:
    state.identities.remove_authorization(event.value.authorization)
