"""The public client searches tables that were made by hand; every answer is one of its models."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from camunda_orchestration_sdk import CamundaAsyncClient
from camunda_orchestration_sdk.models import (
    ElementInstanceSearchQuery,
    IncidentSearchQuery,
    JobSearchQuery,
    ProcessDefinitionSearchQuery,
    ProcessInstanceSearchQuery,
    VariableSearchQuery,
)
from rest_tables import BROKEN, DEFINITION, ENDED, INCIDENT, JOB, put_processes
from sdk import AT_ONCE, served
from tests.pipeline.select_tables import BASE, START_MS, Tables

from holdfast.engine.jobs.values import JobState
from holdfast.pipeline.schema import ELEMENT_INSTANCES, JOBS, PROCESS_INSTANCES
from holdfast.pipeline.search.serving import FolderTables


def tell(root: Path, story: Callable[[CamundaAsyncClient, str], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served() as (client, gateway, url):
            gateway.tables = FolderTables(root)
            await story(client, url)
            gateway.tables.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("rest") / "tables"
    put_processes(Tables(root))
    return root


def test_instances_are_found_by_what_the_api_calls_their_columns(root: Path) -> None:
    async def story(client: CamundaAsyncClient, _: str) -> None:
        async def found(filter: dict[str, Any], **more: Any) -> list[int]:
            query = ProcessInstanceSearchQuery.from_dict({"filter": filter, **more})
            answer = await client.search_process_instances(data=query, consistency=AT_ONCE)
            assert answer.page.total_items >= len(answer.items)
            return [int(each.process_instance_key) for each in answer.items]

        assert await found({}) == [BROKEN, ENDED], "what was deleted is not shown"
        assert await found({"state": "TERMINATED"}) == [ENDED]
        assert await found({"state": {"$neq": "TERMINATED"}}) == [BROKEN]
        assert await found({"state": "SUSPENDED"}) == []
        assert await found({"hasIncident": True}) == [BROKEN]
        assert await found({"processDefinitionId": {"$like": "ord*"}, "tenantId": "other"}) == []
        either = [{"state": "TERMINATED"}, {"hasIncident": True}]
        assert await found({"tenantId": "<default>", "$or": either}) == [BROKEN, ENDED]
        newest = [{"field": "processInstanceKey", "order": "DESC"}]
        assert await found({}, sort=newest) == [ENDED, BROKEN]

        ended = await client.get_process_instance(str(ENDED), consistency=AT_ONCE)
        assert (ended.state, ended.process_definition_id) == ("TERMINATED", "order")
        assert ended.end_date is not None and ended.end_date > ended.start_date

    tell(root, story)


def test_conditions_on_the_same_column_all_hold(root: Path) -> None:
    async def story(client: CamundaAsyncClient, _: str) -> None:
        async def found(filter: dict[str, Any]) -> list[int]:
            query = ProcessInstanceSearchQuery.from_dict({"filter": filter})
            answer = await client.search_process_instances(data=query, consistency=AT_ONCE)
            return [int(each.process_instance_key) for each in answer.items]

        there = {"processInstanceKey": {"$exists": True}}
        assert await found(there) == [BROKEN, ENDED]
        for both in ({"tenantId": "other"} | there, there | {"tenantId": "other"}):
            assert await found(both) == []
        either = [{"processInstanceKey": str(ENDED)}, {"state": "ACTIVE"}]
        assert await found({"$or": either, "tenantId": "other"} | there) == []
        other = IncidentSearchQuery.from_dict({"filter": {"processInstanceKey": str(ENDED)}})
        answer = await client.search_process_instance_incidents(
            str(BROKEN), data=other, consistency=AT_ONCE
        )
        assert answer.items == [], "it is the path's instance, and the filter's"

    tell(root, story)


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ({"$like": "TERM*"}, 1), ({"$like": "*E*"}, 2), ({"$like": "ACTIV?"}, 1),
        ({"$like": "\\*"}, 0), ({"$like": "*", "$neq": "ACTIVE"}, 1), ({"$exists": False}, 0),
    ],
)  # fmt: skip
def test_words_are_found_by_patterns_too(root: Path, asked: dict[str, Any], count: int) -> None:
    async def story(client: CamundaAsyncClient, _: str) -> None:
        query = ProcessInstanceSearchQuery.from_dict({"filter": {"state": asked}})
        answer = await client.search_process_instances(data=query, consistency=AT_ONCE)
        assert len(answer.items) == count

    tell(root, story)


def test_an_instance_knows_who_called_it(tmp_path: Path) -> None:
    top, middle, low, calls = BASE + 1, BASE + 2, BASE + 3, (BASE + 11, BASE + 12)
    tables = Tables(tmp_path)
    of = {"process_definition_key": DEFINITION, "process_id": "order", "version": 1}
    of |= {"state": "COMPLETED", "started": START_MS, "ended": START_MS, "incidents": 0}
    tables.put(PROCESS_INSTANCES, 1, {
        top: of,
        middle: of | {"parent_element_instance_key": calls[0]},
        low: of | {"parent_element_instance_key": calls[1]},
    })  # fmt: skip
    called = {"type": "CALL", "state": "COMPLETED", "element_id": "sub"}
    tables.put(ELEMENT_INSTANCES, 1, {
        calls[0]: called | {"process_instance_key": top},
        calls[1]: called | {"process_instance_key": middle},
    })  # fmt: skip
    tables.publish({1: 10})

    async def story(client: CamundaAsyncClient, _: str) -> None:
        async def found(filter: dict[str, Any]) -> list[Any]:
            query = ProcessInstanceSearchQuery.from_dict({"filter": filter})
            return (await client.search_process_instances(data=query, consistency=AT_ONCE)).items

        first, second, third = await found({})
        assert (first.parent_process_instance_key, first.parent_element_instance_key) == (None,) * 2
        assert second.parent_process_instance_key == str(top)
        assert third.parent_process_instance_key == str(middle)
        assert third.parent_element_instance_key == str(calls[1])
        assert {each.root_process_instance_key for each in (first, second, third)} == {str(top)}
        assert await found({"parentProcessInstanceKey": str(middle)}) == [third]
        assert await found({"parentProcessInstanceKey": str(low)}) == []
        assert await found({"parentElementInstanceKey": str(calls[0])}) == [second]
        again = await client.get_process_instance(str(low), consistency=AT_ONCE)
        assert again == third

    tell(tmp_path, story)


def test_pages_are_turned_by_cursors_that_the_api_allows(root: Path) -> None:
    async def story(client: CamundaAsyncClient, _: str) -> None:
        seen: list[int] = []
        page: dict[str, Any] = {"limit": 1}
        for _ in range(2):
            query = ProcessInstanceSearchQuery.from_dict({"page": page})
            answer = await client.search_process_instances(data=query, consistency=AT_ONCE)
            seen += [int(each.process_instance_key) for each in answer.items]
            assert (answer.page.total_items, answer.page.has_more_total_items) == (2, False)
            page = {"limit": 1, "after": answer.page.end_cursor}
        assert seen == [BROKEN, ENDED]

    tell(root, story)


def test_every_resource_is_answered_in_the_clients_models(root: Path) -> None:
    async def story(client: CamundaAsyncClient, _: str) -> None:
        [definition] = (
            await client.search_process_definitions(
                data=ProcessDefinitionSearchQuery.from_dict({"filter": {"name": "An order"}}),
                consistency=AT_ONCE,
            )
        ).items
        assert (int(definition.process_definition_key), definition.version) == (DEFINITION, 1)
        latest = ProcessDefinitionSearchQuery.from_dict({"filter": {"isLatestVersion": True}})
        found = await client.search_process_definitions(data=latest, consistency=AT_ONCE)
        assert found.items == [], "the node itself says which are the latest: it has none"
        [element] = (
            await client.search_element_instances(
                data=ElementInstanceSearchQuery.from_dict(
                    {"filter": {"type": "SERVICE_TASK", "hasIncident": True}}
                ),
                consistency=AT_ONCE,
            )
        ).items
        assert (element.element_name, int(element.incident_key or 0)) == ("charge", INCIDENT)
        [job] = (
            await client.search_jobs(
                data=JobSearchQuery.from_dict({"filter": {"state": "FAILED"}}),
                consistency=AT_ONCE,
            )
        ).items
        assert (int(job.job_key), job.element_id, job.retries) == (JOB, "charge", 0)
        assert int(job.process_definition_key or 0) == DEFINITION
        [incident] = (
            await client.search_incidents(
                data=IncidentSearchQuery.from_dict({"filter": {"errorType": "JOB_NO_RETRIES"}}),
                consistency=AT_ONCE,
            )
        ).items
        assert (int(incident.incident_key), incident.state) == (INCIDENT, "ACTIVE")
        assert int(incident.process_definition_key) == DEFINITION
        again = await client.get_incident(str(INCIDENT), consistency=AT_ONCE)
        assert again.error_message == "no"
        query = VariableSearchQuery.from_dict({"filter": {"name": "total"}})
        [variable] = (await client.search_variables(data=query, consistency=AT_ONCE)).items
        assert (variable.value, int(variable.scope_key)) == ("7", BROKEN)
        same = await client.get_variable(variable.variable_key, consistency=AT_ONCE)
        assert (same.name, same.value) == ("total", "7")

    tell(root, story)


def test_a_job_in_any_state_is_found_by_the_name_that_the_api_has_for_it(tmp_path: Path) -> None:
    root = tmp_path / "tables"
    tables = Tables(root)
    of = {"type": "charge", "process_instance_key": BROKEN, "element_instance_key": BASE + 11}
    states = dict(enumerate(JobState, BASE + 100))
    rows = {key: of | {"state": state, "created": START_MS} for key, state in states.items()}
    tables.put(JOBS, 1, rows)
    tables.publish({1: 10})

    async def story(client: CamundaAsyncClient, _: str) -> None:
        async def found(**filter: str) -> dict[int, str]:
            query = JobSearchQuery.from_dict({"filter": filter})
            answer = await client.search_jobs(data=query, consistency=AT_ONCE)
            return {int(each.job_key): str(each.state) for each in answer.items}

        named = await found()
        assert named.keys() == states.keys()
        for key, state in states.items():
            assert key in await found(state=named[key]), state
        [thrown] = await found(state="ERROR_THROWN")
        assert states[thrown] is JobState.ERROR_THROWN

    tell(root, story)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("process-instances/search", {"filter": {"colour": "red"}}, "colour"),
        ("process-instances/search", {"filter": {"state": "GREEN"}}, "state"),
        ("process-instances/search", {"filter": {"hasIncident": "yes"}}, "hasIncident"),
        ("process-instances/search", {"filter": {"state": {"$in": "ACTIVE"}}}, "state"),
        ("process-instances/search", {"filter": {"tenantId": {"$in": ""}}}, "tenantId"),
        ("process-instances/search", {"filter": {"$or": [{"state": {}}]}}, "state"),
        ("process-instances/search", {"sort": [{"field": "colour"}]}, "sort"),
        ("process-instances/search", {"page": {"limit": -1}}, "limit"),
        ("process-instances/search", {"page": {"after": "?"}}, "after"),
        ("process-instances/search", {"colour": 1}, None),
        ("incidents/search", {"filter": {"incidentKey": "x"}}, "incidentKey"),
        ("jobs/search", {"filter": {"$or": 7}}, "$or"),
        ("process-definitions/search", {"filter": {"isLatestVersion": "x"}}, "isLatestVersion"),
        ("process-instances", {}, "processDefinitionId"),
        ("process-instances", {"processDefinitionId": "a", "tags": ["b"]}, "tags"),
        ("process-instances", {"processDefinitionId": "a", "tenantId": "b"}, "tenantId"),
        ("process-instances", {"processDefinitionId": "a", "variables": [1]}, "variables"),
        ("jobs/x/completion", {}, None),
        ("messages/publication", {"name": "a", "businessId": "b"}, "businessId"),
    ],
)
def test_what_is_wrong_is_refused_with_the_fields_name(
    root: Path, path: str, body: dict[str, Any], field: str | None
) -> None:
    async def story(_: CamundaAsyncClient, url: str) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v2/{path}", json=body) as reply,
        ):
            problem = await reply.json(content_type="application/problem+json")
        assert (reply.status, problem["code"]) == (400, "INVALID_ARGUMENT"), problem
        if field is not None:
            assert problem["fields"]["field"] == field, problem

    tell(root, story)


def test_without_tables_a_search_says_how_to_get_them(tmp_path: Path) -> None:
    async def story(_: CamundaAsyncClient, url: str) -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v2/process-instances/search") as reply,
        ):
            problem = await reply.json(content_type="application/problem+json")
        assert reply.status == 503 and "holdfast start --pipeline" in problem["detail"]

    tell(tmp_path / "none", story)


def test_a_web_page_does_not_deploy(root: Path) -> None:
    async def story(_: CamundaAsyncClient, url: str) -> None:
        form = aiohttp.FormData()
        form.add_field("resources", b"<a/>", filename="a.bpmn")
        headers = {"origin": "https://elsewhere"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v2/deployments", data=form, headers=headers) as reply,
        ):
            assert reply.status == 403

    tell(root, story)
