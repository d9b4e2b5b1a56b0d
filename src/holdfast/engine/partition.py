"""A partition put together: its state, all domains, and the processor that runs them."""

from holdfast.engine import progress, scanning
from holdfast.engine.batch import queries as batch_queries
from holdfast.engine.batch.domain import (
    BATCH_OPERATION,
    BATCH_OPERATION_CHUNK,
    BATCH_OPERATION_EXECUTION,
)
from holdfast.engine.distribution import queries as distribution_queries
from holdfast.engine.distribution.domain import DISTRIBUTION
from holdfast.engine.distribution.receiving import distributing
from holdfast.engine.due.commands import DueCommands
from holdfast.engine.ended import queries as ended_queries
from holdfast.engine.identity import queries as identity_queries
from holdfast.engine.identity.domain import AUTHORIZATION, GROUP, ROLE, TOKEN, USER
from holdfast.engine.identity.guard import guard
from holdfast.engine.incidents import queries as incident_queries
from holdfast.engine.incidents.domain import INCIDENT
from holdfast.engine.jobs import queries as job_queries
from holdfast.engine.jobs.domain import JOB_BATCH, job_domain
from holdfast.engine.kernel import Processor
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.kernel.query import Questions
from holdfast.engine.messages import queries as message_queries
from holdfast.engine.messages.domain import MESSAGE, MESSAGE_SUBSCRIPTION
from holdfast.engine.parcels.domain import PARCEL
from holdfast.engine.processes import counting as process_counting
from holdfast.engine.processes import queries as process_queries
from holdfast.engine.processes.domain import PROCESS, PROCESS_INSTANCE
from holdfast.engine.processes.jobs import OWNER
from holdfast.engine.requests.commands import Remembering
from holdfast.engine.requests.domain import REQUEST
from holdfast.engine.state import EngineState
from holdfast.engine.timers import queries as timer_queries
from holdfast.engine.timers.domain import SCHEDULE
from holdfast.engine.transactions import queries as transaction_queries
from holdfast.engine.transactions.domain import TRANSACTION
from holdfast.limits import STORE_ROWS_MAX
from holdfast.state import PartitionState, Store, Writing

JOB = job_domain(OWNER)
DOMAINS = (
    JOB, JOB_BATCH, INCIDENT, SCHEDULE, PROCESS, PROCESS_INSTANCE, MESSAGE, MESSAGE_SUBSCRIPTION,
    PARCEL, DISTRIBUTION, BATCH_OPERATION, BATCH_OPERATION_CHUNK, BATCH_OPERATION_EXECUTION,
    USER, GROUP, ROLE, TOKEN, AUTHORIZATION, REQUEST, TRANSACTION,
)  # fmt: skip
DISPATCH: Dispatch = Dispatch(DOMAINS, distributing, guard, Remembering())
QUESTIONS = Questions(
    [
        progress.QUERIES, scanning.QUERIES, job_queries.QUERIES, incident_queries.QUERIES,
        timer_queries.QUERIES,
        process_queries.QUERIES, process_counting.QUERIES, message_queries.QUERIES,
        distribution_queries.QUERIES,
        batch_queries.QUERIES, identity_queries.QUERIES, transaction_queries.QUERIES,
        ended_queries.QUERIES,
    ]
)  # fmt: skip

EngineProcessor = Processor[EngineState]


def open_partition(store: Store, partition: int, partitions: int = 1) -> EngineProcessor:
    """The processor of a partition, one of so many, over its rows in the store."""
    state = PartitionState(store, partition)
    view = EngineState(state, partitions)
    _upgrade(state, view, store)
    return Processor(state, view, DISPATCH, DueCommands(view.due, DISPATCH.due))


def _upgrade(state: PartitionState, view: EngineState, store: Store) -> None:
    """Brings the rows of an earlier version up to date; what is new follows from the others."""
    for _ in view.jobs.waiting.repack():
        _make_room(state, store)
    if not state.stored_progress.is_counted:
        view.jobs.waiting.count()
        view.incidents.count()
        state.commit()
    for _ in view.incidents.missing_index():
        _make_room(state, store)


def _make_room(state: PartitionState, store: Store) -> None:
    state.commit()
    if state.changed_rows() > STORE_ROWS_MAX:
        Writing(store, [(state, state.stored_progress)]).finish()
