"""The state of a partition, with what an asker may see of it."""

from holdfast.engine.asker import Asker, permits
from holdfast.engine.identity.values import EVERY_ID, Permission, ResourceType
from holdfast.engine.incidents.values import Incident
from holdfast.engine.jobs.values import Job, Outcome
from holdfast.engine.kernel import Processor
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import PROMISED
from holdfast.errors import Unavailable
from holdfast.journal import Journal
from holdfast.limits import PROMISED_RETRY_MS

_DEFINITION, _TASK = ResourceType.PROCESS_DEFINITION, ResourceType.TASK


class Reader:
    """Reads a partition in somebody's name. Nobody's name (None) sees everything."""

    __slots__ = ("asker", "domains", "journal", "now_ms", "partition", "processor", "state")

    def __init__(
        self,
        processor: Processor[EngineState],
        domains: Dispatch,
        journal: Journal,
        now_ms: int,
        asker: Asker | None = None,
    ) -> None:
        self.processor = processor
        self.state = processor.view
        self.partition = processor.partition
        self.domains = domains
        self.journal = journal
        self.now_ms = now_ms
        self.asker = asker

    def may(self, resource: ResourceType, permission: Permission, id_: str) -> bool:
        """Whether the asker may do something with one resource."""
        allowed = self.allowed(resource, permission)
        return allowed is None or id_ in allowed

    def allowed(self, resource: ResourceType, *permissions: Permission) -> frozenset[str] | None:
        """The resources with which the asker may do any of these; None: with all of them."""
        if self.asker is None:
            return None
        found = self.state.identities.allowed(self.asker, resource, permissions)
        return None if permits(found, EVERY_ID) else found

    def check_promised(self, key: int) -> None:
        """Unavailable if a transaction makes what is not there yet: it is asked for again."""
        by = self.state.transactions.reserver(PROMISED, key)
        if by is not None:
            raise Unavailable(
                f"Transaction {by} creates {key}, but partition {self.partition} has not applied it"
                " yet; try again",
                key=str(key),
                retry_after_ms=PROMISED_RETRY_MS,
            )

    # --- thing by thing -----------------------------------------------------------------------

    def may_read_definition(self, process_id: str) -> bool:
        return self.may(_DEFINITION, Permission.READ_PROCESS_DEFINITION, process_id)

    def may_read_instance(self, process_id: str) -> bool:
        return self.may(_DEFINITION, Permission.READ_PROCESS_INSTANCE, process_id)

    def may_read_task(self, type_: str) -> bool:
        return self.may(_TASK, Permission.READ, type_)

    def may_read_job(self, job: Job) -> bool:
        """A plain task by its type; the job of an element by the process it is done for, too."""
        if self.may_read_task(job.submitted.type):
            return True
        origin = self.state.processes.origin(job.submitted.element_key)
        return origin is not None and self.may_read_instance(origin.process_id)

    def may_read_outcome(self, outcome: Outcome) -> bool:
        """How a task ended, by its type; how a process instance ended, by its process.

        An outcome of an earlier release does not say which of them it is of. Where both are
        possible both permissions are needed.
        """
        if outcome.definition:
            return self.may_read_instance(outcome.type)
        if outcome.is_job or not self.may_be_of_instance(outcome):
            return self.may_read_task(outcome.type)
        return self.may_read_task(outcome.type) and self.may_read_instance(outcome.type)

    def may_be_of_instance(self, outcome: Outcome) -> bool:
        """Whether an outcome can be that of a process instance."""
        if outcome.definition:
            return True
        return not outcome.is_job and self.state.processes.latest.get(outcome.type) is not None

    def may_read_incident(self, incident: Incident) -> bool:
        """By the process that it stops, or by the type of the job."""
        if incident.process_id and self.may_read_instance(incident.process_id):
            return True
        return bool(incident.job_type) and self.may_read_task(incident.job_type)
