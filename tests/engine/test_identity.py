"""Who may do what: decided on one partition, the same on all, and asked before any command."""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import pytest
from distribution_cluster import Cluster, Engine

from holdfast.engine.asker import Asker
from holdfast.engine.identity.values import (
    PERMISSIONS,
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
from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command, Reply, Submission
from holdfast.engine.partition import DISPATCH, DOMAINS, open_partition
from holdfast.errors import Code
from holdfast.limits import AUTHORIZATIONS_PER_OWNER_MAX, GROUP_MEMBERS_MAX, MEMBERSHIPS_MAX
from holdfast.records import ValueType

PARTITIONS = 3
_V, _O, _R, _P = ValueType, OwnerType, ResourceType, Permission
_CREATE_TASK = Command(_V.JOB, JobIntent.CREATE, 0, NewJob("mail", b"{}"), {"sub": "ada"})


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(PARTITIONS, engine=Engine(DISPATCH, open_partition))


def ask(cluster: Cluster, value_type: ValueType, intent: IntEnum, value: Any) -> Reply:
    reply = cluster.ask(1, Command(value_type, intent, 0, value))
    cluster.run(1)
    return reply


def do(cluster: Cluster, value_type: ValueType, intent: IntEnum, value: Any) -> int:
    reply = ask(cluster, value_type, intent, value)
    assert reply.rejection is None, reply.rejection
    return reply.key


def let(cluster: Cluster, type_: OwnerType, id_: str, *given: Permission, on: str = "mail") -> int:
    new = Authorization(type_, id_, _R.TASK, on, given)
    return do(cluster, _V.AUTHORIZATION, AuthorizationIntent.CREATE, new)


def may(cluster: Cluster, who: Asker, *permissions: Permission) -> set[frozenset[str]]:
    """With which tasks; as every partition sees it."""
    nodes = cluster.nodes.values()
    return {node.view.identities.allowed(who, _R.TASK, permissions) for node in nodes}


ADA = Asker("ada")


def test_what_is_decided_holds_on_every_partition(cluster: Cluster) -> None:
    let(cluster, _O.USER, "ada", _P.CREATE, _P.READ)
    assert may(cluster, ADA, _P.CREATE) == {frozenset({"mail"})}
    assert may(cluster, ADA, _P.WORK) == {frozenset()}
    assert may(cluster, ADA, _P.WORK, _P.READ) == {frozenset({"mail"})}
    assert may(cluster, Asker("ada", _O.CLIENT), _P.CREATE) == {frozenset()}
    for partition in cluster.nodes:
        assert cluster.ask(partition, _CREATE_TASK).rejection is None


def test_groups_and_roles_pass_on_what_they_have(cluster: Cluster) -> None:
    do(cluster, _V.GROUP, GroupIntent.CREATE, Group("crew"))
    do(cluster, _V.ROLE, GroupIntent.CREATE, Group("sender"))
    do(cluster, _V.ROLE, GroupIntent.ADD_MEMBER, Membership("sender", _O.GROUP, "crew"))
    let(cluster, _O.ROLE, "sender", _P.CREATE)
    let(cluster, _O.GROUP, "crew", _P.READ, on="*")
    assert may(cluster, ADA, _P.CREATE) == {frozenset()}
    do(cluster, _V.GROUP, GroupIntent.ADD_MEMBER, Membership("crew", _O.USER, "ada"))
    assert may(cluster, ADA, _P.CREATE) == {frozenset({"mail"})}
    assert may(cluster, ADA, _P.READ) == {frozenset({"*"})}
    with_token = Asker("bob", groups=("crew",))
    assert may(cluster, with_token, _P.CREATE) == {frozenset({"mail"})}
    do(cluster, _V.ROLE, GroupIntent.REMOVE_MEMBER, Membership("sender", _O.GROUP, "crew"))
    assert may(cluster, ADA, _P.CREATE) == {frozenset()}
    do(cluster, _V.GROUP, GroupIntent.DELETE, GroupRef("crew"))
    assert may(cluster, ADA, _P.READ) == may(cluster, with_token, _P.READ) == {frozenset()}


def test_nothing_is_left_of_a_user_that_is_deleted(cluster: Cluster) -> None:
    do(cluster, _V.USER, UserIntent.CREATE, User("ada"))
    do(cluster, _V.ROLE, GroupIntent.CREATE, Group("sender"))
    do(cluster, _V.ROLE, GroupIntent.ADD_MEMBER, Membership("sender", _O.USER, "ada"))
    let(cluster, _O.USER, "ada", _P.CREATE)
    do(cluster, _V.USER, UserIntent.DELETE, UserRef("ada"))
    assert may(cluster, ADA, _P.CREATE) == {frozenset()}
    do(cluster, _V.ROLE, GroupIntent.DELETE, GroupRef("sender"))
    for node in cluster.nodes.values():
        state = node.view.identities
        assert not list(state.users.scan()) and not list(state.roles.scan())
        assert not list(state.authorizations.scan()) and state.has_nobody()
        assert not state.grants("USER:ada") and not state.memberships("USER:ada")


def test_an_authorization_changes_and_goes(cluster: Cluster) -> None:
    key = let(cluster, _O.USER, "ada", _P.CREATE)
    changed = Authorization(_O.USER, "ada", _R.TASK, "post", (_P.WORK,), key)
    do(cluster, _V.AUTHORIZATION, AuthorizationIntent.UPDATE, changed)
    assert may(cluster, ADA, _P.CREATE) == {frozenset()}
    assert may(cluster, ADA, _P.WORK) == {frozenset({"post"})}
    do(cluster, _V.AUTHORIZATION, AuthorizationIntent.DELETE, AuthorizationRef(key))
    assert may(cluster, ADA, _P.WORK) == {frozenset()}


def test_a_password_stays_when_only_the_name_changes(cluster: Cluster) -> None:
    do(cluster, _V.USER, UserIntent.CREATE, User("ada", password=b"kept"))
    do(cluster, _V.USER, UserIntent.UPDATE, User("ada", "Ada"))
    for node in cluster.nodes.values():
        stored = node.view.identities.users.get("ada")
        assert stored is not None and stored.user == User("ada", "Ada", password=b"kept")


def test_what_an_abandoned_step_gave_is_not_remembered(cluster: Cluster) -> None:
    identities = cluster.nodes[1].view.identities
    processor = cluster.nodes[1].processor
    new = Authorization(_O.USER, "ada", _R.TASK, "mail", (_P.CREATE,))
    give = Command(_V.AUTHORIZATION, AuthorizationIntent.CREATE, 0, new)
    step = processor.step([Submission([give, _CREATE_TASK])], 1)
    assert step.rejections == 0 and identities.allowed(ADA, _R.TASK, (_P.CREATE,))
    processor.abandon(step)
    assert not identities.allowed(ADA, _R.TASK, (_P.CREATE,))


_MEMBER = Membership("crew", _O.USER, "ada")
REFUSED: dict[str, tuple[ValueType, IntEnum, Any, Code]] = {
    "the same user": (_V.USER, UserIntent.CREATE, User("bob"), Code.ALREADY_EXISTS),
    "a user without a name": (_V.USER, UserIntent.CREATE, User(""), Code.INVALID_ARGUMENT),
    "a name with a newline": (_V.USER, UserIntent.CREATE, User("a\nb"), Code.INVALID_ARGUMENT),
    "a name with a slash": (_V.USER, UserIntent.CREATE, User("a/b"), Code.INVALID_ARGUMENT),
    "an unknown user": (_V.USER, UserIntent.UPDATE, User("eve"), Code.NOT_FOUND),
    "no user to delete": (_V.USER, UserIntent.DELETE, UserRef("eve"), Code.NOT_FOUND),
    "the same group": (_V.GROUP, GroupIntent.CREATE, Group("crew"), Code.ALREADY_EXISTS),
    "an unknown group": (_V.GROUP, GroupIntent.UPDATE, Group("x"), Code.NOT_FOUND),
    "nobody there": (_V.GROUP, GroupIntent.REMOVE_MEMBER, _MEMBER, Code.NOT_FOUND),
    "a group in a group": (
        _V.GROUP, GroupIntent.ADD_MEMBER, Membership("crew", _O.GROUP, "crew"),
        Code.INVALID_ARGUMENT,
    ),
    "a member twice": (
        _V.GROUP, GroupIntent.ADD_MEMBER, Membership("crew", _O.USER, "bob"), Code.ALREADY_EXISTS,
    ),
    "an unknown token": (_V.TOKEN, TokenIntent.DELETE, TokenRef("x"), Code.NOT_FOUND),
    "a token of nothing": (
        _V.TOKEN, TokenIntent.CREATE, Token("t", "robot", b""), Code.INVALID_ARGUMENT,
    ),
    "no permissions": (
        _V.AUTHORIZATION, AuthorizationIntent.CREATE,
        Authorization(_O.USER, "ada", _R.TASK, "*", ()), Code.INVALID_ARGUMENT,
    ),
    "one of another resource": (
        _V.AUTHORIZATION, AuthorizationIntent.CREATE,
        Authorization(_O.USER, "ada", _R.MESSAGE, "*", (_P.WORK,)), Code.INVALID_ARGUMENT,
    ),
    "a second one": (
        _V.AUTHORIZATION, AuthorizationIntent.CREATE,
        Authorization(_O.USER, "bob", _R.TASK, "mail", (_P.WORK,)), Code.ALREADY_EXISTS,
    ),
    "an unknown authorization": (
        _V.AUTHORIZATION, AuthorizationIntent.DELETE, AuthorizationRef(7), Code.NOT_FOUND,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_and_changes_nothing(cluster: Cluster, what: str) -> None:
    do(cluster, _V.USER, UserIntent.CREATE, User("bob"))
    do(cluster, _V.GROUP, GroupIntent.CREATE, Group("crew"))
    do(cluster, _V.GROUP, GroupIntent.ADD_MEMBER, Membership("crew", _O.USER, "bob"))
    let(cluster, _O.USER, "bob", _P.CREATE)
    value_type, intent, value, code = REFUSED[what]
    rejection = ask(cluster, value_type, intent, value).rejection
    assert rejection is not None and rejection.code is code, rejection
    assert not cluster.nodes[1].bugs


def test_only_the_deciding_partition_decides(cluster: Cluster) -> None:
    reply = cluster.ask(2, Command(_V.USER, UserIntent.CREATE, 0, User("ada")))
    assert reply.rejection is not None and reply.rejection.code is Code.INVALID_ARGUMENT


def test_owners_groups_and_memberships_have_limits(cluster: Cluster) -> None:
    view = cluster.nodes[1].view.identities
    do(cluster, _V.GROUP, GroupIntent.CREATE, Group("crew"))
    stored = view.groups.get("crew")
    assert stored is not None
    members = tuple(f"USER:{number}" for number in range(GROUP_MEMBERS_MAX))
    view.groups.put("crew", type(stored)(stored.key, stored.group, members))
    full = ask(cluster, _V.GROUP, GroupIntent.ADD_MEMBER, _MEMBER).rejection
    assert full is not None and full.code is Code.RESOURCE_EXHAUSTED
    do(cluster, _V.ROLE, GroupIntent.CREATE, Group("role"))
    view._memberships.put("USER:ada", tuple(f"ROLE:{n}" for n in range(MEMBERSHIPS_MAX)))
    many = ask(cluster, _V.ROLE, GroupIntent.ADD_MEMBER, Membership("role", _O.USER, "ada"))
    assert many.rejection is not None and many.rejection.code is Code.RESOURCE_EXHAUSTED
    let(cluster, _O.USER, "eve", _P.CREATE)
    [grant] = view.grants("USER:eve")
    view._grants.put("USER:eve", (grant,) * AUTHORIZATIONS_PER_OWNER_MAX)
    new = Authorization(_O.USER, "eve", _R.TASK, "other", (_P.CREATE,))
    more = ask(cluster, _V.AUTHORIZATION, AuthorizationIntent.CREATE, new).rejection
    assert more is not None and more.code is Code.RESOURCE_EXHAUSTED


# --- the walk over all commands ---------------------------------------------------------------

# What only the engine itself, time, or another partition asks for.
INNER = {
    "JOB_BATCH": {"EXPIRE", "WAKE", "PURGE"},
    "SCHEDULE": {"FIRE"},
    "PROCESS": {"FIRE"},
    "PROCESS_INSTANCE": {"CONTINUE", "PROCEED", "TRIGGER", "RETURN", "CATCH"},
    "MESSAGE": {"EXPIRE", "START"},
    "MESSAGE_SUBSCRIPTION": {"OPEN", "CLOSE", "CORRELATE", "ANSWER", "MIGRATE"},
    "REQUEST": {"PURGE"},
    "PARCEL": {"RECEIVE", "ACKNOWLEDGE", "RESEND"},
    "TRANSACTION": {"PREPARE", "VOTE", "DECIDE", "ACKNOWLEDGE", "EXPIRE"},
    "DISTRIBUTION": {"ACKNOWLEDGE", "REDISTRIBUTE", "REFUSE", "POSTPONE", "CONTINUE"},
    "BATCH_OPERATION": {
        "START", "CONTINUE_INITIALIZATION", "FAIL", "COMPLETE_PARTITION", "FAIL_PARTITION",
    },
    "BATCH_OPERATION_CHUNK": {"CREATE"},
    "BATCH_OPERATION_EXECUTION": {"EXECUTE"},
}  # fmt: skip


def commands() -> Iterator[Any]:
    for domain in DOMAINS:
        for intent in domain.commands:
            yield pytest.param(domain, intent, id=f"{domain.value_type.name} {intent.name}")


@pytest.mark.parametrize(("domain", "intent"), list(commands()))
def test_every_command_names_what_it_needs_or_is_never_asked_from_outside(
    domain: Any, intent: IntEnum
) -> None:
    is_inner = intent.name in INNER.get(domain.value_type.name, set())
    assert is_inner != (intent in domain.needs), "a command from outside names its permission"


def test_an_inner_command_is_refused_to_every_user_and_client(cluster: Cluster) -> None:
    for resource, permissions in PERMISSIONS.items():
        new = Authorization(_O.USER, "ada", resource, "*", tuple(permissions))
        do(cluster, _V.AUTHORIZATION, AuthorizationIntent.CREATE, new)
    for domain in DOMAINS:
        for name in INNER.get(domain.value_type.name, set()):
            intent = domain.intents[name]
            command = Command(domain.value_type, intent, 1, None, {"sub": "ada"})
            rejection = cluster.ask(1, command).rejection
            assert rejection is not None and rejection.code is Code.FORBIDDEN
