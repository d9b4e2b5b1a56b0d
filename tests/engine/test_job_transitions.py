"""Every edge of the table of a job's life is walked; an edge that nobody walks fails."""

from collections.abc import Callable
from typing import Any

import pytest
from job_talk import (
    LEASE_MS,
    PAUSE_MS,
    activate,
    cancel,
    complete,
    create,
    discard,
    fail,
    release,
    resolve,
    state,
)
from partition_driver import Driver

from holdfast.engine.jobs.values import TRANSITIONS, ActivatedJob, JobState
from holdfast.engine.partition import DOMAINS
from holdfast.limits import LEASE_EXPIRIES_MAX
from holdfast.records import RecordKind, ValueType

INTENTS = {domain.value_type: domain.intents for domain in DOMAINS}

Walk = Callable[[Driver, int], None]
Edge = tuple[JobState | None, str]


def to_scheduled(driver: Driver) -> int:
    return create(driver, delay_ms=PAUSE_MS)


def to_active(driver: Driver) -> int:
    create(driver)
    return activate(driver).key


def to_incident(driver: Driver) -> int:
    create(driver)
    job = activate(driver)
    fail(driver, job, final=True)
    return job.key


REACH: dict[JobState | None, Callable[[Driver], int]] = {
    None: lambda driver: 0,
    JobState.WAITING: create,
    JobState.SCHEDULED: to_scheduled,
    JobState.ACTIVE: to_active,
    JobState.INCIDENT: to_incident,
}


def held(driver: Driver, key: int) -> ActivatedJob:
    """The job of an edge that begins at ACTIVE, as its worker has it."""
    lease = driver.view.jobs.active.get(key)
    return ActivatedJob(key, "a", b"null", lease, 0, 1, 0, False)


def expire_until_stuck(driver: Driver, key: int) -> None:
    for _ in range(LEASE_EXPIRIES_MAX - 1):
        driver.advance(LEASE_MS)
        activate(driver)
    driver.advance(LEASE_MS)


def fail_without_retries(driver: Driver, key: int) -> None:
    fail(driver, held(driver, key))
    driver.advance(PAUSE_MS)
    fail(driver, activate(driver))


WALKS: dict[Edge, Walk] = {
    (None, "CREATED"): lambda driver, key: None,
    (None, "CREATED (with a delay)"): lambda driver, key: None,
    (JobState.SCHEDULED, "WOKEN"): lambda driver, key: driver.advance(PAUSE_MS),
    (JobState.WAITING, "ACTIVATED"): lambda driver, key: activate(driver) and None,
    (JobState.ACTIVE, "COMPLETED"): lambda driver, key: complete(driver, held(driver, key)),
    (JobState.ACTIVE, "RELEASED"): lambda driver, key: release(driver, held(driver, key)),
    (JobState.ACTIVE, "EXPIRED"): lambda driver, key: driver.advance(LEASE_MS),
    (JobState.ACTIVE, "EXPIRED (too often)"): expire_until_stuck,
    (JobState.ACTIVE, "FAILED"): lambda driver, key: fail(driver, held(driver, key)),
    (JobState.ACTIVE, "FAILED (no retries left)"): fail_without_retries,
    (JobState.INCIDENT, "RETRIED"): resolve,
    (JobState.INCIDENT, "DISCARDED"): discard,
    (JobState.WAITING, "CANCELED"): cancel,
    (JobState.SCHEDULED, "CANCELED"): cancel,
    (JobState.ACTIVE, "CANCELED"): cancel,
    (JobState.INCIDENT, "CANCELED"): cancel,
}


def test_every_edge_has_a_walk() -> None:
    assert WALKS.keys() == TRANSITIONS.keys()


@pytest.mark.parametrize("edge", TRANSITIONS, ids=lambda edge: f"{edge[0]}-{edge[1]}")
def test_the_edge_leads_where_the_table_says(edge: Edge) -> None:
    driver, (before, event) = Driver(), edge
    key = REACH[before](driver)
    assert state(driver, key) == before
    if before is None:
        key = create(driver, delay_ms=PAUSE_MS if "delay" in event else 0)
    WALKS[edge](driver, key)
    assert state(driver, key) == TRANSITIONS[edge]
    assert last_event_about(driver, key) == event.split(" ")[0]
    assert driver.replayed().state.dump() == driver.dump()


def last_event_about(driver: Driver, key: int) -> str:
    """The name of the latest event that changed the job, alone or with others."""
    for record in reversed(driver.records()):
        if record.kind != RecordKind.EVENT:
            continue
        if record.value_type == ValueType.JOB and record.key == key:
            return INTENTS[ValueType.JOB](record.intent).name
        if record.value_type == ValueType.JOB_BATCH and key in members(record.value):
            return INTENTS[ValueType.JOB_BATCH](record.intent).name
    raise AssertionError("no event names the job")


def members(value: Any) -> set[int]:
    return {*getattr(value, "jobs", ()), *(job for job, _ in getattr(value, "incidents", ()))}


@pytest.mark.parametrize("final", [JobState.COMPLETED, JobState.CANCELED, JobState.DISCARDED])
def test_no_edge_leads_out_of_an_end(final: JobState) -> None:
    assert not [edge for edge in TRANSITIONS if edge[0] == final]
