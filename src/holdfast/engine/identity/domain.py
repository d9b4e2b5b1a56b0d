"""The tables of the identity room."""

from functools import partial

from holdfast.engine.identity import commands, events, needs
from holdfast.engine.identity.commands import decided
from holdfast.engine.identity.values import (
    AUTHORIZATION_VALUES,
    GROUP_VALUES,
    TOKEN_VALUES,
    USER_VALUES,
    AuthorizationIntent,
    GroupIntent,
    OwnerType,
    Permission,
    ResourceType,
    TokenIntent,
    UserIntent,
)
from holdfast.engine.kernel import Domain
from holdfast.engine.needs import with_every, with_named
from holdfast.records import ValueType

_U, _G, _T, _A = UserIntent, GroupIntent, TokenIntent, AuthorizationIntent
_V, _R, _P = ValueType, ResourceType, Permission


USER: Domain = Domain(
    value_type=_V.USER,
    intents=UserIntent,
    values=USER_VALUES,
    commands={
        _U.CREATE: decided(_V.USER, _U.CREATE, _U.CREATED, commands.new_user),
        _U.UPDATE: decided(_V.USER, _U.UPDATE, _U.UPDATED, commands.changed_user),
        _U.DELETE: decided(_V.USER, _U.DELETE, _U.DELETED, commands.known_user),
    },
    appliers={
        _U.CREATED: events.user_created,
        _U.UPDATED: events.user_updated,
        _U.DELETED: events.user_deleted,
    },
    needs={
        _U.CREATE: with_named(_R.USER, _P.CREATE, lambda new: new.username),
        _U.UPDATE: with_named(_R.USER, _P.UPDATE, lambda changed: changed.username),
        _U.DELETE: with_named(_R.USER, _P.DELETE, lambda gone: gone.username),
    },
)


def _groups(value_type: ValueType, type_: OwnerType, resource: ResourceType) -> Domain:
    """Groups and roles differ in what can be in them, and in nothing else."""
    check = {
        (_G.CREATE, _G.CREATED): commands.new_group,
        (_G.UPDATE, _G.UPDATED): commands.changed_group,
        (_G.DELETE, _G.DELETED): commands.known_group,
        (_G.ADD_MEMBER, _G.MEMBER_ADDED): commands.new_member,
        (_G.REMOVE_MEMBER, _G.MEMBER_REMOVED): commands.known_member,
    }
    update = with_named(resource, _P.UPDATE, lambda named: named.id)
    return Domain(
        value_type=value_type,
        intents=GroupIntent,
        values=GROUP_VALUES,
        commands={
            intent: decided(value_type, intent, event, partial(check[intent, event], type_))
            for intent, event in check
        },
        appliers={
            _G.CREATED: partial(events.group_created, type_),
            _G.UPDATED: partial(events.group_updated, type_),
            _G.DELETED: partial(events.group_deleted, type_),
            _G.MEMBER_ADDED: partial(events.member_added, type_),
            _G.MEMBER_REMOVED: partial(events.member_removed, type_),
        },
        needs={
            _G.CREATE: with_named(resource, _P.CREATE, lambda new: new.id),
            _G.UPDATE: update,
            _G.DELETE: with_named(resource, _P.DELETE, lambda gone: gone.id),
            _G.ADD_MEMBER: update,
            _G.REMOVE_MEMBER: update,
        },
    )


GROUP: Domain = _groups(_V.GROUP, OwnerType.GROUP, _R.GROUP)
ROLE: Domain = _groups(_V.ROLE, OwnerType.ROLE, _R.ROLE)

TOKEN: Domain = Domain(
    value_type=_V.TOKEN,
    intents=TokenIntent,
    values=TOKEN_VALUES,
    commands={
        _T.CREATE: decided(_V.TOKEN, _T.CREATE, _T.CREATED, commands.new_token),
        _T.DELETE: decided(_V.TOKEN, _T.DELETE, _T.DELETED, commands.known_token),
    },
    appliers={_T.CREATED: events.token_created, _T.DELETED: events.token_deleted},
    needs={_T.CREATE: needs.new_token, _T.DELETE: needs.known_token},
)

AUTHORIZATION: Domain = Domain(
    value_type=_V.AUTHORIZATION,
    intents=AuthorizationIntent,
    values=AUTHORIZATION_VALUES,
    commands={
        _A.CREATE: decided(_V.AUTHORIZATION, _A.CREATE, _A.CREATED, commands.new_authorization),
        _A.UPDATE: decided(_V.AUTHORIZATION, _A.UPDATE, _A.UPDATED, commands.changed_authorization),
        _A.DELETE: decided(_V.AUTHORIZATION, _A.DELETE, _A.DELETED, commands.known_authorization),
    },
    appliers={
        _A.CREATED: events.authorization_created,
        _A.UPDATED: events.authorization_updated,
        _A.DELETED: events.authorization_deleted,
    },
    needs={
        _A.CREATE: with_every(_R.AUTHORIZATION, _P.CREATE),
        _A.UPDATE: with_every(_R.AUTHORIZATION, _P.UPDATE),
        _A.DELETE: with_every(_R.AUTHORIZATION, _P.DELETE),
    },
)
