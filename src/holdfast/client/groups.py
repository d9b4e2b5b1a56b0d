"""Groups from a user's program: partitions that several programs share among themselves."""

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from holdfast.client.expecting import Span, span_ms
from holdfast.client.portal import Portal
from holdfast.errors import HoldfastError, InvalidArgument, InvalidState
from holdfast.gateway.api import Api
from holdfast.limits import GROUP_PARTITIONS_MAX, GROUP_SESSION_MS_MAX, GROUP_SESSION_MS_MIN

if TYPE_CHECKING:  # a program without groups does not load them
    from holdfast.client.group_work import GroupFunction, Run
    from holdfast.groups.api import NewPartition
    from holdfast.groups.observing import PartitionSummary
    from holdfast.groups.running import Group

Partitions: TypeAlias = "Sequence[str | NewPartition] | Callable[[], Sequence[str | NewPartition]]"
_numbers = count(1)


class GroupCalls:
    """The part of `Holdfast` that is about groups."""

    portal: Portal
    api: Api
    _groups: "list[PartitionGroup]"

    def group(
        self,
        name: str,
        *,
        partitions: Partitions = (),
        run: "Run",
        member: str | None = None,
        session: Span = 10.0,
    ) -> "PartitionGroup":
        """Joins a group of programs that share partitions.

        `partitions` are names, or a function that returns them; programs may name different ones,
        and all of them exist then. Each partition is run by one program at a time: `run` is called
        there with an `Owned`, a coroutine function on a loop of its own, a plain one in a thread.
        `member` is the name of this program, different from those of all others; by default its
        host and process. A program that is not heard for `session` is given up, and others go on
        with its partitions. Nothing runs before `start`.
        """
        opened = PartitionGroup(self, name, partitions, run, member, span_ms(session, "session"))
        self._groups.append(opened)
        return opened

    def group_function(self, run: "Run") -> "GroupFunction":
        """What runs a group's function."""
        from holdfast.client.group_work import GroupFunction

        return GroupFunction(run)

    def close_groups(self) -> None:
        """Stops the groups that were started here."""
        for each in self._groups:
            each.stop()


