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
    DEFINITIONS = 13
    PROCESS_VERSIONS = 14
    PROCESS_LATEST = 15
    START_TIMERS = 16
    START_MESSAGES = 17
    INSTANCES = 18
    ELEMENTS = 19
    CHILDREN = 20
    VARIABLES = 21
    TOKENS = 22
    TIMERS = 23
    WAITS = 24
    SUBSCRIPTIONS = 25
    LOOPS = 26
    LOOP_ITEMS = 27
    LOOP_RESULTS = 28
    MESSAGES = 29
    MESSAGE_NAMES = 30
    MESSAGE_IDS = 31
    MESSAGE_TAKEN = 32
    OPEN_SUBSCRIPTIONS = 33
    SUBSCRIPTION_NAMES = 34
    START_LOCKS = 35
    OUTBOX = 36
    LINES = 37
    RECEIVED = 38
    DISTRIBUTIONS = 39
    DISTRIBUTIONS_PENDING = 40
    DISTRIBUTIONS_SENT = 41
    DISTRIBUTIONS_QUEUED = 42
    DISTRIBUTION_LINES = 43
    DISTRIBUTION_COUNT = 44
    CONTINUATIONS = 45
    QUEUES_RECEIVED = 46
