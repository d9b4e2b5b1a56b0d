"""The home of groups of users' programs: where partition 1 is, as with content.

Sessions are in memory here; all else is in the groups' logs. A home that starts reads each log,
goes on with the last generation that it has, and gives its members the time of a session to come
back: nobody loses a partition because the home moved.
"""

import asyncio
import secrets

from holdfast.clock import Clock
from holdfast.errors import (
    HoldfastError,
    Moved,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from holdfast.groups.api import MemberId
from holdfast.groups.journal_log import PARTITION, JournalSyncLog, group_of, topic_of
from holdfast.groups.kept import HeardGeneration, KeptGroup
from holdfast.groups.messages import Ask, AskKind
from holdfast.groups.observing import GroupObserver
from holdfast.groups.operators import operators_message
from holdfast.journal import Bounds, Entry, Journal, Retention
from holdfast.limits import GROUPS_MAX
from holdfast.logs import log
from holdfast.metrics import GroupNumbers

_RETENTION = Retention(age_ms=3_600_000)  # of what no start needs: it is dropped by whole segments


class GroupsHome:
    """All groups of a node. Nothing is there before it is used: no topics, no task."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._kept: dict[str, KeptGroup] = {}
        self._opening: dict[str, asyncio.Task[KeptGroup]] = {}
        self._away: HoldfastError | None = None  # what callers are told
        self._failures: dict[str, str] = {}  # by group, why its log could not be read

    # --- its life -----------------------------------------------------------------------------

    async def start(self) -> None:
        """The same as `begin`."""
        self.begin()

    def begin(self) -> None:
        """The groups are here: begins to read what their logs say."""
        self._away = None
        for name in self.names():
            self._begin(name, is_new=False)

    def leave(self, reason: str) -> None:
        """The groups are at another member: waiting callers are told to ask there."""
        self._end(
            Moved(f"The groups are not at this member: {reason}; try again", partition=PARTITION)
        )

    async def stop(self) -> None:
        """Lets go of all groups; their members find the next home."""
        if self._away is None:
            self._end(Unavailable("The node is closing; try again later"))
        if self._opening:
            await asyncio.wait(self._opening.values())
            self._opening.clear()

    def abandon(self) -> None:
        """The process ends."""
        self._end(Unavailable("The node has ended"))

    def _end(self, error: HoldfastError) -> None:
        self._away = error
        for opening in self._opening.values():
            opening.cancel()
        for kept in self._kept.values():
            kept.shut(error)
        self._kept.clear()

    # --- groups -------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """All groups that were ever joined."""
        found = (group_of(topic) for topic in self._journal.topics())
        return sorted(each for each in found if each is not None)

    async def group(self, name: str) -> KeptGroup:
        """A group that is there; NotFound otherwise."""
        self._check_here()
        kept = self._kept.get(name)
        if kept is not None:
            return kept
        if topic_of(name) not in self._journal.topics():
            raise NotFound(f"Expected a group that exists, but found {name!r}", group=name)
        return await asyncio.shield(self._begin(name, is_new=False))

    async def _made(self, name: str) -> KeptGroup:
        """A group that is there, or is made now."""
        self._check_here()
        kept = self._kept.get(name)
        return kept or await asyncio.shield(self._begin(name, is_new=True))

    def _check_here(self) -> None:
        if self._away is not None:
            raise type(self._away)(self._away.message, **self._away.fields)

    def _begin(self, name: str, *, is_new: bool) -> "asyncio.Task[KeptGroup]":
        opening = self._opening.get(name)
        if opening is None:
            known = self.names()
            if is_new and name not in known and len(known) >= GROUPS_MAX:
                raise ResourceExhausted(
                    f"Expected at most {GROUPS_MAX} groups, but {name!r} is one more", group=name
                )
            opening = asyncio.get_running_loop().create_task(self._open(name), name="group")
            self._opening[name] = opening
            opening.add_done_callback(lambda done: self._opened(name, done))
        return opening

    async def _open(self, name: str) -> KeptGroup:
        sync_log = JournalSyncLog(self._journal, topic_of(name), _RETENTION)
        kept = KeptGroup(name, sync_log, self._clock)
        await kept.open()
        return kept

    def _opened(self, name: str, opening: "asyncio.Task[KeptGroup]") -> None:
        if self._opening.get(name) is opening:
            del self._opening[name]
        if opening.cancelled():
            return
        error = opening.exception()
        self._failures.pop(name, None)
        if error is not None:
            self._failures[name] = str(error)
            log.error("group: log not read", group=name, error=str(error))
        elif self._away is not None:
            opening.result().shut(self._away)
        else:
            self._kept[name] = opening.result()

    # --- members ------------------------------------------------------------------------------

    async def join(
        self, group: str, member: MemberId, card: bytes, known: int, session_ms: int
    ) -> str:
        """Begins a session of a member; its id."""
        kept = await self._made(group)
        session = secrets.token_hex(8)
        kept.join(session, member, card, known, session_ms)
        return session

    async def heartbeat(
        self, group: str, session: str, known: int, wait_ms: int
    ) -> HeardGeneration | None:
        """Keeps a session; the generation, once it is another one than the member knows."""
        return await (await self.group(group)).heartbeat(session, known, wait_ms)

    async def leave_group(self, group: str, session: str) -> None:
        """A member goes by itself."""
        (await self.group(group)).leave(session)

    async def append(self, group: str, body: bytes) -> None:
        """Appends a message to a group's log."""
        await (await self._made(group)).append(body)

    async def read(
        self, group: str, offset: int, bytes_max: int, wait_ms: int
    ) -> tuple[list[Entry], Bounds]:
        """Reads a group's log."""
        return await (await self._made(group)).read(offset, bytes_max, wait_ms)

    # --- operators ----------------------------------------------------------------------------

    async def move(self, group: str, token: str, member: str) -> None:
        """Lets a partition go to a member, and stay there as long as that is there."""
        await self._ask(group, Ask(AskKind.MOVE, token, member))

    async def park(self, group: str, token: str) -> None:
        """Lets the owner of a partition stop it until it is resumed."""
        await self._ask(group, Ask(AskKind.PARK, token))

    async def resume(self, group: str, token: str) -> None:
        """Lets the owner of a parked partition run it again."""
        await self._ask(group, Ask(AskKind.RESUME, token))

    async def _ask(self, group: str, ask: Ask) -> None:
        kept = await self.group(group)
        await kept.append(operators_message(group, kept.observer.state, ask))

    # --- what others see ----------------------------------------------------------------------

    async def all(self) -> list[KeptGroup]:
        """All groups, by name."""
        self._check_here()
        return [await self.group(name) for name in self.names()]

    async def needs(self) -> dict[str, int]:
        """By topic, the first offset that a start needs."""
        self._check_here()
        return {
            topic_of(name): self._journal.bounds(topic_of(name), PARTITION).earliest
            for name in self.names()
        }

    def numbers(self) -> list[GroupNumbers]:
        """What is counted of the groups that are open here."""
        return [numbers_of(name, self._kept[name].observer) for name in sorted(self._kept)]

    def warnings(self) -> list[str]:
        """Groups whose log could not be read."""
        return [
            f"group {name}: its log could not be read: {why}"
            for name, why in self._failures.items()
        ]


def numbers_of(group: str, observer: GroupObserver) -> GroupNumbers:
    """What is counted of a group that is observed here."""
    found = observer.summary()
    return GroupNumbers(
        group, len(found.members), sum(each.owned for each in found.members), found.running,
        found.shared, found.parked, found.epoch, found.generation, found.answers,
        observer.rebalances, len(observer.alarms), found.watermark_lag,
    )  # fmt: skip
