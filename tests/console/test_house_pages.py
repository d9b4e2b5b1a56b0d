"""The pages of the rest of the house: processes, messages, schedules, distributions, settings."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.gateway.distribution.dark_partitions import go_dark

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.identity import service
from holdfast.gateway.identity.shapes import NewGroup
from holdfast.gateway.processes.shapes import (
    MessageSubscriptionQuery,
    NewProcessInstance,
    Resource,
)
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, JobFailure
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process, path

from .batch_site import BatchSite
from .test_batch_access import enter

_P, _R = Permission, ResourceType
ORDER = Process("order", name="An order").wait("paid", message="payment", key="order").task("ship")
LATER = ORDER.task("mail")


def bpmn(process: Process) -> str:
    return write_bpmn(process.definition()).decode()


@pytest.fixture
def site() -> Iterator[BatchSite]:
    site = BatchSite()
    yield site
    site.close()


@pytest.fixture
def guarded() -> Iterator[BatchSite]:
    site = BatchSite(authorization=True)
    site.call(site.api.let_first_in(lambda _: None))
    yield site
    site.close()


def _deploy(site: BatchSite, process: Process) -> str:
    [found] = site.call(site.api.processes.deploy([Resource("o.bpmn", bpmn(process))]))
    return found.process_definition_key


# --- processes and messages -------------------------------------------------------------------


def test_a_process_is_deployed_drawn_and_started(site: BatchSite) -> None:
    assert site.get("/console/definitions").has("No process fits")
    page = site.post("/console/definitions/deploy", name="o.bpmn", content=bpmn(ORDER))
    assert page.status == 200 and page.has("Process order has version 1 now.")
    assert page.has("An order") and '<svg xmlns="' in page.source
    again = site.post("/console/definitions/deploy", content=bpmn(ORDER))
    assert again.has("Process order has version 1 with this content already.")
    page = site.post("/console/definitions/deploy", content=bpmn(LATER))
    assert page.has("has version 2 now") and page.has("Version 2")
    [first] = {each for each in page.links if each.startswith("/console/definitions/")} - {
        page.response.url.path
    }
    listed = site.get("/console/definitions")
    assert listed.has("1 shown of 1") and first not in listed.links
    assert site.get("/console/definitions?all=yes").has("2 shown of 2")
    started = site.post(f"{first}/start", variables='{"order": "A-1"}')
    assert started.has("The instance is started.") and started.has("order, version 1")
    assert site.get(first).has("1 token, 0 incidents")
    assert site.post(f"{first}/start", variables="[1]").status == 400
    assert site.post("/console/definitions/deploy", content="<no").status == 400
    assert site.get("/console/definitions/2251799813685999").status == 404


def test_who_waits_for_a_message_is_shown_until_it_is_published(site: BatchSite) -> None:
    _deploy(site, ORDER)
    instances = [
        NewProcessInstance("order", 0, b'{"order": "A-%d"}' % number)  # type: ignore[arg-type]
        for number in range(3)
    ]
    keys = [each.process_instance_key for each in site.call(site.api.instances.start(instances))]
    page = site.get("/console/messages")
    assert page.has("payment A-0 order") and all(each in page.text for each in keys)
    assert page.has("No message is kept.")
    one = site.get("/console/messages?correlation=A-1&name=payment")
    assert keys[1] in one.text and keys[0] not in one.text and "paid" in one.text
    done = site.post("/console/messages/publish", name="payment", correlation="A-1")
    assert done.has("was published")
    assert keys[1] not in done.text and keys[2] in done.text
    kept = site.post(
        "/console/messages/publish", name="payment", correlation="B-9", seconds="600", id="m-1"
    )
    assert kept.has("payment B-9 m-1") and kept.has("2 B")
    again = site.post(
        "/console/messages/publish", name="payment", correlation="B-9", seconds="600", id="m-1"
    )
    assert again.status == 409


def test_all_who_wait_are_listed_page_by_page(site: BatchSite) -> None:
    _deploy(site, ORDER)
    instances = [
        NewProcessInstance("order", 0, b'{"order": "A-%d"}' % number)  # type: ignore[arg-type]
        for number in range(20)
    ]
    started = site.call(site.api.instances.start(instances))
    seen: list[str] = []
    after: str | None = None
    while True:
        query = MessageSubscriptionQuery(limit=3, after=after)
        page = site.call(site.api.messages.subscriptions(query))
        seen += [each.process_instance_key for each in page.items]
        after = page.after
        if after is None:
            break
    assert sorted(seen) == sorted(each.process_instance_key for each in started)
    bad = site.browser.post("/v2/message-subscriptions/listing", json={"after": "9-x"})
    assert bad.status_code == 400


def test_a_reader_of_one_process_sees_who_of_it_waits(guarded: BatchSite) -> None:
    _deploy(guarded, ORDER)
    _deploy(guarded, Process("salary").wait("paid", message="payment", key="order"))
    for name in ("order", "salary"):
        new = NewProcessInstance(name, 0, b'{"order": "A"}')  # type: ignore[arg-type]
        guarded.call(guarded.api.instances.start([new]))
    enter(guarded, "ann", (_R.MESSAGE, _P.READ))
    page = guarded.get("/console/messages")
    assert "Who waits" not in page.text and page.has("Kept for those") and page.actions == []
    assert guarded.post("/console/messages/publish", name="payment").status == 403
    enter(guarded, "bob", (_R.PROCESS_DEFINITION, _P.READ_PROCESS_INSTANCE))
    page = guarded.get("/console/messages")
    assert page.has("salary") and "Kept for those" not in page.text


# --- schedules --------------------------------------------------------------------------------


def test_a_schedule_is_set_replaced_and_deleted(site: BatchSite) -> None:
    form = {"id": "nightly", "type": "clean", "catchUp": "one"}
    page = site.post("/console/schedules/put", **form, cron="0 3 * * *", payload='{"deep": true}')
    assert page.has('The schedule "nightly" is set.') and page.has("0 3 * * *")
    page = site.post("/console/schedules/put", **form, seconds="90")
    assert page.has("every 90 s") and not page.has("0 3 * * *")
    assert site.post("/console/schedules/put", **form, cron="no").status == 400
    assert site.post("/console/schedules/put", **form, seconds="9", payload="{").status == 400
    page = site.post("/console/schedules/delete", id="nightly")
    assert page.has("was deleted") and page.has("No schedule fits")


# --- distributions ----------------------------------------------------------------------------


def test_a_distribution_that_is_stuck_is_shown_and_given_up(
    site: BatchSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "DEPLOYMENT_WAIT_MS", 0)
    assert site.get("/console/distributions").has("every partition has everything")
    go_dark(monkeypatch, 2, 3)
    for name in ("ops", "dev"):
        site.call(site.api.identity.create_group(OwnerType.ROLE, NewGroup(name)))
    page = site.get("/console/distributions?target=2")
    first, second = [each for each in page.links if each.startswith("/console/distributions/")]
    assert page.has("ROLE CREATE") and page.has("identity")
    page = site.get(first)
    assert page.has("2 in flight 1") and page.has("3 in flight 1")
    assert site.get(second).has("waiting")
    assert site.post(f"{first}/skip", partition="2").status == 400  # nobody says why
    assert site.post(f"{first}/skip", partition="x", reason="?").status == 400
    assert site.post("/console/distributions/resume", partition="2").has("sent to partition 2")
    assert site.post(f"{first}/skip", partition="2", reason="gone").has("for partition 2")
    page = site.get(first)
    assert page.has("3 in flight") and not page.has("2 in flight 1")
    assert site.post(f"{first}/cancel", reason="gone").has("wherever it was pending")
    assert site.get(first).status == 404


# --- the drawing of a version -------------------------------------------------------------------


def _counted(site: BatchSite, key: str) -> dict[str, tuple[int, int]]:
    found = site.call(site.api.processes.elements(key))
    assert found.is_whole
    return {each.element_id: (each.tokens, each.incidents) for each in found.items}


def test_a_version_has_the_tokens_and_incidents_of_its_own_instances(site: BatchSite) -> None:
    inner = path().task("pick").task("pack")
    first = _deploy(site, Process("parcel").task("weigh").task("send"))
    later = _deploy(site, Process("parcel").task("weigh").sub("inside", inner).task("send"))
    for version, count in ((1, 3), (2, 4)):
        new = [NewProcessInstance("parcel", version) for _ in range(count)]
        site.call(site.api.instances.start(new))
    versions: dict[int, list[Any]] = {1: [], 2: []}
    while sum(map(len, versions.values())) < 7:
        asked = ActivationRequest(["weigh"], "worker", 7, 60_000)
        for each in site.call(site.api.jobs.activate(asked)):
            versions[each.origin.version].append(each)
    lost = [versions[1][0], *versions[2][:2]]
    failed = [JobFailure(each.job_key, each.lease, "broken", final=True) for each in lost]
    site.call(site.api.jobs.fail(failed))
    done = versions[2][2]
    site.call(site.api.jobs.complete([JobCompletion(done.job_key, done.lease)]))
    assert _counted(site, first) == {"weigh": (2, 1)}
    assert _counted(site, later) == {"weigh": (1, 2), "pick": (1, 0)}
    page = site.get(f"/console/definitions/{first}")
    assert page.has("2 tokens, 1 incident ") and page.has("of this version's instances")
    assert site.get(f"/console/definitions/{later}").has("2 tokens, 2 incidents")
    told = site.browser.get(f"/v2/process-definitions/{first}/elements").json()
    assert told["items"] == [{"elementId": "weigh", "tokens": 2, "incidents": 1}]
    assert site.browser.get("/v2/process-definitions/2251799813999999/elements").status_code == 404


def test_counts_of_a_version_are_for_those_who_may_see_its_instances(guarded: BatchSite) -> None:
    key = _deploy(guarded, Process("parcel").task("weigh"))
    guarded.call(guarded.api.instances.start([NewProcessInstance("parcel")]))
    enter(guarded, "ann", (_R.PROCESS_DEFINITION, _P.READ_PROCESS_DEFINITION))
    page = guarded.get(f"/console/definitions/{key}")
    assert page.status == 200 and not page.has("tokens")
    assert guarded.browser.get(f"/v2/process-definitions/{key}/elements").status_code == 403
    enter(guarded, "bob", (_R.PROCESS_DEFINITION, _P.READ_PROCESS_DEFINITION),
          (_R.PROCESS_DEFINITION, _P.READ_PROCESS_INSTANCE))  # fmt: skip
    assert guarded.get(f"/console/definitions/{key}").has("1 token, 0 incidents")


# --- settings ---------------------------------------------------------------------------------


def test_settings_are_shown_with_their_source_and_without_secrets() -> None:
    site = BatchSite(cluster="", snapshot_store="s3://KEY:SECRET@bucket/prefix")
    try:
        page = site.get("/console/settings")
        assert page.has("snapshot_store s3://***@bucket/prefix option")
        assert page.has("port 8080 default") and "SECRET" not in page.source
        changed = site.get("/console/settings?show=changed&name=s")
        assert changed.has("snapshot_store") and not changed.has("port 8080")
        told = site.browser.get("/v2/settings")
        assert "SECRET" not in told.text and told.json()["items"][0]["name"] == "partitions"
    finally:
        site.close()
