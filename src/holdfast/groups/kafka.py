"""Who is in a group, by Kafka's own rebalance protocol. The only importer of aiokafka.

Each member is a consumer in a consumer group on the rebalance topic, of which nothing is read. The
member that the broker gives the list of members leads: its assignor sends that list to all, with
the cards that they sent along and with the number of the generation. The number goes on from the
highest that any member has seen or read in the sync log, because the broker's own begins again at
1 when it has forgotten the group.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import KafkaError, TopicAlreadyExistsError

from holdfast.errors import Unavailable
from holdfast.groups.api import Generation, MemberId
from holdfast.limits import GROUP_JOIN_MS, GROUP_SESSION_MS
from holdfast.logs import log

ASSIGNOR = "holdfast"
_VERSION = 0  # of Kafka's consumer protocol
_REPLICAS = 3  # of the topic, where there are so many brokers
_REBALANCE_SESSIONS = 2  # how long the group waits for a member that is slow to join again
_NEVER_MS = 2**31 - 1  # nothing is polled: a member that polls nothing must not be put out


class _Said(msgspec.Struct, frozen=True, array_like=True):
    """What a member sends along when it joins."""

    member: MemberId
    card: bytes
    known: int  # the highest generation that it has seen


class _Told(msgspec.Struct, frozen=True, array_like=True):
    """What the leader sends to all."""

    number: int
    leader: MemberId
    cards: dict[MemberId, bytes]  # of all members, in their order


_encode = msgspec.msgpack.Encoder().encode
_said = msgspec.msgpack.Decoder(_Said).decode
_told = msgspec.msgpack.Decoder(_Told).decode


class KafkaMembership:
    """Keeps the port `Membership` by a consumer group."""

    def __init__(
        self,
        connect: Mapping[str, Any],
        topic: str,
        member: MemberId,
        *,
        known: Callable[[], int] = lambda: 0,
        session_ms: int = GROUP_SESSION_MS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`connect` are aiokafka's settings of a connection, such as `bootstrap_servers`.

        The consumer group has the name of the topic. `known` tells the highest generation that
        the sync log names.
        """
        self.member = member
        self.cards: Mapping[MemberId, bytes] = {}
        self._connect = dict(connect)
        self._topic = topic
        self._known = known
        self._session_ms = session_ms
        self._now = now
        self._card = b""
        self._number = 0
        self._found: Generation | None = None
        self._change = asyncio.Event()
        self._heard_at = now()
        self._is_joining = True  # until the leader tells a generation
        self._is_left = False
        self._consumer: AIOKafkaConsumer | None = None

    async def join(self, card: bytes) -> None:
        """Joins the consumer group, with a card that all members are told."""
        self._card = card
        if self._consumer is not None:  # a new card: the group is told by a rebalance
            _coordinator(self._consumer).request_rejoin()
            return
        try:
            await self._create_topic()
            self._consumer = consumer = AIOKafkaConsumer(
                group_id=self._topic,
                partition_assignment_strategy=(_assignor_for(self),),
                session_timeout_ms=self._session_ms,
                heartbeat_interval_ms=self._session_ms // 3,
                rebalance_timeout_ms=_REBALANCE_SESSIONS * self._session_ms,
                max_poll_interval_ms=_NEVER_MS,
                enable_auto_commit=False,
                auto_offset_reset="latest",
                **self._connect,
            )
            await consumer.start()
        except (KafkaError, OSError) as error:
            await self._close()
            raise Unavailable(f"Expected Kafka to take a member, but {error!r}") from error
        self._listen_to_coordinator(consumer)
        consumer.subscribe([self._topic], listener=_Listener())

    async def generations(self) -> AsyncIterator[Generation]:
        """Each generation that the leader of the consumer group tells; the newest one only."""
        known = 0
        while not self._is_left:
            found = self._found
            if found is not None and found.number > known:
                known = found.number
                yield found
                continue
            self._change.clear()
            await self._change.wait()

    @property
    def is_held(self) -> bool:
        """Whether the broker has heard of this member within the session's time.

        While it joins, a rebalance may last in addition: the broker keeps a member whose request
        waits for the others, and answers nothing meanwhile.
        """
        sessions = 1 + _REBALANCE_SESSIONS * self._is_joining
        return self._now() < self._heard_at + sessions * self._session_ms / 1_000

    async def leave(self) -> None:
        """Leaves the consumer group; the others are told at once."""
        self._is_left = True
        self._change.set()
        await self._close()

    async def _close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            try:
                await consumer.stop()
            except (KafkaError, OSError) as error:  # then its session runs out
                log.info("group: Kafka was not told of the end", why=repr(error))

    async def _create_topic(self) -> None:
        admin = AIOKafkaAdminClient(**self._connect)
        await admin.start()
        try:
            brokers = len((await admin.describe_cluster())["brokers"])
            topic = NewTopic(self._topic, 1, min(max(brokers, 1), _REPLICAS))
            await admin.create_topics([topic])
        except TopicAlreadyExistsError:
            pass
        finally:
            await admin.close()

    def _listen_to_coordinator(self, consumer: AIOKafkaConsumer) -> None:
        """Notes when the broker last answered a heartbeat, and when the group is joined again."""
        coordinator = _coordinator(consumer)
        beat, rejoin = coordinator._do_heartbeat, coordinator._do_rejoin_group

        async def noted() -> bool:
            began = self._now()
            is_alive = await beat()
            if is_alive:
                self.heard(began)
            return is_alive

        async def joining(subscription: object) -> bool:
            self.joining()
            return await rejoin(subscription)

        coordinator._do_heartbeat = noted
        coordinator._do_rejoin_group = joining

    # --- what the assignor is asked and told --------------------------------------------------

    def heard(self, began: float) -> None:
        """The broker knew this member at a time."""
        self._heard_at = max(self._heard_at, began)

    def joining(self) -> None:
        """This member asks to be in the next generation."""
        self._is_joining = True

    def said(self) -> bytes:
        """What this member sends along when it joins."""
        return _encode(_Said(self.member, self._card, max(self._number, self._known())))

    def lead(self, said: Iterable[bytes]) -> bytes:
        """The next generation, as all members are told it: this one was given the list."""
        found = [_said(each) for each in said]
        cards = {each.member: each.card for each in sorted(found, key=lambda each: each.member)}
        return _encode(_Told(max(each.known for each in found) + 1, self.member, cards))

    def told(self, body: bytes) -> None:
        """The leader has told who is there."""
        if not body:
            return
        told = _told(body)
        self.heard(self._now())
        self._is_joining = False
        self._number = max(self._number, told.number)
        self.cards = told.cards
        self._found = Generation(told.number, told.leader, tuple(told.cards))
        self._change.set()


