"""Looking at one thing by its key, as it is now."""

from collections.abc import Collection, Iterable

from holdfast.clock import Clock
from holdfast.engine.incidents.queries import FindIncident, FoundIncident
from holdfast.engine.jobs.queries import FindJob, FoundJob
from holdfast.engine.messages.queries import FindReceivers
from holdfast.engine.processes.deployments import DEPLOYING_PARTITION
from holdfast.engine.processes.queries import (
    FindDefinition,
    FindElement,
    FindInstance,
    FindRoots,
    FindVariables,
    FindVersion,
    FindWaitingInstances,
    FoundDefinition,
    FoundElementInstance,
    FoundInstance,
    FoundVariables,
    HasIncident,
    ListLatest,
)
from holdfast.errors import Forbidden, InvalidState, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.rest.pinned import PinnableClock
from holdfast.records import partition_for, partition_of

DEFINITIONS_KNOWN_MAX = 1_000  # what is kept of definitions, which never change: 10 MB


class NodeLook:
    """What the REST API needs to know beyond what the `Api` tells."""

    def __init__(self, asked: Asked, clock: Clock) -> None:
        self._asked = asked
        self._clock = clock
        self._definitions: dict[int, FoundDefinition] = {}

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

    def key(self, text: str, what: str) -> int:
        """The key in a string."""
        return checks.key_from(text, self._asked.count, what)

    # --- definitions --------------------------------------------------------------------------

    async def definition(self, key: int) -> FoundDefinition | None:
        """A version, for any asker."""
        known = self._definitions.get(key)
        if known is None:
            found = await self._asked.ask(DEPLOYING_PARTITION, FindDefinition(key))
            if found is None:
                return None
            if len(self._definitions) >= DEFINITIONS_KNOWN_MAX:
                self._definitions.clear()
            known = self._definitions[key] = found
        return known

    async def definitions(self, keys: Iterable[int | None]) -> dict[int | None, FoundDefinition]:
        """Versions by their keys, as far as they are known."""
        found: dict[int | None, FoundDefinition] = {}
        for key in {each for each in keys if each}:
            definition = await self.definition(key)
            if definition is not None:
                found[key] = definition
        return found

    async def readable_definition(self, key: int) -> FoundDefinition | None:
        """A version, if the asker may see it."""
        asked = FindDefinition(key, is_for_reader=True)
        return await self._asked.ask(DEPLOYING_PARTITION, asked)

    async def version(self, process_id: str, version: int) -> FoundDefinition | None:
        """A version by its number; the latest with 0."""
        return await self._asked.ask(DEPLOYING_PARTITION, FindVersion(process_id, version))

    async def latest_keys(self) -> list[int]:
        """The latest version of every process."""
        return await self._asked.ask(DEPLOYING_PARTITION, ListLatest())

    # --- jobs ---------------------------------------------------------------------------------

    async def job(self, text: str) -> FoundJob:
        key = self.key(text, "job")
        found = await self._asked.ask(partition_of(key), FindJob(key))
        if found is None:
            raise NotFound(f"There is no job with key {text}", key=text)
        return found

    async def lease(self, text: str) -> str:
        """Under which lease a worker holds a job now.

        A caller that names only the job acts for its holder. The lease goes into the command, so
        what happens between this look and the command's turn is still refused.
        """
        found = await self.job(text)
        if not found.lease:
            raise InvalidState(
                f"Expected job {text} to be held by a worker, but its lease has ended", key=text
            )
        return str(found.lease)

    # --- instances ----------------------------------------------------------------------------

    async def instance(self, key: int) -> FoundInstance | None:
        """An instance that runs."""
        found = await self._asked.ask(partition_of(key), FindInstance(key, is_whole=False))
        return None if found is None or found.outcome is not None else found

    async def element(self, key: int) -> FoundElementInstance | None:
        return await self._asked.ask(partition_of(key), FindElement(key))

    async def incident(self, key: int) -> FoundIncident | None:
        return await self._asked.ask(partition_of(key), FindIncident(key))

    async def has_incident(self, instance_key: int) -> bool:
        """Whether one of the open incidents stops an instance."""
        return await self._asked.ask(partition_of(instance_key), HasIncident(instance_key))

    async def variables(self, scope_key: int) -> FoundVariables | None:
        """The variables of a scope that is active."""
        return await self._asked.ask(partition_of(scope_key), FindVariables(scope_key))

    async def root(self, instance_key: int) -> str | None:
        """The instance that no other has called, above one that runs; None if it does not."""
        return (await self.roots([instance_key]))[instance_key]

    async def roots(self, instance_keys: Collection[int | None]) -> dict[int | None, str | None]:
        """The same for many."""
        groups: dict[int, list[int]] = {}
        for key in {each for each in instance_keys if each}:
            groups.setdefault(partition_of(key), []).append(key)
        found: dict[int | None, str | None] = dict.fromkeys(instance_keys)
        for partition, keys in groups.items():
            roots = await self._asked.ask(partition, FindRoots(tuple(keys)))
            found.update({key: str(root) for key, root in zip(keys, roots, strict=True) if root})
        return found

    # --- messages -----------------------------------------------------------------------------

    async def receiver(self, name: str, correlation_key: str) -> tuple[int | None, bool]:
        """The instance that a message would be given to now; whether it would start one."""
        partition = partition_for(correlation_key, self._asked.count)
        found = await self._asked.ask(partition, FindReceivers(name, correlation_key))
        for key in found.subscriptions:  # the one that waits longest
            asked = FindWaitingInstances((key,))
            [instance] = await self._asked.ask(partition_of(key), asked)
            if instance:
                return instance, found.can_start
        return None, found.can_start
