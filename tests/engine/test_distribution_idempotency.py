"""Every command that is distributed may come twice: the second time changes nothing."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

import msgspec
import pytest
from distribution_checks import check_end
from distribution_cluster import NOTES_ENGINE, Cluster, Engine
from distribution_domain import NOTES, Note, NoteIntent
from process_talk import deployment

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationType,
    Change,
    OperationRef,
)
from holdfast.engine.families import Tag
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
from holdfast.engine.kernel import Command
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.processes.values import ProcessIntent
from holdfast.model.dsl import Process
from holdfast.records import Delivery, ValueType, key_of

ORIGIN, RECEIVER = 1, 2
ENGINE = Engine(DISPATCH, open_partition)
_TAG_AT = 2  # behind the partition

Type = tuple[int, int]  # (value type, intent)
Rows = list[tuple[bytes, bytes]]


class Scenario(msgspec.Struct, frozen=True):
    """How a type of command comes to be distributed."""

    command: Command
    before: tuple[Command, ...] = ()  # what the origin has to do first
    may_change: frozenset[Tag] = frozenset()  # by what comes twice


BATCH = ValueType.BATCH_OPERATION
_B = BatchOperationIntent
OPERATION = key_of(ORIGIN, 1)  # the first key there is
_CREATE = Command(
    BATCH, _B.CREATE, 0, BatchOperation(BatchOperationType.RETRY_TASK, b'{"type":"send"}')
)
_SUSPEND = Command(BATCH, _B.SUSPEND, OPERATION, OperationRef())
# What a partition tells the leader is a parcel, and nobody carries parcels here.
_PARCELS = frozenset({Tag.OUTBOX, Tag.LINES, Tag.DUE})

SCENARIOS: dict[Type, Scenario] = {
    (ValueType.PROCESS, ProcessIntent.DEPLOY): Scenario(
        Command(
            ValueType.PROCESS,
            ProcessIntent.DEPLOY,
            0,
            deployment(Process("p").wait("w", message="m", key="key")),
        ),
    ),
    (BATCH, _B.CREATE): Scenario(_CREATE),
    (BATCH, _B.SUSPEND): Scenario(_SUSPEND, (_CREATE,)),
    (BATCH, _B.RESUME): Scenario(
        Command(BATCH, _B.RESUME, OPERATION, OperationRef()), (_CREATE, _SUSPEND)
    ),
    (BATCH, _B.CANCEL): Scenario(
        Command(BATCH, _B.CANCEL, OPERATION, OperationRef()), (_CREATE,), _PARCELS
    ),
    (BATCH, _B.CHANGE): Scenario(
        Command(BATCH, _B.CHANGE, OPERATION, Change(0, 50, 7)), (_CREATE,)
    ),
}


_USER = Command(ValueType.USER, UserIntent.CREATE, 0, User("ada", password=b"kept"))
_GROUP = Command(ValueType.GROUP, GroupIntent.CREATE, 0, Group("crew"))
_ROLE = Command(ValueType.ROLE, GroupIntent.CREATE, 0, Group("reader"))
_TOKEN = Command(ValueType.TOKEN, TokenIntent.CREATE, 0, Token("t1", "robot", b"digest"))
_MEMBER = Membership("crew", OwnerType.USER, "ada")
_READER = Membership("reader", OwnerType.GROUP, "crew")
_JOIN = Command(ValueType.GROUP, GroupIntent.ADD_MEMBER, 0, _MEMBER)
_GET_ROLE = Command(ValueType.ROLE, GroupIntent.ADD_MEMBER, 0, _READER)
_READ = Authorization(
    OwnerType.ROLE, "reader", ResourceType.TASK, "mail", (Permission.READ,), OPERATION
)
_LET = Command(ValueType.AUTHORIZATION, AuthorizationIntent.CREATE, 0, _READ)


def _identity(
    value_type: ValueType, intent: IntEnum, value: Any, *before: Command
) -> dict[Type, Scenario]:
    return {(value_type, intent): Scenario(Command(value_type, intent, 0, value), before)}


SCENARIOS |= (
    _identity(ValueType.USER, UserIntent.CREATE, _USER.value)
    | _identity(ValueType.USER, UserIntent.UPDATE, User("ada", "Ada"), _USER)
    | _identity(ValueType.USER, UserIntent.DELETE, UserRef("ada"), _USER, _GROUP, _JOIN)
    | _identity(ValueType.GROUP, GroupIntent.CREATE, _GROUP.value)
    | _identity(ValueType.GROUP, GroupIntent.UPDATE, Group("crew", "All"), _GROUP)
    | _identity(ValueType.GROUP, GroupIntent.DELETE, GroupRef("crew"), _GROUP, _JOIN)
    | _identity(ValueType.GROUP, GroupIntent.ADD_MEMBER, _MEMBER, _GROUP)
    | _identity(ValueType.GROUP, GroupIntent.REMOVE_MEMBER, _MEMBER, _GROUP, _JOIN)
    | _identity(ValueType.ROLE, GroupIntent.CREATE, _ROLE.value)
    | _identity(ValueType.ROLE, GroupIntent.UPDATE, Group("reader", "All"), _ROLE)
    | _identity(ValueType.ROLE, GroupIntent.DELETE, GroupRef("reader"), _ROLE, _GET_ROLE)
    | _identity(ValueType.ROLE, GroupIntent.ADD_MEMBER, _READER, _ROLE)
    | _identity(ValueType.ROLE, GroupIntent.REMOVE_MEMBER, _READER, _ROLE, _GET_ROLE)
    | _identity(ValueType.TOKEN, TokenIntent.CREATE, _TOKEN.value)
    | _identity(ValueType.TOKEN, TokenIntent.DELETE, TokenRef("t1"), _TOKEN)
    | _identity(ValueType.AUTHORIZATION, AuthorizationIntent.CREATE, _READ)
    | _identity(
        ValueType.AUTHORIZATION,
        AuthorizationIntent.UPDATE,
        msgspec.structs.replace(_READ, resource_id="*"),
        _LET,
    )
    | _identity(
        ValueType.AUTHORIZATION, AuthorizationIntent.DELETE, AuthorizationRef(OPERATION), _LET
    )
)


def check_types(types: Iterable[Type], scenarios: Mapping[Type, Scenario], engine: Engine) -> None:
    """Walks over all types; fails if one has no scenario, or is not the same the second time."""
    for value_type, intent in types:
        name = f"{ValueType(value_type).name} {intent}"
        scenario = scenarios.get((value_type, intent))
        assert scenario is not None, f"{name} is distributed and has no scenario: add one"
        _check_redistributed(name, scenario, engine)


def _check_redistributed(name: str, scenario: Scenario, engine: Engine) -> None:
    cluster = Cluster(2, engine=engine)
    for command in scenario.before:
        assert cluster.ask(ORIGIN, command).rejection is None
        cluster.run()
    receiver = cluster.nodes[RECEIVER]
    at_first = _rows(cluster, scenario)
    cluster.posted.clear()
    cluster.cut = {(RECEIVER, ORIGIN)}  # the first acknowledgement is lost
    assert cluster.ask(ORIGIN, scenario.command).rejection is None
    cluster.run(5)
    once = _rows(cluster, scenario)
    assert once != at_first, f"{name} does nothing at its receiver"
    cluster.cut = set()
    cluster.run(60)
    attempts = [each.command.delivery for each in cluster.commands_to(RECEIVER)]
    assert [each and each.attempt for each in attempts] == [1, 2], f"{name} was not sent again"
    assert _rows(cluster, scenario) == once, f"{name} is not the same the second time"
    assert cluster.finished and not receiver.bugs
    check_end(cluster)
    # A queue keeps what comes again from its handler. The handler must not count on that.
    again = msgspec.structs.replace(cluster.commands_to(RECEIVER)[0].command, delivery=Delivery())
    cluster.ask(RECEIVER, again)
    assert _rows(cluster, scenario) == once, f"{name} is done again by its own handler"
    assert not receiver.bugs, f"{name} throws the second time: {receiver.bugs}"


def _rows(cluster: Cluster, scenario: Scenario) -> Rows:
    dump = cluster.nodes[RECEIVER].dump()
    return [row for row in dump if row[0][_TAG_AT] not in scenario.may_change]


def test_every_distributed_command_is_the_same_when_it_comes_twice() -> None:
    assert DISPATCH.distributed, "something is distributed"
    check_types(DISPATCH.distributed, SCENARIOS, ENGINE)


def test_no_scenario_is_for_a_type_that_is_not_distributed() -> None:
    assert SCENARIOS.keys() == DISPATCH.distributed.keys()


def test_the_walk_fails_at_a_type_without_a_scenario() -> None:
    types = [*DISPATCH.distributed, (int(ValueType.MESSAGE), 99)]
    with pytest.raises(AssertionError, match="MESSAGE 99 is distributed and has no scenario"):
        check_types(types, SCENARIOS, ENGINE)


def _note(queue: str) -> dict[Type, Scenario]:
    command = Command(NOTES, NoteIntent.NOTE, 0, Note(7, queue))
    return {(NOTES, NoteIntent.NOTE): Scenario(command)}


def test_the_walk_fails_at_a_handler_that_does_it_again() -> None:
    check_types(_note(""), _note(""), NOTES_ENGINE)
    with pytest.raises(AssertionError, match="is done again by its own handler"):
        check_types(_note("a"), _note("a"), NOTES_ENGINE)
