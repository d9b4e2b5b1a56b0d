"""A command that ends the process is set aside: the node comes up at the third start."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.checks import Status
from holdfast.cli.checks.folder import check_quarantine
from holdfast.config import Config
from holdfast.engine.jobs.values import JobBatchIntent, JobList, Purge
from holdfast.engine.kernel import Command, Submission
from holdfast.engine.kernel.quarantine import Note, Quarantine
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.engine.processes.values import InstanceIntent, InstanceRef
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.journal import Appended
from holdfast.node import LocalNode
from holdfast.records import Delivery, ValueType
from holdfast.state.memory import MemoryStore

CHILD = Path(__file__).with_name("doomed_child.py")
BATCH = ValueType.JOB_BATCH


def start(folder: Path, armed: str = "armed") -> tuple[int, list[str]]:
    """A start of the node: how it ended, and what it said."""
    ended = subprocess.run(
        [sys.executable, CHILD, folder, armed], capture_output=True, text=True, timeout=120
    )
    said = [
        line
        for line in ended.stdout.splitlines()
        if line.startswith(("jobs", "incident", "health T"))
    ]
    return ended.returncode, said


def test_what_ends_the_process_twice_is_an_incident_at_the_third_start(tmp_path: Path) -> None:
    assert start(tmp_path) == (-9, [])
    assert check_quarantine(tmp_path).status is Status.OK
    assert start(tmp_path) == (-9, []), "the second start does not know who it was"
    code, said = start(tmp_path)
    assert (code, said[:2]) == (0, ["jobs ['fine']", "incident SET_ASIDE doomed boom"])
    assert "TRIGGER of PROCESS_INSTANCE" in said[2], "health says it"
    check = check_quarantine(tmp_path)
    assert check.status is Status.WARN and "TRIGGER of PROCESS_INSTANCE" in check.found
    assert start(tmp_path)[0] == 0, "and it stays up"
    code, said = start(tmp_path, "disarmed")
    assert (code, said[0]) == (0, "jobs ['doomed']"), "resolved, it goes on from there"


@pytest.mark.parametrize("running", [b"", b"\n", b'{"digest": "a', b"\xff\x00garbage\n"])
@pytest.mark.parametrize("quarantine", [b"", b"{}", b'[{"note": 1}]', b"\xff"])
def test_files_that_cannot_be_read_keep_no_node_from_starting(
    tmp_path: Path, running: bytes, quarantine: bytes
) -> None:
    (tmp_path / "running").write_bytes(running)
    (tmp_path / "quarantine.json").write_bytes(quarantine)

    async def story() -> None:
        node = await LocalNode.open(tmp_path, Config(partitions=1))
        assert (await node.gateway.tasks.submit([NewTask("t")]))[0].created
        assert (tmp_path / "running").exists()
        await node.close()
        assert not (tmp_path / "running").exists(), "it was stopped in order"

    asyncio.run(story())
    assert check_quarantine(tmp_path).status is Status.OK


# --- the rules --------------------------------------------------------------------------------


class Memory:
    """Notes as the tests read them."""

    def __init__(self) -> None:
        self.written: list[Note] = []
        self.note: Note | None = None
        self.told: list[str] = []

    def write(self, note: Note) -> None:
        self.written.append(note)
        self.note = note

    def clear(self) -> None:
        self.note = None


@pytest.fixture
def notes() -> Iterator[Memory]:
    yield Memory()


def processor(notes: Memory, deaths: dict[str, int]) -> Any:
    made = open_partition(MemoryStore(), 1)
    quarantine = Quarantine(
        1, notes, deaths, {ValueType.PROCESS_INSTANCE},
        lambda kind, intent: DISPATCH.intent(kind, intent).name,
        lambda note, how: notes.told.append(f"{note.intent}: {how}"),
    )  # fmt: skip
    made.watch(quarantine)
    return made


def step(made: Any, *commands: Command) -> Any:
    done = made.step([Submission(commands, object())], 1_000_000)
    made.commit(done, Appended(0, len(done.entries)))
    return done


LIVE = Command(BATCH, JobBatchIntent.PURGE, 0, Purge(5))
SENT = Command(BATCH, JobBatchIntent.PURGE, 0, Purge(6), delivery=Delivery())


def test_only_what_comes_back_by_itself_is_noted_and_only_while_it_is_processed(
    notes: Memory,
) -> None:
    made = processor(notes, {})
    step(made, LIVE)
    assert notes.written == []
    step(made, LIVE, SENT, LIVE)
    (note,) = notes.written
    assert (note.value_type, note.intent, note.partition) == ("JOB_BATCH", "PURGE", 1)
    assert notes.note is None
    made.watch(None)
    step(made, SENT)
    assert len(notes.written) == 1


def test_the_same_command_has_the_same_note_and_another_has_another(notes: Memory) -> None:
    made = processor(notes, {})
    other = Command(BATCH, JobBatchIntent.PURGE, 0, Purge(7), delivery=Delivery())
    step(made, SENT, SENT, other)
    first, again, different = notes.written
    assert first == again and first.digest != different.digest


def test_what_has_no_brakes_is_tried_once_more_and_then_rejected(notes: Memory) -> None:
    step(processor(notes, {}), SENT)
    digest = notes.written[0].digest
    done = step(processor(notes, {digest: 1}), SENT)
    assert done.rejections == 0 and notes.told == []
    done = step(processor(notes, {digest: 2}), LIVE, SENT, LIVE)
    ((_, replies),) = done.replies
    assert [reply.rejection is None for reply in replies] == [True, False, True]
    assert "the node ended 2 times while it processed PURGE" in replies[1].rejection.reason
    assert notes.told == ["PURGE: it is rejected"]


def test_what_moves_tokens_has_brakes_on(notes: Memory) -> None:
    sent = Command(
        ValueType.PROCESS_INSTANCE, InstanceIntent.TRIGGER, 9, InstanceRef(), delivery=Delivery()
    )
    step(processor(notes, {}), sent)
    made = processor(notes, {notes.written[0].digest: 1})
    step(made, sent)
    assert notes.told == ["TRIGGER: its process instance has an incident"]
    live = Command(BATCH, JobBatchIntent.WAKE, 0, JobList((1,)))
    step(made, live)
    assert not made._turn.is_braked, "the next command has none"
