"""How many jobs wait and run, and since when: told without looking at all of them."""

from typing import Any

import pytest
from count_checks import check_counts
from partition_driver import Driver

from holdfast.engine.incidents.values import IncidentIntent, Resolution
from holdfast.engine.jobs.values import (
    ActivatedJob,
    Activation,
    Backoff,
    BackoffKind,
    Completion,
    Failure,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobsReported,
    NewJob,
)
from holdfast.engine.kernel import Command, Submission
from holdfast.engine.kernel import processor as processor_module
from holdfast.errors import DataLoss
from holdfast.limits import PRIORITY_MAX
from holdfast.records import ValueType
from holdfast.runtime.gauges import work_gauges
from holdfast.state import Progress
from holdfast.state.memory import MemoryStore
from holdfast.state.packed import Packed
from holdfast.state.tally import Tally

FIXED = Backoff(BackoffKind.FIXED, 1_000, 1_000, 0)


class Work:
    """A partition with jobs."""

    def __init__(self) -> None:
        self.driver = Driver()

    def submit(self, type_: str, count: int = 1, **how: Any) -> None:
        new = NewJob(type_, b"null", backoff=FIXED, **how)
        self.driver.submit(*[Command(ValueType.JOB, JobIntent.CREATE, 0, new)] * count)

    def take(self, type_: str, count: int = 1) -> list[ActivatedJob]:
        asked = Activation((type_,), "ann", count, 30_000)
        return self.driver.do(Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, asked)).value

    def complete(self, *jobs: ActivatedJob) -> None:
        done = [
            Command(ValueType.JOB, JobIntent.COMPLETE, job.key, Completion(job.lease))
            for job in jobs
        ]
        self.driver.submit(*done)

    def fail(self, job: ActivatedJob) -> None:
        failure = Failure(job.lease, "no answer")
        self.driver.do(Command(ValueType.JOB, JobIntent.FAIL, job.key, failure))

    @property
    def gauges(self) -> Any:
        return work_gauges(self.driver.view, self.driver.now_ms)

    def effects(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.driver.effects if isinstance(effect, kind)]


@pytest.fixture
def work() -> Work:
    return Work()


def test_jobs_are_counted_by_type_and_the_counts_survive_a_restart(work: Work) -> None:
    work.submit("mail", 5)
    work.submit("bill", 2)
    mail = work.take("mail", 3)
    work.complete(mail[0])
    work.submit("stuck", retries=0)
    (stuck,) = work.take("stuck")
    work.fail(stuck)
    expected = (
        {"mail": 2, "bill": 2, "stuck": 0},
        {"mail": 2, "stuck": 0},
        {("NO_RETRIES_LEFT", "stuck"): 1},
    )
    waiting, running, _, incidents = work.gauges
    assert (waiting, {"stuck": 0} | running, incidents) == expected
    for written in (False, True):
        if written:
            work.driver.write_state()
        work.driver.restart()
        waiting, running, _, incidents = work.gauges
        assert ({"stuck": 0} | waiting, {"stuck": 0} | running, incidents) == expected
        check_counts(work.driver.view)


def test_what_is_taken_back_is_not_counted(work: Work) -> None:
    work.submit("mail", 2)
    work.take("mail")
    counts = work.gauges
    new = NewJob("mail", b"null")
    asked = Activation(("mail",), "ann", 5, 30_000)
    step = work.driver.processor.step(
        [
            Submission(
                [
                    Command(ValueType.JOB, JobIntent.CREATE, 0, new),
                    Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, asked),
                ]
            )
        ],
        work.driver.now_ms,
    )
    assert work.gauges != counts
    work.driver.processor.abandon(step)
    assert work.gauges == counts
    check_counts(work.driver.view)


def write_without_counts(patch: pytest.MonkeyPatch, work: Work) -> None:
    """As a version does that knows no counts: the store keeps those that it has."""
    patch.setattr(Tally, "freeze", lambda _: Packed({}, bytes))
    patch.setattr(processor_module, "Progress", lambda *how, is_counted: Progress(*how))
    work.driver.write_state()


