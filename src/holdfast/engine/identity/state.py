"""Who is known on a partition, and what they may do.

What a command needs to know is found by its asker: one row for all that an owner may do, one for
all that an owner is a member of.
"""

from typing import Any

import msgspec

from holdfast.engine.asker import Asker
from holdfast.engine.families import Tag
from holdfast.engine.identity.values import (
    Authorization,
    Group,
    Membership,
    OwnerType,
    Permission,
    ResourceType,
    Token,
    User,
)
from holdfast.limits import ASKED_KEPT_MAX
from holdfast.state import Family, PartitionState
from holdfast.state.keys import TEXT, U64


class StoredUser(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A person, with the key that the log knows them by."""

    key: int
    user: User


class StoredGroup(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A group or a role with its members, as owners."""

    key: int
    group: Group
    members: tuple[str, ...] = ()


class StoredToken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A token of a machine."""

    key: int
    token: Token
    created_ms: int


class Grant(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One authorization as its owner's row has it."""

    authorization: int
    resource_type: ResourceType
    resource_id: str
    permissions: tuple[Permission, ...]


def owner(type_: OwnerType, id_: str) -> str:
    """The name of an owner among the rows."""
    return f"{type_}:{id_}"


def owner_parts(text: str) -> tuple[OwnerType, str]:
    """The other way round."""
    type_, _, id_ = text.partition(":")
    return OwnerType(type_), id_


class Identities:
    """All that is known of identity."""

    def __init__(self, state: PartitionState) -> None:
        self.users = state.family(Tag.USERS, TEXT, StoredUser)
        self.tokens = state.family(Tag.API_TOKENS, TEXT, StoredToken)
        self.groups = state.family(Tag.GROUPS, TEXT, StoredGroup)
        self.roles = state.family(Tag.ROLES, TEXT, StoredGroup)
        self.authorizations = state.family(Tag.AUTHORIZATIONS, U64, Authorization)
        self._memberships = state.family(Tag.MEMBERSHIPS, TEXT, tuple[str, ...])
        self._grants = state.family(Tag.GRANTS, TEXT, tuple[Grant, ...])
        # Millions of items may be asked for by one: what follows from the rows is kept until any
        # of them changes, or a change is taken back.
        self._allowed: dict[tuple[Any, ...], frozenset[str]] = {}
        state.when_undone(self._allowed.clear)

    def family(self, type_: OwnerType) -> Family[str, StoredGroup]:
        """The groups, or the roles."""
        return self.groups if type_ is OwnerType.GROUP else self.roles

    # --- what may be done ---------------------------------------------------------------------

    def owners(self, asker: Asker) -> list[str]:
        """Everyone that an asker acts as: itself, its groups, the roles of any of them."""
        self_ = owner(asker.type, asker.sub)
        own = [self_, *(owner(OwnerType.GROUP, each) for each in asker.groups)]
        own += self.memberships(self_)
        roles = [role for each in own[1:] for role in self.memberships(each)]
        return list(dict.fromkeys([*own, *roles]))

    def allowed(self, asker: Asker, resource: str, permissions: tuple[str, ...]) -> frozenset[str]:
        """The ids of the resources with which one may do any of these; EVERY_ID for all."""
        asked = asker, resource, permissions
        found = self._allowed.get(asked)
        if found is None:
            if len(self._allowed) >= ASKED_KEPT_MAX:
                self._allowed.clear()
            found = self._allowed[asked] = frozenset(
                grant.resource_id
                for each in self.owners(asker)
                for grant in self.grants(each)
                if grant.resource_type == resource
                and not set(permissions).isdisjoint(grant.permissions)
            )
        return found

    def grants(self, owner_name: str) -> tuple[Grant, ...]:
        """All that one owner was given itself."""
        return self._grants.get(owner_name) or ()

    def memberships(self, owner_name: str) -> tuple[str, ...]:
        """The groups and roles that one owner was put into itself."""
        return self._memberships.get(owner_name) or ()

    def has_nobody(self) -> bool:
        """Whether nobody has a role, is in a group or was given anything."""
        is_member = next(iter(self._memberships.scan()), None) is not None
        owners = (each.owner_type for _, each in self.authorizations.scan())
        return not is_member and all(each is OwnerType.ROLE for each in owners)

    # --- what the appliers do -----------------------------------------------------------------

    def add_member(self, type_: OwnerType, membership: Membership) -> None:
        self._allowed.clear()
        family = self.family(type_)
        stored = family.get(membership.id)
        assert stored is not None, "members are added to what is there"
        member = owner(membership.member_type, membership.member_id)
        family.put(
            membership.id, msgspec.structs.replace(stored, members=(*stored.members, member))
        )
        self._memberships.put(member, (*self.memberships(member), owner(type_, membership.id)))

    def remove_member(self, type_: OwnerType, id_: str, member: str) -> None:
        self._allowed.clear()
        family = self.family(type_)
        if (stored := family.get(id_)) is not None:
            kept = tuple(each for each in stored.members if each != member)
            family.put(id_, msgspec.structs.replace(stored, members=kept))
        mine = owner(type_, id_)
        self._put_or_delete(
            member, tuple(each for each in self.memberships(member) if each != mine)
        )

    def remove_group(self, type_: OwnerType, id_: str) -> None:
        """A group or role goes with all that it was given and all memberships in it."""
        family = self.family(type_)
        stored = family.get(id_)
        assert stored is not None
        for member in stored.members:
            self.remove_member(type_, id_, member)
        family.delete(id_)
        self.forget(owner(type_, id_))

    def forget(self, owner_name: str) -> None:
        """Whatever an owner was given, and wherever it is a member, is no more."""
        self._allowed.clear()
        for each in self.memberships(owner_name):
            type_, id_ = owner_parts(each)
            self.remove_member(type_, id_, owner_name)
        for grant in self.grants(owner_name):
            self.authorizations.delete(grant.authorization)
        if self.grants(owner_name):
            self._grants.delete(owner_name)

    def put_authorization(self, key: int, value: Authorization) -> None:
        self._allowed.clear()
        self.remove_authorization(key)
        self.authorizations.put(key, value)
        name = owner(value.owner_type, value.owner_id)
        grant = Grant(key, value.resource_type, value.resource_id, value.permissions)
        self._grants.put(name, (*self.grants(name), grant))

    def remove_authorization(self, key: int) -> None:
        known = self.authorizations.get(key)
        if known is None:
            return
        self._allowed.clear()
        self.authorizations.delete(key)
        name = owner(known.owner_type, known.owner_id)
        kept = tuple(each for each in self.grants(name) if each.authorization != key)
        if kept:
            self._grants.put(name, kept)
        else:
            self._grants.delete(name)

    def _put_or_delete(self, member: str, memberships: tuple[str, ...]) -> None:
        if memberships:
            self._memberships.put(member, memberships)
        elif self.memberships(member):
            self._memberships.delete(member)
