"""Cuts in the member's own journal: kept over a restart, dropped by retention, read by the page."""

import asyncio
import contextlib
import random
from pathlib import Path

from holdfast.cluster.cut_log import CUTS_TOPIC, JournalCutLog, keep_cuts
from holdfast.journal.api import Retention
from holdfast.journal.local import LocalJournal
from holdfast.journal.memory import MemoryJournal
from holdfast.limits import SEGMENT_BYTES_MIN
from holdfast.sequence.api import LogKey
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.keeping import CutKeeper
from holdfast.testing import run

LOGS = [LogKey("records", each) for each in range(1, 200)]  # about 1.5 KB a cut


async def tell(keeper: CutKeeper, count: int) -> None:
    dice, at = random.Random(count), keeper.at or START
    keeper.begin(at)
    for _ in range(count):
        marks = {key: at.offsets.get(key, 0) + dice.randrange(2**40) for key in LOGS}
        cut = make_cut(at, marks, "member", "nonce", at.number * 62)
        at = follow(at, cut)
        keeper.follow(cut, at)


def test_cuts_outlive_the_member_and_old_ones_go(tmp_path: Path) -> None:
    async def story() -> None:
        journal = LocalJournal.open(tmp_path, segment_bytes=SEGMENT_BYTES_MIN)
        journal.create_topic(CUTS_TOPIC, 1, Retention(bytes=2 * SEGMENT_BYTES_MIN))
        keeper = await CutKeeper.open(JournalCutLog(journal))
        for _ in range(15):
            await tell(keeper, 20)
            await keeper.flush()
        journal.enforce_retention()
        known = keeper.at
        await journal.close()
        journal = LocalJournal.open(tmp_path)
        again = await CutKeeper.open(JournalCutLog(journal))
        assert again.at == known
        assert 1 < again.first < 200
        assert (await again.positions(again.first)).number == again.first
        await tell(again, 3)
        await again.flush()
        assert (await again.cuts(303, 303))[0].number == 303
        await journal.close()

    asyncio.run(story())


def test_cuts_are_written_once_a_second_and_at_the_end() -> None:
    async def story() -> None:
        journal = MemoryJournal()
        log = JournalCutLog(journal)
        keeper = await CutKeeper.open(log)
        keeping = asyncio.create_task(keep_cuts(keeper))
        await tell(keeper, 5)
        await asyncio.sleep(0.5)
        assert log.next == 0
        await asyncio.sleep(0.6)
        assert log.next == 5
        await tell(keeper, 2)
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        assert log.next == 7

    run(story())


def test_a_member_that_stops_while_cuts_are_written_keeps_each_once() -> None:
    class SlowLog(JournalCutLog):
        async def append(self, cuts: list[bytes]) -> int:
            offset = await super().append(cuts)
            await asyncio.sleep(1)
            return offset

    async def story() -> None:
        journal = MemoryJournal()
        keeper = await CutKeeper.open(SlowLog(journal))
        keeping = asyncio.create_task(keep_cuts(keeper))
        await tell(keeper, 3)
        await asyncio.sleep(1.5)
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeping
        assert journal.bounds(CUTS_TOPIC, 1).next == 3

    run(story())
