"""The tags of all column families. They are on disk: never changed, never used again."""

from enum import IntEnum


class Tag(IntEnum):
    """Which rows a family holds; 0 is the progress of the partition."""

    DUE = 1
    JOBS = 2
    JOBS_WAITING = 3
    JOBS_ACTIVE = 4
    LEASES = 5
    LEASES_OPEN = 6
    JOB_OUTCOMES = 7
    JOB_IDEMPOTENCY = 8
    JOB_BUCKETS = 9
    INCIDENTS = 10
    SCHEDULES = 11
    SCHEDULE_KEYS = 12
