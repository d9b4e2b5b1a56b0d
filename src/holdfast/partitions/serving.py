"""The owner's side: answers another member about the partitions that are here."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from holdfast.engine.kernel import Reply
from holdfast.errors import InvalidArgument, ResourceExhausted, Unavailable
from holdfast.partitions.api import EffectTopic, Partitions
from holdfast.partitions.placement import Placements
from holdfast.partitions.remote import RemotePartitions
from holdfast.partitions.wire import (
    ACTIVATE,
    ASK,
    EFFECT,
    FOLLOW,
    MISSED,
    SUBMIT,
    UNFOLLOW,
    decode_commands,
    decode_query,
    decode_topic,
    encode_answer,
    encode_effect,
    encode_replies,
    encode_topic,
)
from holdfast.transport import Answer, Connection, Later


class MemberServing:
    """Answers one connection of one other member, and tells it the effects that it follows."""

    def __init__(
        self,
        member: str,
        partitions: Partitions,
        placements: Placements,
        remote: RemotePartitions,
        connection: Connection,
        submit: Callable[..., "asyncio.Future[list[Reply]]"] | None = None,
        ask: Callable[..., Coroutine[Any, Any, Any]] | None = None,
    ) -> None:
        """`partitions` are those of this member; `remote` those of the other one.

        `submit` and `ask` are taken instead of theirs, by who waits for a partition to be opened.
        """
        self._submit = submit or partitions.submit
        self._ask = ask or partitions.ask
        self._member = member
        self._partitions = partitions
        self._placements = placements
        self._remote = remote
        self._connection = connection
        self._topics: dict[EffectTopic, Callable[[], None]] = {}
        self._last: Any = None  # the effect that was told last: it may be of several topics
        self._catching_up: asyncio.Task[None] | None = None
        connection.on_closed(lambda _: self._stop())

    # --- calls --------------------------------------------------------------------------------

    def called(self, kind: int, body: bytes) -> Answer:
        if kind == SUBMIT:
            partition, commands, size_bytes = decode_commands(body)
            self._check(partition)
            return Later(self._submit(partition, commands, size_bytes), encode_replies)
        if kind == ASK:
            return self._answer(body)
        if kind == ACTIVATE:
            partition, commands, _ = decode_commands(body)
            self._check(partition)
            return Later(self._partitions.activate(partition, commands[0]), encode_replies)
        raise InvalidArgument(f"Expected a call of this version, but found the kind {kind}")

    async def _answer(self, body: bytes) -> bytes:
        asked = decode_query(body)
        self._check(asked.partition)
        answer = await self._ask(
            asked.partition, asked.query, asked.asker, may_be_stale=asked.may_be_stale
        )
        return encode_answer(answer)

    def _check(self, partition: int) -> None:
        """Nothing of what is refused here reached a log. One that has stopped says so itself."""
        if partition in self._partitions.near:
            return
        if not 1 <= partition <= self._placements.count:
            raise InvalidArgument(
                f"Expected a partition from 1 to {self._placements.count}, but found {partition}"
            )
        if self._placements.of(partition).member != self._member:
            raise self._placements.moved(partition)

    # --- topics -------------------------------------------------------------------------------

    def told(self, kind: int, body: bytes) -> None:
        if kind == FOLLOW:
            topic = decode_topic(body)
            if topic not in self._topics:
                tell = partial(self._tell, topic)
                self._topics[topic] = self._partitions.follow(topic, tell)
        elif kind == UNFOLLOW:
            stop = self._topics.pop(decode_topic(body), None)
            if stop is not None:
                stop()
        else:
            self._remote.told(kind, body)

    def _tell(self, topic: EffectTopic, effect: Any) -> None:
        if effect is None:
            self._send(MISSED, encode_topic(topic))
        elif effect is not self._last:
            self._last = effect
            self._send(EFFECT, encode_effect(effect))

    def _send(self, kind: int, body: bytes) -> None:
        try:
            self._connection.tell(kind, body)
        except Unavailable:
            pass  # the next connection begins with all topics anew
        except ResourceExhausted:
            if self._catching_up is None:
                self._catching_up = asyncio.get_running_loop().create_task(self._catch_up())

    async def _catch_up(self) -> None:
        """Effects were left out, because the member did not take them: it is to ask again."""
        with suppress(Unavailable):
            await self._connection.room()
        self._catching_up = None
        self._send(MISSED, b"")

    def _stop(self) -> None:
        topics, self._topics = self._topics, {}
        for stop in topics.values():
            stop()
