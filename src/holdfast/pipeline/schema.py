"""The tables: their columns, and what each means. The reference is generated from here."""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """What a column holds."""

    LONG = "long"
    INT = "int"
    TEXT = "text"
    TIME = "time"  # a point in time, in UTC, to the millisecond
    FLAG = "flag"
    BYTES = "bytes"


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    name: str
    kind: Kind
    about: str
    is_sum: bool = False  # changes are added up; of any other column the last one counts


class Table(msgspec.Struct, frozen=True):
    """One table. Its first column says which partition a row belongs to: by key, or by log."""

    name: str
    about: str
    columns: tuple[Column, ...]
    is_history: bool = False  # rows are only ever added; otherwise there is one for each key
    key_columns: int = 1  # the first so many columns are the key

    @property
    def keys(self) -> tuple[str, ...]:
        return self.names[: self.key_columns]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> Column | None:
        return next((column for column in self.columns if column.name == name), None)


def _text(name: str, about: str) -> Column:
    return Column(name, Kind.TEXT, about)


def _long(name: str, about: str) -> Column:
    return Column(name, Kind.LONG, about)


def _int(name: str, about: str, *, is_sum: bool = False) -> Column:
    return Column(name, Kind.INT, about, is_sum)


def _time(name: str, about: str) -> Column:
    return Column(name, Kind.TIME, about)


_PARTITION = _int("partition_id", "the partition whose log tells of it")
_POSITION = _long("position", "of the last record that changed the row, in its partition's log")

RECORDS = Table(
    "records",
    "every record of the log",
    (
        _long("position", "in the partition's log"),
        _PARTITION,
        _text("kind", "COMMAND, EVENT or REJECTION"),
        _text("value_type", "what it is about"),
        _text("intent", "what is asked, or what happened"),
        _long("key", "of what it is about; 0 for a command that makes something new"),
        _long("source_position", "the command that led to it; -1 for one from outside"),
        _time("timestamp", "when it was written"),
        _text("value", "what it says, as JSON"),
        _text("claims", "who asked, as JSON"),
        _text("rejection_code", "why a command was not done"),
        _text("rejection_reason", "the same in words"),
        _text("queue", "by which queue a distributed command came"),
        _int("attempt", "the how-manieth sending of a distributed command it was"),
    ),
    is_history=True,
)

PROCESS_DEFINITIONS = Table(
    "process_definitions",
    "every version of every process",
    (
        _long("process_definition_key", "names the version"),
        _PARTITION,
        _text("process_id", "the id in the file or in Python"),
        _int("version", "counts up from 1 for each id"),
        _text("name", "for people"),
        _time("deployed", "when"),
        _POSITION,
    ),
)

PROCESS_INSTANCES = Table(
    "process_instances",
    "every instance of a process, running or ended",
    (
        _long("process_instance_key", "names the instance"),
        _PARTITION,
        _long("process_definition_key", "the version that it follows"),
        _text("process_id", "of that version"),
        _int("version", "of that version"),
        _text("state", "ACTIVE, COMPLETED, CANCELED, or DELETED after it had ended"),
        _time("started", "when it was created"),
        _time("ended", "when it was completed or canceled"),
        _long("parent_element_instance_key", "the call activity that started it, if one did"),
        _int("incidents", "how many of its incidents are open", is_sum=True),
        _text("result", "the variables that it ended with, as JSON"),
        _POSITION,
    ),
)

ELEMENT_INSTANCES = Table(
    "element_instances",
    "every instance of an element that waited or works",
    (
        _long("element_instance_key", "names it"),
        _PARTITION,
        _long("process_instance_key", "the instance it belongs to"),
        _long("process_definition_key", "the version that it is an element of"),
        _text("process_id", "of that version"),
        _text("element_id", "in the definition"),
        _text("type", "what kind of element it is"),
        _text("state", "ACTIVE, COMPLETED or TERMINATED"),
        _long("scope_key", "the sub-process or the instance that it is in"),
        _int("item", "of a multi-instance activity: its number, from 1"),
        _time("started", "when a token came"),
        _time("ended", "when it was completed or terminated"),
        _long("incident_key", "of the incident it waits for"),
        _POSITION,
    ),
)

