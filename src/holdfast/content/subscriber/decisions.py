"""What a subscriber does next, and what it knows afterwards: values in, values out.

Packages are taken in the order of the log. The next ones are planned together: those that are to be
imported, those that somebody cleared, those that are not for this subscriber. A plan ends where a
package has to wait, or where packages are missing.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec

from holdfast.content.messages import (
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    SubscriberProgress,
)
from holdfast.content.subscriber.failed import after_newer, failed_package
from holdfast.content.subscriber.ledger import StoreLedger
from holdfast.limits import (
    CONTENT_BLOB_LATE_MS,
    CONTENT_FAILED_KEPT_MAX,
    CONTENT_PREFETCH_PACKAGES_MAX,
    CONTENT_REASON_CHARS_MAX,
    CONTENT_RETRY_MS_MAX,
    CONTENT_RETRY_MS_MIN,
    CONTENT_SMALL_PACKAGES_BYTES,
    CONTENT_SMALL_PACKAGES_MAX,
)

FOR_EVER = -1  # retries_max of a subscriber that never gives up


class Admission(Enum):
    """The decision of a precondition about a package."""

    ACCEPT = "ACCEPT"
    SKIP = "SKIP"  # it is left out, and reported as removed
    WAIT = "WAIT"  # not yet; it is asked again


class PackageTurn(Enum):
    """What is done with a package when its turn comes."""

    IMPORT = "import"
    REMOVE = "remove"  # somebody cleared it, or a precondition skips it
    PASS = "pass"  # it is not for this subscriber, was taken in before, or is a test


class PlanEnd(Enum):
    """Why a plan goes no further."""

    MORE = "more"  # it is full, or all there is
    WAIT = "wait"  # a precondition returned WAIT
    GAP = "gap"  # packages are missing between what the store has and what the log keeps


class PlannedPackage(NamedTuple):
    """A package with what is to be done with it."""

    offset: int
    package: Package
    turn: PackageTurn
    reason: str = ""


class PackagePlan(NamedTuple):
    """The next packages, in order."""

    steps: list[PlannedPackage]
    imports: int
    end: PlanEnd


# Looked up once: they are asked for each package.
IMPORT, REMOVE, PASS = PackageTurn.IMPORT, PackageTurn.REMOVE, PackageTurn.PASS
ACCEPT, TEST = Admission.ACCEPT, PackageAction.TEST


class Habits(msgspec.Struct, frozen=True):
    """How a subscriber was told to work."""

    name: str
    publishers: tuple[str, ...]
    editable: bool = False
    retries_max: int = FOR_EVER
    accepts_gap: bool = False  # begin with what the log still keeps, if it is not all


Admit = Callable[[Package, int], Admission]


def plan(
    entries: Iterable[tuple[int, Package]],
    ledger: StoreLedger,
    habits: Habits,
    admit: Admit | None,
    imports_max: int,
) -> PackagePlan:
    """What to do with the packages that come next.

    More than a few are imported together as long as they are small.
    """
    steps: list[PlannedPackage] = []
    imports = size_bytes = 0
    large = imports_max <= CONTENT_SMALL_PACKAGES_MAX  # whether their size counts
    standing = {each: ledger.progress_of(each) for each in habits.publishers}
    numbers = {each: progress.number for each, progress in standing.items()}
    removed = {each.offset for each in ledger.commands.removed}
    for offset, package in entries:
        publisher = package.publisher
        progress = standing.get(publisher)
        if progress is None or offset <= progress.offset:
            steps.append(PlannedPackage(offset, package, PASS))
            continue
        is_test = package.action is TEST  # it has the number of the one before it
        missing = package.number - numbers[publisher] - (not is_test)
        if missing and not (habits.accepts_gap and missing > 0):
            return PackagePlan(steps, imports, PlanEnd.GAP)
        turn, reason = IMPORT, ""
        if is_test:
            turn = PASS
        elif offset <= progress.cleared or offset in removed:
            turn, reason = REMOVE, "cleared"
        elif admit is not None and (admission := admit(package, offset)) is not ACCEPT:
            if admission is Admission.WAIT:
                return PackagePlan(steps, imports, PlanEnd.WAIT)
            turn, reason = REMOVE, "precondition"
        if turn is IMPORT:
            size_bytes += package.size_bytes
            if imports == imports_max or (
                imports >= CONTENT_PREFETCH_PACKAGES_MAX
                and size_bytes > CONTENT_SMALL_PACKAGES_BYTES
                and large
            ):
                break
            imports += 1
        numbers[publisher] = package.number
        steps.append(PlannedPackage(offset, package, turn, reason))
    return PackagePlan(steps, imports, PlanEnd.MORE)


def gap_reason(ledger: StoreLedger, offset: int, package: Package) -> str:
    """What is missing, and what to do about it."""
    progress = ledger.progress_of(package.publisher)
    return (
        f"Expected package {progress.number + 1} of {package.publisher} behind offset"
        f" {progress.offset}, but the log continues with package {package.number} at offset"
        f" {offset}; seed the store from another subscriber (seed_from), or accept the gap"
        " (accept_gap)"
    )


def after_steps(
    ledger: StoreLedger,
    habits: Habits,
    steps: Sequence[PlannedPackage],
    now_ms: int,
    unproven: Collection[str] = (),
) -> tuple[StoreLedger, list[PackageStatus]]:
    """What is so when these steps are done, and what is to be reported of them.

    Publishers that are unproven may have packages that the log no longer keeps: they are as far as
    their own packages show, the others as far as the log was read.
    """
    assert steps, "something was done"
    position = steps[-1].offset
    numbers: dict[str, int] = {}
    statuses: list[PackageStatus] = []
    failed = ledger.failed
    for offset, package, turn, reason in steps:
        publisher = package.publisher
        if turn is IMPORT:
            outcome = ImportOutcome.IMPORTED
            if failed:
                failed = after_newer(failed, offset, package)
        elif turn is REMOVE:
            outcome = ImportOutcome.REMOVED
        else:
            if package.action is TEST and publisher in habits.publishers:
                known = numbers.get(publisher) or ledger.progress_of(publisher).number
                numbers[publisher] = max(known, package.number)
            continue
        numbers[publisher] = package.number
        # What was imported is seen from the offset; each import is told only where a queue
        # may be edited, as what was cleared meanwhile is told beside it.
        if habits.editable or outcome is not ImportOutcome.IMPORTED:
            status = PackageStatus(
                habits.name, publisher, offset, outcome, package.number, package.package_id,
                reason, 0, now_ms,
            )  # fmt: skip
            statuses.append(status)
    moved = [
        SubscriberProgress(
            each, position, max(numbers.get(each, 0), was.number), cleared=was.cleared
        )
        for each in habits.publishers
        if (was := ledger.progress_of(each)).offset < position
        and (each in numbers or each not in unproven)
    ]
    after = ledger.with_progress(*moved)
    commands = ledger.commands
    if commands.removed:
        kept = [each for each in commands.removed if each.offset > position]
        if len(kept) < len(commands.removed):
            commands = msgspec.structs.replace(commands, removed=kept)
    if failed is not ledger.failed or commands is not ledger.commands:
        after = msgspec.structs.replace(after, failed=failed, commands=commands)
    return after, statuses


def passed_to(
    ledger: StoreLedger, habits: Habits, position: int, unproven: Collection[str] = ()
) -> StoreLedger:
    """The log was read up to a position, and nothing in between was for this subscriber."""
    moved = [
        msgspec.structs.replace(was, offset=position)
        for each in habits.publishers
        if (was := ledger.progress_of(each)).offset < position and each not in unproven
    ]
    return ledger.with_progress(*moved) if moved else ledger


# --- packages that fail -----------------------------------------------------------------------


class ImportFailure(NamedTuple):
    """Why a package could not be imported."""

    reason: str
    passes: bool = False  # not the package's fault: a full disk, a store that is away
    is_late: bool = False  # a blob is not there yet: it may pass, or it never comes


class AfterFailure(NamedTuple):
    """What a failed attempt leads to."""

    ledger: StoreLedger
    status: PackageStatus | None  # it was given up on
    pause_ms: int  # before the next attempt, of whichever package comes next


def after_failure(
    ledger: StoreLedger, habits: Habits, step: PlannedPackage, failure: ImportFailure, now_ms: int
) -> AfterFailure:
    """A package could not be imported: it is tried again later, or given up on."""
    offset, package = step.offset, step.package
    was = ledger.progress_of(package.publisher)
    retries = was.retries + 1
    reason = failure.reason[:CONTENT_REASON_CHARS_MAX]
    gives_up = habits.retries_max != FOR_EVER and retries > habits.retries_max
    since_ms = was.failing_since_ms or now_ms
    may_come = failure.is_late and now_ms - since_ms < CONTENT_BLOB_LATE_MS
    if gives_up and not failure.passes and not may_come:
        moved, _ = after_steps(ledger, habits, [step._replace(turn=PASS)], now_ms)
        # The counter starts again with the next package.
        progress = SubscriberProgress(
            package.publisher, offset, package.number, cleared=was.cleared
        )
        failed = [*ledger.failed, failed_package(offset, package)][-CONTENT_FAILED_KEPT_MAX:]
        after = msgspec.structs.replace(moved.with_progress(progress), failed=failed)
        status = PackageStatus(
            habits.name, package.publisher, offset, ImportOutcome.REMOVED_FAILED, package.number,
            package.package_id, reason, retries, now_ms,
        )  # fmt: skip
        return AfterFailure(after, status, 0)
    failing = msgspec.structs.replace(
        was, retries=retries, reason=reason, failing_since_ms=since_ms
    )
    return AfterFailure(ledger.with_progress(failing), None, pause_ms(retries))


def with_attempts(saved: StoreLedger, counted: StoreLedger, habits: Habits) -> StoreLedger:
    """What the store says, with the attempts since: they count, also when the store fails."""
    moved = [
        msgspec.structs.replace(
            was, retries=now.retries, reason=now.reason, failing_since_ms=now.failing_since_ms
        )
        for each in habits.publishers
        if (was := saved.progress_of(each)).retries < (now := counted.progress_of(each)).retries
        and was.number == now.number
    ]
    return saved.with_progress(*moved) if moved else saved


def pause_ms(retries: int) -> int:
    """How long a package that failed so often is left alone: 5 s, doubling up to 15 min."""
    return min(CONTENT_RETRY_MS_MIN << min(retries - 1, 32), CONTENT_RETRY_MS_MAX)
