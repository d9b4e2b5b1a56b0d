"""Jobs driven at random against a dict model, with restarts from the log at any moment."""

from collections import Counter
from typing import Any

import pytest
from count_checks import check_counts
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from job_model import LEASE_EXPIRIES_MAX, PAUSE_MS, Known, Model, ModelJob, ModelLease
from partition_driver import Driver, counted

from holdfast.engine.incidents.values import IncidentIntent, JobIncident, Resolution
from holdfast.engine.jobs import commands as job_commands
from holdfast.engine.jobs.values import (
    Activation,
    Backoff,
    BackoffKind,
    Completion,
    Extension,
    Failure,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobRef,
    JobState,
    NewJob,
)
from holdfast.engine.kernel import Command, Reply
from holdfast.records import RecordKind, ValueType

WINDOW_MS = 20_000
KEEP_MS = 30_000
BACKOFF = Backoff(BackoffKind.FIXED, PAUSE_MS, PAUSE_MS, 0)
ENDINGS = {JobIntent.COMPLETED, JobIntent.CANCELED, JobIntent.DISCARDED}

types = st.sampled_from(["a", "b"])
new_jobs = st.builds(
    NewJob,
    type=types,
    payload=st.just(b"null"),
    priority=st.sampled_from([0, 0, 5, -5]),
    retries=st.integers(0, 2),
    backoff=st.just(BACKOFF),
    timeout_ms=st.sampled_from([0, 0, 3_000]),
    due_ms=st.sampled_from([0, 0, 500, 5_000]),
    idempotency_key=st.sampled_from(["", "", "k", "l"]),
    window_ms=st.just(WINDOW_MS),
    keep_ms=st.sampled_from([0, KEEP_MS]),
)


def code_of(reply: Reply) -> str | None:
    return None if reply.rejection is None else str(reply.rejection.code)