JOBS = Table(
    "jobs",
    "every job: tasks, and what elements of processes want done",
    (
        _long("job_key", "names it; the key of the task"),
        _PARTITION,
        _text("type", "which worker does it"),
        _text(
            "state",
            "WAITING, SCHEDULED, ACTIVE, INCIDENT, COMPLETED, CANCELED, DISCARDED or ERROR_THROWN",
        ),
        _int("priority", "the higher the sooner"),
        _int("retries", "failures that are left"),
        _int("failures", "so far", is_sum=True),
        _int("expiries", "leases that ran out", is_sum=True),
        _time("created", "when it was submitted"),
        _time("due", "when it may run, while it is SCHEDULED"),
        _time("activated", "when a worker was last given it"),
        _time("ended", "when it came to its end"),
        _text("worker", "who was last given it"),
        _text("error", "of the last failure"),
        _text("error_code", "of an error that its process knows"),
        _text("idempotency_key", "that it was submitted with"),
        _long("incident_key", "of the incident that it waits for"),
        _long("process_instance_key", "that it is done for"),
        _long("element_instance_key", "that it is done for"),
        _POSITION,
    ),
)

VARIABLES = Table(
    "variables",
    "the last value of every variable of every scope",
    (
        _long("scope_key", "the instance or the element instance it belongs to"),
        _text("name", "of the variable"),
        _PARTITION,
        _long("process_instance_key", "that it is in"),
        _text("value", "as JSON"),
        _time("updated", "when it got this value"),
        _POSITION,
    ),
    key_columns=2,
)

INCIDENTS = Table(
    "incidents",
    "every incident, open or not",
    (
        _long("incident_key", "names it"),
        _PARTITION,
        _text("state", "OPEN, RESOLVED or DISCARDED"),
        _text("reason", "what kind of trouble it is"),
        _text("error", "in words"),
        _text("type", "of the job, if it is about one"),
        _long("job_key", "that it is about"),
        _long("process_instance_key", "that it stops"),
        _text("process_id", "of that instance"),
        _text("element_id", "that it stops at"),
        _long("element_instance_key", "that it stops at"),
        _time("created", "when"),
        _time("ended", "when it was resolved or discarded"),
        _POSITION,
    ),
)

MESSAGES = Table(
    "messages",
    "every message that was published",
    (
        _long("message_key", "names it"),
        _PARTITION,
        _text("name", "that subscriptions wait for"),
        _text("correlation_key", "that tells instances apart"),
        _text("message_id", "that keeps it from being published twice"),
        _text("state", "PUBLISHED, or EXPIRED once it is kept no longer"),
        _int("correlations", "how often an instance took it or was started by it", is_sum=True),
        _time("published", "when"),
        _time("expires", "until when it is kept"),
        _text("variables", "as JSON"),
        _POSITION,
    ),
)

DISTRIBUTIONS = Table(
    "distributions",
    "every command that was distributed to other partitions",
    (
        _long("distribution_key", "names it"),
        _PARTITION,
        _text("value_type", "of the command"),
        _text("intent", "of the command"),
        _text("queue", "that it stood in"),
        _text("state", "DISTRIBUTING or FINISHED"),
        _int("acknowledged", "by how many partitions", is_sum=True),
        _int("given_up", "for how many partitions people skipped or canceled it", is_sum=True),
        _int("refusals", "how often a partition said that it threw", is_sum=True),
        _int("resent", "how often it was sent again", is_sum=True),
        _text("refusal", "what a partition last said"),
        _text("decided_by", "who skipped or canceled it"),
        _time("started", "when"),
        _time("finished", "when nothing of it was left"),
        _POSITION,
    ),
)

_OUTCOMES = (
    _int("total", "items that were selected", is_sum=True),
    _int("completed", "items that were done", is_sum=True),
    _int("failed", "items that were refused", is_sum=True),
    _int("skipped", "items whose target was gone", is_sum=True),
    _int("canceled", "items that were given up", is_sum=True),
)

BATCH_OPERATIONS = Table(
    "batch_operations",
    "every batch operation; its items are counted when a partition is done with them",
    (
        _long("batch_operation_key", "names it"),
        _PARTITION,
        _text("type", "what is done with each item"),
        _text(
            "state",
            "CREATED, ACTIVE, SUSPENDED, COMPLETED, PARTIALLY_COMPLETED, FAILED or CANCELED",
        ),
        _text("filter", "that chose the items, as JSON"),
        _text("plan", "of a modification or a migration, or the retries, as JSON"),
        _text("actor", "who created it"),
        _text("actor_type", "USER or CLIENT; empty if nobody said who they are"),
        _int("throttle", "items a second, over all partitions; 0 for none"),
        _int("priority", "the higher the sooner"),
        _int("partitions", "how many take part"),
        _int("partitions_ended", "how many of them are done", is_sum=True),
        _text("selection", "the name of the snapshot that it works on"),
        _long("repeats", "the operation whose failed items or partitions it tries again"),
        _time("created", "when"),
        _time("ended", "when every partition was done, or it was given up everywhere"),
        *_OUTCOMES,
        _text("errors", "of partitions that failed: partition, type and message, as JSON"),
        _POSITION,
    ),
)

