"""What a subscriber does in each round: some packages, or what to do when there are none."""

from collections.abc import Sequence

from holdfast.clock import Clock
from holdfast.content.messages import NOWHERE, Package
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import Repository
from holdfast.content.subscriber.batch import ImportFailed
from holdfast.content.subscriber.conditions import CurrentCondition, SubscriberCondition
from holdfast.content.subscriber.decisions import (
    Admission,
    Admit,
    Habits,
    PackagePlan,
    PackageTurn,
    PlanEnd,
    PlannedPackage,
    after_failure,
    after_steps,
    gap_reason,
    passed_to,
    plan,
    with_attempts,
)
from holdfast.content.subscriber.fetching import Fetcher
from holdfast.content.subscriber.keeping import Keeper
from holdfast.content.subscriber.preconditions import GoldenSubscriber
from holdfast.content.subscriber.proof import counted
from holdfast.content.subscriber.ready import ReadyCheck
from holdfast.content.subscriber.telling import Teller
from holdfast.limits import (
    CONTENT_ANNOUNCE_MS,
    CONTENT_GATHERED_BYTES,
    CONTENT_GATHERED_PACKAGES_MAX,
    CONTENT_PREFETCH_BYTES,
    CONTENT_SKIPPED_MAX,
    CONTENT_SMALL_PACKAGES_MAX,
    CONTENT_WAIT_MS,
)
from holdfast.logs import log as logger

_INTERVAL = CONTENT_ANNOUNCE_MS / 1000
_PAUSE = CONTENT_WAIT_MS / 1000
_PAGES_MAX = CONTENT_GATHERED_BYTES // CONTENT_PREFETCH_BYTES


