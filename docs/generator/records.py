"""docs/reference/records.md: value types, intents and the struct of each."""

import typing
from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import Any

from generator import markdown
from generator.markdown import code, first_line, prose, table
from generator.source import fields_of, members_of
from holdfast.engine.batch import values as batch
from holdfast.engine.distribution import values as distribution
from holdfast.engine.identity import values as identity
from holdfast.engine.incidents import values as incidents
from holdfast.engine.jobs import values as jobs
from holdfast.engine.messages import values as messages
from holdfast.engine.parcels import values as parcels
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes import ops
from holdfast.engine.processes import values as processes
from holdfast.engine.requests import values as requests
from holdfast.engine.timers import values as timers
from holdfast.engine.transactions import values as transactions
from holdfast.records import Delivery, Record, RecordKind, Rejection, ValueType
from holdfast.records import keys as keys_module

_INTENTS: dict[ValueType, tuple[type[IntEnum], Mapping[Any, type[Any]]]] = {
    ValueType.JOB: (jobs.JobIntent, jobs.JOB_VALUES),
    ValueType.JOB_BATCH: (jobs.JobBatchIntent, jobs.JOB_BATCH_VALUES),
    ValueType.INCIDENT: (incidents.IncidentIntent, incidents.VALUES),
    ValueType.SCHEDULE: (timers.ScheduleIntent, timers.VALUES),
    ValueType.PROCESS: (processes.ProcessIntent, processes.PROCESS_VALUES),
    ValueType.PROCESS_INSTANCE: (processes.InstanceIntent, processes.INSTANCE_VALUES),
    ValueType.MESSAGE: (messages.MessageIntent, messages.MESSAGE_VALUES),
    ValueType.MESSAGE_SUBSCRIPTION: (messages.SubscriptionIntent, messages.SUBSCRIPTION_VALUES),
    ValueType.PARCEL: (parcels.ParcelIntent, parcels.PARCEL_VALUES),
    ValueType.DISTRIBUTION: (distribution.DistributionIntent, distribution.DISTRIBUTION_VALUES),
    ValueType.BATCH_OPERATION: (batch.BatchOperationIntent, batch.BATCH_OPERATION_VALUES),
    ValueType.BATCH_OPERATION_CHUNK: (batch.BatchOperationChunkIntent, batch.CHUNK_VALUES),
    ValueType.BATCH_OPERATION_EXECUTION: (
        batch.BatchOperationExecutionIntent,
        batch.EXECUTION_VALUES,
    ),
    ValueType.USER: (identity.UserIntent, identity.USER_VALUES),
    ValueType.GROUP: (identity.GroupIntent, identity.GROUP_VALUES),
    ValueType.ROLE: (identity.GroupIntent, identity.GROUP_VALUES),
    ValueType.TOKEN: (identity.TokenIntent, identity.TOKEN_VALUES),
    ValueType.AUTHORIZATION: (identity.AuthorizationIntent, identity.AUTHORIZATION_VALUES),
    ValueType.REQUEST: (requests.RequestIntent, requests.VALUES),
    ValueType.TRANSACTION: (transactions.TransactionIntent, transactions.TRANSACTION_VALUES),
}
# structs inside values
_PARTS: tuple[type[Any], ...] = (
    jobs.Backoff,
    processes.StartTimer,
    processes.Activate,
    batch.Selection,
    batch.Counts,
    batch.PartitionError,
    batch.ItemFailure,
)
_ENUMS: tuple[type[Enum], ...] = (
    jobs.BackoffKind,
    incidents.IncidentReason,
    batch.BatchOperationType,
    batch.BatchOperationState,
    batch.PartitionErrorType,
    identity.OwnerType,
    identity.ResourceType,
    identity.Permission,
)


