"""How the starts of a node went, kept in its folder.

<folder>/running           there while a node runs. Found at a start, the last stop was none. Its
                           first line is the command that was being processed, if one is known
<folder>/quarantine.json   the commands that have ended the process, and how often

Both outlive the process. They need not outlive the machine: a power failure is no command's fault.
"""

import asyncio
import contextlib
import os
from pathlib import Path

import msgspec

from holdfast.engine.kernel.quarantine import Note, Quarantine
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.partition import DISPATCH
from holdfast.engine.state import EngineState
from holdfast.limits import QUARANTINE_COMMANDS_MAX, SETTLE_MS
from holdfast.logs import log
from holdfast.records import ValueType

# Commands of these move tokens: with brakes on, they leave an incident.
_BRAKED = frozenset({ValueType.PROCESS, ValueType.PROCESS_INSTANCE, ValueType.JOB})

_NO_NOTE = b"\n"


class Suspect(msgspec.Struct):
    """A command that was being processed when the process ended."""

    note: Note
    deaths: int
    how: str = ""  # what was done about it; empty: nothing yet


class Starts:
    """Notes what is being processed after an unclean start, and what to do with what ended it."""

    def __init__(self, folder: Path) -> None:
        self._running = folder / "running"
        self._quarantine = folder / "quarantine.json"
        self._suspects: dict[str, Suspect] = {}
        self._file = -1
        self._timer: asyncio.TimerHandle | None = None
        self._watched: Runner[EngineState] | None = None  # while its partitions are

    def begin(self, runner: Runner[EngineState]) -> None:
        """The node starts: after an unclean stop its partitions are watched for a while."""
        is_unclean = self._running.exists()
        self._suspects = {each.note.digest: each for each in load_suspects(self._quarantine)}
        if is_unclean and (note := _note_in(self._running)) is not None:
            suspect = self._suspects.setdefault(note.digest, Suspect(note, 0))
            suspect.deaths += 1
            log.warning("the node ended while it processed a command", **_words(note))
            self._save()
        self._file = os.open(self._running, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        if is_unclean or self._suspects:
            self._watch(runner)

    def end(self) -> None:
        """The node has stopped in order."""
        if self._timer is not None:
            self._timer.cancel()
        os.close(self._file)
        with contextlib.suppress(OSError):
            self._running.unlink()

    def warnings(self) -> list[str]:
        """The commands that were set aside since the start, or are still."""
        return [
            f"The node ended while it processed {_words(each.note)['command']}: {each.how}"
            for each in self._suspects.values()
            if each.how
        ]

    # --- what a quarantine notes --------------------------------------------------------------

    def write(self, note: Note) -> None:
        os.pwrite(self._file, msgspec.json.encode(note) + _NO_NOTE, 0)

    def clear(self) -> None:
        os.pwrite(self._file, _NO_NOTE, 0)

    # --- watching -----------------------------------------------------------------------------

    def _watch(self, runner: Runner[EngineState]) -> None:
        self._watched = runner
        for partition in runner.processors:
            self.opened(partition)
        self._settle_later(runner)

    def opened(self, partition: int) -> None:
        """A partition was opened: it is watched while the others are."""
        if self._watched is not None:
            deaths = {digest: suspect.deaths for digest, suspect in self._suspects.items()}
            quarantine = Quarantine(partition, self, deaths, _BRAKED, _intent_name, self._set_aside)
            self._watched.processors[partition].watch(quarantine)

    def _settle_later(self, runner: Runner[EngineState]) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SETTLE_MS / 1000, self._settle, runner)

    def _settle(self, runner: Runner[EngineState]) -> None:
        """What was left over or due is done. What has an incident now is not watched any more."""
        if any(processor.has_leftover for processor in runner.processors.values()):
            self._settle_later(runner)
            return
        self._suspects = {
            digest: suspect for digest, suspect in self._suspects.items() if suspect.deaths > 1
        }
        self._save()
        if not self._suspects:
            self._watched = None
            for processor in runner.processors.values():
                processor.watch(None)

    def _set_aside(self, note: Note, how: str) -> None:
        suspect = self._suspects[note.digest]
        if suspect.how != how:
            suspect.how = how
            log.error("command set aside", how=how, deaths=suspect.deaths, **_words(note))
            self._save()

    def _save(self) -> None:
        """The newest suspects; written beside and moved into place."""
        if not self._suspects:
            self._quarantine.unlink(missing_ok=True)
            return
        kept = list(self._suspects.values())[-QUARANTINE_COMMANDS_MAX:]
        beside = self._quarantine.with_suffix(".new")
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
        beside.chmod(0o600)
        beside.replace(self._quarantine)


def load_suspects(path: Path) -> list[Suspect]:
    """The commands that have ended the process before; none if the file cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Suspect])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        log.warning("quarantine cannot be read", file=str(path), error=str(error))
        return []


def _note_in(path: Path) -> Note | None:
    """The command that was being processed; None if there is none, or half a one."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        first = path.read_bytes().split(_NO_NOTE, 1)[0]
        return msgspec.json.decode(first, type=Note) if first else None
    return None


def _intent_name(value_type: int, intent: int) -> str:
    return DISPATCH.intent(value_type, intent).name


def _words(note: Note) -> dict[str, object]:
    what = f"{note.intent} of {note.value_type} {note.key}"
    return {"command": what, "partition": note.partition}
