"""Tables as of a cut: everything before its positions, and nothing behind them."""

from pathlib import Path

import pytest
from served_node import ServedNode
from tests.cluster.ordered_node import OrderedNode

from holdfast.clock import SystemClock
from holdfast.errors import InvalidState, NotFound
from holdfast.journal import Bounds, Entry
from holdfast.pipeline.log import CutEnds, Log, entries_between, open_log
from holdfast.pipeline.offsets import planned_ends
from holdfast.pipeline.project import CHECKPOINT, Projection
from holdfast.pipeline.schema import RANGES
from holdfast.pipeline.source import LogStreamReader
from holdfast.pipeline.tables.progress import TableProgress, store_progress
from holdfast.pipeline.wanted import Wanted, wanted_of


def test_a_remote_log_knows_where_a_cut_ended(node: ServedNode) -> None:
    ordered = OrderedNode(node.node)
    node.portal.call(ordered.begin())
    node.submit(10)
    first = node.portal.call(ordered.cut())
    node.submit(10, "later")
    node.portal.call(ordered.cut())
    log = open_log(node.url)
    ends = {number: each.next for number, each in log.bounds().items()}
    assert log.as_of(None) == CutEnds(2, {each: at for each, at in ends.items() if at})
    early = log.as_of(first)
    assert early.cut == 1
    assert sum(early.ends.values()) < sum(ends.values())
    with pytest.raises(NotFound, match="not published yet"):
        log.as_of(3)
    log.close()


def test_a_node_of_its_own_has_no_cuts(node: ServedNode) -> None:
    for address in (str(node.folder), node.url):
        log = open_log(address)
        with pytest.raises(InvalidState, match="single node"):
            log.as_of(None)
        log.close()


def test_the_folder_of_a_member_is_not_read(node: ServedNode) -> None:
    (node.folder / "replica.json").write_text("{}")
    with pytest.raises(InvalidState, match="from the URL of any member"):
        open_log(str(node.folder))


def test_a_stream_ends_at_the_positions_of_a_cut(node: ServedNode) -> None:
    node.submit(100)
    wanted = wanted_of({"upTo": "1:5,2:3"})
    assert wanted.upto == {1: 5, 2: 3}
    stream = LogStreamReader(str(node.folder), RANGES, wanted, 1_000)
    stream.prepareForTriggerAvailableNow()
    assert stream.reportLatestOffset() == {"1": 5, "2": 3, "3": 0}
    assert stream.latestOffset({"1": 0, "2": 0}, stream.getDefaultReadLimit())["1"] == 5
    stream.stop()
    assert [wanted.narrowed(each, 0, 9) for each in (1, 2, 3)] == [(0, 5), (0, 3), None]
    assert Wanted().narrowed(3, 0, 9) == (0, 9)


def test_tables_that_are_further_than_the_cut_are_refused(tmp_path: Path) -> None:
    store_progress(tmp_path, TableProgress(0, {1: 10, 2: 4}))
    (tmp_path / CHECKPOINT / "offsets").mkdir(parents=True)
    (tmp_path / CHECKPOINT / "offsets" / "0").write_text('v1\n{}\n{"1": 10, "2": 4}')
    projection = Projection("http://127.0.0.1:1", tmp_path, SystemClock())
    projection._check_not_beyond({1: 10, 2: 4})
    with pytest.raises(InvalidState, match="partition 2 up to 4, and the cut is at 3"):
        projection._check_not_beyond({1: 10, 2: 3})
    # A micro-batch that was planned is finished by Spark before anything else.
    (tmp_path / CHECKPOINT / "offsets" / "1").write_text('v1\n{}\n{"1": 12, "2": 4}')
    assert planned_ends(tmp_path / CHECKPOINT) == {1: 12, 2: 4}
    with pytest.raises(InvalidState, match="partition 1 up to 12"):
        projection._check_not_beyond({1: 11, 2: 4})


class _Noted:
    """A log with an entry at its end that readers are not given, as the log of a cluster has."""

    def bounds(self) -> dict[int, Bounds]:
        return {1: Bounds(0, 4)}

    def read(self, partition: int, position: int) -> list[Entry]:
        return [Entry(each, 0, b"") for each in (1, 2) if each >= position]


def test_what_owners_note_at_the_end_of_a_log_is_not_missing() -> None:
    log: Log = _Noted()  # pyright: ignore[reportAssignmentType]
    assert [entry.offset for piece in entries_between(log, 1, 0, 4) for entry in piece] == [1, 2]
    with pytest.raises(NotFound, match="reach to 5, but it ends at 3"):
        list(entries_between(log, 1, 0, 5))
