"""What a subscriber decides, as values: which packages it takes in, and what it knows then."""

import pytest

from holdfast.content.messages import (
    NOWHERE,
    ClearQueue,
    ImportOutcome,
    Package,
    PackageAction,
    RemovePackage,
    SubscriberProgress,
)
from holdfast.content.subscriber.commands import after_command
from holdfast.content.subscriber.decisions import (
    Admission,
    Habits,
    ImportFailure,
    PackageTurn,
    PlanEnd,
    PlannedPackage,
    after_failure,
    after_steps,
    pause_ms,
    plan,
)
from holdfast.content.subscriber.ledger import (
    CommandsDone,
    RemovedPackage,
    StoreLedger,
    changed_notes,
    read_ledger,
)
from holdfast.limits import CONTENT_BLOB_LATE_MS, CONTENT_COMMANDS_KEPT_MAX

HABITS = Habits("edge", ("site",), editable=True, retries_max=1)
IMPORT, REMOVE, PASS = PackageTurn.IMPORT, PackageTurn.REMOVE, PackageTurn.PASS


def package(
    number: int, publisher: str = "site", action: PackageAction = PackageAction.ADD
) -> Package:
    return Package(
        publisher, f"{publisher}-{number}", action, [f"/{number}"], [], number, 0, b"", b"", None
    )


def ledger(offset: int = NOWHERE, number: int = 0, **more: object) -> StoreLedger:
    return StoreLedger("store", {"site": SubscriberProgress("site", offset, number, **more)})  # type: ignore[arg-type]


def planned(
    known: StoreLedger, *packages: tuple[int, Package], habits: Habits = HABITS, **options: object
):
    found = plan(packages, known, habits, options.get("admit"), options.get("most", 8))  # type: ignore[arg-type]
    return [step.turn for step in found.steps], found.end


def test_the_next_packages_are_imported_and_those_of_others_passed_over() -> None:
    packages = [(4, package(3)), (5, package(4)), (6, package(9, "other")), (7, package(5))]
    assert planned(ledger(4, 3), *packages) == ([PASS, IMPORT, PASS, IMPORT], PlanEnd.MORE)


def test_a_commit_takes_in_a_bounded_number() -> None:
    packages = [(at, package(at + 1)) for at in range(20)]
    assert planned(ledger(), *packages, most=8) == ([IMPORT] * 8, PlanEnd.MORE)
    assert planned(ledger(), *packages, most=0) == ([], PlanEnd.MORE)


@pytest.mark.parametrize(
    "found", [package(3), package(1, action=PackageAction.TEST), package(9)], ids=str
)
def test_packages_that_are_missing_end_the_plan(found: Package) -> None:
    """Also those before a test, which has the number of the package before it."""
    assert planned(ledger(), (0, package(9, "other")), (7, found)) == ([PASS], PlanEnd.GAP)
    accepting = Habits("edge", ("site",), accepts_gap=True)
    turns, end = planned(ledger(), (7, found), habits=accepting)
    assert end is PlanEnd.MORE and len(turns) == 1


def test_another_log_is_not_taken_for_this_one() -> None:
    """Its numbers are lower: no gap that could be accepted."""
    accepting = Habits("edge", ("site",), accepts_gap=True)
    assert planned(ledger(4, 9), (5, package(2)), habits=accepting) == ([], PlanEnd.GAP)


def test_a_test_is_no_package() -> None:
    packages = [(0, package(0, action=PackageAction.TEST)), (1, package(1))]
    assert planned(ledger(), *packages) == ([PASS, IMPORT], PlanEnd.MORE)
    assert planned(ledger(1, 1), (2, package(1, action=PackageAction.TEST)))[0] == [PASS]


def test_what_is_cleared_or_removed_is_skipped() -> None:
    known = ledger(0, 1, cleared=2)
    known = StoreLedger(
        "store", known.progress, [], CommandsDone(removed=[RemovedPackage("site", 4)])
    )
    packages = [(at, package(at + 1)) for at in range(1, 6)]
    turns = [REMOVE, REMOVE, IMPORT, REMOVE, IMPORT]
    assert planned(known, *packages) == (turns, PlanEnd.MORE)
    steps = plan(packages, known, HABITS, None, 8).steps
    after, statuses = after_steps(known, HABITS, steps, 7)
    assert after.commands.removed == [] and after.progress["site"].cleared == 2
    assert [each.offset for each in statuses] == [1, 2, 3, 4, 5]
    silent = Habits("edge", ("site",))
    _, statuses = after_steps(known, silent, steps, 7)
    assert [each.offset for each in statuses] == [1, 2, 4], "its offset tells of the others"


