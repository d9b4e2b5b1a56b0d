"""Is a node's folder sound: lock, journal, state, and times that fit this clock."""

import fcntl
import os
import stat
import time
from functools import partial
from pathlib import Path

import msgspec

from holdfast.cli.checks.check import Check, Run, Status
from holdfast.cli.exit_codes import ExitCode
from holdfast.cli.output import number
from holdfast.engine.kernel.runner import TOPIC
from holdfast.errors import HoldfastError
from holdfast.folder_format import FORMAT, format_of
from holdfast.journal.local import JournalReader, verify
from holdfast.journal.local.names import LOCK
from holdfast.layout import layout_of
from holdfast.starts import load_suspects

_LOOKS = 3  # at files of a running node that seem damaged
_AHEAD_MS_MAX = 1_000  # clocks of one machine do not jump by more without being set


def folder_checks(folder: Path) -> list[Run]:
    """What is looked at in a node's folder; one check if there is no node in it."""
    layout = layout_of(folder)
    if layout.members > 1:
        return [
            partial(check_version, folder),
            *(
                partial(_of_member, member, run)
                for member in range(1, layout.members + 1)
                for run in _checks(layout.member_folder(member))
            ),
        ]
    if not (folder / "journal").is_dir():
        return [partial(_no_node, folder)]
    return [partial(check_version, folder), *_checks(folder)]


def _checks(folder: Path) -> list[Run]:
    return [
        partial(check_lock, folder),
        partial(check_journal, folder),
        partial(check_state, folder),
        partial(check_rights, folder),
        partial(check_times, folder),
        partial(check_quarantine, folder),
    ]


def _of_member(member: int, run: Run) -> Check:
    found = run()
    return msgspec.structs.replace(found, name=f"{found.name} of process {member}")


def _no_node(folder: Path) -> Check:
    advice = f"start one: holdfast start {folder}"
    return Check("folder", Status.WARN, f"no node in {folder} yet", advice)


def check_version(folder: Path) -> Check:
    """Which format the files have; one that is newer than the program is refused before this."""
    found = format_of(folder)
    if found is None or found.format < FORMAT:
        written = "an earlier version" if found is None else f"holdfast {found.program}"
        return Check(
            "format", Status.OK,
            f"format {0 if found is None else found.format}, written by {written}; the next start"
            f" upgrades it to format {FORMAT}",
        )  # fmt: skip
    return Check("format", Status.OK, f"format {found.format}, written by holdfast {found.program}")


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
        return Check("lock", Status.WARN, "held by an unknown process")
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
    """The state and its snapshots are as they were written; under a running node, too."""
    state = folder / "state"
    found = _verified(state)
    looks = 1
    while any(found.values()) and looks < _LOOKS and _is_held(folder / "journal" / LOCK):
        again = _verified(state)  # files that the node replaces meanwhile are not damaged
        found = {name: text and again.get(name) for name, text in found.items()}
        looks += 1
    damage = [f"{name}: {text}" for name, text in found.items() if text]
    aside = sorted(path.name for path in state.glob("damaged-*"))
    if not found:
        return Check("state", Status.OK, "none yet: a start builds it from the log")
    if damage and len(damage) == len(found) and _is_cut(folder):
        return _damaged("state", "; ".join(damage))
    if damage:
        advice = "start the node: it goes back to a snapshot, or rebuilds the state from the log"
        return Check("state", Status.WARN, "; ".join(damage), advice)
    if aside:
        advice = "find out what damaged it, and delete it then"
        return Check(
            "state", Status.WARN, f"damaged, replaced and kept: {', '.join(aside)}", advice
        )
    return Check("state", Status.OK, f"{', '.join(found)}: as they were written")


def _verified(state: Path) -> dict[str, str | None]:
    from holdfast.state.snapshots import verify_state

    return dict(verify_state(state))


def _is_cut(folder: Path) -> bool:
    """Whether the log does not reach back to its beginning."""
    reader = JournalReader.open(str(folder / "journal"))
    try:
        partitions = range(1, reader.topics().get(TOPIC, 0) + 1)
        return any(reader.bounds(TOPIC, each).earliest > 0 for each in partitions)
    except HoldfastError:
        return True
    finally:
        reader.let_go()


def check_rights(folder: Path) -> Check:
    """Payloads and digests of passwords are for the owner alone."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        found = f"{folder} has the mode {mode:o}: others can read it"
        return Check("rights", Status.WARN, found, f"chmod -R go= {folder}")
    return Check("rights", Status.OK, "only the owner can read the folder")


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
                and (entries := reader.read_now(TOPIC, partition, next_offset - 1))
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
