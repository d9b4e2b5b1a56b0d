"""Looking into the node's own state: one thing by its key, as it is now."""

from holdfast.clock import Clock
from holdfast.engine.incidents.values import Incident
from holdfast.engine.jobs.values import Job
from holdfast.engine.processes.deployments import DEPLOYING_PARTITION
from holdfast.engine.processes.plan import Plan
from holdfast.engine.processes.state import ElementInstance, Instance, StoredDefinition
from holdfast.engine.state import EngineState
from holdfast.errors import Forbidden, InvalidState, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.access.reading import (
    may_read_definition,
    may_read_incident,
    may_read_instance,
)
from holdfast.gateway.rest.pinned import PinnableClock
from holdfast.records import partition_for, partition_of


class Look:
    """What the REST API needs to know beyond what the `Api` tells."""

    def __init__(self, runner: Asked, clock: Clock) -> None:
        self._runner = runner
        self._clock = clock

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def pin(self, now_ms: int | None) -> None:
        """Pins the clock, or with None lets it go on; what is due by it happens at once."""
        if not isinstance(self._clock, PinnableClock):
            raise Forbidden(
                "Expected a node whose clock may be pinned, but this one's may not; for tests"
                " start it with HOLDFAST_CLOCK_PINNING=1"
            )
        if now_ms is None:
            self._clock.reset()
        else:
            self._clock.pin(now_ms)

    async def settled(self) -> None:
        """What was answered before is seen from here on."""
        await self._runner.settled()

    def key(self, text: str, what: str) -> int:
        """The key in a string."""
        return checks.key_from(text, len(self._runner.processors), what)

    # --- definitions --------------------------------------------------------------------------

    def definition(self, key: int) -> StoredDefinition | None:
        return self._deploying.processes.definitions.get(key)

    def definition_key(self, process_id: str, version: int) -> int | None:
        """The key of a version; of the latest with version 0."""
        return self._deploying.processes.definition_of(process_id, version)

    def may_read_definition(self, process_id: str) -> bool:
        return may_read_definition(self._runner, process_id)

    def latest_keys(self) -> list[int]:
        """The latest version of every process."""
        return [key for _, key in self._deploying.processes.latest.scan()]

    def plan(self, key: int | None) -> Plan | None:
        """A definition, read; None if it is not known."""
        if key is None or self.definition(key) is None:
            return None
        return self._deploying.processes.plan(key)

    def element_name(self, definition_key: int | None, element_id: str) -> str:
        """What people call an element: its name, or its id where it has none."""
        plan = self.plan(definition_key)
        node = plan.by_id.get(element_id) if plan else None
        return (node.element.name if node else "") or element_id

    # --- jobs ---------------------------------------------------------------------------------

    def job(self, text: str) -> Job:
        key = self.key(text, "job")
        found = self._state(key).jobs.jobs.get(key)
        if found is None:
            raise NotFound(f"Expected a job with key {text}, but there is none", key=text)
        return found

    def incident_of_job(self, key: int) -> int:
        """The incident that a job waits for; 0 if it waits for none, or is none."""
        found = self._state(key).jobs.jobs.get(key) if key else None
        return found.incident_key if found else 0

    def lease(self, text: str) -> str:
        """Under which lease a worker holds a job now.

        Whoever names only the job acts for its holder. The lease goes into the command, so what
        happens between this look and the command's turn is still refused.
        """
        self.job(text)
        key = int(text)
        held = self._state(key).jobs.active.get(key)
        if held is None:
            raise InvalidState(
                f"Expected job {text} to be held by a worker, but its lease has ended", key=text
            )
        return str(held)

    # --- instances ----------------------------------------------------------------------------

    def instance(self, key: int) -> Instance | None:
        found = self._state(key).processes.instances.get(key)
        return found if found is not None and self._is_visible(found) else None

    def instance_of_element(self, key: int) -> int | None:
        return self._state(key).processes.instance_of(key) if key else None

    def element(self, key: int) -> ElementInstance | None:
        found = self._state(key).processes.elements.get(key)
        return found if found is not None and self.instance(found.instance) is not None else None

    def incident(self, key: int) -> Incident | None:
        found = self._state(key).incidents.open.get(key)
        return found if found is not None and may_read_incident(self._runner, found) else None

    def has_incident(self, instance_key: int) -> bool:
        """Whether one of the open incidents stops an instance."""
        return self._state(instance_key).incidents.stops(instance_key)

    def variables(self, scope_key: int) -> dict[str, bytes]:
        """The variables of a scope that is active, in JSON."""
        if self.instance(self.instance_of_element(scope_key) or scope_key) is None:
            return {}
        return self._state(scope_key).processes.variables.get(scope_key) or {}

    def root(self, instance_key: int | None) -> str | None:
        """The instance that no other has called, above one that runs; None if it does not."""
        while instance_key:
            instance = self._state(instance_key).processes.instances.get(instance_key)
            if instance is None or not instance.parent:
                return None if instance is None else str(instance_key)
            instance_key = self.instance_of_element(instance.parent)
        return None

    # --- messages -----------------------------------------------------------------------------

    def waiting_instance(self, name: str, correlation_key: str) -> int | None:
        """The instance that a message would be given to now, the one that waits longest."""
        partition = partition_for(correlation_key, len(self._runner.processors))
        messages = self._runner.processors[partition].view.messages
        for key, _ in messages.next_of_each(name, correlation_key):
            subscription = self._state(key).processes.subscriptions.get(key)
            element = self.element(subscription.element) if subscription else None
            if element is not None:
                return element.instance
        return None

    def can_start(self, name: str, correlation_key: str) -> bool:
        """Whether a message would start an instance now."""
        partition = partition_for(correlation_key, len(self._runner.processors))
        state = self._runner.processors[partition].view
        return any(
            not correlation_key
            or state.messages.locked_by(start.process_id, correlation_key) is None
            for start in state.processes.start_messages.get(name) or ()
        )

    # --- inside -------------------------------------------------------------------------------

    def _is_visible(self, instance: Instance) -> bool:
        definition = self._deploying.processes.definitions.get(instance.definition)
        return definition is None or may_read_instance(self._runner, definition.process_id)

    @property
    def _deploying(self) -> EngineState:
        return self._runner.processors[DEPLOYING_PARTITION].view

    def _state(self, key: int) -> EngineState:
        return self._runner.processors[partition_of(key)].view