class Jobs(RuleBasedStateMachine):
    """The engine and the model, side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.model = Model()

    # --- helpers ------------------------------------------------------------------------------

    def settle(self) -> None:
        """The model catches up with the clock; incidents get the keys that the engine gave them."""
        for key in self.model.settle(self.driver.now_ms):
            self.learn_incident(key)

    def learn_incident(self, key: int) -> None:
        job = self.driver.view.jobs.jobs.get(key)
        assert job is not None and job.incident_key, "an incident was expected"
        self.model.jobs[key].incident = job.incident_key

    def do(self, value_type: ValueType, intent: Any, key: int, value: Any) -> Reply:
        return self.driver.do(Command(value_type, intent, key, value))

    def pick(self, data: st.DataObject, *states: JobState) -> ModelJob:
        return self.model.jobs[data.draw(st.sampled_from(self.model.in_state(*states)))]

    # --- submitting ---------------------------------------------------------------------------

    @rule(jobs=st.lists(new_jobs, min_size=1, max_size=4))
    def submit(self, jobs: list[NewJob]) -> None:
        now_ms = self.driver.now_ms
        jobs = [self.absolute(new, now_ms) for new in jobs]
        create = [Command(ValueType.JOB, JobIntent.CREATE, 0, new) for new in jobs]
        replies = self.driver.submit(*create)
        self.settle()
        for new, reply in zip(jobs, replies, strict=True):
            self.submitted(new, reply, now_ms)

    def absolute(self, new: NewJob, now_ms: int) -> NewJob:
        due_ms = now_ms + new.due_ms if new.due_ms else 0
        return NewJob(*[due_ms if name == "due_ms" else getattr(new, name)
                        for name in NewJob.__struct_fields__])  # fmt: skip

    def submitted(self, new: NewJob, reply: Reply, now_ms: int) -> None:
        known = self.model.keys.get(new.idempotency_key)
        if known is not None and known.must_be_known(now_ms):
            assert code_of(reply) == "ALREADY_EXISTS"
        if known is None or not known.may_be_known(now_ms):
            assert reply.rejection is None
        if reply.rejection is not None:
            assert known is not None and reply.key == known.job
            return
        assert reply.key not in self.model.jobs
        state = JobState.SCHEDULED if new.due_ms > now_ms else JobState.WAITING
        job = ModelJob(reply.key, new, state, new.retries, new.due_ms)
        self.model.jobs[reply.key] = job
        if new.idempotency_key:
            self.model.keys[new.idempotency_key] = Known(reply.key, now_ms, new.window_ms)

    # --- working ------------------------------------------------------------------------------

    @rule(
        asked=st.sampled_from([("a",), ("b",), ("a", "b"), ("b", "a")]),
        jobs_max=st.integers(1, 4),
        lease_ms=st.sampled_from([1_000, 4_000]),
    )
    def activate(self, asked: tuple[str, ...], jobs_max: int, lease_ms: int) -> None:
        self.driver.step()
        self.settle()
        expected = self.model.expected_activation(asked, jobs_max)
        value = Activation(asked, "worker", jobs_max, lease_ms)
        reply = self.do(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)
        if not expected:
            assert code_of(reply) == "NOT_FOUND"
            return
        assert [job.key for job in reply.value] == expected
        for got in reply.value:
            job = self.model.jobs[got.key]
            span = job.new.timeout_ms or lease_ms
            assert got.deadline_ms == self.driver.now_ms + span
            assert (got.retries, got.fixed) == (job.retries, job.new.timeout_ms > 0)
            job.state, job.lease = JobState.ACTIVE, got.lease
            self.model.leases[got.lease] = ModelLease(got.deadline_ms, got.fixed)

    @precondition(lambda self: self.model.open())
    @rule(data=st.data(), wrong_lease=st.sampled_from([False, False, True]))
    def complete(self, data: st.DataObject, wrong_lease: bool) -> None:
        job = self.model.jobs[data.draw(st.sampled_from(self.model.open()))]
        lease = 1 if wrong_lease else job.lease or 1
        value = Completion(lease, b"%d" % job.key)
        reply = self.do(ValueType.JOB, JobIntent.COMPLETE, job.key, value)
        self.settle()
        if job.lease != lease:
            assert code_of(reply) == "INVALID_STATE"
            return
        assert reply.rejection is None
        job.result = value.result
        job.end(JobState.COMPLETED, self.driver.now_ms)
        self.model.drop_empty_leases()

    @precondition(lambda self: self.model.in_state(JobState.ACTIVE))
    @rule(
        data=st.data(),
        final=st.sampled_from([False, False, False, True]),
        retry_after_ms=st.sampled_from([None, None, 0, 700]),
        retries=st.sampled_from([None, None, None, 0, 1, 3]),
    )
    def fail(
        self, data: st.DataObject, final: bool, retry_after_ms: int | None, retries: int | None
    ) -> None:
        job = self.pick(data, JobState.ACTIVE)
        lease = job.lease
        value = Failure(lease, "boom", final, retry_after_ms, retries)
        reply = self.do(ValueType.JOB, JobIntent.FAIL, job.key, value)
        self.settle()
        if job.lease != lease:
            assert code_of(reply) == "INVALID_STATE"
            return
        assert reply.rejection is None
        if retries is not None:
            job.retries = retries
        job.fail(self.driver.now_ms, final=final, retry_after_ms=retry_after_ms)
        if job.state == JobState.INCIDENT:
            self.learn_incident(job.key)
        self.model.drop_empty_leases()

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data(), span_ms=st.sampled_from([500, 6_000]))
    def extend(self, data: st.DataObject, span_ms: int) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.leases)))
        reply = self.do(ValueType.JOB_BATCH, JobBatchIntent.EXTEND, key, Extension(span_ms))
        self.settle()
        lease = self.model.leases.get(key)
        if lease is None:
            assert code_of(reply) == "NOT_FOUND"
        elif lease.fixed:
            assert code_of(reply) == "INVALID_STATE"
        else:
            assert reply.rejection is None
            lease.deadline_ms = self.driver.now_ms + span_ms

    @precondition(lambda self: self.model.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(sorted(self.model.leases)))
        given_back = data.draw(st.sets(st.sampled_from(sorted(self.model.jobs))))
        value = JobList(tuple(sorted(given_back)))
        reply = self.do(ValueType.JOB_BATCH, JobBatchIntent.RELEASE, lease, value)
        self.settle()
        held = given_back & set(self.model.held_under(lease))
        assert code_of(reply) == (None if held else "NOT_FOUND")
        for key in held:
            self.model.jobs[key].wait()
        self.model.drop_empty_leases()

    # --- deciding -----------------------------------------------------------------------------

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        job = self.model.jobs[data.draw(st.sampled_from(sorted(self.model.jobs)))]
        reply = self.do(ValueType.JOB, JobIntent.CANCEL, job.key, JobRef())
        self.settle()
        if job.ended:
            assert code_of(reply) == "NOT_FOUND"
            return
        assert reply.rejection is None
        job.end(JobState.CANCELED, self.driver.now_ms)
        self.model.drop_empty_leases()

    @precondition(lambda self: self.model.in_state(JobState.INCIDENT))
    @rule(data=st.data(), retries=st.sampled_from([None, 0, 2]))
    def decide_incident(self, data: st.DataObject, retries: int | None) -> None:
        job = self.pick(data, JobState.INCIDENT)
        incident = job.incident
        if retries is None:
            intent, value = IncidentIntent.DISCARD, JobIncident()
            job.end(JobState.DISCARDED, self.driver.now_ms)
        else:
            intent, value = IncidentIntent.RESOLVE, Resolution(retries)
            job.wait()
            job.retries, job.expiries = retries, 0
        assert self.do(ValueType.INCIDENT, intent, incident, value).rejection is None
        self.settle()
        again = self.do(ValueType.INCIDENT, intent, incident, value)
        assert code_of(again) == "NOT_FOUND", "an incident is decided once"

    # --- time and restarts --------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([1, 400, 1_000, 2_500, 7_000, 25_000]))
    def advance(self, milliseconds: int) -> None:
        self.driver.advance(milliseconds, self.settle)
        self.driver.step()
        self.settle()

    @rule(milliseconds=st.sampled_from([1_000, 7_000]), written=st.booleans())
    def stand_still(self, milliseconds: int, written: bool) -> None:
        """The node is down for a while: all that became due happens at once afterwards."""
        self.restart(with_store=True, written=written)
        self.driver.now_ms += milliseconds
        self.driver.step()
        self.settle()

    @rule(with_store=st.booleans(), written=st.booleans())
    def restart(self, with_store: bool, written: bool) -> None:
        if written:
            self.driver.write_state()
        before, progress = self.driver.dump(), counted(self.driver.processor)
        self.driver.restart(with_store=with_store)
        assert self.driver.dump() == before
        assert counted(self.driver.processor) == progress

    # --- what always holds --------------------------------------------------------------------

    @invariant()
    def engine_and_model_agree(self) -> None:
        jobs = self.driver.view.jobs
        for key, expected in self.model.jobs.items():
            job = jobs.jobs.get(key)
            if expected.ended:
                assert job is None
                self.check_outcome(expected)
                continue
            assert job is not None
            assert jobs.state_of(key, job) == expected.state
            assert (job.retries, job.failures) == (expected.retries, expected.failures)
            assert job.incident_key == expected.incident
            assert job.due_ms == (expected.due_ms if expected.state == JobState.SCHEDULED else 0)
        for type_ in ("a", "b"):
            waiting = [job.key for job in self.model.waiting(type_)]
            assert jobs.waiting.next(type_, 1_000) == waiting
        check_counts(self.driver.view)
        assert [key for key, _ in jobs.leases.scan()] == sorted(self.model.leases)
        incidents = [key for key, _ in self.driver.view.incidents.open.scan()]
        assert incidents == sorted(job.incident for job in self.model.jobs.values() if job.incident)

    def check_outcome(self, job: ModelJob) -> None:
        outcome = self.driver.view.jobs.outcome(job.key)
        if job.new.keep_ms and self.driver.now_ms < job.finished_ms + job.new.keep_ms:
            assert outcome is not None
        if outcome is not None:
            assert (outcome.state, outcome.result) == (job.state, job.result)
            assert outcome.finished_ms == job.finished_ms

    def teardown(self) -> None:
        """Everything ends and is forgotten: each job ended once, and no row is left anywhere."""
        for key in self.model.open():
            self.do(ValueType.JOB, JobIntent.CANCEL, key, JobRef())
        endings = Counter(
            record.key
            for record in self.driver.records()
            if record.kind == RecordKind.EVENT
            and record.value_type == ValueType.JOB
            and record.intent in ENDINGS
        )
        assert endings == dict.fromkeys(self.model.jobs, 1)
        assert self.driver.replayed().state.dump() == self.driver.dump()
        self.driver.advance(2 * (WINDOW_MS + KEEP_MS))
        assert self.driver.dump() == [], "rows are left over"
        self.driver.write_state()
        self.driver.restart()
        assert self.driver.dump() == []
        assert self.driver.processor.next_due_ms() is None


def run_model(monkeypatch: pytest.MonkeyPatch, examples: int, steps: int) -> None:
    monkeypatch.setattr(job_commands, "LEASE_EXPIRIES_MAX", LEASE_EXPIRIES_MAX)
    monkeypatch.setattr(job_commands, "PURGE_ROWS_MAX", 2)
    run_state_machine_as_test(
        Jobs,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_jobs_do_what_the_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    run_model(monkeypatch, examples=150, steps=40)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_jobs_do_what_the_model_does_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    run_model(monkeypatch, examples=3_000, steps=100)