def _parts() -> list[str]:
    parts = [
        "Everything on the log is a record. On disk a record is a msgpack array, with the fields in"
        " this order. Numbers of kinds, value types, intents and tags are never changed and never"
        " used again. Fields are only ever added at the end.",
        "## The record",
        _fields(Record),
        "## Kinds",
        _members(RecordKind),
        "A rejection says why:",
        _fields(Rejection),
        "A delivery says how a command came that another partition distributed:",
        _fields(Delivery),
        "## Keys",
        _keys(),
        "## Value types",
        _members(ValueType),
    ]
    seen: dict[type[Any], None] = {}
    for value_type, (intents, values) in _INTENTS.items():
        comments = members_of(intents)
        parts += [f"## Intents of {value_type.name}", prose(intents.__doc__)]
        rows = []
        for intent in intents:
            kind = values[intent]
            seen[kind] = None
            if kind in DISPATCH.variants:
                seen[DISPATCH.variants[kind]] = None
            what = "command" if _is_command(value_type, intent) else "event"
            link = f"[{kind.__name__}](#{kind.__name__.lower()})"
            rows.append((str(int(intent)), code(intent.name), what, link, comments[intent.name]))
        parts.append(table(("Number", "Intent", "Kind", "Value", ""), rows))
    parts += ["## Values", "A value is an array that begins with its tag."]
    for kind in sorted(seen, key=lambda kind: kind.__struct_config__.tag):
        parts += _struct(kind, f"Tag {kind.__struct_config__.tag}. ")
    for kind in _PARTS:
        parts += _struct(kind, "")
    for kind in _ENUMS:
        parts += [f"### {kind.__name__}", prose(kind.__doc__), _members(kind)]
    return parts + _changes()


def _changes() -> list[str]:
    """What the events of an instance are made of."""
    rows = [
        (str(kind.__struct_config__.tag), code(kind.__name__), prose(kind.__doc__), _inside(kind))
        for kind in typing.get_args(ops.Op)
    ]
    return [
        "## Changes of an instance",
        "Every event of a process instance is one [Advance](#advance), and what happened is in its"
        " `ops`: the changes, in the order in which they were decided and are applied. A change is"
        " an array that begins with its tag, like a value; its tags are counted apart from those of"
        " values. `node` and `flow` are places in the definition, counted from 0.",
        table(("Tag", "Change", "Meaning", "Fields"), rows),
        "### Phase",
        _members(ops.Phase),
    ]


def _inside(kind: type[Any]) -> str:
    """The fields of a change in one cell."""
    return "<br>".join(
        code(field.name) + (f": {field.comment}" if field.comment else "")
        for field in fields_of(kind)
    )


def page() -> str:
    """The page of all records."""
    assert set(_INTENTS) == set(ValueType), "a value type is missing in docs/generator/records.py"
    return markdown.page("Records", *_parts())


def _is_command(value_type: ValueType, intent: IntEnum) -> bool:
    return (value_type, intent) in DISPATCH.handlers


def _struct(kind: type[Any], lead: str) -> list[str]:
    return [f"### {kind.__name__}", lead + prose(kind.__doc__), _fields(kind)]


def _fields(kind: type[Any]) -> str:
    rows = [
        (code(field.name), code(field.annotation), code(field.default), field.comment)
        for field in fields_of(kind)
    ]
    return table(("Field", "Type", "Default", ""), rows) if rows else "It has no fields."


def _members(kind: type[Enum]) -> str:
    comments = members_of(kind)
    lead = f"{first_line(kind.__doc__)}\n\n" if not issubclass(kind, str) else ""
    rows = [(code(str(member.value)), code(member.name), comments[member.name]) for member in kind]
    if issubclass(kind, str):
        return table(("Value", ""), [(value, comment) for value, _, comment in rows])
    return lead + table(("Number", "Name", ""), rows)


def _keys() -> str:
    summary, _, rest = (keys_module.__doc__ or "").strip().partition("\n\n")
    picture, _, why = rest.partition("\n\n")
    return f"{summary}\n\n```text\n{picture.strip()}\n```\n\n{prose(why)}"
