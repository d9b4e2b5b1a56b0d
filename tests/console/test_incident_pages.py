"""Incidents grouped by cause, from a group to a batch operation, and one incident."""

import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.console.pages.incidents import like_of
from holdfast.engine.batch.values import BatchOperationType
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.incidents import queries
from holdfast.engine.incidents.values import IncidentReason, cause_line
from holdfast.errors import InvalidArgument
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.rest.tables import FoundRows
from holdfast.gateway.tasks import incidents
from holdfast.gateway.tasks.causes import IncidentGroupQuery
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    IncidentQuery,
    JobFailure,
    NewTask,
)
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.pipeline.batch.sources import SOURCES
from holdfast.pipeline.select.filters import read_filter
from holdfast.pipeline.select.like import automaton_regex, pieces_of
from holdfast.pipeline.select.tree import Like

from .batch_site import BatchSite
from .test_batch_access import enter

_P, _R, _T = Permission, ResourceType, BatchOperationType


@pytest.fixture
def site() -> Iterator[BatchSite]:
    site = BatchSite()
    yield site
    site.close()


def fail(site: BatchSite, type_: str, *errors: str) -> None:
    """A task of a type for each error, which it ends with."""
    site.call(site.api.tasks.submit([NewTask(type_, retries=0) for _ in errors]))
    left = list(errors)
    while left:
        asked = ActivationRequest([type_], "worker", 1_000, 60_000)
        jobs = site.call(site.api.jobs.activate(asked))
        failed = [JobFailure(job.job_key, job.lease, left.pop()) for job in jobs]
        site.call(site.api.jobs.fail(failed))


def test_errors_that_differ_in_numbers_only_have_one_cause(site: BatchSite) -> None:
    trace = "Traceback (most recent call last):\n  File x\n"
    fail(site, "send", *(f"{trace}ValueError: order {1000 + each} is gone" for each in range(5)))
    fail(site, "send", "HTTP 503", "HTTP 503", "HTTP 404")
    found = site.call(site.api.incidents.groups(IncidentGroupQuery()))
    assert [(each.incidents, each.cause) for each in found.items] == [
        (5, "ValueError: order # is gone"),
        (2, "HTTP 503"),
        (1, "HTTP 404"),
    ]
    assert found.looked_at == 8 and found.is_whole and not found.others
    assert found.items[0].example.startswith("ValueError: order 100")
    assert site.call(site.api.incidents.groups(IncidentGroupQuery("mail"))).items == []


def test_groups_are_counted_over_many_looks_up_to_a_bound(
    site: BatchSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "INCIDENTS_COUNTED_MAX", 4)
    fail(site, "send", *["broken"] * 30, *["gone"] * 3)
    first, second = site.call(site.api.incidents.groups(IncidentGroupQuery())).items
    assert (first.incidents, second.incidents) == (30, 3)
    monkeypatch.setattr(incidents, "INCIDENTS_GROUPED_MAX", 9)
    found = site.call(site.api.incidents.groups(IncidentGroupQuery()))
    assert not found.is_whole and 9 <= found.looked_at < 33
    monkeypatch.setattr(incidents, "INCIDENTS_GROUPED_MAX", 1_000)
    monkeypatch.setattr(incidents, "INCIDENT_CAUSES_MAX", 1)
    found = site.call(site.api.incidents.groups(IncidentGroupQuery()))
    assert [each.incidents for each in found.items] == [33 - found.others]


def test_a_group_leads_to_its_incidents_and_to_a_batch_operation(site: BatchSite) -> None:
    site.api.show_tables(_NoIncidents())
    fail(site, "send", "order 1001 is gone", "order 1002 is gone", "no network")
    page = site.get("/console/incidents")
    assert page.has("2 send task no retries left order # is gone")
    [listed] = [each for each in page.links if "list?" in each and "gone" in each]
    rows = site.get(f"{listed}&from=state")
    assert rows.has("order 1001 is gone") and rows.has("order 1002 is gone")
    assert not rows.has("no network") and rows.has("2 shown")
    asked = [parse_qs(urlsplit(each).query) for each in page.links if "batches/new?" in each]
    first = {each["do"][0]: json.loads(each["filter"][0]) for each in asked[:2]}
    wanted = {"type": "send", "error": {"$like": "*order * is gone*"}}
    assert first == {"RETRY_TASK": wanted, "DISCARD_TASK": wanted}


