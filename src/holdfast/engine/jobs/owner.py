"""Whom a job may belong to: the element of a process, which goes on when the job has ended."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.engine.identity.values import Permission
from holdfast.engine.jobs.values import Completion, Job
from holdfast.engine.kernel import Required, Turn
from holdfast.engine.state import EngineState
from holdfast.records import Record


class Owner(NamedTuple):
    """What the owners' domain does when one of their jobs ends; this domain knows nothing of it.

    It writes the event by which the job ends, and whatever follows for the owner.
    """

    done: Callable[[Turn[EngineState], int, Job, Completion], None]  # a job by its key
    thrown: Callable[[Turn[EngineState], Record, Job], None]  # its worker reported an error
    # what one must be permitted to change a job of an instance
    need: Callable[[EngineState, Permission, int], tuple[Required, ...]]
