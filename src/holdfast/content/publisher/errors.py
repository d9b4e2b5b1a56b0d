"""Error queues: packages that subscribers gave up on, and what was asked for since."""

from collections import OrderedDict
from typing import NamedTuple

from holdfast.content.messages import ImportOutcome, PackageStatus, RetryPackage
from holdfast.limits import CONTENT_ERRORS_MAX, CONTENT_STATUSES_KNOWN_MAX


class FailedPackage(NamedTuple):
    """A package in an error queue."""

    status: PackageStatus
    status_offset: int  # where it is said, and
    said_ms: int  # when, by the log


Failed = dict[int, FailedPackage]  # by the offset of the package
_Pair = tuple[str, str]  # subscriber and publisher


class ErrorQueues:
    """The packages that failed, by subscriber and publisher."""

    def __init__(self) -> None:
        self._failed: dict[_Pair, Failed] = {}
        self._retries: dict[_Pair, dict[int, str]] = {}  # asked for and not done: command ids
        self._dropped_before = 0
        self._known: dict[str, OrderedDict[tuple[str, int], PackageStatus]] = {}

    def is_known(self, status: PackageStatus) -> bool:
        """Whether a status was said before, in the same words."""
        known = self._known.get(status.subscriber, {})
        return known.get((status.publisher, status.offset)) == status

    def apply_status(self, status: PackageStatus, status_offset: int, said_ms: int) -> None:
        """What became of a package: it failed, or it is no longer among those that did."""
        pair = status.subscriber, status.publisher
        known = self._known.setdefault(status.subscriber, OrderedDict())
        known[status.publisher, status.offset] = status
        known.move_to_end((status.publisher, status.offset))
        if len(known) > CONTENT_STATUSES_KNOWN_MAX:
            known.popitem(last=False)
        if pair in self._retries:
            self._retries[pair].pop(status.offset, None)
        if status.outcome is ImportOutcome.REMOVED_FAILED:
            failed = self._failed.setdefault(pair, {})
            failed.pop(status.offset, None)
            failed[status.offset] = FailedPackage(status, status_offset, said_ms)
            if len(failed) > CONTENT_ERRORS_MAX:
                del failed[next(iter(failed))]
        elif pair in self._failed:
            self._failed[pair].pop(status.offset, None)
            if not self._failed[pair]:
                del self._failed[pair]

    def apply_retry(self, command: RetryPackage, said_ms: int) -> None:
        """Somebody asked a subscriber to try a package again; it failed before that."""
        pair = command.subscriber, command.publisher
        failed = self._failed.get(pair, {}).get(command.offset)
        if failed is not None and failed.said_ms <= said_ms:
            self._retries.setdefault(pair, {})[command.offset] = command.command_id

    def of(self, subscriber: str, publisher: str) -> Failed:
        """The error queue of a subscriber."""
        return self._failed.get((subscriber, publisher), {})

    def retry_of(self, subscriber: str, publisher: str, offset: int) -> str | None:
        """The command by which a retry was asked for and not done yet."""
        return self._retries.get((subscriber, publisher), {}).get(offset)

    def drop_before(self, status_offset: int) -> None:
        """Forgets what is no longer on the log, as a restart would."""
        if status_offset == self._dropped_before:
            return
        self._dropped_before = status_offset
        for pair, failed in list(self._failed.items()):
            kept = {at: each for at, each in failed.items() if each.status_offset >= status_offset}
            if kept:
                self._failed[pair] = kept
            else:
                del self._failed[pair]

    def forget(self, subscriber: str) -> None:
        """A subscriber is gone for good."""
        for pairs in (self._failed, self._retries):
            for pair in [each for each in pairs if each[0] == subscriber]:
                del pairs[pair]
        self._known.pop(subscriber, None)

    def first_status(self) -> int | None:
        """Where the first status stands that says that a package failed; None if there is none."""
        return min(
            (each.status_offset for failed in self._failed.values() for each in failed.values()),
            default=None,
        )
