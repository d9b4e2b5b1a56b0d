"""Tables that are made by hand, for what the REST API searches."""

from tests.pipeline.select_tables import BASE, START_MS, Tables

from holdfast.pipeline.schema import (
    BATCH_OPERATION_ITEMS,
    BATCH_OPERATIONS,
    ELEMENT_INSTANCES,
    INCIDENTS,
    JOBS,
    PROCESS_DEFINITIONS,
    PROCESS_INSTANCES,
    VARIABLES,
)

DEFINITION, BROKEN, ENDED, GONE = BASE + 1, BASE + 10, BASE + 20, BASE + 30
ELEMENT, JOB, INCIDENT, TASK = BASE + 11, BASE + 12, BASE + 13, BASE + 40
COMPLETE, OF_TASKS, RUNNING = BASE + 1, BASE + 2, BASE + 3  # batch operations


def put_processes(tables: Tables) -> None:
    """A broken instance, one that ended, one that was deleted; and a task that is stuck."""
    tables.put(PROCESS_DEFINITIONS, 1, {
        DEFINITION: {"process_id": "order", "version": 1, "name": "An order", "deployed": START_MS},
    })  # fmt: skip
    of = {"process_definition_key": DEFINITION, "process_id": "order", "version": 1}
    over = {"started": START_MS, "ended": START_MS + 5, "incidents": 0}
    tables.put(PROCESS_INSTANCES, 1, {
        BROKEN: of | {"state": "ACTIVE", "started": START_MS, "incidents": 1},
        ENDED: of | over | {"state": "CANCELED"},
        GONE: of | over | {"state": "DELETED"},
    })  # fmt: skip
    tables.put(ELEMENT_INSTANCES, 1, {
        ELEMENT: {
            "process_instance_key": BROKEN, "process_definition_key": DEFINITION,
            "process_id": "order", "element_id": "charge", "type": "JOB", "state": "ACTIVE",
            "scope_key": BROKEN, "started": START_MS, "incident_key": INCIDENT,
        },
    })  # fmt: skip
    stuck = {"type": "charge", "state": "INCIDENT", "retries": 0, "failures": 1, "error": "no"}
    tables.put(JOBS, 1, {
        JOB: stuck | {
            "process_instance_key": BROKEN, "element_instance_key": ELEMENT, "created": START_MS,
        },
        TASK: stuck | {"created": START_MS},
    })  # fmt: skip
    tables.put(VARIABLES, 1, {
        (BROKEN, "total"): {"process_instance_key": BROKEN, "value": "7", "updated": START_MS},
        (BROKEN, "orderId"): {"process_instance_key": BROKEN, "value": '"A"', "updated": START_MS},
    })  # fmt: skip
    opened = {"state": "OPEN", "reason": "NO_RETRIES_LEFT", "error": "no", "created": START_MS}
    tables.put(INCIDENTS, 1, {
        INCIDENT: opened | {
            "process_instance_key": BROKEN, "process_id": "order", "element_id": "charge",
            "element_instance_key": ELEMENT, "job_key": JOB, "type": "charge",
        },
        INCIDENT + 50: opened | {"job_key": TASK, "type": "charge"},
    })  # fmt: skip
    tables.publish({1: 10})


def put_batches(tables: Tables) -> None:
    """An operation that ended, one of tasks, one that runs as far as the tables know."""
    none = {"total": 0, "completed": 0, "failed": 0, "skipped": 0, "canceled": 0}
    of = {"filter": "{}", "throttle": 0, "priority": 0, "partitions": 1, "created": START_MS} | none
    errors = '[{"partition":1,"type":"UNKNOWN","message":"no"}]'
    tables.put(BATCH_OPERATIONS, 1, {
        COMPLETE: of | {
            "type": "MODIFY_PROCESS_INSTANCE", "state": "PARTIALLY_COMPLETED", "actor": "ann",
            "actor_type": "USER",
            "total": 9, "completed": 3, "skipped": 2, "failed": 1, "canceled": 3,
            "ended": START_MS + 9, "errors": errors,
        },
        OF_TASKS: of | {"type": "DISCARD_TASK", "state": "COMPLETED", "ended": START_MS + 5},
        RUNNING: of | {"type": "CANCEL_PROCESS_INSTANCE", "state": "ACTIVE"},
    })  # fmt: skip
    item = {"type": "MODIFY_PROCESS_INSTANCE", "processed": START_MS}
    tables.put(BATCH_OPERATION_ITEMS, 1, {
        (BASE + 50, COMPLETE): item | {"state": "COMPLETED", "process_instance_key": BASE + 50},
        (BASE + 51, COMPLETE): item | {"state": "SKIPPED", "process_instance_key": BASE + 51},
        (BASE + 52, COMPLETE): item | {"state": "FAILED", "error": "no", "error_code": "NOT_FOUND"},
        (BASE + 53, OF_TASKS): {"type": "RETRY_TASK", "state": "ACTIVE"},
    })  # fmt: skip
    tables.publish({1: 10})