def test_a_state_of_an_earlier_version_is_counted_when_it_is_opened(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.submit("mail", 5)
    work.submit("stuck", retries=0)
    work.fail(*work.take("stuck"))
    with monkeypatch.context() as patch:
        write_without_counts(patch, work)
    work.driver.restart()
    check_counts(work.driver.view)
    assert work.gauges.waiting == {"mail": 5}
    assert work.gauges.incidents == {("NO_RETRIES_LEFT", "stuck"): 1}
    work.submit("mail")
    work.driver.write_state()
    work.driver.restart()
    assert work.gauges.waiting == {"mail": 6}


def test_an_earlier_version_between_two_of_today_leaves_no_wrong_counts(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.submit("mail", 2)
    work.submit("bill", 1)
    work.driver.write_state()
    work.complete(*work.take("mail", 2))
    with monkeypatch.context() as patch:
        write_without_counts(patch, work)
    work.driver.restart()
    assert work.gauges.waiting == {"bill": 1}
    work.driver.write_state()
    assert work.driver.dump() == work.driver.replayed().state.dump()


def test_a_count_that_cannot_be_read_is_damage() -> None:
    with pytest.raises(DataLoss, match="does not decode"):
        Tally(MemoryStore({b"\0\1\x5aa": b"\xc1"}), [], b"\0\1\x5a", is_valid=True)


def test_the_longest_wait_begins_when_a_worker_could_have_had_the_job(work: Work) -> None:
    work.submit("mail", due_ms=work.driver.now_ms + 60_000)
    assert work.gauges.oldest_seconds == {}
    work.driver.advance(60_000)
    work.driver.step()
    assert work.gauges.oldest_seconds == {"mail": 0.0}, "the delay is no wait"
    work.driver.advance(5_000)
    assert work.gauges.oldest_seconds == {"mail": 5.0}
    work.submit("mail", priority=9)
    assert work.gauges.oldest_seconds == {"mail": 5.0}, "the less urgent one waits longest"
    (urgent,) = work.take("mail")
    assert urgent.priority == 9
    (job,) = work.take("mail")
    assert work.gauges.oldest_seconds == {"mail": 0.0}
    work.fail(job)
    work.driver.advance(1_000)
    work.driver.step()
    work.driver.advance(250)
    assert work.gauges.oldest_seconds == {"mail": 0.25}, "the pause before a retry is no wait"


def test_a_job_that_is_given_back_or_retried_begins_to_wait_again(work: Work) -> None:
    work.submit("mail", retries=0)
    (job,) = work.take("mail")
    work.driver.advance(2_000)
    given_back = Command(
        ValueType.JOB_BATCH, JobBatchIntent.RELEASE, job.lease, JobList((job.key,))
    )
    work.driver.do(given_back)
    assert work.gauges.oldest_seconds == {"mail": 0.0}
    (job,) = work.take("mail")
    work.fail(job)
    work.driver.advance(3_000)
    (incident,) = [key for key, _ in work.driver.view.incidents.open.scan()]
    resolve = Command(ValueType.INCIDENT, IncidentIntent.RESOLVE, incident, Resolution(1))
    work.driver.do(resolve)
    work.driver.advance(500)
    assert work.gauges.oldest_seconds == {"mail": 0.5}


def test_waits_and_runs_are_measured(work: Work) -> None:
    work.submit("mail")
    work.driver.advance(4_000)
    work.submit("mail", 2)
    work.driver.advance(1_000)
    jobs = work.take("mail", 3)
    work.driver.advance(7_000)
    work.complete(*jobs[:2])
    assert work.effects(JobsReported) == [JobsReported("mail", 7_000, 5_000, completed=2)]
    work.driver.effects.clear()
    work.driver.advance(1_000)
    work.driver.write_state()
    work.driver.restart()
    work.fail(jobs[2])
    assert work.effects(JobsReported) == [JobsReported("mail", 8_000, 1_000, failed=1)]


def test_a_lease_that_runs_out_is_counted(work: Work) -> None:
    work.submit("mail", 2)
    work.take("mail", 2)
    work.driver.advance(31_000)
    assert work.effects(JobsReported) == [JobsReported("mail", 30_000, 0, expired=2)]
    assert work.gauges.waiting == {"mail": 2}


def test_the_longest_wait_is_told_of_jobs_of_any_priority(work: Work) -> None:
    for priority in (-PRIORITY_MAX, 0, PRIORITY_MAX):
        work.submit("mail", priority=priority)
        work.driver.advance(1_000)
    assert work.gauges.oldest_seconds == {"mail": 3.0}