BATCH_OPERATION_PARTITIONS = Table(
    "batch_operation_partitions",
    "what every partition has done of every batch operation: the sums are how far it is now",
    (
        _long("batch_operation_key", "the operation"),
        _PARTITION,
        _text("state", "CREATED, ACTIVE, COMPLETED or FAILED"),
        _time("started", "when it began to select its items"),
        _time("ended", "when it was done"),
        *_OUTCOMES,
        _text("error_type", "why its items could not be selected"),
        _text("error", "the same in words"),
        _POSITION,
    ),
    key_columns=2,
)

BATCH_OPERATION_ITEMS = Table(
    "batch_operation_items",
    "every item of every batch operation",
    (
        _long("item_key", "of the instance, the incident or the task"),
        _long("batch_operation_key", "the operation"),
        _PARTITION,
        _long("process_instance_key", "that it is, or is of"),
        _text("type", "what is done with it"),
        _text("state", "ACTIVE, COMPLETED, FAILED, SKIPPED or CANCELED"),
        _time("processed", "when it got its outcome"),
        _text("error_code", "why it was refused"),
        _text("error", "the same in words"),
        _POSITION,
    ),
    key_columns=2,
)

QUARANTINE = Table(
    "quarantine",
    "what stands in the log and could not be read",
    (
        _long("position", "in the partition's log"),
        _PARTITION,
        Column("bytes", Kind.BYTES, "as they are"),
        _text("error", "why they are no record"),
        _time("timestamp", "when they were written"),
    ),
    is_history=True,
)

CONTENT_PACKAGES = Table(
    "content_packages",
    "every package that was published",
    (
        _long("position", "its offset in the topic of packages"),
        _text("publisher", "whose it is"),
        _long("number", "counts the publisher's packages from 1"),
        _text("package_id", "names it"),
        _text("action", "ADD, DELETE, INVALIDATE or TEST"),
        _text("paths", "which it is about, as a JSON list"),
        _text("deep_paths", "of them, those with all below them, as a JSON list"),
        _long("size_bytes", "of the package, without the binaries that are elsewhere"),
        _int("binaries", "how many binaries are elsewhere"),
        _text("blob", "where the package itself is, if it was too large for the log"),
        _text("user", "who published it"),
        _text("metadata", "what the publisher says of it, as JSON"),
        _time("published", "when"),
    ),
    is_history=True,
)

CONTENT_DELIVERIES = Table(
    "content_deliveries",
    "what became of packages at subscribers that say so: editable ones, and those that gave up",
    (
        _long("position", "in the topic of statuses"),
        _text("subscriber", "where"),
        _text("publisher", "of the package"),
        _long("package_position", "the offset of the package"),
        _long("number", "of the publisher's packages"),
        _text("package_id", "names the package"),
        _text("outcome", "IMPORTED, REMOVED or REMOVED_FAILED"),
        _text("reason", "why it failed"),
        _int("attempts", "how often it was tried"),
        _time("ended", "when, by the subscriber's clock"),
    ),
    is_history=True,
)

CONTENT_SUBSCRIBERS = Table(
    "content_subscribers",
    "how far subscribers were each time that they said so",
    (
        _long("position", "in the topic of discoveries"),
        _text("subscriber", "who"),
        _text("publisher", "whose packages"),
        _long("package_position", "the offset of the last package that it has done with"),
        _long("number", "of that package"),
        _int("retries", "of the package behind it"),
        _text("reason", "why that one fails"),
        Column("editable", Kind.FLAG, "whether its queue may be cleared"),
        _int("retries_max", "after which it gives up; -1: never"),
        Column("ready", Kind.FLAG, "whether it has caught up since it started"),
        _long("imported", "packages since it started"),
        _long("imported_bytes", "of them"),
        _long("import_ms", "that importing them took"),
        _text("host", "where it runs"),
        _time("heard", "when"),
    ),
    is_history=True,
)

# Not kept anywhere: what a reader is told that reads the log itself.
RANGES = Table(
    "ranges",
    "which positions of which partition are new",
    (
        _PARTITION,
        _long("start", "the first position"),
        _long("end", "the position after the last"),
    ),
)

TABLES = {
    table.name: table
    for table in (
        RECORDS, PROCESS_DEFINITIONS, PROCESS_INSTANCES, ELEMENT_INSTANCES, JOBS, VARIABLES,
        INCIDENTS, MESSAGES, DISTRIBUTIONS, BATCH_OPERATIONS, BATCH_OPERATION_PARTITIONS,
        BATCH_OPERATION_ITEMS, QUARANTINE, CONTENT_PACKAGES, CONTENT_DELIVERIES,
        CONTENT_SUBSCRIBERS,
    )
}  # fmt: skip
