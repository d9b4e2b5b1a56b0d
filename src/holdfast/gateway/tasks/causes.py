"""The shapes of the API about the causes of incidents."""

from datetime import datetime

from holdfast.engine.incidents.values import IncidentReason
from holdfast.gateway.shapes import Question, Shape


class IncidentGroupQuery(Question, frozen=True):
    """Which open incidents to group by cause."""

    type: str | None = None
    process_id: str | None = None


class IncidentGroup(Shape, frozen=True):
    """Open incidents with the same cause."""

    incidents: int
    process_id: str | None  # None: they are of tasks
    element_id: str | None
    type: str | None  # of the job; None: they are of elements themselves
    reason: IncidentReason
    cause: str  # what their errors raise, with # for numbers of four digits and more
    example_key: str
    example: str  # what its error raises
    first: datetime  # when the first of them was created
    last: datetime


class IncidentGroups(Shape, frozen=True):
    """Causes, the most frequent first."""

    items: list[IncidentGroup]
    looked_at: int  # open incidents that were read
    others: int = 0  # of them, those of causes that are not listed
    is_whole: bool = True  # False: there are more than were looked at
