"""The tables of the processes room."""

from holdfast.engine.due.dates import DueKind
from holdfast.engine.identity.values import Permission
from holdfast.engine.kernel import Distributed, Domain, WhenDue
from holdfast.engine.processes import commands, deployments, events, migrate, modify, needs
from holdfast.engine.processes.values import (
    INSTANCE_VALUES,
    PROCESS_VALUES,
    HeadedInstance,
    InstanceIntent,
    InstanceRef,
    NewInstance,
    ProcessIntent,
    StartFiring,
)
from holdfast.records import ValueType

PROCESS: Domain = Domain(
    value_type=ValueType.PROCESS,
    intents=ProcessIntent,
    values=PROCESS_VALUES,
    commands={
        ProcessIntent.DEPLOY: Distributed(deployments.deploy, deployments.follow),
        ProcessIntent.FIRE: deployments.fire,
    },
    appliers={
        ProcessIntent.DEPLOYED: events.deployed,
        ProcessIntent.FIRED: events.fired,
    },
    needs={ProcessIntent.DEPLOY: needs.deploy},
    due={
        DueKind.START_TIMER: WhenDue(ProcessIntent.FIRE, lambda rows: StartFiring(-1, rows[0][0])),
    },
)

PROCESS_INSTANCE: Domain = Domain(
    value_type=ValueType.PROCESS_INSTANCE,
    intents=InstanceIntent,
    values=INSTANCE_VALUES,
    commands={
        InstanceIntent.CREATE: commands.create,
        InstanceIntent.CANCEL: commands.cancel,
        InstanceIntent.CONTINUE: commands.go_on,
        InstanceIntent.TRIGGER: commands.trigger,
        InstanceIntent.RETURN: commands.return_,
        InstanceIntent.CATCH: commands.catch,
        InstanceIntent.SET_VARIABLES: commands.set_variables,
        InstanceIntent.MODIFY: modify.modify,
        InstanceIntent.MIGRATE: migrate.migrate,
        InstanceIntent.DELETE: commands.delete,
        InstanceIntent.PROCEED: commands.proceed,
    },
    appliers={
        InstanceIntent.CREATED: events.advanced,
        InstanceIntent.ADVANCED: events.advanced,
        InstanceIntent.COMPLETED: events.advanced,
        InstanceIntent.CANCELED: events.advanced,
        InstanceIntent.MODIFIED: events.advanced,
        InstanceIntent.MIGRATED: events.advanced,
        InstanceIntent.DELETED: events.deleted,
    },
    last_key=events.last_key,
    needs={
        InstanceIntent.CREATE: needs.create,
        InstanceIntent.CANCEL: needs.named(Permission.CANCEL_PROCESS_INSTANCE),
        InstanceIntent.SET_VARIABLES: needs.named(Permission.UPDATE_PROCESS_INSTANCE),
        InstanceIntent.MODIFY: needs.named(Permission.MODIFY_PROCESS_INSTANCE),
        InstanceIntent.MIGRATE: needs.migrate,
        InstanceIntent.DELETE: needs.delete,
    },
    due={
        DueKind.TIMER: WhenDue(InstanceIntent.TRIGGER, lambda _: InstanceRef()),
        DueKind.CONTINUE: WhenDue(InstanceIntent.CONTINUE, lambda _: InstanceRef()),
        DueKind.TREE: WhenDue(InstanceIntent.PROCEED, lambda _: InstanceRef()),
    },
    variants={NewInstance: HeadedInstance},
)
