"""The subscriber: takes packages from the log into a store, each one once, in their order.

    read ahead -> plan -> one commit: content + progress + statuses -> report and announce

What is decided is in `decisions` and `commands`, values in and values out; `rounds` does it, and
here are the tasks. There are three: one that imports and obeys, one that tells, one that listens
for commands. At the end of the log all of them wait, and only the announcements cost anything.
"""

import asyncio
import contextlib

import msgspec

from holdfast.clock import Clock, SystemClock
from holdfast.content.messages import Discovery, SubscriberProgress
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import Repository
from holdfast.content.subscriber.batch import Importer, ImportFailed, Invalidate
from holdfast.content.subscriber.conditions import TROUBLED, CurrentCondition, SubscriberCondition
from holdfast.content.subscriber.decisions import Admit, Habits
from holdfast.content.subscriber.fetching import Fetcher
from holdfast.content.subscriber.keeping import Keeper
from holdfast.content.subscriber.listening import CommandListener
from holdfast.content.subscriber.obeying import Servant
from holdfast.content.subscriber.preconditions import GoldenSubscriber
from holdfast.content.subscriber.rounds import Rounds
from holdfast.content.subscriber.seeding import newest_snapshot, seed, wrong_seed
from holdfast.content.subscriber.shared import shared_packages
from holdfast.content.subscriber.telling import Teller
from holdfast.errors import HoldfastError, NotFound, Unavailable
from holdfast.limits import (
    CONTENT_ANNOUNCE_MS,
    CONTENT_STATUSES_WAITING_MAX,
    CONTENT_WAIT_MS,
)
from holdfast.logs import log as logger

_PAUSE = CONTENT_WAIT_MS / 1000
_INTERVAL = CONTENT_ANNOUNCE_MS / 1000


class SubscriberExtras(msgspec.Struct, frozen=True):
    """What a subscriber may be given beside its habits."""

    precondition: Admit | None = None
    only_after: str | None = None  # import only what this subscriber has imported
    seed_from: str | None = None  # begin with what this subscriber stored last
    invalidate: Invalidate | None = None  # called with the paths of packages that invalidate
    host: str = ""


_NO_EXTRAS = SubscriberExtras()


