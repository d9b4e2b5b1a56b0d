"""What people ask of subscribers: clear, remove and retry packages, take snapshots."""

from collections.abc import Callable

from holdfast.content.blobs import SNAPSHOTS
from holdfast.content.messages import (
    ClearQueue,
    ImportOutcome,
    PackageStatus,
    RemovePackage,
    RetryPackage,
    SubscriberProgress,
    TakeSnapshot,
)
from holdfast.content.publisher.running import RunningContent
from holdfast.content.publisher.state import KnownPublisher
from holdfast.content.publisher.topology import KnownSubscriber
from holdfast.content.publisher.views import CommandSent
from holdfast.errors import InvalidState, NotFound


class Administration:
    """Commands for subscribers: checked, appended, and done when the subscriber is there."""

    def __init__(self, running: RunningContent, new_id: Callable[[], str]) -> None:
        self._running = running
        self._state = running.state
        self._new_id = new_id

    async def clear(self, publisher: str, subscriber: str, up_to: int) -> CommandSent:
        """Lets an editable subscriber skip all packages up to an offset, which only moves up."""
        known, _, _ = self._pair(publisher, subscriber)
        self._check_editable(subscriber)
        if up_to > known.offset:
            raise NotFound(
                f"Expected to clear packages of {publisher} that were published, but the last one"
                f" is at offset {known.offset} and found {up_to}",
                offset=up_to,
            )
        standing = self._state.cleared_to(subscriber, publisher)
        if up_to <= standing:
            return CommandSent(self._state.clear_command(subscriber, publisher), standing)
        command = ClearQueue(self._new_id(), subscriber, publisher, up_to)
        await self._running.commands.append([command])
        return CommandSent(command.command_id, up_to)

    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandSent:
        """Takes one package out of a queue, or out of an error queue."""
        known, _, progress = self._pair(publisher, subscriber)
        failed = self._state.errors.of(subscriber, publisher).get(offset)
        if failed is not None:  # nothing changes in the store, so anybody's may be removed
            status = failed.status
            removed = PackageStatus(
                subscriber, publisher, offset, ImportOutcome.REMOVED, status.number,
                status.package_id, attempts=status.attempts, at_ms=self._running.now_ms(),
            )  # fmt: skip
            await self._running.statuses.append([removed])
            return CommandSent(self._new_id(), offset)
        self._check_editable(subscriber)
        found = await self._running.queues.entries(known, offset - 1, 1)
        if offset <= progress.offset or not found or found[0].offset != offset:
            raise NotFound(
                f"Expected a package at offset {offset} in the queue or the error queue of"
                f" {subscriber}, but there is none; its queue begins behind {progress.offset}",
                offset=offset,
            )
        command = RemovePackage(self._new_id(), subscriber, publisher, offset)
        await self._running.commands.append([command])
        return CommandSent(command.command_id, offset)

    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandSent:
        """Retries a failed package at a subscriber."""
        self._pair(publisher, subscriber)
        if offset not in self._state.errors.of(subscriber, publisher):
            raise NotFound(
                f"Expected a package at offset {offset} in the error queue of {subscriber}, but"
                " there is none",
                offset=offset,
            )
        if offset < self._running.packages.earliest:
            raise InvalidState(
                f"Expected the package at offset {offset} of {publisher} to be on the log, but it"
                f" begins at {self._running.packages.earliest}; publish its paths again",
                offset=offset,
            )
        asked = self._state.errors.retry_of(subscriber, publisher, offset)
        if asked is not None:
            return CommandSent(asked, offset)
        command = RetryPackage(self._new_id(), subscriber, publisher, offset)
        await self._running.commands.append([command])
        return CommandSent(command.command_id, offset)

    async def take_snapshot(self, subscriber: str) -> CommandSent:
        """Lets a subscriber store what it holds, for another one to begin with."""
        self._subscriber(subscriber)
        command_id = self._new_id()
        blob = f"{SNAPSHOTS}{command_id}"
        await self._running.commands.append([TakeSnapshot(command_id, subscriber, blob)])
        return CommandSent(command_id, blob=blob)

    async def forget(self, subscriber: str) -> None:
        """A subscriber is gone for good: neither the log nor events wait for it any longer."""
        known = self._subscriber(subscriber)
        if not known.is_dead(self._running.now_ms()):
            raise InvalidState(
                f"Expected a subscriber that is gone, but {subscriber} was heard of just now; stop"
                " it first",
                subscriber=subscriber,
            )
        self._state.forget(subscriber)
        await self._running.upkeep.forget(subscriber)

    def _pair(
        self, publisher: str, subscriber: str
    ) -> tuple[KnownPublisher, KnownSubscriber, SubscriberProgress]:
        return self._state.pair(publisher, subscriber)

    def _subscriber(self, name: str) -> KnownSubscriber:
        return self._state.subscriber(name)

    def _check_editable(self, subscriber: str) -> None:
        if not self._subscriber(subscriber).discovery.editable:
            raise InvalidState(
                f"Expected an editable subscriber, but {subscriber} is not: its store would differ"
                " from those of the others; start it with editable=True, or publish what is wrong"
                " again",
                subscriber=subscriber,
            )