class PartitionGroup:
    """This program's membership in a group of programs that share partitions."""

    def __init__(
        self,
        app: GroupCalls,
        name: str,
        partitions: Partitions,
        run: "Run",
        member: str | None,
        session_ms: int,
    ) -> None:
        from holdfast.groups.names import check_group, check_name

        self.name = check_group(name)
        if not callable(run):
            raise InvalidArgument(f"Expected a function to run, but found {run!r}")
        if not GROUP_SESSION_MS_MIN <= session_ms <= GROUP_SESSION_MS_MAX:
            raise InvalidArgument(
                f"Expected a session of {GROUP_SESSION_MS_MIN / 1_000:g} to"
                f" {GROUP_SESSION_MS_MAX / 1_000:g} s, but found {session_ms / 1_000:g}"
            )
        default = f"{socket.gethostname()}-{os.getpid()}-{next(_numbers)}"
        self._member_name = check_name(default if member is None else member)
        self._app = app
        self._given = partitions if callable(partitions) else _checked(partitions)
        self._run = run
        self._session_ms = session_ms
        self._function: GroupFunction | None = None
        self._group: Group | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None

    def __repr__(self) -> str:
        return f"PartitionGroup({self.name!r}, owned {self.owned})"

    # --- its life -----------------------------------------------------------------------------

    def start(self) -> "PartitionGroup":
        """Joins the group, in the background."""
        self._app.portal.call(self._start(self._named()))
        return self

    async def start_async(self) -> "PartitionGroup":
        """Like `start`, for an event loop. A function that names partitions is called in it."""
        await self._app.portal.reach(self._start(self._named()))
        return self

    def stop(self) -> None:
        """Hands over all partitions and leaves. Raises what ended the group before."""
        if self._task is not None:
            self._app.portal.call_over_time(self._stop())
        self._raise_error()

    async def stop_async(self) -> None:
        """Like `stop`, for an event loop."""
        if self._task is not None:
            await self._app.portal.reach(self._stop())
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> "PartitionGroup":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> "PartitionGroup":
        return await self.start_async()

    async def __aexit__(self, *_: object) -> None:
        await self.stop_async()

    async def _start(self, partitions: "Sequence[NewPartition]") -> None:
        from holdfast.client.group_home import NodeMembership, NodeSyncLog
        from holdfast.groups.running import Group

        if self._task is not None:
            raise InvalidState(f"Group {self.name!r} was started before")
        api, loop = self._app.api, asyncio.get_running_loop()
        sync_log = NodeSyncLog(api, self.name)
        await sync_log.look()  # says at once what is wrong, such as a permission that is missing
        self._function = self._app.group_function(self._run)
        self._group = Group(
            self.name, self._member_name, sync_log,
            lambda member: NodeMembership(api, self.name, member, self._session_ms, loop.time),
            self._function, partitions=partitions,
        )  # fmt: skip
        self._task = loop.create_task(self._live(self._group), name=f"group {self.name}")

    async def _live(self, group: "Group") -> None:
        from holdfast.logs import log

        try:
            await group.run()
        except Exception as error:
            self._error = error
            why = error.message if isinstance(error, HoldfastError) else repr(error)
            log.error("group: ended", group=self.name, member=self._member_name, why=why)

    async def _stop(self) -> None:
        task, self._task = self._task, None
        assert task is not None and self._group is not None and self._function is not None
        self._group.stop()
        await task
        await self._function.close()

    def declare(self, partitions: "Sequence[str | NewPartition]") -> None:
        """Adds partitions. Those that exist, or existed, stay as they are."""
        self._app.portal.call(self._declare(_checked(partitions)))

    async def declare_async(self, partitions: "Sequence[str | NewPartition]") -> None:
        """Like `declare`, for an event loop."""
        await self._app.portal.reach(self._declare(_checked(partitions)))

    async def _declare(self, partitions: "Sequence[NewPartition]") -> None:
        self._running().declare(partitions)

    def _named(self) -> "Sequence[NewPartition]":
        return _checked(self._given()) if callable(self._given) else self._given

    def _running(self) -> "Group":
        if self._group is None:
            raise InvalidState(f"Expected group {self.name!r} to be started, but it was not")
        return self._group

    # --- how it is ----------------------------------------------------------------------------

    @property
    def member(self) -> str:
        """This program's name in the group, unique for each start."""
        return "" if self._group is None else self._group.member

    @property
    def owned(self) -> list[str]:
        """The partitions that run here, by name."""
        return [] if self._group is None else self._group.owned

    @property
    def partitions(self) -> "dict[str, PartitionSummary]":
        """All partitions of the group, as far as this program has read."""
        return {} if self._group is None else self._group.partitions()

    @property
    def watermark(self) -> int | None:
        """The lowest watermark of all partitions that are not finished; it never goes back."""
        return None if self._group is None else self._group.watermark

    @property
    def epoch(self) -> int:
        """The current epoch; it grows whenever members join or leave."""
        return 0 if self._group is None else self._group.epoch

    @property
    def alarms(self) -> list[str]:
        """Violated invariants, such as two owners in an epoch. Please report them."""
        return [] if self._group is None else list(self._group.alarms)

    @property
    def members(self) -> list[str]:
        """The members of the group in the current epoch."""
        return [] if self._group is None else self._group.members


def _checked(partitions: "Sequence[str | NewPartition]") -> "tuple[NewPartition, ...]":
    from holdfast.groups.api import NewPartition
    from holdfast.groups.names import check_token

    if isinstance(partitions, str) or not hasattr(partitions, "__iter__"):
        raise InvalidArgument(f"Expected names of partitions, but found {partitions!r:.80}")
    found = [
        each if isinstance(each, NewPartition) else NewPartition(check_token(each))
        for each in partitions
    ]
    for each in found:
        check_token(each.token)
    if len({each.token for each in found}) != len(found):
        raise InvalidArgument("Expected each partition once, but a name is there twice")
    if len(found) > GROUP_PARTITIONS_MAX:
        raise InvalidArgument(
            f"Expected at most {GROUP_PARTITIONS_MAX} partitions, but found {len(found)}"
        )
    return tuple(found)