class Subscriber:
    """Takes in packages from `start` until it is closed; the store stays open for its owner."""

    def __init__(
        self,
        log: ContentLog,
        repository: Repository,
        habits: Habits,
        extras: SubscriberExtras = _NO_EXTRAS,
        *,
        store_id: str,
        clock: Clock | None = None,
    ) -> None:
        self.habits = habits
        self.tasks: list[asyncio.Task[None]] = []
        self._log = log
        self._repository = repository
        self._extras = extras
        self._store_id = store_id  # for a store that has none yet
        self._clock = clock = clock or SystemClock()
        self._condition = CurrentCondition()
        self._woken = asyncio.Event()
        self._stumbles = 0
        self._is_closing = False
        self._is_doubtful = False  # whether a commit was made that failed
        self._troubled_ms = 0
        shared = shared_packages(log)
        importer = Importer(log, repository, shared, extras.invalidate)
        self._teller = Teller(log, clock, self._discovery, self._due_seconds)
        self._keeper = Keeper(habits.name, repository, importer, self._teller)
        self._fetcher = Fetcher(log, shared, self.wake)
        self._listener = CommandListener(log, habits.name, self.wake)
        self._rounds = Rounds(
            habits, clock, log, repository, self._keeper, self._fetcher, self._teller,
            self._condition,
        )  # fmt: skip
        self._rounds.precondition = extras.precondition
        if extras.only_after is not None:
            self._rounds.golden = GoldenSubscriber(log, extras.only_after)
        self._servant = Servant(
            habits, clock, log, repository, shared, self._keeper, self._listener, self._rounds
        )

    # --- what users ask -----------------------------------------------------------------------

    @property
    def condition(self) -> SubscriberCondition:
        return self._condition.value

    @property
    def reason(self) -> str:
        """Why it does not go on."""
        return self._condition.reason

    @property
    def ready(self) -> bool:
        return self._rounds.ready.is_ready(self._clock.monotonic())

    @property
    def lag(self) -> int:
        """How much of the log is still to be looked at, as of the last read."""
        return self._fetcher.lag

    @property
    def idle_offset(self) -> int:
        """Where the log ended when it was idle last: all that is before is taken in."""
        return self._rounds.idle_offset

    @property
    def imported(self) -> int:
        """Packages since it was started."""
        return self._rounds.imported

    @property
    def progress(self) -> list[SubscriberProgress]:
        """How far the store is, by publisher."""
        return [self._keeper.saved.progress_of(each) for each in self.habits.publishers]

    async def wait_until(self, *conditions: SubscriberCondition) -> SubscriberCondition:
        """Returns when it is in one of these conditions, or closed."""
        return await self._condition.until(*conditions)

    def start(self) -> None:
        """Begins, and goes on until it is closed."""
        self.tasks.append(asyncio.create_task(self._run()))

    async def close(self) -> None:
        """Finishes the commit that is under way, and says how far it came."""
        self._is_closing = True
        self.wake()
        if self.tasks:
            await asyncio.wait(self.tasks[:1])
            for task in self.tasks[1:]:
                task.cancel()
            await asyncio.gather(*self.tasks[1:], return_exceptions=True)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE):
                    await self._teller.send()
        self._fetcher.cancel()
        self._condition.be(SubscriberCondition.CLOSED)

    def wake(self) -> None:
        """Looks at once whether there is something to do."""
        self._woken.set()

    # --- the loop -----------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while not self._is_closing:
                is_open = len(self.tasks) > 1
                self._woken.clear()
                try:
                    pause = await (self._round() if is_open else self._open())
                    self._stumbles = 0
                except (HoldfastError, ImportFailed, OSError) as error:
                    self._is_doubtful = isinstance(error, ImportFailed)
                    pause = self._stumble(error)
                await (self._rest(pause) if pause else asyncio.sleep(0))
            if len(self.tasks) > 1:
                with contextlib.suppress(ImportFailed):
                    await self._keeper.save()
        except Exception as error:  # a bug: it is told, and the subscriber stands still
            logger.exception("content.subscriber.failed", subscriber=self.habits.name)
            self._condition.be(SubscriberCondition.CLOSED, f"{type(error).__name__}: {error}")
            raise

    async def _open(self) -> float:
        """Finds out where the store and the log stand, and says that it is there."""
        is_new = await self._keeper.is_new()
        await self._keeper.open(self._store_id, await self._listener.end() if is_new else 0)
        seed_from = self._extras.seed_from
        if seed_from and self._keeper.ledger.is_new() and not await self._seed(seed_from):
            await self._teller.send()  # the log is kept for it from now on
            return _INTERVAL
        if not await self._teller.send():
            raise Unavailable(
                f"{self.habits.name} could not announce itself: {self._teller.trouble}"
            )
        self._rounds.restart()
        # What somebody cleared meanwhile is not imported first.
        await self._listener.catch_up(max(self._keeper.ledger.commands.next, 0))
        self.tasks.append(asyncio.create_task(self._teller.run()))
        self.tasks.append(asyncio.create_task(self._listener.run()))
        return 0

    async def _round(self) -> float:
        """Does what is next; how long to rest then, 0 if there is more to do."""
        if self._is_doubtful:
            await self._rounds.reload()
            self._is_doubtful = False
        if self._listener.commands:
            await self._servant.obey()
            return 0
        rounds, teller = self._rounds, self._teller
        if len(teller.statuses) >= CONTENT_STATUSES_WAITING_MAX:
            return rounds.hold(SubscriberCondition.STUMBLING, "statuses could not be reported")
        pause = await rounds.next()
        if self.condition is SubscriberCondition.NEEDS_SEEDING and self._extras.seed_from:
            return 0 if await self._seed(self._extras.seed_from) else pause
        return pause

    async def _seed(self, subscriber: str) -> bool:
        """Begins with what another subscriber stored; False if that is no help."""
        found = await newest_snapshot(self._log, subscriber)
        ledger = self._keeper.ledger
        if wrong := wrong_seed(found, ledger, self.habits):
            reason = f"Expected a snapshot of {subscriber} to begin with, but {wrong}"
            self._rounds.hold(SubscriberCondition.NEEDS_SEEDING, reason)
            return False
        assert found is not None
        try:
            await self._keeper.call_with_blobs(
                seed, self._repository, self._log.blobs, found.blob, ledger
            )
        except NotFound as error:  # it was cleaned up
            self._rounds.hold(SubscriberCondition.NEEDS_SEEDING, f"{error.message}; take another")
            return False
        await self._keeper.reload()
        self._rounds.restart()
        logger.info("content.subscriber.seeded", subscriber=self.habits.name, blob=found.blob)
        return True

    def _stumble(self, error: Exception) -> float:
        """The log or the store cannot be used: it is tried again, less and less often."""
        self._stumbles += 1
        reason = error.message if isinstance(error, HoldfastError) else str(error)
        if self._stumbles > 1:  # once is no news
            self._rounds.hold(SubscriberCondition.STUMBLING, reason)
        return min(_PAUSE * 2 ** min(self._stumbles - 1, 8), _INTERVAL)

    async def _rest(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()

    # --- what it says -------------------------------------------------------------------------

    def _due_seconds(self) -> float:
        return self._rounds.ready.due_seconds(self._clock.monotonic())

    def _discovery(self) -> Discovery:
        """How far the store is, not what is still to be committed; and what is in the way."""
        keeper, rounds, habits = self._keeper, self._rounds, self.habits
        progress = [self._said(each) for each in habits.publishers]
        return Discovery(
            habits.name, keeper.saved.store_id, habits.editable, habits.retries_max, progress,
            self.ready, CONTENT_ANNOUNCE_MS, rounds.imported, rounds.imported_bytes,
            round(rounds.import_seconds * 1000), self._extras.host,
        )  # fmt: skip

    def _said(self, publisher: str) -> SubscriberProgress:
        saved, now = self._keeper.saved.progress_of(publisher), self._keeper.ledger
        counted = now.progress_of(publisher)
        reason, since_ms = counted.reason, counted.failing_since_ms
        if self.condition in TROUBLED:
            self._troubled_ms = self._troubled_ms or self._clock.now_ms()
            reason, since_ms = self.reason, self._troubled_ms
        else:
            self._troubled_ms = 0
        if (counted.retries, reason) == (saved.retries, saved.reason):
            return saved
        return msgspec.structs.replace(
            saved, retries=counted.retries, reason=reason, failing_since_ms=since_ms
        )
