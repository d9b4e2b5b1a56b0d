"""All partitions, wherever they are: those of this member directly, the others by their owner."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from holdfast.engine.asker import Asker
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.query import Query
from holdfast.errors import Moved, Unavailable
from holdfast.partitions.api import ANYWHERE, Partitions, Placement, Tell, Topic, Waiting
from holdfast.partitions.placement import Placements
from holdfast.partitions.remote import Misdirected, RemotePartitions
from holdfast.partitions.serving import Serving
from holdfast.transport import Connection, Link

A = TypeVar("A")

Replies = asyncio.Future[list[Reply]]


class RoutedPartitions:
    """Keeps the port `Partitions` for one of several members.

    A submission to a partition that is here costs one lookup. One that reaches a member that no
    longer owns the partition goes on to its owner, if that member knows a newer one; each way leads
    to a higher epoch, so it ends.
    """

    def __init__(
        self,
        member: str,
        local: Partitions,
        placements: Placements,
        links: Mapping[str, Link],
    ) -> None:
        """`links` has the ways to all other members."""
        self.count = placements.count
        self.placements = placements
        self._member = member
        self._local = local
        self.remotes = {name: RemotePartitions(link) for name, link in links.items()}
        for remote in self.remotes.values():
            remote.on_moved = self._again
        self._submits: dict[int, Callable[..., Replies]] = {}
        self._followed: dict[int, _Followed] = {}  # what is followed of one partition
        self._last = 0
        for placement in placements.all():
            self._place(placement)
        placements.on_change(self._moved_on)
        if not self.remotes:
            self.submit = local.submit

    @property
    def near(self) -> Sequence[int]:
        return self._local.near

    def placement(self) -> list[Placement]:
        return self.placements.all()

    def serving(self, link: Link, connection: Connection) -> Serving:
        """Who answers the member at the other end of a new connection."""
        remote = self.remotes[link.peer]
        return Serving(self._member, self._local, self.placements, remote, connection)

    # --- commands -----------------------------------------------------------------------------

    def submit(self, partition: int, commands: Sequence[Command], size_bytes: int = 0) -> Replies:
        return self._submits[partition](partition, commands, size_bytes)

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> list[Replies]:
        here = {each: group for each, group in commands.items() if self._is_here(each)}
        if len(here) == len(commands):
            return self._local.submit_all(commands, size_bytes)
        futures: dict[int, Replies] = {}
        if here:  # first: if there is no room here, nothing goes anywhere
            futures = dict(zip(here, self._local.submit_all(here, size_bytes), strict=True))
        for partition, group in commands.items():
            if partition not in futures:
                futures[partition] = self.submit(partition, group, size_bytes)
        return [futures[each] for each in commands]

    def activate(self, partition: int, command: Command) -> Replies:
        return self._owner(partition).activate(partition, command)

    def _again(self, error: Moved, asked: Misdirected, future: "asyncio.Future[Any]") -> None:
        """The partition was not there: the owner is asked, if it is news who that is."""
        if not self.placements.learn_from(error):
            future.set_exception(error)
            return
        if asked.is_activation:
            again = self.activate(asked.partition, asked.commands[0])
        else:
            again = self.submit(asked.partition, asked.commands, asked.size_bytes)
        again.add_done_callback(lambda done: _copy(done, future))

    # --- queries and topics -------------------------------------------------------------------

    async def ask(self, partition: int, query: Query[A], asker: Asker | None = None) -> A:
        while True:
            try:
                return await self._owner(partition).ask(partition, query, asker)
            except Moved as error:
                if not self.placements.learn_from(error):
                    raise

    def follow(self, topic: Topic, tell: Tell) -> Callable[[], None]:
        if topic.partition == ANYWHERE:
            stops = [self._local.follow(topic, tell)]
            stops += [remote.follow(topic, tell) for remote in self.remotes.values()]
            return partial(_call_all, stops)
        self._last += 1
        number = self._last
        stop = self._owner(topic.partition).follow(topic, tell)
        self._followed[number] = _Followed(topic, tell, stop)
        return partial(self._unfollow, number)

    def _unfollow(self, number: int) -> None:
        followed = self._followed.pop(number, None)
        if followed is not None:
            followed.stop()

    def serve(self, waiting: Waiting) -> None:
        self._local.serve(waiting)

    # --- who owns what ------------------------------------------------------------------------

    def _is_here(self, partition: int) -> bool:
        return self.placements.of(partition).member == self._member

    def _owner(self, partition: int) -> Partitions | RemotePartitions:
        member = self.placements.of(partition).member
        if member == self._member:
            return self._local
        try:
            return self.remotes[member]
        except KeyError:
            raise Unavailable(
                f"Expected a way to member {member!r}, which owns partition {partition}, but there"
                " is none; it may have joined just now",
                partition=partition, member=member,
            ) from None  # fmt: skip

    def _place(self, placement: Placement) -> None:
        is_here = placement.member == self._member
        remote = self.remotes.get(placement.member)
        if is_here:
            submit = self._local.submit
        else:
            submit = remote.submit if remote is not None else self._submit_nowhere
        self._submits[placement.partition] = submit

    def _submit_nowhere(self, partition: int, *_: Any) -> Replies:
        return self._owner(partition).submit(partition, ())  # which says why not

    def _moved_on(self, placement: Placement) -> None:
        """A partition has another owner: whoever follows it follows it there, and asks again."""
        self._place(placement)
        for followed in list(self._followed.values()):
            if followed.topic.partition == placement.partition:
                followed.stop()
                followed.stop = _nothing
                with suppress(Unavailable):  # whoever asks now is told so
                    owner = self._owner(placement.partition)
                    followed.stop = owner.follow(followed.topic, followed.tell)
                followed.tell(None)


class _Followed:
    """A topic of one partition, wherever that is."""

    __slots__ = ("stop", "tell", "topic")

    def __init__(self, topic: Topic, tell: Tell, stop: Callable[[], None]) -> None:
        self.topic = topic
        self.tell = tell
        self.stop = stop


def _call_all(stops: Sequence[Callable[[], None]]) -> None:
    for stop in stops:
        stop()


def _nothing() -> None:
    pass


def _copy(done: Replies, future: "asyncio.Future[Any]") -> None:
    if future.done():
        return
    if done.cancelled():
        future.cancel()
    elif (error := done.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())
