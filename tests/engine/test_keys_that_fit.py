"""A value that no key of the store can hold fails its command, not the write of the state."""

import struct
from typing import Any

import pytest
from job_talk import activate, complete, create
from partition_driver import Driver

from holdfast.engine.jobs.values import (
    Activation,
    Extension,
    JobBatchIntent,
    JobIntent,
    NewJob,
)
from holdfast.engine.kernel import Command
from holdfast.engine.messages.values import MessageIntent, NewMessage
from holdfast.records import ValueType
from holdfast.state.keys import check_u32, check_u64

FAR_MS = -(2**45)  # before 1970 by a thousand years


def new(**values: Any) -> Command:
    return Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("a", b"null", **values))


def batch(intent: JobBatchIntent, key: int, value: Any) -> Command:
    return Command(ValueType.JOB_BATCH, intent, key, value)


def commands(lease: int) -> dict[str, Command]:
    """Commands with values that a key cannot hold, by what is wrong with them."""
    return {
        "priority too low": new(priority=-(2**31)),
        "priority too high": new(priority=2**31 + 1),
        "priority of a delayed job": new(priority=2**31 + 1, due_ms=2**50),
        "idempotency in the past": new(idempotency_key="k", window_ms=FAR_MS),
        "lease in the past": batch(
            JobBatchIntent.ACTIVATE, 0, Activation(("a",), "worker", 1, FAR_MS)
        ),
        "extension into the past": batch(JobBatchIntent.EXTEND, lease, Extension(FAR_MS)),
        "message that is over": Command(
            ValueType.MESSAGE, MessageIntent.PUBLISH, 0, NewMessage("m", "c", ttl_ms=FAR_MS)
        ),
    }


@pytest.mark.parametrize("name", commands(0))
def test_such_a_command_is_rejected_alone_and_the_state_can_be_written(name: str) -> None:
    driver = Driver()
    create(driver)
    held = activate(driver)
    create(driver)
    before = driver.dump()
    bad = commands(held.lease)[name]
    (reply,) = driver.submit(bad)
    assert reply.rejection is not None and reply.rejection.code == "INTERNAL"
    assert driver.dump() == before
    first, rejected, last = driver.submit(new(priority=1), bad, new(priority=-1))
    assert first.rejection is None and rejected.rejection is not None and last.rejection is None
    driver.write_state()
    driver.restart()
    complete(driver, held)
    assert [activate(driver).key for _ in range(3)][::2] == [first.key, last.key]
    assert driver.replayed().state.dump() == driver.dump()


@pytest.mark.parametrize(("check", "bits"), [(check_u32, 32), (check_u64, 64)])
def test_only_numbers_that_fit_pass_a_check(check: Any, bits: int) -> None:
    check(0)
    check(2**bits - 1)
    for bad in (-1, 2**bits, 0.5, "1", None):
        with pytest.raises(struct.error):
            check(bad)
