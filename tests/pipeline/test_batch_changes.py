"""What batch operations become in the tables, compared with what the engine itself makes of them.

Their logs are those of random stories on several partitions, where everything goes wrong.
"""

import json
import os
from random import Random
from typing import Any

import pytest
from engine_tables import OUTCOMES, MemoryTables, check_batches, check_tables

# isort: split
from batch_story import Story  # pyright: ignore[reportMissingImports] - of the engine

SEEDS, SOAK_SEEDS = 12, 300


def check_seed(seed: int) -> None:
    """A story is told; wherever its logs are cut, the tables are what the engine's state is."""
    random = Random(seed)
    story: Any = Story(seed)
    try:
        story.tell()
        partitions = {
            number: _tables_of(node, random) for number, node in story.cluster.nodes.items()
        }
        for key, end in story.ends.items():
            _check_end(partitions, key, end)
    except BaseException:
        print(f"\nseed {seed} fails; to replay it:")
        print(f"  HOLDFAST_SEED={seed} pytest tests/pipeline/test_batch_changes.py -k one_seed")
        raise


def _tables_of(node: Any, random: Random) -> MemoryTables:
    """The tables of one partition, read in pieces and compared now and then."""
    tables, at = MemoryTables(node.number), 0
    while at < len(node.log):
        end = min(len(node.log), at + random.choice([1, 5, 40, 200]))
        tables.take(node.log[at:end])
        at = end
        if random.random() < 0.05:
            check_batches(tables, node.replayed(until=at).view)
    check_tables(tables, node.replayed().view)
    return tables


def _check_end(partitions: dict[int, MemoryTables], key: int, end: Any) -> None:
    """An operation that has ended is told whole, by its leader and by its partitions together."""
    rows = [
        row
        for tables in partitions.values()
        for row in tables.rows("batch_operations")
        if row["batch_operation_key"] == key
    ]
    (row,) = rows
    assert row["state"] == end.state
    assert row["partitions_ended"] == row["partitions"] == len(end.reports)
    parts = [
        part
        for tables in partitions.values()
        for part in tables.rows("batch_operation_partitions")
        if part["batch_operation_key"] == key
    ]
    for outcome in OUTCOMES:
        assert row[outcome] == getattr(end.counts, outcome)
        assert sum(part[outcome] for part in parts) == row[outcome]
    failed = [report for report in end.reports if report.error is not None]
    errors = json.loads(row["errors"] or "[]")
    assert [error["partition"] for error in errors] == [report.partition for report in failed]
    assert {part["partition_id"] for part in parts if part["state"] == "FAILED"} == {
        report.partition for report in failed
    }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_tables_are_what_the_state_is(seed: int) -> None:
    check_seed(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEEDS, SOAK_SEEDS))
def test_the_tables_are_what_the_state_is_for_many(seed: int) -> None:
    check_seed(seed)


@pytest.mark.skipif("HOLDFAST_SEED" not in os.environ, reason="for replaying a seed that failed")
def test_one_seed_is_what_the_state_is() -> None:
    check_seed(int(os.environ["HOLDFAST_SEED"]))
