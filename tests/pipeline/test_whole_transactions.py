"""Transactions in the tables: a row each; as of a cut all of one or nothing, whatever the cut."""

import json
from typing import Any

from engine_tables import ENGINE_TESTS  # it makes the engine's tests importable
from transaction_cluster import (  # pyright: ignore[reportMissingImports] - of the engine
    TransactionCluster,
    start,
    submit,
)

from holdfast.journal import Bounds, Entry
from holdfast.pipeline.changes.fold import fold
from holdfast.pipeline.changes.rows import Rows
from holdfast.pipeline.log import CutEnds, entries_between
from holdfast.pipeline.whole import whole_ends

assert ENGINE_TESTS.is_dir()


class ClusterLog:
    """The logs of partitions in memory; their offsets have gaps."""

    def __init__(self, cluster: Any) -> None:
        self._logs: dict[int, list[Entry]] = {n: node.log for n, node in cluster.nodes.items()}

    def bounds(self) -> dict[int, Bounds]:
        return {n: Bounds(0, log[-1].offset + 1) for n, log in self._logs.items()}

    def bounds_since(self, since_ms: int) -> dict[int, Bounds]:
        return self.bounds()

    def stream_bounds(self) -> dict[int, Bounds]:
        return {}

    def read(self, partition: int, position: int) -> list[Entry]:
        return [each for each in self._logs[partition] if each.offset >= position][:7]

    def as_of(self, cut: int | None) -> CutEnds:
        raise NotImplementedError

    def close(self) -> None: ...


def tasks(log: ClusterLog, starts: dict[int, int], ends: dict[int, int]) -> set[str]:
    """The tasks that tables have."""
    found: set[str] = set()
    for partition, end in ends.items():
        rows = Rows(partition, {})
        for entries in entries_between(log, partition, starts.get(partition, 0), end):
            fold(entries, rows)
        found |= {row["idempotency_key"] for row in rows.changed["jobs"].values()}
    return found


def appends(node: Any) -> list[int]:
    """Where the appends of a partition end, from now on: only there does a cut end."""
    found, append = [0], node.append

    def noted(step: Any) -> None:
        append(step)
        if step.entries:
            found.append(node.log[-1].offset + 1)

    node.append = noted
    return found


def test_tables_of_one_cut_after_another_have_whole_transactions() -> None:
    cluster = TransactionCluster(2)
    first, second = [appends(node) for node in cluster.nodes.values()]
    for n in range(4):
        operations = submit(1, "tx", f"tx{n}-1"), submit(2, "tx", f"tx{n}-2")
        cluster.outcome(1 + n % 2, *operations)
    cluster.run(1)
    log = ClusterLog(cluster)
    for skew in range(-len(second), len(second)):  # one log is known further than the other
        done: dict[int, int] = {}
        have: set[str] = set()
        for at in range(max(len(first), len(second)) + abs(skew)):
            cut = {1: first[min(at, len(first) - 1)], 2: second[_within(at + skew, second)]}
            ends = whole_ends(log, cut, done)
            assert all(done.get(each, 0) <= ends[each] <= cut[each] for each in cut)
            have |= tasks(log, done, ends)
            for n in range(4):
                pair = {f"tx{n}-1", f"tx{n}-2"}
                assert len(have & pair) in (0, 2), f"half of a transaction at {cut}"
            done = ends
        assert len(have) == 8, "with the last cut all is there"


def _within(at: int, of: list[int]) -> int:
    return max(0, min(at, len(of) - 1))


def test_every_transaction_is_a_row_of_its_home() -> None:
    cluster = TransactionCluster(2)
    cluster.outcome(1, submit(1, "tx1"), submit(2, "tx2"), submit(2, "tx3"))
    cluster.outcome(1, submit(1, "tx4"))
    cluster.outcome(1, submit(1, "tx5"), start(2, "tx6", "nobody"))
    cluster.run(1)
    log = ClusterLog(cluster)
    [far, near, aborted] = [rows for _, rows in sorted(changed(log, 1).items())]
    assert (far["state"], far["operations"], far["partitions"]) == ("COMMITTED", 3, 2)
    assert (far["votes"], far["acknowledged"]) == (1, 1)
    assert far["decided"] >= far["begun"]
    assert (near["state"], near["operations"], near["partitions"]) == ("COMMITTED", 1, 1)
    assert (aborted["state"], aborted["votes"], aborted["acknowledged"]) == ("ABORTED", 1, 0)
    [refused] = json.loads(aborted["refused"])
    assert (refused["operation"], refused["code"]) == (1, "NOT_FOUND")
    assert changed(log, 2) == {}


def changed(log: ClusterLog, partition: int) -> dict[Any, Any]:
    rows = Rows(partition, {})
    for entries in entries_between(log, partition, 0, log.bounds()[partition].next):
        fold(entries, rows)
    return rows.changed["transactions"]