class Rounds:
    """Packages from the log into the store. Each call says how long to rest then."""

    def __init__(
        self,
        habits: Habits,
        clock: Clock,
        log: ContentLog,
        repository: Repository,
        keeper: Keeper,
        fetcher: Fetcher,
        teller: Teller,
        condition: CurrentCondition,
    ) -> None:
        self.imported = 0  # packages since the start
        self.imported_bytes = 0
        self.import_seconds = 0.0
        self.ready = ReadyCheck(clock.monotonic())
        self.golden: GoldenSubscriber | None = None
        self.precondition: Admit | None = None
        self.retry_at = float("-inf")
        self.idle_offset = 0  # where the log ended when there was nothing left to do
        self._habits = habits
        self._clock = clock
        self._log = log
        self._repository = repository
        self._keeper = keeper
        self._fetcher = fetcher
        self._teller = teller
        self._condition = condition
        self._batch_max = CONTENT_SMALL_PACKAGES_MAX
        self._suspects = 0  # of the next imports: with all of them a commit failed
        self._save_at = 0.0
        self._unproven: set[str] = set()  # publishers with packages that may be missing here

    def restart(self) -> None:
        """Reads the log from where the store is."""
        self._fetcher.restart(self._keeper.ledger.start_of(self._habits.publishers))
        self._unproven.clear()
        self._suspect(0)

    async def next(self) -> float:
        """Takes in what comes next, up to a commit; 0 if there may be more."""
        if (left := self.retry_at - self._clock.monotonic()) > 0:
            return left
        fetcher = self._fetcher
        if not fetcher.waiting:
            is_more = await fetcher.fill()
            if fetcher.unkept is not None:
                self._doubt(fetcher.unkept)
            if not is_more:
                return await self._idle()
            if not fetcher.waiting:
                return 0
        self.ready.busy(self._clock.monotonic())
        ledger = self._keeper.ledger
        admit = None if self.golden is None and self.precondition is None else self._admission
        planned = plan(fetcher.waiting, ledger, self._habits, admit, self._batch_max)
        if planned.steps:
            await self._take(planned)
            return await self._gather()
        if planned.end is PlanEnd.WAIT:
            return await self._wait()
        if planned.end is PlanEnd.MORE:
            self._batch_max = CONTENT_SMALL_PACKAGES_MAX
            return 0
        return self.hold(SubscriberCondition.NEEDS_SEEDING, gap_reason(ledger, *fetcher.waiting[0]))

    def hold(self, value: SubscriberCondition, reason: str) -> float:
        """It cannot go on, and says why."""
        if self._condition.be(value, reason):
            logger.warning(
                f"content.subscriber.{value.value.lower()}",
                subscriber=self._habits.name, reason=reason,
            )  # fmt: skip
            self._teller.tell()
        return _INTERVAL

    # --- packages -----------------------------------------------------------------------------

    async def _take(self, planned: PackagePlan) -> None:
        """Does what is planned, in one commit; or less of it, if something fails."""
        keeper, steps, waiting = self._keeper, planned.steps, self._fetcher.waiting
        after, statuses = after_steps(
            keeper.ledger, self._habits, steps, self._clock.now_ms(), self._unproven
        )
        if planned.imports or statuses:
            packages = [
                (offset, package)
                for offset, package, turn, _ in steps
                if turn is PackageTurn.IMPORT
            ]
            if self._repository.blocking and len(steps) == len(waiting):
                self._fetcher.read_ahead()
            began = self._clock.monotonic()
            try:
                await keeper.commit(after, statuses, packages)
            except ImportFailed as failed:
                await self._fail(planned, failed)
                return
            self._count(packages, self._clock.monotonic() - began)
            self._condition.be(SubscriberCondition.RUNNING)
        else:
            keeper.ledger = after
            keeper.unsaved += len(steps)
        self._suspect(max(self._suspects - planned.imports, 0))
        for _ in steps:
            waiting.popleft()
        if self._unproven:
            self._prove(steps)
        if keeper.unsaved >= CONTENT_SKIPPED_MAX:
            await keeper.save()

    def _count(self, packages: Sequence[tuple[int, Package]], seconds: float) -> None:
        self.import_seconds += seconds
        self.imported += len(packages)
        self.imported_bytes += sum([package.size_bytes for _, package in packages])

    async def _gather(self) -> float:
        """Where commits have to wait for one another, the next one takes in more at once."""
        delay_ms = self._repository.commit_delay_ms()
        if delay_ms <= 0:
            return 0
        pages, fetcher = 1, self._fetcher
        while pages < _PAGES_MAX and fetcher.next < fetcher.end:
            if len(fetcher.waiting) >= CONTENT_GATHERED_PACKAGES_MAX:
                break
            await fetcher.fill()
            pages += 1
        if not self._suspects and self._batch_max == CONTENT_SMALL_PACKAGES_MAX:
            self._batch_max = CONTENT_GATHERED_PACKAGES_MAX
        return delay_ms / 1000

    # --- packages that fail -------------------------------------------------------------------

    async def _fail(self, planned: PackagePlan, failed: ImportFailed) -> None:
        """What can be taken without the package that fails is taken first, then it alone."""
        if not planned.imports:
            raise failed
        if failed.index is None and await self.reload():
            return  # the commit was made all the same
        lead = [step.turn for step in planned.steps].index(PackageTurn.IMPORT)
        if failed.index:
            self._batch_max = failed.index
        elif failed.index is None and planned.imports > 1:
            self._suspect(planned.imports)
        elif lead:
            self._suspect(1)
            self._batch_max = 0  # what is before it, and then it alone
        else:
            await self._fail_alone(planned.steps[0], failed)

    def _suspect(self, imports: int) -> None:
        """So many imports failed together: half of them next, so that the one is found soon."""
        self._suspects = imports
        self._batch_max = max(imports // 2, 1) if imports else CONTENT_SMALL_PACKAGES_MAX

    async def _fail_alone(self, step: PlannedPackage, failed: ImportFailed) -> None:
        keeper, failure = self._keeper, failed.as_failure()
        result = after_failure(keeper.ledger, self._habits, step, failure, self._clock.now_ms())
        logger.warning(
            "content.subscriber.import_failed", subscriber=self._habits.name, offset=step.offset,
            package=step.package.package_id, reason=failure.reason, gave_up=bool(result.status),
        )  # fmt: skip
        self.retry_at = self._clock.monotonic() + result.pause_ms / 1000
        if result.status is not None:
            await keeper.commit(result.ledger, [result.status])
            self._suspect(0)
            return  # what was read ahead of it is passed over
        self._suspect(1)
        self._condition.be(SubscriberCondition.RETRYING, failure.reason)
        try:
            await keeper.commit(result.ledger)
        except ImportFailed:  # the store itself fails; the attempt is counted all the same
            keeper.ledger = result.ledger
            self._teller.tell()

    async def reload(self) -> bool:
        """After a commit that may have been made: what the store says is so; whether it moved."""
        keeper, counted = self._keeper, self._keeper.ledger
        await keeper.reload()
        moved = any(
            keeper.saved.progress_of(each).offset > counted.progress_of(each).offset
            for each in self._habits.publishers
        )
        keeper.ledger = with_attempts(keeper.saved, counted, self._habits)
        self.restart()
        return moved

    # --- when there is nothing to import ------------------------------------------------------

    async def _idle(self) -> float:
        """At the end of the log."""
        keeper, fetcher, now = self._keeper, self._fetcher, self._clock.monotonic()
        fetcher.poll()
        if self._unproven and (missing := await self._missing()):
            return self.hold(
                SubscriberCondition.NEEDS_SEEDING,
                f"Expected the log to keep what comes behind the store's offset, but it begins at"
                f" {fetcher.earliest}: packages of {', '.join(missing)} are missing, or may be;"
                " seed the store from another subscriber (seed_from), or accept the gap"
                " (accept_gap)",
            )
        keeper.ledger = passed_to(keeper.ledger, self._habits, fetcher.next - 1, self._unproven)
        self.ready.idle(now)
        self.idle_offset = fetcher.next
        if self._condition.be(SubscriberCondition.IDLE):
            self._teller.tell()
        if keeper.ledger is keeper.saved:
            self._save_at = now + _INTERVAL
        elif now >= self._save_at:
            await keeper.save()
        return _INTERVAL

    async def _wait(self) -> float:
        """A precondition holds the next package back."""
        if self._condition.value is not SubscriberCondition.WAITING:
            self._condition.be(SubscriberCondition.WAITING, "a precondition returned WAIT")
        if self.golden is None:
            return _PAUSE
        await self.golden.refresh()
        offset, package = self._fetcher.waiting[0]
        return _PAUSE if self._admission(package, offset) is Admission.WAIT else 0

    def _admission(self, package: Package, offset: int) -> Admission:
        if self.golden is not None:
            admission = self.golden.admit(package, offset)
            if admission is not Admission.ACCEPT:
                return admission
        if self.precondition is None:
            return Admission.ACCEPT
        try:
            return self.precondition(package, offset)
        except Exception as error:  # of the user's function: the package waits
            reason = f"the precondition failed: {type(error).__name__}: {error}"
            self._condition.be(SubscriberCondition.WAITING, reason)
            return Admission.WAIT

    # --- packages that may be missing ---------------------------------------------------------

    def _doubt(self, earliest: int) -> None:
        """What is before an offset is not kept: each publisher has to show that nothing is missing.

        Its next package does so by its number; until then it is asked what the node remembers.
        """
        self._fetcher.unkept = None
        if not self._habits.accepts_gap:
            ledger = self._keeper.ledger
            self._unproven.update(
                each
                for each in self._habits.publishers
                if ledger.progress_of(each).offset < earliest - 1
            )

    async def _missing(self) -> list[str]:
        """The publishers with packages that neither the log nor the store has."""
        last = await counted(self._log, self._fetcher.earliest)
        ledger = self._keeper.ledger
        if last is not None:
            self._unproven.difference_update(
                each
                for each in list(self._unproven)
                if ledger.progress_of(each).number == last.get(each, 0)
            )
        return sorted(
            each
            for each in self._unproven
            if last is not None or ledger.progress_of(each).offset != NOWHERE
        )

    def _prove(self, steps: Sequence[PlannedPackage]) -> None:
        self._unproven.difference_update(
            step.package.publisher for step in steps if step.turn is not PackageTurn.PASS
        )
