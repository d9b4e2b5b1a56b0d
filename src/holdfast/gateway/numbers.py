"""The numbers of requests, each with its range in its type.

A request is refused while it is read if one of its numbers is outside: nothing behind the gateway
meets a number that a record, a date or a column cannot hold. `checks.within` says the same to a
program that a node is embedded in, whose requests are not read from JSON.
"""

from typing import Annotated

from msgspec import Meta

from holdfast.limits import (
    BATCH_THROTTLE_MAX,
    CONTENT_BLOB_BYTES_MAX,
    CONTENT_REMEMBER_MS,
    CUTS_LISTED_MAX,
    GROUP_SESSION_MS_MAX,
    GROUP_SESSION_MS_MIN,
    JOBS_PER_ACTIVATION_MAX,
    LEASE_MS_MAX,
    MESSAGE_TTL_MS_MAX,
    ORDER_SPANS_MAX,
    PAGE_ITEMS_MAX,
    PARTITIONS_MAX,
    PRIORITY_MAX,
    READ_BYTES_MAX,
    RETRIES_MAX,
    SCHEDULE_INTERVAL_MS_MIN,
    SPAN_MS_MAX,
    TIMESTAMP_MS_MAX,
    TOKEN_MS_MAX,
    TRANSACTION_MS_MAX,
    VERSION_MAX,
    WAIT_MS_MAX,
    WHOLE_MAX,
)

# --- the order of a cluster -------------------------------------------------------------------
CutNumber = Annotated[int, Meta(ge=0, le=WHOLE_MAX)]
CutsListed = Annotated[int, Meta(ge=1, le=CUTS_LISTED_MAX)]
OrderSpans = Annotated[int, Meta(ge=1, le=ORDER_SPANS_MAX)]

# --- spans and times --------------------------------------------------------------------------
SpanMs = Annotated[int, Meta(ge=0, le=SPAN_MS_MAX)]
PauseMs = Annotated[int, Meta(ge=1, le=SPAN_MS_MAX)]
AnnounceMs = Annotated[int, Meta(ge=1, le=CONTENT_REMEMBER_MS)]
IntervalMs = Annotated[int, Meta(ge=SCHEDULE_INTERVAL_MS_MIN, le=SPAN_MS_MAX)]
LeaseMs = Annotated[int, Meta(ge=1, le=LEASE_MS_MAX)]
SessionMs = Annotated[int, Meta(ge=GROUP_SESSION_MS_MIN, le=GROUP_SESSION_MS_MAX)]
WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
# a negative one does not wait; one above WAIT_MS_MAX is cut to it, as clients say "for ever" so
RequestTimeoutMs = Annotated[int, Meta(ge=-WHOLE_MAX - 1, le=WHOLE_MAX)]
TransactionMs = Annotated[int, Meta(ge=1, le=TRANSACTION_MS_MAX)]
TtlMs = Annotated[int, Meta(ge=0, le=MESSAGE_TTL_MS_MAX)]
TokenMs = Annotated[int, Meta(ge=0, le=TOKEN_MS_MAX)]
TimestampMs = Annotated[int, Meta(ge=0, le=TIMESTAMP_MS_MAX)]  # since 1970

# --- counts -----------------------------------------------------------------------------------
Priority = Annotated[int, Meta(ge=-PRIORITY_MAX, le=PRIORITY_MAX)]
Retries = Annotated[int, Meta(ge=0, le=RETRIES_MAX)]
Attempts = Annotated[int, Meta(ge=1, le=RETRIES_MAX + 1)]  # the first and its retries
EndlessRetries = Annotated[int, Meta(ge=-1, le=RETRIES_MAX)]  # -1: for ever
Count = Annotated[int, Meta(ge=0, le=WHOLE_MAX)]
SyncOffset = Annotated[int, Meta(ge=-1, le=WHOLE_MAX)]  # -1: none
Percent = Annotated[int, Meta(ge=0, le=100)]
JobsMax = Annotated[int, Meta(ge=1, le=JOBS_PER_ACTIVATION_MAX)]
Limit = Annotated[int, Meta(ge=1, le=PAGE_ITEMS_MAX)]
Throttle = Annotated[int, Meta(ge=0, le=BATCH_THROTTLE_MAX)]

# --- places -----------------------------------------------------------------------------------
Version = Annotated[int, Meta(ge=0, le=VERSION_MAX)]
AnyVersion = Annotated[int, Meta(ge=-1, le=VERSION_MAX)]  # -1 and 0: the latest
Partition = Annotated[int, Meta(ge=1, le=PARTITIONS_MAX)]
# one that is not there is answered with those that are
Position = Annotated[int, Meta(ge=-WHOLE_MAX - 1, le=WHOLE_MAX)]
ReadBytes = Annotated[int, Meta(ge=1, le=READ_BYTES_MAX)]
Offset = Annotated[int, Meta(ge=-1, le=WHOLE_MAX)]  # of a topic; -1: before all of it
BlobBytes = Annotated[int, Meta(ge=0, le=CONTENT_BLOB_BYTES_MAX)]
# a number of the caller's own
OperationReference = Annotated[int, Meta(ge=-WHOLE_MAX - 1, le=WHOLE_MAX)]
