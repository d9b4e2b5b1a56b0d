"""The topics of a cluster: what they are is kept with the coordination, and made on each disk."""

import asyncio

import msgspec

from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.journal.api import Retention
from holdfast.journal.checks import check_same_partitions, check_topic, unknown_topic
from holdfast.journal.local import LocalJournal
from holdfast.limits import CLUSTER_RETRY_MS
from holdfast.logs import log
from holdfast.sequence.api import Coordination


class TopicSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What all members know of a topic."""

    partitions: int
    retention: Retention = Retention()


class ClusterTopics:
    """The topics, as they are known here; new ones are announced in the background."""

    def __init__(self, local: LocalJournal, coordination: Coordination) -> None:
        self.known: dict[str, TopicSettings] = {}
        self._local = local
        self._coordination = coordination
        self._unannounced: set[str] = set()
        self._announcing: asyncio.Task[None] | None = None

    def create(self, topic: str, partitions: int, retention: Retention | None) -> None:
        """Makes sure that a topic exists; a retention that is given replaces the one it has."""
        check_topic(topic, partitions)
        there = self.known.get(topic)
        if there is not None:
            check_same_partitions(topic, there.partitions, partitions)
            if retention is None or retention == there.retention:
                return
        self._make(topic, TopicSettings(partitions, retention or Retention()))
        self._unannounced.add(topic)
        if self._announcing is None:
            loop = asyncio.get_running_loop()
            self._announcing = loop.create_task(self._announce(), name="announcing topics")

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; NotFound if nobody created it."""
        there = self.known.get(topic)
        if there is None:
            raise unknown_topic(topic)
        return there.partitions

    async def learn(self) -> None:
        """Makes here what other members have created or changed."""
        for topic, data in (await self._coordination.topics()).items():
            settings = msgspec.json.decode(data, type=TopicSettings)
            if topic not in self._unannounced and settings != self.known.get(topic):
                self._make(topic, settings)

    async def announced(self) -> None:
        """Returns when other members can know all topics."""
        if self._announcing is not None:
            await asyncio.wait([self._announcing])

    async def close(self) -> None:
        """Announces nothing any more."""
        if self._announcing is not None:
            self._announcing.cancel()
            await asyncio.gather(self._announcing, return_exceptions=True)

    def _make(self, topic: str, settings: TopicSettings) -> None:
        self._local.create_topic(topic, settings.partitions, settings.retention)
        self.known[topic] = settings

    async def _announce(self) -> None:
        while self._unannounced:
            topic = min(self._unannounced)
            try:
                if await self._put(topic, self.known[topic]):
                    self._unannounced.discard(topic)
            except InvalidArgument as error:
                log.error("a topic exists with other partitions", topic=topic, error=str(error))
                self._unannounced.discard(topic)
            except HoldfastError:  # not reached, or unknown whether it was written
                await _pause(CLUSTER_RETRY_MS)
        self._announcing = None

    async def _put(self, topic: str, wanted: TopicSettings) -> bool:
        there = (await self._coordination.topics()).get(topic)
        if there is not None:
            settings = msgspec.json.decode(there, type=TopicSettings)
            check_same_partitions(topic, settings.partitions, wanted.partitions)
            if settings == wanted:
                return True
        return await self._coordination.put_topic(topic, msgspec.json.encode(wanted), there)


async def _pause(pause_ms: int) -> None:
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_later(pause_ms / 1000, lambda: over.done() or over.set_result(None))
    await over
