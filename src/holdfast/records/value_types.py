"""What a record can be about. The numbers are on disk: never changed, never used again."""

from enum import IntEnum


class ValueType(IntEnum):
    """The subject of a record; each has its own intents in its domain's `values.py`."""

    JOB = 1  # one piece of work for a worker
    JOB_BATCH = 2  # what happens to many jobs at once: leases, wake-ups, clean-up
    INCIDENT = 3  # a problem that needs a person
    SCHEDULE = 4  # a cron or interval rule that creates jobs
    PROCESS = 5  # a definition
    PROCESS_INSTANCE = 6
    MESSAGE = 7
    MESSAGE_SUBSCRIPTION = 8  # what waits for a message, on the partition of its key
    PARCEL = 9  # a command from one partition to another
    DISTRIBUTION = 10  # a command from one partition to all, some or one of the others
    BATCH_OPERATION = 11  # one command for each of many items
    BATCH_OPERATION_CHUNK = 12  # items of it
    BATCH_OPERATION_EXECUTION = 13  # outcomes of its items
    USER = 14
    GROUP = 15  # of users and of machines
    ROLE = 16  # a named set of permissions for users, machines and groups
    TOKEN = 17  # the credential of a machine
    AUTHORIZATION = 18  # permissions on a resource
    REQUEST = 19  # a request with a request id, and its answer
    TRANSACTION = 20  # commands for several partitions: all or none are executed