class _Listener(ConsumerRebalanceListener):
    """Nothing of the topic is read: there is nothing to let go of."""

    def on_partitions_revoked(self, revoked: object) -> Any:
        """Waits a moment, so that members that start together share a generation."""
        return asyncio.sleep(GROUP_JOIN_MS / 1_000)

    def on_partitions_assigned(self, assigned: object) -> None:
        """The assignor has told the generation."""


def _coordinator(consumer: AIOKafkaConsumer) -> Any:
    """What speaks the rebalance protocol; aiokafka has no other way to it."""
    return consumer._coordinator


def _assignor_for(membership: KafkaMembership) -> type[AbstractPartitionAssignor]:
    """An assignor of one member: aiokafka wants a class."""

    class Assignor(AbstractPartitionAssignor):
        name: Any = ASSIGNOR  # pyright: ignore[reportIncompatibleMethodOverride]

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            return ConsumerProtocolMemberMetadata(_VERSION, list(topics), membership.said())

        @classmethod
        def assign(
            cls, cluster: object, members: Mapping[str, ConsumerProtocolMemberMetadata]
        ) -> dict[str, ConsumerProtocolMemberAssignment]:
            body = membership.lead(each.user_data for each in members.values())
            return {each: ConsumerProtocolMemberAssignment(_VERSION, [], body) for each in members}

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            membership.told(assignment.user_data)

    return Assignor
