"""All partitions, wherever they are: those of this member directly, the others by their owner."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from holdfast.engine.asker import Asker
from holdfast.engine.kernel import Command, Reply, Submission
from holdfast.engine.kernel.query import Query
from holdfast.errors import HoldfastError, Moved, Unknown
from holdfast.partitions.api import EffectTopic, Partitions, Placement, Tell, Waiting
from holdfast.partitions.following import Following
from holdfast.partitions.local import LocalPartitions
from holdfast.partitions.placement import NOBODY, Placements
from holdfast.partitions.remote import (
    Misdirected,
    NotTaken,
    RemotePartitions,
    are_known_again,
)
from holdfast.partitions.serving import MemberServing
from holdfast.partitions.waiting import Delayed, WaitingRoom
from holdfast.transport import Connection, Link, NotSent

A = TypeVar("A")

Replies = asyncio.Future[list[Reply]]


class RoutedPartitions:
    """Keeps the port `Partitions` for one of several members.

    A submission to a partition that is here costs one lookup. One that reaches a member that no
    longer owns the partition goes on to its owner, if that member knows a newer one; each way leads
    to a higher epoch, so it ends. Where owners change while members run, what reached no log waits
    for the next owner.
    """

    def __init__(
        self,
        member: str,
        local: LocalPartitions,
        placements: Placements,
        links: Mapping[str, Link],
        wait_ms: int = 0,
    ) -> None:
        """`links` has the ways to all other members; with `wait_ms` more may come and go."""
        self.count = placements.count
        self.placements = placements
        self._member = member
        self._local = local
        self.room = WaitingRoom(wait_ms, self._from_room) if wait_ms else None
        self.remotes: dict[str, RemotePartitions] = {}
        self._submits: dict[int, Callable[..., Replies]] = {}
        self._following = Following(self._owner)
        self._joined: tuple[Sequence[int], set[str]] | None = None  # what `_of_machine` is of
        self._of_machine: Sequence[int] = ()
        for placement in placements.all():
            self._place(placement)
        for link in links.values():
            self.add(link)
        placements.on_change(self._moved_on)
        if self.room is not None:
            local.on_opened.append(self.room.changed)
            local.on_left = self._left
        elif not self.remotes:
            self.submit = local.submit

    # --- members ------------------------------------------------------------------------------

    def add(self, link: Link) -> None:
        """A member joined: its partitions are reached by this link from now on."""
        remote = self.remotes[link.peer] = RemotePartitions(link)
        remote.on_moved = self._again
        self._following.add(link.peer, remote)
        for placement in self.placements.all():
            if placement.member == link.peer:
                self._moved_on(placement)
        if self.room is not None:
            link.on_up(partial(self._reached, link.peer))

    def remove(self, member: str) -> None:
        """A member has left. What it still owns is reached when another member has taken it."""
        self.remotes.pop(member, None)
        self._following.remove(member)
        for placement in self.placements.all():
            if placement.member == member:
                self._place(placement)

    def _reached(self, member: str) -> None:
        assert self.room is not None
        for placement in self.placements.all():
            if placement.member == member:
                self.room.changed(placement.partition)

    def close(self) -> None:
        """Callers that wait for an owner are told that there is none."""
        if self.room is not None:
            self.room.close()

    @property
    def near(self) -> Sequence[int]:
        return self._local.near

    @property
    def of_machine(self) -> Sequence[int]:
        if self.room is not None:  # the other members are on machines of their own
            return self.near
        reached = {member for member, remote in self.remotes.items() if remote.link.is_up}
        if self._joined != (self.near, reached):  # a node may have thousands of partitions
            away = [each.partition for each in self.placements.all() if each.member in reached]
            self._joined, self._of_machine = (self.near, reached), sorted([*self.near, *away])
        return self._of_machine

    def placement(self) -> list[Placement]:
        return self.placements.all()

    def serving(self, link: Link, connection: Connection) -> MemberServing:
        """Who answers the member at the other end of a new connection."""
        remote = self.remotes[link.peer]
        submit, ask = self._submit_only_here, self._ask_here
        if self.room is None:
            submit, ask = self._local.submit, self._local.ask
        return MemberServing(
            self._member, self._local, self.placements, remote, connection, submit, ask
        )

    # --- commands -----------------------------------------------------------------------------

    def submit(self, partition: int, commands: Sequence[Command], size_bytes: int = 0) -> Replies:
        return self._submits[partition](partition, commands, size_bytes)

    def submit_all(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int = 0
    ) -> list[Replies]:
        here = {each: group for each, group in commands.items() if self._is_here(each)}
        if len(here) == len(commands):
            return self._submit_all_here(commands, size_bytes)
        futures: dict[int, Replies] = {}
        if here:  # first: if there is no room here, nothing goes anywhere
            futures = dict(zip(here, self._submit_all_here(here, size_bytes), strict=True))
        for partition, group in commands.items():
            if partition not in futures:
                futures[partition] = self.submit(partition, group, size_bytes)
        return [futures[each] for each in commands]

    def activate(self, partition: int, command: Command) -> Replies:
        return self._owner(partition).activate(partition, command)

    def _submit_here(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> Replies:
        """To a partition of this member, which may not be open yet, or no more."""
        try:
            return self._local.submit(partition, commands, size_bytes)
        except Moved as error:
            return self._wait(partition, commands, size_bytes, error)

    def _submit_only_here(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> Replies:
        """For another member, which finds the owner itself when it turns out to be another one."""
        try:
            return self._local.submit(partition, commands, size_bytes)
        except Moved as error:
            return self._wait(partition, commands, size_bytes, error, only_here=True)

    def _submit_all_here(
        self, commands: Mapping[int, Sequence[Command]], size_bytes: int
    ) -> list[Replies]:
        try:
            return self._local.submit_all(commands, size_bytes)
        except Moved:
            if self.room is None:
                raise
        return [self._submit_here(each, group, size_bytes) for each, group in commands.items()]

    def _again(
        self, error: NotTaken | Unknown, asked: Misdirected, future: "asyncio.Future[Any]"
    ) -> None:
        """The partition was not there: the owner is asked, if it is news who that is.

        If the owner may have done it and was lost, the next one is asked: it knows the request.
        """
        is_news = isinstance(error, Moved) and self.placements.learn_from(error)
        if is_news and asked.is_activation:
            again = self.activate(asked.partition, asked.commands[0])
        elif is_news:
            again = self.submit(asked.partition, asked.commands, asked.size_bytes)
        elif self.room is None or asked.is_activation:
            future.set_exception(error)
            return
        else:
            again = self._wait(asked.partition, asked.commands, asked.size_bytes, error)
        again.add_done_callback(lambda done: _copy(done, future))

    # --- waiting for an owner -----------------------------------------------------------------

    def _wait(
        self,
        partition: int,
        commands: Sequence[Command],
        size_bytes: int,
        error: HoldfastError,
        *,
        only_here: bool = False,
    ) -> Replies:
        if self.room is None:
            raise error
        future: Replies = asyncio.get_running_loop().create_future()
        deadline = self.room.deadline()
        self.room.add(Delayed(partition, commands, size_bytes, future, deadline, error, only_here))
        return future

    def _left(self, partition: int, left: Sequence[Submission], error: Moved) -> None:
        """The partition is closed here, and these reached no log."""
        assert self.room is not None
        deadline = self.room.deadline()
        for each in left:
            if each.ticket is not None:
                waiting = Delayed(
                    partition, each.commands, each.size_bytes, each.ticket, deadline, error
                )
                self.room.add(waiting)

    def _from_room(self, waiting: Delayed) -> None:
        """Tries the owner as it is known now; what reached no log waits on, no longer than ever."""
        assert self.room is not None
        partition, commands, size_bytes, future, *_ = waiting
        member = self.placements.of(partition).member
        try:
            if member == self._member:
                done = self._local.submit(partition, commands, size_bytes)
            elif waiting.only_here:
                raise self.placements.moved(partition)
            elif (remote := self.remotes.get(member)) is not None and remote.link.is_up:
                done = remote.submit_once(partition, commands, size_bytes)
            else:
                self.room.add(waiting)
                return
        except HoldfastError as error:
            if isinstance(error, Moved) and (member == self._member or not waiting.only_here):
                self.room.add(waiting)
            elif not future.done():
                future.set_exception(_truth(waiting, error))
        else:
            done.add_done_callback(partial(self._tried, waiting))

    def _tried(self, waiting: Delayed, done: Replies) -> None:
        assert self.room is not None
        error = None if done.cancelled() else done.exception()
        if isinstance(error, Moved | NotSent):
            is_news = isinstance(error, Moved) and self.placements.learn_from(error)
            if is_news and asyncio.get_running_loop().time() < waiting.deadline:
                self._from_room(waiting)
            else:
                self.room.add(waiting)
        elif isinstance(error, Unknown) and are_known_again(waiting.commands):
            self.room.add(waiting._replace(error=error))
        elif isinstance(error, HoldfastError) and not waiting.future.done():
            waiting.future.set_exception(_truth(waiting, error))
        else:
            _copy(done, waiting.future)

    # --- queries and topics -------------------------------------------------------------------

    async def ask(
        self,
        partition: int,
        query: Query[A],
        asker: Asker | None = None,
        *,
        may_be_stale: bool = False,
    ) -> A:
        deadline: float | None = None
        while True:
            try:
                return await self._owner(partition).ask(
                    partition, query, asker, may_be_stale=may_be_stale
                )
            except (Moved, NotSent, Unknown) as error:  # nothing is done twice by asking twice
                if isinstance(error, Moved) and self.placements.learn_from(error):
                    continue
                if self.room is None:
                    raise
                deadline = deadline or self.room.deadline()
                if not await self.room.change(partition, deadline):
                    raise

    async def _ask_here(
        self,
        partition: int,
        query: Query[A],
        asker: Asker | None = None,
        *,
        may_be_stale: bool = False,
    ) -> A:
        """Of a partition of this member, which may not be open yet."""
        assert self.room is not None
        deadline = self.room.deadline()
        while True:
            try:
                return await self._local.ask(partition, query, asker, may_be_stale=may_be_stale)
            except Moved:
                if not self._is_here(partition):
                    raise self.placements.moved(partition) from None
                if not await self.room.change(partition, deadline):
                    raise

    def follow(self, topic: EffectTopic, tell: Tell) -> Callable[[], None]:
        members = {self._member: self._local, **self.remotes}
        return self._following.follow(topic, tell, members, may_wait=self.room is not None)

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
            raise self._nobody(partition, member) from None

    def _nobody(self, partition: int, member: str) -> NotSent:
        if member == NOBODY:
            return NotSent(f"Partition {partition} has no owner yet", partition=partition)
        return NotSent(
            f"Expected a way to member {member!r}, which owns partition {partition}, but there"
            " is none; it may have joined just now",
            partition=partition, member=member,
        )  # fmt: skip

    def _place(self, placement: Placement) -> None:
        is_here = placement.member == self._member
        remote = self.remotes.get(placement.member)
        if is_here:
            submit = self._local.submit if self.room is None else self._submit_here
        else:
            submit = remote.submit if remote is not None else self._submit_nowhere
        self._submits[placement.partition] = submit

    def _submit_nowhere(
        self, partition: int, commands: Sequence[Command], size_bytes: int = 0
    ) -> Replies:
        error = self._nobody(partition, self.placements.of(partition).member)
        return self._wait(partition, commands, size_bytes, error)

    def _moved_on(self, placement: Placement) -> None:
        """A partition has another owner: its followers follow it there, and ask again."""
        self._place(placement)
        if self.room is not None:
            self.room.changed(placement.partition)
        self._following.moved(placement.partition)


def _truth(waiting: Delayed, error: HoldfastError) -> HoldfastError:
    """What was refused now may have been done by the former owner: then it stays unknown."""
    return waiting.error if isinstance(waiting.error, Unknown) else error


def _copy(done: Replies, future: "asyncio.Future[Any]") -> None:
    error = None if done.cancelled() else done.exception()
    if future.done():
        return  # the caller has stopped waiting
    if done.cancelled():
        future.cancel()
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())
