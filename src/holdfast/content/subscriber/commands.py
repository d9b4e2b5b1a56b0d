"""What commands change; each is obeyed once, however often it is on the log."""

from typing import NamedTuple

import msgspec

from holdfast.content.messages import (
    ClearQueue,
    ContentCommand,
    ImportOutcome,
    Package,
    PackageStatus,
    RemovePackage,
    RetryPackage,
    TakeSnapshot,
)
from holdfast.content.subscriber.decisions import Habits
from holdfast.content.subscriber.failed import after_newer
from holdfast.content.subscriber.ledger import GivenUpPackage, RemovedPackage, StoreLedger
from holdfast.limits import CONTENT_COMMANDS_KEPT_MAX


class AfterCommand(NamedTuple):
    """What is so when a command was read."""

    ledger: StoreLedger
    statuses: list[PackageStatus]
    task: "GivenUpPackage | TakeSnapshot | None" = None  # what is to be tried again or stored
    refused: str = ""  # why nothing was done


def after_command(
    ledger: StoreLedger, habits: Habits, offset: int, command: ContentCommand, now_ms: int
) -> AfterCommand:
    """A command was read from an offset of its topic."""
    if command.command_id in ledger.commands.done:
        return AfterCommand(_read_to(ledger, offset), [])
    done = _done(ledger, offset, command.command_id)
    match command:
        case TakeSnapshot():
            return AfterCommand(done, [], command)
        case _ if command.publisher not in habits.publishers:
            return AfterCommand(done, [], refused=f"it does not take in {command.publisher}")
        case ClearQueue():
            return _clear(done, habits, command)
        case RemovePackage():
            return _remove(done, habits, command, now_ms)
        case RetryPackage():
            failed = find_failed(ledger, command.publisher, command.offset)
            refused = "" if failed else f"the package at offset {command.offset} has not failed"
            return AfterCommand(done, [], failed, refused)


def _clear(ledger: StoreLedger, habits: Habits, command: ClearQueue) -> AfterCommand:
    if not habits.editable:
        return AfterCommand(ledger, [], refused="it is not editable")
    was = ledger.progress_of(command.publisher)
    if command.offset <= was.cleared:  # it only moves up
        return AfterCommand(ledger, [])
    cleared = msgspec.structs.replace(was, cleared=command.offset)
    return AfterCommand(ledger.with_progress(cleared), [])


def _remove(
    ledger: StoreLedger, habits: Habits, command: RemovePackage, now_ms: int
) -> AfterCommand:
    """A package of the queue is skipped in its turn; one of the error queue is forgotten."""
    publisher, offset = command.publisher, command.offset
    if failed := find_failed(ledger, publisher, offset):
        status = PackageStatus(
            habits.name, publisher, offset, ImportOutcome.REMOVED, failed.number,
            failed.package_id, "removed", 0, now_ms,
        )  # fmt: skip
        return AfterCommand(without_failed(ledger, failed), [status])
    if offset <= ledger.progress_of(publisher).offset:
        return AfterCommand(ledger, [], refused=f"it is past offset {offset}")
    if not habits.editable:
        return AfterCommand(ledger, [], refused="it is not editable")
    commands = ledger.commands
    removed = [*commands.removed, RemovedPackage(publisher, offset)]
    commands = msgspec.structs.replace(commands, removed=removed)
    return AfterCommand(msgspec.structs.replace(ledger, commands=commands), [])


def find_failed(ledger: StoreLedger, publisher: str, offset: int) -> GivenUpPackage | None:
    """The package at an offset, if it was given up on and can be tried again."""
    for each in ledger.failed:
        if (each.publisher, each.offset) == (publisher, offset):
            return each
    return None


def without_failed(ledger: StoreLedger, failed: GivenUpPackage) -> StoreLedger:
    """It is no longer among the packages that were given up on."""
    kept = [each for each in ledger.failed if each is not failed]
    return msgspec.structs.replace(ledger, failed=kept)


def _read_to(ledger: StoreLedger, offset: int) -> StoreLedger:
    commands = msgspec.structs.replace(ledger.commands, next=offset + 1)
    return msgspec.structs.replace(ledger, commands=commands)


def _done(ledger: StoreLedger, offset: int, command_id: str) -> StoreLedger:
    done = [*ledger.commands.done, command_id][-CONTENT_COMMANDS_KEPT_MAX:]
    commands = msgspec.structs.replace(ledger.commands, next=offset + 1, done=done)
    return msgspec.structs.replace(ledger, commands=commands)


def after_retry(ledger: StoreLedger, failed: GivenUpPackage, package: Package) -> StoreLedger:
    """A package that was given up on is imported: what is older does not overwrite it later."""
    left = without_failed(ledger, failed)
    return msgspec.structs.replace(left, failed=after_newer(left.failed, failed.offset, package))