def test_every_list_leads_to_batch_operations_whose_filters_the_tables_can_read(
    site: BatchSite,
) -> None:
    fail(site, "send", "order 1001 is gone")
    source = write_bpmn(Process("order").task("charge").definition()).decode()
    site.call(site.api.processes.deploy([Resource("o.bpmn", source)]))
    site.call(site.api.instances.start([NewProcessInstance("order")]))
    since = "since=2020-01-01T00:00&until=2040-01-01T00:00&from=state"
    expected = {
        "/console/incidents": {_T.RETRY_TASK, _T.DISCARD_TASK},
        f"/console/incidents/list?type=send&reason=NO_RETRIES_LEFT&{since}": {_T.RESOLVE_INCIDENT},
        f"/console/tasks?type=send&state=INCIDENT&error=gone&{since}": {
            _T.RETRY_TASK, _T.DISCARD_TASK,
        },
        f"/console/tasks?type=send&state=OPEN&{since}": {_T.RETRY_TASK, _T.DISCARD_TASK},
        f"/console/instances?process=order&version=1&state=ACTIVE&{since}": {
            _T.CANCEL_PROCESS_INSTANCE, _T.MIGRATE_PROCESS_INSTANCE, _T.MODIFY_PROCESS_INSTANCE,
        },
        "/console/instances?from=state": set[str](),  # a filter that fits all is none
    }  # fmt: skip
    for path, types in expected.items():
        links = [each for each in site.get(path).links if "batches/new?" in each]
        asked = [parse_qs(urlsplit(each).query) for each in links]
        assert {each["do"][0] for each in asked} == types, path
        for each in asked:
            table = SOURCES[BatchOperationType(each["do"][0])].table
            read_filter(table, json.loads(each["filter"][0]))


class _NoIncidents:
    """Tables that have nothing yet."""

    async def search(self, *_: object) -> FoundRows:
        return FoundRows([], 0, False)

    async def rows(self, *_: object) -> dict[int, dict[str, object]]:
        return {}

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    "error", ["order 4711 is gone", "100% of *all* [x] failed?", "C:\\temp\\7000", "#1 is 1000"]
)
def test_the_pattern_of_a_cause_fits_its_errors(error: str) -> None:
    pieces = pieces_of(like_of(cause_line(f"Traceback\n{error}")))
    assert pieces is not None
    assert re.fullmatch(automaton_regex(Like("error", pieces)), f"Traceback\n{error}\n")


def test_one_incident_is_shown_and_resolved(site: BatchSite) -> None:
    fail(site, "send", "Traceback\nno network")
    [link] = [
        each for each in site.get("/console/incidents").links
        if each.removeprefix("/console/incidents/").isdecimal()
    ]  # fmt: skip
    page = site.get(link)
    assert page.has("no network") and page.has("Stack trace")
    assert set(page.actions) == {f"{link}/resolve", f"{link}/discard"}
    assert site.post(f"{link}/resolve", retries="2").has("its work is tried again")
    page = site.get(link)
    assert page.has("resolved") and page.actions == []
    assert site.get("/console/incidents").has("Nothing is stuck")
    assert site.get("/console/incidents/list?state=RESOLVED&from=state").has("1 shown")


def test_a_cause_is_asked_of_open_incidents_only(site: BatchSite) -> None:
    query = IncidentQuery(state=None, cause="x", scope="ENDED")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="open incidents only"):
        site.call(site.api.incidents.page(query))
    found = IncidentQuery(reason=IncidentReason.SET_ASIDE)
    assert site.call(site.api.incidents.page(found)).items == []


def test_groups_have_only_what_the_visitor_may_see() -> None:
    site = BatchSite(authorization=True)
    try:
        site.call(site.api.let_first_in(lambda _: None))
        fail(site, "send", "broken")
        enter(site, "ann", (_R.TASK, _P.READ))
        page = site.get("/console/incidents")
        assert page.has("send task") and page.actions == []
        assert not [each for each in page.links if "batches/new" in each]
        [link] = [
            each for each in page.links if each.removeprefix("/console/incidents/").isdecimal()
        ]
        assert site.get(link).actions == []
        assert site.post(f"{link}/resolve").status == 403
        enter(site, "bob", (_R.PROCESS_DEFINITION, _P.READ_PROCESS_INSTANCE))
        assert site.get("/console/incidents").has("Nothing is stuck")
        assert site.get(link).status == 404
    finally:
        site.close()
