"""Commands that take more than a note: trying a package again, storing what the store holds."""

from holdfast.clock import Clock
from holdfast.content.messages import (
    ClearQueue,
    ImportOutcome,
    Package,
    PackageStatus,
    RemovePackage,
    SnapshotTaken,
    TakeSnapshot,
)
from holdfast.content.ports import ContentLog
from holdfast.content.repository.api import Repository
from holdfast.content.subscriber.batch import ImportFailed
from holdfast.content.subscriber.commands import after_command, after_retry
from holdfast.content.subscriber.decisions import Habits
from holdfast.content.subscriber.keeping import Keeper
from holdfast.content.subscriber.ledger import GivenUpPackage, StoreLedger
from holdfast.content.subscriber.listening import CommandListener
from holdfast.content.subscriber.rounds import Rounds
from holdfast.content.subscriber.seeding import store_snapshot
from holdfast.content.subscriber.shared import SharedPackages
from holdfast.content.topics import PARTITION, ContentTopic
from holdfast.errors import HoldfastError
from holdfast.limits import CONTENT_REASON_CHARS_MAX
from holdfast.logs import log as logger


class Servant:
    """Does what commands say, one after the other, between the rounds."""

    def __init__(
        self,
        habits: Habits,
        clock: Clock,
        log: ContentLog,
        repository: Repository,
        shared: SharedPackages,
        keeper: Keeper,
        listener: CommandListener,
        rounds: Rounds,
    ) -> None:
        self._habits = habits
        self._clock = clock
        self._log = log
        self._repository = repository
        self._shared = shared
        self._keeper = keeper
        self._listener = listener
        self._rounds = rounds
        self._taken: SnapshotTaken | None = None  # stored, and perhaps not told yet

    async def obey(self) -> None:
        """Does what the next command says; it is forgotten when it is done and committed."""
        offset, command = self._listener.commands[0]
        keeper, now_ms = self._keeper, self._clock.now_ms()
        result = after_command(keeper.ledger, self._habits, offset, command, now_ms)
        if result.refused:
            logger.warning(
                "content.subscriber.command_refused", subscriber=self._habits.name,
                command=command.command_id, reason=result.refused,
            )  # fmt: skip
        if isinstance(result.task, GivenUpPackage):
            await self._retry(result.task, result.ledger)
        elif isinstance(result.task, TakeSnapshot):
            await self._take_snapshot(result.task)
            await keeper.commit(result.ledger)
        else:
            await keeper.commit(result.ledger, result.statuses)
        if isinstance(command, ClearQueue | RemovePackage):
            self._rounds.retry_at = float("-inf")  # what is stuck may be what is to be skipped
        self._listener.commands.popleft()

    async def _retry(self, failed: GivenUpPackage, done: StoreLedger) -> None:
        package = await self._read(failed.offset)
        if package is None:
            reason = "it is no longer on the log: publish it again"
            await self._keeper.commit(done, [self._status(failed, reason)])
            return
        after = after_retry(done, failed, package)
        try:
            await self._keeper.commit(
                after, [self._status(failed)], [(failed.offset, package)], failed.touched
            )
        except ImportFailed as error:
            if error.index is None:  # it may have been committed: then the next look finds it done
                raise
            await self._keeper.commit(done, [self._status(failed, error.as_failure().reason)])

    def _status(self, failed: GivenUpPackage, reason: str = "") -> PackageStatus:
        outcome = ImportOutcome.REMOVED_FAILED if reason else ImportOutcome.IMPORTED
        return PackageStatus(
            self._habits.name, failed.publisher, failed.offset, outcome, failed.number,
            failed.package_id, reason[:CONTENT_REASON_CHARS_MAX], 1, self._clock.now_ms(),
        )  # fmt: skip

    async def _read(self, offset: int) -> Package | None:
        page = await self._log.read(
            ContentTopic.PACKAGES, PARTITION, offset, bytes_max=1, wait_ms=0
        )
        found = [self._shared.package(each) for each in page.entries if each.offset == offset]
        return found[0] if found else None

    async def _take_snapshot(self, command: TakeSnapshot) -> None:
        """Stores what the store holds. It is told at least once, also that it failed."""
        if self._taken is None or self._taken.command_id != command.command_id:
            ledger = self._keeper.ledger
            await self._keeper.save()  # what is told is what the store says
            progress = [ledger.progress_of(each) for each in self._habits.publishers]
            error = ""
            try:
                await self._keeper.call_with_blobs(
                    store_snapshot, self._repository, self._log.blobs, command.blob, ledger
                )
            except (HoldfastError, OSError) as failure:
                error = str(failure)[:CONTENT_REASON_CHARS_MAX]
            self._taken = SnapshotTaken(
                self._habits.name, command.command_id, command.blob, progress, error
            )
        await self._log.snapshot_taken(self._taken)
