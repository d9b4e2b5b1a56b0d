"""The ten models, and the MIWG's that can be read, run to their ends by stand-in workers."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest
from bpmn_files import FILES, model
from test_bpmn_miwg import READ, SUITE, bytes_of

from holdfast import Process
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.values import InstanceIntent
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    JobCompletion,
    JobError,
)
from holdfast.limits import LEASE_MS_MAX
from holdfast.model.bpmn import read_bpmn
from holdfast.model.definition import Definition
from holdfast.records import RecordKind, ValueType, partition_of
from holdfast.testing import TestApp, app

USER_TASK = "io.camunda.zeebe:userTask"
START = datetime(2029, 12, 1, tzinfo=UTC)


DAYS_MAX = 40  # no model waits longer than that for anything
LONG = timedelta(days=DAYS_MAX)

_ENDINGS = (InstanceIntent.COMPLETED, InstanceIntent.CANCELED)


class Thrown(NamedTuple):
    """A worker that ends its job in an error."""

    code: str


class Never(NamedTuple):
    """A worker that takes its job and does not come back."""


Answer = dict[str, Any] | list[Any] | str | Thrown | Never


class Sent(NamedTuple):
    """A message that somebody sends before it is waited for."""

    name: str
    key: str = ""
    variables: Mapping[str, Any] = {}


class Story(NamedTuple):
    """One way through a model."""

    file: str
    way: str
    variables: Mapping[str, Any] = {}
    answers: Mapping[str, Answer] = {}
    sent: tuple[Sent, ...] = ()
    called: tuple[str, ...] = ()  # processes that the model calls: they end at once
    begins: str = "asked"  # or by a message of `sent`, or by "time"
    jobs: tuple[str, ...] = ()  # what the workers must have been asked for, each at least once


FILE = {"id": "f1", "latest": None}
EMPLOYEE = {
    "id": "e1", "name": "Ada", "contract": {}, "remote": True, "trainings": ["fire", "data"],
    "firstDay": "2029-12-10T09:00:00Z",
}  # fmt: skip
CLAIM = {"claim": {"kind": "water"}}
COVERED = {"policy": {"covers": ["water", "fire"]}}
INVOICE = {"invoice": {"supplier": {"email": "a@b.example"}}}
DOCUMENT = {"document": {"total": 800, "supplier": {"email": "a@b.example"}}}
LOAN = {"amount": 1200, "months": 12, "applicant": {"income": 5000}}
SUBSCRIPTION = {"subscription": {"renewsAt": "2029-12-05T00:00:00Z"}}
ORDER = {"order": {"items": [1], "total": 10, "customer": {"email": "a@b.example"}}}
RETRIES = {"retries": {"download": 2}}

STORIES = [
    Story(
        "document-collection", "received",
        {"file": FILE, "complete": True, "reached": True, "missing": []},
        sent=(
            Sent("document-received", "f1", {"document": "d", "complete": True}),
            Sent("receipt-confirmed", "f1"),
        ),
    ),
    Story(
        "document-collection", "the customer is called after two weeks",
        {"file": FILE, "complete": True, "reached": True, "missing": []},
        {USER_TASK: {"reached": False, "complete": False}},
        (Sent("receipt-confirmed", "f1"),),
    ),
    Story(
        "employee-onboarding", "a remote employee",
        {"employee": EMPLOYEE},
        sent=(Sent("contract-signed", "e1", {"signedAt": "2029-12-02"}),),
        called=("create-accounts", "ship-equipment", "training"),
        jobs=("send-contract", USER_TASK),
    ),
    Story(
        "employee-onboarding", "the offer is withdrawn",
        {"employee": EMPLOYEE},
        sent=(Sent("offer-withdrawn", "e1"),),
        jobs=("send-contract",),
    ),
    Story(
        "insurance-claim", "paid", sent=(Sent("claim-filed", "", CLAIM),), begins="claim-filed",
        answers={
            "policy-lookup": COVERED,
            "assess-damage": {"assessment": {"fraudScore": 0.1, "amount": 70}},
        },
        jobs=("pay-claim",),
    ),
    Story(
        "insurance-claim", "not covered", sent=(Sent("claim-filed", "", CLAIM),),
        begins="claim-filed", answers={"policy-lookup": {"policy": {"covers": []}}},
        jobs=("send-letter",),
    ),
    Story(
        "insurance-claim", "a fraud", sent=(Sent("claim-filed", "", CLAIM),),
        begins="claim-filed",
        answers={
            "policy-lookup": COVERED,
            "assess-damage": {"assessment": {"fraudScore": 0.9, "amount": 70}},
            USER_TASK: {"isFraud": True},
        },
        jobs=(USER_TASK,),
    ),
    Story(
        "insurance-claim", "the payment fails", sent=(Sent("claim-filed", "", CLAIM),),
        begins="claim-filed",
        answers={
            "policy-lookup": COVERED,
            "assess-damage": {"assessment": {"fraudScore": 0.1, "amount": 70}},
            "pay-claim": Thrown("ANYTHING"),
        },
        jobs=("pay-claim", USER_TASK),
    ),
    Story(
        "invoice-approval", "approved", sent=(Sent("invoice-received", "", INVOICE),),
        begins="invoice-received",
        answers={"read-invoice": DOCUMENT, USER_TASK: {"approved": True}},
        jobs=("schedule-payment",),
    ),
    Story(
        "invoice-approval", "escalated after reminders",
        sent=(Sent("invoice-received", "", INVOICE),), begins="invoice-received",
        answers={
            "read-invoice": DOCUMENT, "Activity_1ccg49b": Never(),
            "Activity_1rr8nw6": {"approved": True},
        },
        jobs=("send-email", "schedule-payment"),
    ),
    Story(
        "loan-application", "paid out", LOAN,
        {"credit-bureau": {"score": 800}, "assess-risk": {"risk": "low"}},
        jobs=("pay-out",),
    ),
    Story(
        "loan-application", "decided by a person", LOAN,
        {
            "credit-bureau": {"score": 500}, "assess-risk": {"risk": "low"},
            USER_TASK: {"approved": True},
        },
        jobs=(USER_TASK, "pay-out"),
    ),
    Story(
        "newsletter", "some bounce",
        answers={
            "load-subscribers": {"subscribers": [{"email": "a"}, {"email": "b"}]},
            "send-email": {"bounced": True}, "verify-address": {"dead": True},
        },
        jobs=("unsubscribe", "write-statistics"),
    ),
    Story(
        "nightly-import", "two files", RETRIES, begins="time",
        answers={
            "list-files": {"files": [{"name": "a"}, {"name": "b"}]}, "parse-rows": 7,
        },
        jobs=("write-rows", "refresh-warehouse"),
    ),
    Story(
        "nightly-import", "a file cannot be parsed", RETRIES, begins="time",
        answers={
            "list-files": {"files": [{"name": "a"}]}, "parse-rows": Thrown("PARSE_ERROR"),
            "quarantine": {"rows": 0},
        },
        jobs=("quarantine",),
    ),
    Story(
        "order-fulfilment", "shipped", ORDER,
        {
            "reserve-stock": {"reservation": 1, "missing": []},
            "book-carrier": {"trackingNumber": "t"},
        },
        jobs=("pick-and-pack", "send-email"),
    ),
    Story(
        "order-fulfilment", "the card is declined", ORDER,
        {"reserve-stock": {"missing": []}, "charge-card": Thrown("CARD_DECLINED")},
        jobs=("release-stock",),
    ),
    Story(
        "subscription-renewal", "renewed on request", begins="renewal-requested",
        sent=(Sent("renewal-requested", "", SUBSCRIPTION),),
        answers={"load-due": SUBSCRIPTION},
        jobs=("charge-card",),
    ),
    Story(
        "subscription-renewal", "renewed by the clock", begins="time",
        answers={"load-due": SUBSCRIPTION},
        jobs=("load-due", "charge-card"),
    ),
    Story(
        "subscription-renewal", "ended after reminders", begins="renewal-requested",
        sent=(Sent("renewal-requested", "", SUBSCRIPTION),),
        answers={
            "load-due": SUBSCRIPTION, "charge-card": Thrown("CARD_DECLINED"),
            USER_TASK: Never(),
        },
        jobs=("send-email", "end-subscription"),
    ),
    Story(
        "travel-booking", "booked", {"trip": {"id": "t1"}},
        {"search-flights": {"offers": [1]}},
        jobs=("reserve-seats", "book-hotel", "rent-car"),
    ),
    Story(
        "travel-booking", "no flight", {"trip": {"id": "t1"}},
        {"search-flights": {"offers": []}},
        jobs=("undo-bookings",),
    ),
    Story(
        "travel-booking", "cancelled meanwhile", {"trip": {"id": "t1"}},
        {"search-flights": {"offers": [1]}, "book-hotel": Never()},
        (Sent("trip-cancelled", "t1"),),
        jobs=("undo-bookings",),
    ),
]  # fmt: skip


class StandIns:
    """Does all that a process asks for; `answers` are by element or by job type."""

    def __init__(self, app: TestApp, definition: Definition, answers: Mapping[str, Answer]) -> None:
        self._app = app
        self._answers = answers
        self._types = sorted({each.job.type for each in definition.elements if each.job})
        self.done: list[str] = []  # the types of the jobs, in their order

    def run(self, instance_key: str) -> str:
        """Works, and lets days pass where there is nothing to do, until the instance ends.

        Returns how the journal says that it stands; the outcome of what nobody asked for, but a
        message or a timer started, is not kept.
        """
        for _ in range(DAYS_MAX):
            while self._work():
                pass
            if self._app.incidents():
                return f"INCIDENT {self._app.incidents()}"
            if instance_key not in self._running():
                return self._ending(int(instance_key))
            self._app.advance(timedelta(days=1))
        return f"STUCK {self._app.instance(instance_key).view().elements}"

    def _running(self) -> set[str]:
        return {each.process_instance_key for each in self._app.instances(limit=1_000)}

    def _ending(self, key: int) -> str:
        journal = self._app._node.journal
        wanted = (RecordKind.EVENT, ValueType.PROCESS_INSTANCE, key)
        for entry in journal.read_now(TOPIC, partition_of(key), 0, bytes_max=1 << 30):
            record = DISPATCH.codec.decode(entry.payload)
            found = (record.kind, record.value_type, record.key)
            if found == wanted and record.intent in _ENDINGS:
                return InstanceIntent(record.intent).name
        return "LOST"

    def _work(self) -> int:
        if not self._types:
            return 0
        request = ActivationRequest(self._types, "stand-in", 100, LEASE_MS_MAX)
        jobs = self._app.portal.call(self._app.api.jobs.activate(request))
        for job in jobs:
            self._answer(job)
        return len(jobs)

    def _answer(self, job: ActivatedJob) -> None:
        assert job.origin is not None
        self.done.append(job.type)
        answer = self._answers.get(job.origin.element_id, self._answers.get(job.type, {}))
        call, api = self._app.portal.call, self._app.api
        match answer:
            case Never():
                return
            case Thrown(code):
                outcomes = call(api.jobs.throw([JobError(job.job_key, job.lease, code)]))
            case _:
                result = msgspec.Raw(msgspec.json.encode(answer))
                outcomes = call(api.jobs.complete([JobCompletion(job.job_key, job.lease, result)]))
        assert [each.code for each in outcomes] == [None]


def test_every_model_has_a_story() -> None:
    assert {f"{story.file}.bpmn" for story in STORIES} == set(FILES)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: f"{story.file}: {story.way}")
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_model_runs_to_its_end(story: Story, partitions: int) -> None:
    definition = model(f"{story.file}.bpmn")
    with app(partitions=partitions, start_ms=_ms(START)) as work:
        key = _begin(work, story, definition)
        workers = StandIns(work, definition, story.answers)
        assert workers.run(key) == "COMPLETED"
        assert set(story.jobs) <= set(workers.done)


def test_a_cron_rule_of_a_start_event_has_its_seconds_first() -> None:
    with app(start_ms=_ms(START)) as work:
        work.deploy(model("subscription-renewal.bpmn"))  # at six every morning
        work.advance(timedelta(hours=6))
        assert len(work.instances("subscription-renewal")) == 1


def _begin(work: TestApp, story: Story, definition: Definition) -> str:
    """Deploys, starts and sends; returns the key of the instance."""
    work.deploy(definition, *(Process(each).end() for each in story.called))
    if story.begins == "asked":
        key = work.start(definition.id, story.variables).key
    for message in story.sent:
        work.publish(message.name, message.key, message.variables, ttl=LONG)
    if story.begins != "asked":
        for _ in range(DAYS_MAX if story.begins == "time" else 0):
            work.advance(timedelta(days=1))
            if work.instances(definition.id):
                break
        key = work.instances(definition.id)[0].process_instance_key
        work.instance(key).set_variables(story.variables)
    return key


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


@pytest.mark.skipif(not SUITE.is_dir(), reason=f"the MIWG models are not in {SUITE}")
@pytest.mark.parametrize("name", READ)
def test_a_model_of_the_miwg_runs_to_its_end(name: str) -> None:
    for definition in read_bpmn(bytes_of(name), drafts=True):
        with app(start_ms=_ms(START)) as work:
            work.deploy(definition)
            variables = {"documentReferenceId": "d1"}
            key = work.start(definition.id, variables).key
            workers = StandIns(work, definition, {})
            assert workers.run(key) == "COMPLETED"
