"""Partitions of another member, over the link to it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from holdfast.engine.asker import Asker
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.query import Query
from holdfast.errors import HoldfastError, Moved, ResourceExhausted, Unavailable, Unknown
from holdfast.logs import log
from holdfast.partitions.api import EffectTopic, Tell
from holdfast.partitions.followers import Followers
from holdfast.partitions.wire import (
    ACTIVATE,
    ASK,
    EFFECT,
    FOLLOW,
    MISSED,
    SUBMIT,
    UNFOLLOW,
    decode_answer,
    decode_effect,
    decode_replies,
    decode_topic,
    encode_commands,
    encode_query,
    encode_topic,
)
from holdfast.transport import Connection, Link, NotSent

A = TypeVar("A")

Replies = asyncio.Future[list[Reply]]


class Misdirected(NamedTuple):
    """What was asked of a member that does not own the partition."""

    is_activation: bool
    partition: int
    commands: Sequence[Command]
    size_bytes: int


NotTaken = Moved | NotSent
"""Nothing of what was asked was done."""
OnMoved = Callable[[NotTaken | Unknown, Misdirected, "asyncio.Future[Any]"], None]
"""Has the future settled by the owner, or with the error."""


def are_known_again(commands: Sequence[Command]) -> bool:
    """Whether a partition that has done these answers them again, and does nothing twice."""
    return all(each.request_id is not None for each in commands)


class RemotePartitions:
    """Asks another member. What is submitted in one turn of the loop travels in one frame.

    A topic is followed there once, however many follow it here. Whenever the member is reached anew
    it is told all topics again, and their followers are told to ask again.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._followers = Followers()
        self._topics: dict[EffectTopic, int] = {}  # how many follow each
        self._resending: asyncio.Task[None] | None = None
        self.on_moved: OnMoved | None = None
        link.on_up(self._resend)

    # --- commands and queries -----------------------------------------------------------------

    def submit(self, partition: int, commands: Sequence[Command], size_bytes: int = 0) -> Replies:
        """The replies, once what was done is durable there."""
        body = encode_commands(partition, commands, size_bytes)
        take = partial(self._take, SUBMIT, partition, commands, size_bytes)
        return self.link.call(SUBMIT, body, take)

    def submit_once(self, partition: int, commands: Sequence[Command], size_bytes: int) -> Replies:
        """The same, but the caller is told when the partition is not there."""
        body = encode_commands(partition, commands, size_bytes)
        return self.link.call(SUBMIT, body, partial(_take_as_it_is, commands))

    def activate(self, partition: int, command: Command) -> Replies:
        commands = (command,)
        body = encode_commands(partition, commands, 0)
        return self.link.call(ACTIVATE, body, partial(self._take, ACTIVATE, partition, commands, 0))

    def _take(
        self,
        kind: int,
        partition: int,
        commands: Sequence[Command],
        size_bytes: int,
        future: "asyncio.Future[Any]",
        answer: bytes | HoldfastError,
    ) -> None:
        if isinstance(answer, bytes):
            future.set_result(decode_replies(commands, answer))
        elif self.on_moved is not None and (
            isinstance(answer, Moved | NotSent)
            or (isinstance(answer, Unknown) and kind == SUBMIT and are_known_again(commands))
        ):
            answer.fields.setdefault("partition", partition)
            asked = Misdirected(kind == ACTIVATE, partition, commands, size_bytes)
            self.on_moved(answer, asked, future)
        else:
            answer.fields.setdefault("partition", partition)
            future.set_exception(answer)

    async def ask(
        self,
        partition: int,
        query: Query[A],
        asker: Asker | None = None,
        *,
        may_be_stale: bool = False,
    ) -> A:
        try:
            answer = await self.link.call(ASK, encode_query(partition, query, asker, may_be_stale))
        except (Unavailable, Unknown) as error:
            error.fields.setdefault("partition", partition)
            raise
        return decode_answer(query, answer)

    # --- topics -------------------------------------------------------------------------------

    def follow(self, topic: EffectTopic, tell: Tell) -> Callable[[], None]:
        """The topic is there before anything that is asked from now on."""
        stop = self._followers.follow(topic, tell)
        count = self._topics.get(topic, 0)
        self._topics[topic] = count + 1
        if count == 0:
            self._tell(FOLLOW, topic)
        return partial(self._stop, topic, stop)

    def _stop(self, topic: EffectTopic, stop: Callable[[], None]) -> None:
        stop()
        count = self._topics.pop(topic, 0)
        if count > 1:
            self._topics[topic] = count - 1
        elif count == 1:
            self._tell(UNFOLLOW, topic)

    def _tell(self, kind: int, topic: EffectTopic) -> None:
        try:
            self.link.tell(kind, encode_topic(topic))
        except Unavailable:
            pass  # it is told all topics when it is reached
        except ResourceExhausted:
            self._resend_later()

    def _resend(self) -> None:
        """A new connection knows no topic, and what happened meanwhile was not told."""
        try:
            for topic in self._topics:
                self.link.tell(FOLLOW, encode_topic(topic))
        except Unavailable:
            return
        except ResourceExhausted:
            self._resend_later()
            return
        self._followers.missed_all()

    def _resend_later(self) -> None:
        """The member has no room for a topic: once it has, it is told all of them."""
        if self._resending is None and self.link.connection is not None:
            waiting = self._resend_with_room(self.link.connection)
            self._resending = asyncio.get_running_loop().create_task(waiting)

    async def _resend_with_room(self, connection: Connection) -> None:
        with suppress(Unavailable):  # the next connection is told all topics, too
            await connection.room()
        self._resending = None
        self._resend()

    # --- what the member tells ----------------------------------------------------------------

    def told(self, kind: int, body: bytes) -> None:
        """An effect of one of its partitions, or that some may have been missed."""
        if kind == EFFECT:
            self._followers.tell(decode_effect(body))
        elif kind == MISSED and body:
            self._followers.missed_topic(decode_topic(body))
        elif kind == MISSED:
            self._followers.missed_all()
        else:
            log.warning("message from a member not understood", peer=self.link.peer, kind=kind)


def _take_as_it_is(
    commands: Sequence[Command], future: "asyncio.Future[Any]", answer: bytes | HoldfastError
) -> None:
    if isinstance(answer, bytes):
        future.set_result(decode_replies(commands, answer))
    else:
        future.set_exception(answer)
