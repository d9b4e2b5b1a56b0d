"""Is a node's folder sound: lock, journal, state, and times that fit this clock."""

import fcntl
import os
import time
from functools import partial
from pathlib import Path

import msgspec

from holdfast.cli.checks.check import Check, Run, Status
from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.output import number
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError
from holdfast.journal.local import JournalReader, verify
from holdfast.journal.local.lock import lock_file
from holdfast.journal.local.names import LOCK
from holdfast.starts import load_suspects

_AHEAD_MS_MAX = 1_000  # clocks of one machine do not jump by more without being set


def folder_checks(folder: Path) -> list[Run]:
    """What is looked at in a node's folder; one check if there is no node in it."""
    if not (folder / "journal").is_dir():
        return [partial(_no_node, folder)]
    return [
        partial(check_lock, folder),
        partial(check_journal, folder),
        partial(check_state, folder),
        partial(check_times, folder),
        partial(check_quarantine, folder),
    ]


def _no_node(folder: Path) -> Check:
    advice = f"start one: holdfast start {folder}"
    return Check("folder", Status.WARN, f"no node in {folder} yet", advice)


class _Holder(msgspec.Struct):
    """What the holder of the lock says of itself."""

    pid: int
    host: str = ""
    command: str = ""


def check_lock(folder: Path) -> Check:
    """Who has the folder open; nobody, or a running node, are both well."""
    path = folder / "journal" / LOCK
    if not _is_held(path):
        return Check("lock", Status.OK, "free: no node is running here")
    try:
        holder = msgspec.json.decode(path.read_bytes(), type=_Holder)
    except msgspec.DecodeError:
        return Check("lock", Status.WARN, "held by a process that did not say who it is")
    return Check("lock", Status.OK, f"held by process {holder.pid}: {holder.command}")


def _is_held(path: Path) -> bool:
    """Asks for a shared lock and gives it back at once: it is refused only where a node writes."""
    if not path.exists():
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def check_journal(folder: Path) -> Check:
    """Every durable byte of the log is as it was written."""
    try:
        reports = verify(str(folder / "journal"))
    except HoldfastError as error:
        return _damaged("journal", error.message)
    damage = [damage for report in reports for damage in report.damage]
    if damage:
        first = damage[0]
        return _damaged("journal", f"{first.file} at byte {first.position}: {first.reason}")
    entries = sum(report.entries for report in reports)
    return Check("journal", Status.OK, f"{number(entries)} entries, all as they were written")


def _damaged(name: str, found: str) -> Check:
    advice = "copy the folder away before anything else, then restore it from a backup"
    return Check(name, Status.FAIL, found, advice, ExitCode.DATA_LOSS)


def check_state(folder: Path) -> Check:
    """The state opens. Under a running node it is open already."""
    live = folder / "state" / "live"
    if not live.is_dir():
        return Check("state", Status.OK, "none yet: a start builds it from the log")
    if _is_held(folder / "journal" / LOCK):
        return Check("state", Status.OK, "open: the running node uses it")
    from holdfast.state.rocks import RocksStore

    try:
        lock = lock_file(str(folder / "journal" / LOCK), b'{"pid": %d}' % os.getpid())
        try:
            RocksStore(live).close()
        finally:
            lock.release()
    except HoldfastError as error:
        advice = "start the node: it goes back to a snapshot, or rebuilds the state from the log"
        return Check("state", Status.WARN, error.message, advice)
    return Check("state", Status.OK, "opens")


def check_times(folder: Path) -> Check:
    """Nothing was written later than now: else the clock was set back."""
    reader = JournalReader.open(str(folder / "journal"))
    try:
        newest_ms = max(
            (
                entries[-1].timestamp_ms
                for partition in range(1, reader.topics().get(TOPIC, 0) + 1)
                if (next_offset := reader.bounds(TOPIC, partition).next)
                > reader.bounds(TOPIC, partition).earliest
                and (entries := reader.read(TOPIC, partition, next_offset - 1))
            ),
            default=0,
        )
    except HoldfastError as error:
        return Check("times", Status.WARN, error.message, "see the journal's check")
    ahead_ms = newest_ms - time.time() * 1000
    if ahead_ms > _AHEAD_MS_MAX:
        found = f"the newest entry was written {ahead_ms / 1000:,.0f} s after now"
        advice = "set the clock right: until it has caught up, the node's time is ahead of it"
        return Check("times", Status.WARN, found, advice)
    if not newest_ms:
        return Check("times", Status.OK, "nothing is written yet")
    return Check("times", Status.OK, f"newest entry {-ahead_ms / 1000:,.0f} s ago")


def check_quarantine(folder: Path) -> Check:
    """No command has ended the node again and again."""
    path = folder / "quarantine.json"
    suspects = load_suspects(path)
    if not suspects:
        return Check("quarantine", Status.OK, "no command has ended the node")
    notes = [each.note for each in suspects]
    found = "the node ended while it processed " + ", ".join(
        f"{note.intent} of {note.value_type} {note.key} (partition {note.partition})"
        for note in notes[:5]
    )
    advice = f"find the cause; to have them tried again, stop the node and delete {path}"
    return Check("quarantine", Status.WARN, found, advice)