def test_a_precondition_skips_or_holds_back() -> None:
    answers = {1: Admission.ACCEPT, 2: Admission.SKIP, 3: Admission.WAIT}
    packages = [(at, package(at)) for at in (1, 2, 3, 4)]
    turns = planned(ledger(), *packages, admit=lambda found, _: answers[found.number])
    assert turns == ([IMPORT, REMOVE], PlanEnd.WAIT)


def test_pauses_double_up_to_a_quarter_of_an_hour() -> None:
    assert [pause_ms(each) // 1000 for each in range(1, 10)] == [
        5, 10, 20, 40, 80, 160, 320, 640, 900,
    ]  # fmt: skip
    assert pause_ms(100_000) == 900_000


def test_attempts_are_counted_until_it_gives_up_and_then_from_zero() -> None:
    [step] = plan([(3, package(1))], ledger(), HABITS, None, 8).steps
    first = after_failure(ledger(), HABITS, step, ImportFailure("no room"), 5)
    failing = first.ledger.progress["site"]
    assert (failing.retries, failing.reason, failing.failing_since_ms) == (1, "no room", 5)
    assert first.status is None and failing.offset == NOWHERE
    passing = after_failure(first.ledger, HABITS, step, ImportFailure("disk full", True), 6)
    assert passing.status is None, "the package is not to blame"
    last = after_failure(first.ledger, HABITS, step, ImportFailure("no room"), 6)
    assert last.status is not None and last.status.attempts == 2 and last.pause_ms == 0
    done = last.ledger.progress["site"]
    assert (done.offset, done.number, done.retries, done.reason) == (3, 1, 0, "")
    assert [each.offset for each in last.ledger.failed] == [3]


def test_a_command_is_obeyed_once_and_old_ones_are_forgotten() -> None:
    known = ledger(5, 5)
    clear = ClearQueue("one", "edge", "site", 9)
    once = after_command(known, HABITS, 0, clear, 1).ledger
    assert once.progress["site"].cleared == 9 and once.commands.next == 1
    again = after_command(once, HABITS, 1, RemovePackage("one", "edge", "site", 20), 1).ledger
    assert again.commands.removed == [] and again.commands.next == 2
    for number in range(CONTENT_COMMANDS_KEPT_MAX + 5):
        again = after_command(
            again, HABITS, 2 + number, ClearQueue(f"c{number}", "edge", "site", 0), 1
        ).ledger
    assert len(again.commands.done) == CONTENT_COMMANDS_KEPT_MAX
    assert again.progress["site"].cleared == 9, "it only moves up"


def test_a_blob_that_comes_late_is_waited_for_before_its_package_fails() -> None:
    step = PlannedPackage(1, package(1), PackageTurn.IMPORT)
    late = ImportFailure("not there yet", is_late=True)
    attempt = after_failure(ledger(), HABITS, step, late, 5)
    for now_ms in (6, 7, 5 + CONTENT_BLOB_LATE_MS - 1):
        attempt = after_failure(attempt.ledger, HABITS, step, late, now_ms)
        assert attempt.status is None and attempt.pause_ms
    attempt = after_failure(attempt.ledger, HABITS, step, late, 5 + CONTENT_BLOB_LATE_MS)
    assert attempt.status is not None and attempt.status.outcome is ImportOutcome.REMOVED_FAILED


def test_a_ledger_is_read_back_from_its_notes() -> None:
    [step] = plan([(3, package(1))], ledger(), HABITS, None, 8).steps
    failed = after_failure(ledger(3, 0, retries=5), HABITS, step, ImportFailure("no room"), 5)
    known = after_command(failed.ledger, HABITS, 4, ClearQueue("a", "edge", "site", 9), 1).ledger
    notes = changed_notes(None, known)
    assert read_ledger(notes.get) == known
    assert changed_notes(known, known) == {} and read_ledger({}.get) is None
