"""The checkers of clusters of real processes find what they are there for."""

from collections.abc import Callable

import msgspec
import pytest
from bench.ours.cluster_load import Completed, Submitted, commits_after
from tests.cluster.real import Disk, Log, check_disks, check_order, check_tasks

from holdfast.engine.jobs.values import Completion, JobIntent, NewJob
from holdfast.engine.partition import DISPATCH
from holdfast.journal.cluster.opened import encode_opened
from holdfast.records import Record, RecordKind, ValueType
from holdfast.sequence.api import Cut, LogKey

KEY = 9_007_199_254_740_993
SUBMITTED = Submitted("k-1", str(KEY), 1, 7, 0.0, 1.0, 1)
COMPLETED = Completed(str(KEY), 7, 2.0)


def entry(offset: int, intent: JobIntent, number: int) -> bytes:
    payload = b'{"n":%d}' % number
    value = (
        NewJob("load", payload, idempotency_key="k-1")
        if intent == JobIntent.CREATED
        else Completion(1, payload)
    )
    return DISPATCH.codec.encode(
        Record(offset, RecordKind.EVENT, ValueType.JOB, intent, KEY, -1, 0, value)
    )


def log() -> Log:
    return {1: entry(1, JobIntent.CREATED, 7), 2: entry(2, JobIntent.COMPLETED, 7)}


def lose(log: Log) -> None:
    del log[1]


def double(log: Log) -> None:
    log[3] = entry(3, JobIntent.CREATED, 7)


def change(log: Log) -> None:
    log[1] = entry(1, JobIntent.CREATED, 8)


def complete_again(log: Log) -> None:
    log[3] = entry(3, JobIntent.COMPLETED, 7)


@pytest.mark.parametrize("spoil", [lose, double, change, complete_again])
def test_a_task_that_is_lost_doubled_changed_or_done_twice_is_found(
    spoil: Callable[[Log], None],
) -> None:
    good = log()
    check_tasks({1: good}, [SUBMITTED], [COMPLETED])
    spoil(good)
    with pytest.raises(AssertionError):
        check_tasks({1: good}, [SUBMITTED], [COMPLETED])


def disk(*payloads: bytes, epoch: int = 1) -> Disk:
    entries = dict(enumerate((encode_opened(epoch, "a"), *payloads)))
    return Disk({(1, epoch, number): each for number, each in entries.items()}, {1: entries})


def test_a_disk_that_lacks_an_entry_or_has_another_one_is_found() -> None:
    logs = {1: {1: b"x", 2: b"y"}}
    check_disks({"a": disk(b"x", b"y"), "b": disk(b"x", b"y")}, logs)
    with pytest.raises(AssertionError, match="b lacks 2"):
        check_disks({"a": disk(b"x", b"y"), "b": disk(b"x")}, logs)
    with pytest.raises(AssertionError, match="another entry"):
        check_disks({"a": disk(b"x", b"y"), "b": disk(b"x", b"z")}, logs)
    with pytest.raises(AssertionError, match="not given out"):
        check_disks({"a": disk(b"x", b"y")}, {1: {2: b"y"}})


def test_two_owners_of_one_epoch_are_found_in_what_is_void() -> None:
    one, other = disk(b"x"), disk(b"x")
    one.ranges[1, 1, 2], other.ranges[1, 1, 2] = b"of one", b"of another"
    with pytest.raises(AssertionError, match="another entry"):
        check_disks({"a": one, "b": other}, {1: {1: b"x"}})


def test_another_order_and_what_is_in_no_cut_are_found() -> None:
    key = LogKey("records", 1)
    cuts = [Cut(1, "a", "n", 0, {key: 2}), Cut(2, "a", "n", 0, {key: 1})]
    good = {"a": disk(b"x", b"y"), "b": disk(b"x", b"y")}
    assert check_order(cuts, good, {1: {1: b"x", 2: b"y"}}) == 3
    with pytest.raises(AssertionError, match="other orders"):
        check_order(cuts, good | {"b": disk(b"y", b"x")}, {1: {}})
    with pytest.raises(AssertionError, match="cuts end at 2"):
        check_order(cuts[:1], good, {1: {1: b"x", 2: b"y"}})
    with pytest.raises(AssertionError):
        check_order(cuts[1:], good, {1: {}})


def test_a_partition_commits_again_with_the_first_task_that_was_sent_after_the_kill() -> None:
    def sent(at: float, acknowledged: float) -> Submitted:
        return msgspec.structs.replace(SUBMITTED, sent_s=at, acknowledged_s=acknowledged)

    found = [sent(0.9, 1.0), sent(1.2, 5.0), sent(2.0, 2.5)]
    assert commits_after(found, 1.1, {1}) == pytest.approx(1.4)
    with pytest.raises(AssertionError, match="nothing was committed"):
        commits_after(found, 3.0, {1})
