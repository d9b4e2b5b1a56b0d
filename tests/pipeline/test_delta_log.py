"""A table's log: which version a commit made, and which micro-batch was the last."""

from pathlib import Path

import pytest
from deltalake.exceptions import CommitFailedError

from holdfast.pipeline.schema import JOBS
from holdfast.pipeline.tables.delta import DeltaLog, files_at
from holdfast.pipeline.tables.files import WrittenFile, merge_changes

KEY = 1 << 51


def put(root: Path, log: DeltaLog, number: int, batch: int | None) -> None:
    """One more row, in a file of its own."""
    log.commit(_written(root, number), batch)


def _written(root: Path, number: int) -> list[WrittenFile]:
    row = {KEY + (number << 16): {"partition_id": 1, "position": number}}
    return merge_changes(root, JOBS, 1, row, [])


def test_a_log_knows_the_version_that_its_commit_made(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path, JOBS)
    assert (log.version, log.last_batch()) == (0, -1)
    for number in range(45):  # beyond two checkpoints
        put(tmp_path, log, number, number)
        assert (log.version, log.last_batch()) == (number + 1, number)
        assert len(files_at(tmp_path, JOBS, log.version)) == number + 1
    again = DeltaLog(tmp_path, JOBS)
    assert (again.version, again.last_batch()) == (45, 44)
    assert set(again.parts()) == set(log.parts())


def test_a_log_that_somebody_else_has_changed_names_the_version_with_both(tmp_path: Path) -> None:
    log, other = DeltaLog(tmp_path, JOBS), DeltaLog(tmp_path, JOBS)
    put(tmp_path, other, 1, None)
    put(tmp_path, log, 2, 7)
    assert log.version == 2
    assert len(files_at(tmp_path, JOBS, log.version)) == 2
    put(tmp_path, log, 3, 8)
    assert log.version == 3 and len(log.parts()) == 3


def test_of_two_that_take_a_micro_batch_one_fails(tmp_path: Path) -> None:
    log, other = DeltaLog(tmp_path, JOBS), DeltaLog(tmp_path, JOBS)
    put(tmp_path, other, 1, 0)
    with pytest.raises(CommitFailedError):
        put(tmp_path, log, 1, 0)
    assert log.last_batch() == -1


def test_what_was_tidied_is_the_version_that_is_named(tmp_path: Path) -> None:
    log = DeltaLog(tmp_path, JOBS)
    put(tmp_path, log, 1, 0)
    log.tidy(0)
    assert log.version == DeltaLog(tmp_path, JOBS).version
    put(tmp_path, log, 2, 1)
    assert log.version == DeltaLog(tmp_path, JOBS).version
    assert len(files_at(tmp_path, JOBS, log.version)) == 2
