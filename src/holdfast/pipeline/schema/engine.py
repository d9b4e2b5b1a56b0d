"""The tables of records: their columns, and what each means."""

from holdfast.pipeline.schema.columns import Column, ColumnKind, Table, long, text, time, whole

_PARTITION = whole("partition_id", "the partition whose log has it")
_POSITION = long("position", "of the last record that changed the row, in its partition's log")

RECORDS = Table(
    "records",
    "every record of the log",
    (
        long("position", "in the partition's log"),
        _PARTITION,
        text("kind", "COMMAND, EVENT or REJECTION"),
        text("value_type", "what it is about"),
        text("intent", "the command, event or rejection"),
        long("key", "the key of its subject; 0 for a command that creates something"),
        long("source_position", "the command that led to it; -1 for one from outside"),
        time("timestamp", "when it was written"),
        text("value", "the value, as JSON"),
        text("claims", "the user or client, as JSON"),
        text("rejection_code", "the code of a rejection"),
        text("rejection_reason", "the message"),
        text("queue", "the queue of a distributed command"),
        whole("attempt", "the attempt of a distributed command, from 1"),
    ),
    is_history=True,
)

PROCESS_DEFINITIONS = Table(
    "process_definitions",
    "every version of every process",
    (
        long("process_definition_key", "names the version"),
        _PARTITION,
        text("process_id", "the id in the file or in Python"),
        whole("version", "counts up from 1 for each id"),
        text("name", "the display name"),
        time("deployed", "when"),
        _POSITION,
    ),
)

PROCESS_INSTANCES = Table(
    "process_instances",
    "every instance of a process, running or ended",
    (
        long("process_instance_key", "names the instance"),
        _PARTITION,
        long("process_definition_key", "the version that it follows"),
        text("process_id", "of that version"),
        whole("version", "of that version"),
        text("state", "ACTIVE, COMPLETED, CANCELED, or DELETED after it had ended"),
        time("started", "when it was created"),
        time("ended", "when it was completed or canceled"),
        long("parent_element_instance_key", "the call activity that started it, if one did"),
        whole("incidents", "how many of its incidents are open", is_sum=True),
        text("result", "the variables that it ended with, as JSON"),
        _POSITION,
    ),
)

ELEMENT_INSTANCES = Table(
    "element_instances",
    "every instance of an element that waited or works",
    (
        long("element_instance_key", "names it"),
        _PARTITION,
        long("process_instance_key", "the instance it belongs to"),
        long("process_definition_key", "the version that it is an element of"),
        text("process_id", "of that version"),
        text("element_id", "in the definition"),
        text("type", "the type of the element"),
        text("state", "ACTIVE, COMPLETED or TERMINATED"),
        long("scope_key", "the sub-process or the instance that it is in"),
        whole("item", "of a multi-instance activity: its number, from 1"),
        time("started", "when a token came"),
        time("ended", "when it was completed or terminated"),
        long("incident_key", "its open incident"),
        _POSITION,
    ),
)

JOBS = Table(
    "jobs",
    "every job: tasks, and jobs of process elements",
    (
        long("job_key", "names it; the key of the task"),
        _PARTITION,
        text("type", "the task type, by which workers lease it"),
        text(
            "state",
            "WAITING, SCHEDULED, ACTIVE, INCIDENT, COMPLETED, CANCELED, DISCARDED or ERROR_THROWN",
        ),
        whole("priority", "higher goes first"),
        whole("retries", "retries left"),
        whole("failures", "so far", is_sum=True),
        whole("expiries", "expired leases", is_sum=True),
        time("created", "when it was submitted"),
        time("due", "when it may run, while it is SCHEDULED"),
        time("activated", "when it was last leased"),
        time("ended", "when it ended"),
        text("worker", "the last worker"),
        text("error", "of the last failure"),
        text("error_code", "the code of its BPMN error"),
        text("idempotency_key", "that it was submitted with"),
        long("incident_key", "its open incident"),
        long("process_instance_key", "the one that it belongs to"),
        long("element_instance_key", "the one that it belongs to"),
        _POSITION,
    ),
)

VARIABLES = Table(
    "variables",
    "the last value of every variable of every scope",
    (
        long("scope_key", "the instance or the element instance it belongs to"),
        text("name", "of the variable"),
        _PARTITION,
        long("process_instance_key", "that it is in"),
        text("value", "as JSON"),
        time("updated", "when it got this value"),
        _POSITION,
    ),
    key_columns=2,
)

INCIDENTS = Table(
    "incidents",
    "every incident, open or not",
    (
        long("incident_key", "names it"),
        _PARTITION,
        text("state", "OPEN, RESOLVED or DISCARDED"),
        text("reason", "the cause of the incident"),
        text("error", "in words"),
        text("type", "of the job, if it is about one"),
        long("job_key", "that it is about"),
        long("process_instance_key", "that it stops"),
        text("process_id", "of that instance"),
        text("element_id", "that it stops at"),
        long("element_instance_key", "that it stops at"),
        time("created", "when"),
        time("ended", "when it was resolved or discarded"),
        _POSITION,
    ),
)

