"""A small domain for the tests of distribution: notes, which every partition keeps in a list."""

from enum import IntEnum
from typing import Any

from holdfast.engine.distribution.distributing import after_queue, distribute
from holdfast.engine.distribution.domain import DISTRIBUTION
from holdfast.engine.distribution.receiving import distributing
from holdfast.engine.due.commands import DueCommands
from holdfast.engine.kernel import Command, Distributed, Domain, Processor, Turn
from holdfast.engine.kernel.domain import Dispatch
from holdfast.engine.state import EngineState
from holdfast.errors import Code
from holdfast.records import Record, Value, ValueType
from holdfast.state import PartitionState, Store
from holdfast.state.keys import U64

NOTES = ValueType.JOB
_LIST_TAG, _KNOWN_TAG = 250, 251  # far from those of the engine


class NoteIntent(IntEnum):
    NOTE = 0  # distributed
    NOTED = 1
    SAY = 2  # noted here only
    SAY_AFTER = 3  # ... once a queue has drained
    RELAY = 4  # distributed; the receivers distribute it again, which is wrong
    MISUSE = 5  # distributes in a way that is wrong


class Note(Value, frozen=True, tag=1):
    """A number to be noted, and how it is distributed."""

    number: int = 0
    queue: str = ""
    to: tuple[int, ...] | None = None
    throws_at: tuple[int, ...] = ()  # receivers whose handler throws
    until_attempt: int = 1_000_000  # ... before this attempt
    how: str = ""  # MISUSE: what is wrong
    by: str = ""  # NOTED: who asked for it


class NotesState(EngineState):
    """What the engine keeps, and the notes: (key, number, by) in the order of their arrival."""

    def __init__(self, state: PartitionState, partitions: int) -> None:
        super().__init__(state, partitions)
        self._list = state.family(_LIST_TAG, U64, list[Any])
        self._known = state.family(_KNOWN_TAG, U64, int)

    def knows(self, key: int) -> bool:
        return self._known.get(key) is not None

    def add(self, key: int, note: Note) -> None:
        last = max((place for place, _ in self._list.scan()), default=0)
        self._list.insert(last + 1, [key, note.number, note.by])
        self._known.put(key, last + 1)

    def all(self) -> list[tuple[int, int, str]]:
        return [(key, number, by) for _, (key, number, by) in self._list.scan()]


# --- handlers ---------------------------------------------------------------------------------


def note(turn: Turn[Any], command: Record) -> None:
    """Notes it here, and has others note it."""
    asked: Note = command.value
    key = turn.new_key()
    turn.event(NOTES, NoteIntent.NOTED, key, asked)
    told = Command(NOTES, NoteIntent(command.intent), key, asked, command.claims)
    distribute(turn, told, to=asked.to, in_queue=asked.queue)


def follow(turn: Turn[Any], command: Record) -> None:
    """Notes what another partition said. In a queue it trusts that this comes but once."""
    asked: Note = command.value
    assert command.delivery is not None
    if not asked.queue and turn.state.knows(command.key):
        reason = f"Expected a new note, but {command.key} is here already"
        return turn.reject(command, Code.ALREADY_EXISTS, reason)
    by = (command.claims or {}).get("sub", "")
    noted = Note(asked.number, asked.queue, by=by)
    turn.event(NOTES, NoteIntent.NOTED, command.key, noted)
    if turn.partition in asked.throws_at and command.delivery.attempt < asked.until_attempt:
        raise ValueError(f"{asked.number} cannot be read")


def relay(turn: Turn[Any], command: Record) -> None:
    told = Command(NOTES, NoteIntent.RELAY, turn.new_key(), command.value)
    distribute(turn, told)


def say(turn: Turn[Any], command: Record) -> None:
    by = (command.claims or {}).get("sub", "")
    turn.event(NOTES, NoteIntent.NOTED, turn.new_key(), Note(command.value.number, by=by))


def say_after(turn: Turn[Any], command: Record) -> None:
    asked: Note = command.value
    after_queue(turn, Command(NOTES, NoteIntent.SAY, 0, asked, command.claims), asked.queue)


def misuse(turn: Turn[Any], command: Record) -> None:
    """Notes something, and then does what no handler may do."""
    asked: Note = command.value
    old, new = turn.last_key(), turn.new_key()
    turn.event(NOTES, NoteIntent.NOTED, new, asked)
    match asked.how:
        case "it has no on_distributed":
            distribute(turn, Command(NOTES, NoteIntent.SAY, new, asked))
        case "an old key":
            distribute(turn, Command(NOTES, NoteIntent.NOTE, old, asked))
        case "a key that nobody gave out":
            distribute(turn, Command(NOTES, NoteIntent.NOTE, new + 1, asked))
        case "the same key twice":
            for _ in range(2):
                distribute(turn, Command(NOTES, NoteIntent.NOTE, new, asked))
        case "keys out of order":
            for key in (turn.new_key(), new):
                distribute(turn, Command(NOTES, NoteIntent.NOTE, key, asked))
        case "partitions that do not exist":
            distribute(turn, Command(NOTES, NoteIntent.NOTE, new, asked), to=(2, 9))
        case "a queue without a name":
            after_queue(turn, Command(NOTES, NoteIntent.SAY, 0, asked), "")
        case _:
            distribute(turn, Command(NOTES, NoteIntent.NOTE, new, asked), in_queue="q" * 201)


MISUSES = (
    "it has no on_distributed",
    "an old key",
    "a key that nobody gave out",
    "the same key twice",
    "keys out of order",
    "partitions that do not exist",
    "a queue without a name",
    "a queue whose name is too long",
)


def noted(state: NotesState, event: Record) -> None:
    state.add(event.key, event.value)


# --- put together -----------------------------------------------------------------------------

NOTES_DISPATCH = Dispatch(
    [
        Domain(
            value_type=NOTES,
            intents=NoteIntent,
            values=dict.fromkeys(NoteIntent, Note),
            commands={
                NoteIntent.NOTE: Distributed(note, follow),
                NoteIntent.SAY: say,
                NoteIntent.SAY_AFTER: say_after,
                NoteIntent.RELAY: Distributed(relay, relay),
                NoteIntent.MISUSE: misuse,
            },
            appliers={NoteIntent.NOTED: noted},
        ),
        DISTRIBUTION,
    ],
    distributing,
)


def open_notes(store: Store, partition: int, partitions: int) -> Processor[NotesState]:
    """The processor of a partition that keeps notes."""
    state = PartitionState(store, partition)
    view = NotesState(state, partitions)
    return Processor(state, view, NOTES_DISPATCH, DueCommands(view.due, NOTES_DISPATCH.due))
