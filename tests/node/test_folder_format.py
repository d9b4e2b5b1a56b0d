"""The version of a data folder: older ones are upgraded once, newer ones are refused by name."""

import asyncio
import io
import logging
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from holdfast.cli.checks.folder import check_version
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.errors import DataLoss, InvalidState, Unavailable
from holdfast.folder_format import CURRENT, FORMAT, FORMAT_FILE, FolderFormat, format_of, mark
from holdfast.journal.local import LocalJournal
from holdfast.layout import layout_of
from holdfast.moving import open_stopped
from holdfast.node import LocalNode
from holdfast.rebalancing import rebalance
from holdfast.state.portable import ExportReader, Header, written
from holdfast.upgrades import make_current
from holdfast.version import VERSION

# Made by the last version that wrote no mark: greet("world") with the key below, two partitions.
UNMARKED = Path(__file__).with_name("folders") / "unmarked.tar.gz"
GREETING = "2251799813685249"
GREETED_MS = 1_794_852_000_000  # 2026-11-16, 18:00: its result was kept for a day
FUTURE = FolderFormat(FORMAT + 1, "9.4.0")

Logged = Callable[[], list[logging.LogRecord]]


@pytest.fixture
def unmarked(tmp_path: Path) -> Path:
    with tarfile.open(UNMARKED) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "data"


class ThatDay(SystemClock):
    """The clock of the day on which the folder was made."""

    def now_ms(self) -> int:
        return GREETED_MS


async def greeting(folder: Path) -> bytes:
    node = await LocalNode.open(folder, Config(partitions=2), ThatDay())
    try:
        return bytes((await node.gateway.tasks.get(GREETING)).result)
    finally:
        await node.close()


def open_and_close(folder: Path) -> None:
    async def run() -> None:
        await (await LocalNode.open(folder, Config(partitions=2))).close()

    asyncio.run(run())


def test_a_new_folder_is_marked_without_a_word(tmp_path: Path, logged: Logged) -> None:
    open_and_close(tmp_path / "data")
    assert format_of(tmp_path / "data") == CURRENT
    assert [each for each in logged() if "upgraded" in each.getMessage()] == []


def test_a_folder_without_a_mark_is_upgraded_and_says_so_once(
    unmarked: Path, logged: Logged
) -> None:
    assert format_of(unmarked) == FolderFormat(0, "0.1.0 or earlier")
    assert "next start upgrades it" in check_version(unmarked).found
    assert asyncio.run(greeting(unmarked)) == b'"hello world"'
    open_and_close(unmarked)
    said = [vars(each)["fields"] for each in logged() if "folder upgraded" in each.getMessage()]
    assert [(each["from_format"], each["to_format"]) for each in said] == [(0, FORMAT)]
    assert format_of(unmarked) == CURRENT
    assert check_version(unmarked).found == f"format {FORMAT}, written by holdfast {VERSION}"


@pytest.mark.parametrize(
    "use",
    [
        open_and_close,
        layout_of,
        lambda folder: asyncio.run(rebalance(folder, 2, lambda *_: None)),
        lambda folder: asyncio.run(anext(aiter_of(folder))),
    ],
    ids=["start", "read", "rebalance", "export"],
)
def test_a_newer_folder_is_refused_by_name_and_left_alone(
    unmarked: Path, use: Callable[[Path], object]
) -> None:
    mark(unmarked, FUTURE)
    before = {path: path.stat().st_mtime_ns for path in unmarked.rglob("*")}
    with pytest.raises(InvalidState) as refused:
        use(unmarked)
    assert f"written by holdfast 9.4.0 (format {FORMAT + 1})" in refused.value.message
    assert f"this is holdfast {VERSION} (format {FORMAT}): upgrade" in refused.value.message
    assert {path: path.stat().st_mtime_ns for path in unmarked.rglob("*")} == before


async def aiter_of(folder: Path):
    async with open_stopped(folder, 1) as node:
        yield node


def test_a_step_that_is_interrupted_is_done_again_and_the_mark_comes_last(unmarked: Path) -> None:
    done: list[int] = []

    def step(number: int) -> Callable[[Path], None]:
        def run(_: Path) -> None:
            done.append(number)
            if done == [0, 1]:
                raise KeyboardInterrupt

        return run

    steps = {number: step(number) for number in range(3)}
    with pytest.raises(KeyboardInterrupt):
        make_current(unmarked, steps, 3)
    assert format_of(unmarked) == FolderFormat(1, VERSION)
    with pytest.raises(InvalidState):  # its last mark is newer than this program
        done.append(-1)
        make_current(unmarked, steps, 3)
        make_current(unmarked)
    assert done == [0, 1, -1, 1, 2]


def test_an_older_folder_is_not_upgraded_under_a_running_node(unmarked: Path) -> None:
    journal = LocalJournal.open(unmarked / "journal")
    try:
        with pytest.raises(Unavailable, match="in use by"):
            make_current(unmarked)
        assert format_of(unmarked) == FolderFormat(0, "0.1.0 or earlier")
    finally:
        asyncio.run(journal.close())


def test_a_mark_of_another_program_with_the_same_format_is_brought_up_to_date(
    unmarked: Path,
) -> None:
    mark(unmarked, FolderFormat(FORMAT, "0.0.9"))
    open_and_close(unmarked)
    assert format_of(unmarked) == CURRENT


def test_a_mark_that_cannot_be_read_is_told_with_its_path(unmarked: Path) -> None:
    (unmarked / FORMAT_FILE).write_bytes(b"{")
    with pytest.raises(DataLoss, match=FORMAT_FILE):
        layout_of(unmarked)


def test_an_export_carries_the_numbers_and_a_newer_one_is_refused(unmarked: Path) -> None:
    header = Header(1, 1, 0, 0, b"", format=FORMAT + 1, program="9.4.0")
    stream = io.BytesIO(b"".join(written(header, [])))
    with pytest.raises(Exception, match=r"written by holdfast 9\.4\.0") as refused:
        ExportReader(iter(lambda: stream.read(100), b""), "x.export")
    assert "upgrade" in str(refused.value)

    async def exported() -> Header:
        node = await LocalNode.open(unmarked)
        try:
            found, stream = await node.upkeep.exported(1)
            async for _ in stream:
                pass
            return found
        finally:
            await node.close()

    found = asyncio.run(exported())
    assert (found.format, found.program) == (FORMAT, VERSION)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=Header) == found