MESSAGES = Table(
    "messages",
    "every message that was published",
    (
        long("message_key", "names it"),
        _PARTITION,
        text("name", "that subscriptions wait for"),
        text("correlation_key", "identifies the instances that receive it"),
        text("message_id", "for deduplication"),
        text("state", "PUBLISHED, or EXPIRED when it is no longer buffered"),
        whole("correlations", "how many instances it was correlated with or started", is_sum=True),
        time("published", "when"),
        time("expires", "when it expires"),
        text("variables", "as JSON"),
        _POSITION,
    ),
)

DISTRIBUTIONS = Table(
    "distributions",
    "every command that was distributed to other partitions",
    (
        long("distribution_key", "names it"),
        _PARTITION,
        text("value_type", "of the command"),
        text("intent", "of the command"),
        text("queue", "its queue"),
        text("state", "DISTRIBUTING or FINISHED"),
        whole("acknowledged", "by how many partitions", is_sum=True),
        whole("given_up", "partitions that it was skipped or canceled for", is_sum=True),
        whole("refusals", "how often it raised an exception at a partition", is_sum=True),
        whole("resent", "how often it was sent again", is_sum=True),
        text("refusal", "the last error of a partition"),
        text("decided_by", "who skipped or canceled it"),
        time("started", "when"),
        time("finished", "when it was finished everywhere"),
        _POSITION,
    ),
)

TRANSACTIONS = Table(
    "transactions",
    "every transaction, from the log of its home partition",
    (
        long("transaction_key", "names it"),
        _PARTITION,
        text("state", "OPEN, COMMITTED or ABORTED"),
        whole("operations", "how many it has"),
        whole("partitions", "how many they are on"),
        whole("votes", "how many partitions have voted", is_sum=True),
        whole("acknowledged", "how many have executed the decision", is_sum=True),
        text("refused", "why it was aborted: operation, code and reason of each, as JSON"),
        time("begun", "when"),
        time("decided", "when it was committed or aborted"),
        _POSITION,
    ),
)

_OUTCOMES = (
    whole("total", "items that were selected", is_sum=True),
    whole("completed", "completed items", is_sum=True),
    whole("failed", "failed items", is_sum=True),
    whole("skipped", "items whose target no longer existed", is_sum=True),
    whole("canceled", "canceled items", is_sum=True),
)

BATCH_OPERATIONS = Table(
    "batch_operations",
    "every batch operation; its items are counted when a partition has finished",
    (
        long("batch_operation_key", "names it"),
        _PARTITION,
        text("type", "what is done with each item"),
        text(
            "state",
            "CREATED, ACTIVE, SUSPENDED, COMPLETED, PARTIALLY_COMPLETED, FAILED or CANCELED",
        ),
        text("filter", "the filter that selected the items, as JSON"),
        text("plan", "of a modification or a migration, or the retries, as JSON"),
        text("actor", "who created it"),
        text("actor_type", "USER or CLIENT; empty if the request was not authenticated"),
        whole("throttle", "items per second over all partitions; 0: no limit"),
        whole("priority", "higher goes first"),
        whole("partitions", "the number of partitions that take part"),
        whole("partitions_ended", "the number of them that have finished", is_sum=True),
        text("selection", "the name of the snapshot that it works on"),
        long("repeats", "the operation whose failed items or partitions it retries"),
        time("created", "when"),
        time("ended", "when every partition had finished, or it was canceled"),
        *_OUTCOMES,
        text("errors", "of partitions that failed: partition, type and message, as JSON"),
        _POSITION,
    ),
)

BATCH_OPERATION_PARTITIONS = Table(
    "batch_operation_partitions",
    "the progress of every batch operation on every partition",
    (
        long("batch_operation_key", "the operation"),
        _PARTITION,
        text("state", "CREATED, ACTIVE, COMPLETED or FAILED"),
        time("started", "when it began to select its items"),
        time("ended", "when it had finished"),
        *_OUTCOMES,
        text("error_type", "why its items could not be selected"),
        text("error", "the message"),
        _POSITION,
    ),
    key_columns=2,
)

BATCH_OPERATION_ITEMS = Table(
    "batch_operation_items",
    "every item of every batch operation",
    (
        long("item_key", "of the instance, the incident or the task"),
        long("batch_operation_key", "the operation"),
        _PARTITION,
        long("process_instance_key", "the instance, or the instance of the item"),
        text("type", "what is done with it"),
        text("state", "ACTIVE, COMPLETED, FAILED, SKIPPED or CANCELED"),
        time("processed", "when it got its outcome"),
        text("error_code", "why it was refused"),
        text("error", "the message"),
        _POSITION,
    ),
    key_columns=2,
)

QUARANTINE = Table(
    "quarantine",
    "entries of the log that could not be decoded",
    (
        long("position", "in the partition's log"),
        _PARTITION,
        Column("bytes", ColumnKind.BYTES, "the raw bytes"),
        text("error", "why they cannot be decoded"),
        time("timestamp", "when they were written"),
    ),
    is_history=True,
)

# Not kept anywhere: what a reader is told that reads the log itself.
RANGES = Table(
    "ranges",
    "which positions of which partition are new",
    (
        _PARTITION,
        long("start", "the first position"),
        long("end", "the position after the last"),
    ),
)
