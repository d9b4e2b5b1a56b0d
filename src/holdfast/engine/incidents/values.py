"""The words of incidents."""

import re
from enum import IntEnum, StrEnum

import msgspec

from holdfast.errors import raised_line
from holdfast.limits import ERROR_LINE_CHARS_MAX
from holdfast.records import Value


class IncidentIntent(IntEnum):
    """Commands and events of an incident. The numbers are on disk."""

    CREATED = 0
    RESOLVE = 1
    RESOLVED = 2
    DISCARD = 3
    DISCARDED = 4
    MIGRATED = 5  # its element was migrated


class IncidentState(StrEnum):
    """Where an incident stands."""

    OPEN = "OPEN"
    RESOLVED = "RESOLVED"  # what it stopped was tried again
    DISCARDED = "DISCARDED"  # it ended with what it stopped


class IncidentReason(StrEnum):
    """The cause of an incident."""

    NO_RETRIES_LEFT = "NO_RETRIES_LEFT"
    LEASES_EXPIRED = "LEASES_EXPIRED"
    EXPRESSION_FAILED = "EXPRESSION_FAILED"
    NO_MATCHING_FLOW = "NO_MATCHING_FLOW"
    UNHANDLED_ERROR = "UNHANDLED_ERROR"
    CALLED_PROCESS_MISSING = "CALLED_PROCESS_MISSING"
    LIMIT_REACHED = "LIMIT_REACHED"
    SET_ASIDE = "SET_ASIDE"  # it crashed the process more than once
    LOOP_LIMIT = "LOOP_LIMIT"  # a loop without a wait, or that multiplies its tokens or calls


class Incident(Value, frozen=True, tag=32):
    """An open incident: of a task, of an element's job, or of an element itself."""

    job_key: int  # 0: it is not about a job
    job_type: str
    reason: IncidentReason
    error: str
    created_ms: int
    element_key: int = 0
    instance_key: int = 0
    element_id: str = ""
    process_id: str = ""


class Resolution(Value, frozen=True, tag=33):
    """Retries the job: the value of RESOLVE."""

    retries: int = 0  # further retries after the next attempt


class JobIncident(Value, frozen=True, tag=34):
    """The job that the incident was about: the value of DISCARD and of both endings."""

    job_key: int = 0
    # with both endings: what the incident was about, with the last line of its error
    incident: Incident | None = None


def error_line(error: str) -> str:
    """The line of an error that says what was raised, cut to the length that a list shows."""
    return raised_line(error)[:ERROR_LINE_CHARS_MAX]


_NUMBER = re.compile(r"[0-9]{4,}")  # such as a key; the status codes of HTTP are shorter


def cause_line(error: str) -> str:
    """The line of an error without its numbers: what incidents of one cause have in common."""
    return _NUMBER.sub("#", error_line(error))


VALUES: dict[IncidentIntent, type[msgspec.Struct]] = {
    IncidentIntent.CREATED: Incident,
    IncidentIntent.RESOLVE: Resolution,
    IncidentIntent.RESOLVED: JobIncident,
    IncidentIntent.DISCARD: JobIncident,
    IncidentIntent.DISCARDED: JobIncident,
    IncidentIntent.MIGRATED: Incident,
}
