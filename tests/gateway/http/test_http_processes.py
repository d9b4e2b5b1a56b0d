"""Processes over plain HTTP, as a program in any language asks a real node in memory."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from tests.gateway.fake_api import Reply, ask_in

from holdfast.gateway.http import HttpServer
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process, error, path
from holdfast.testing import MemoryNode

ORDER = (
    Process("order", name="An order")
    .task("charge", retries=0, headers={"currency": "EUR"}, on=[error("DECLINED", path().end())])
    .wait("paid", message="payment", key="orderId")
)
UNKNOWN = "2251799813999999"
UNSUPPORTED = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
  <process id="p" isExecutable="true">
    <startEvent id="start" />
    <transaction id="buy" />
  </process>
</definitions>
"""


class Client:
    """One HTTP session with a node."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def ask(self, method: str, path: str, body: Any = None) -> Reply:
        options = {} if body is None else {"json": body}
        return await ask_in(self._session, self._url, method, path, **options)

    async def good(self, method: str, path: str, body: Any = None) -> Any:
        """The answer's JSON; None where it has none."""
        reply = await self.ask(method, path, body)
        assert reply.status in (200, 204), reply.content
        return reply.json() if reply.status == 200 else None

    async def bad(self, method: str, path: str, body: Any, status: int) -> dict[str, Any]:
        """The problem that is answered."""
        reply = await self.ask(method, path, body)
        assert reply.status == status, reply.content
        assert reply.headers["content-type"] == "application/problem+json"
        problem = reply.json()
        assert problem["status"] == status and problem["detail"]
        return problem

    async def deploy(self, process: Process) -> dict[str, Any]:
        resource = {"name": f"{process.id}.bpmn", "content": bpmn(process)}
        answer = await self.good("POST", "/v2/deployments", {"resources": [resource]})
        return answer["items"][0]

    async def start(self, process_id: str = "order", **more: Any) -> str:
        body = {"processId": process_id, "variables": {"orderId": "42"}} | more
        answer = await self.good("POST", "/v2/process-instances/batch", {"instances": [body]})
        return answer["instances"][0]["processInstanceKey"]

    async def show(self, key: str) -> dict[str, Any]:
        return await self.good("GET", f"/v2/process-instances/{key}/details")

    async def activate(self) -> dict[str, Any]:
        [job] = (await self.good("POST", "/v2/jobs/leases", {"types": ["charge"]}))["jobs"]
        return job


def bpmn(process: Process) -> str:
    return write_bpmn(process.definition()).decode()


def talk(story: Callable[[Client], Awaitable[None]]) -> None:
    """Tells a story to a node of two partitions."""

    async def run() -> None:
        node = await MemoryNode(partitions=2).start()
        server = HttpServer(node.gateway)
        await server.start()
        try:
            async with aiohttp.ClientSession() as session:
                await story(Client(session, server.url))
        finally:
            await server.close()
            await node.close()

    asyncio.run(run())


def test_definitions_are_deployed_listed_and_given_back_as_they_came() -> None:
    async def story(client: Client) -> None:
        first = await client.deploy(ORDER)
        assert (first["processId"], first["version"], first["created"]) == ("order", 1, True)
        assert first["name"] == "An order"
        again = await client.deploy(ORDER)
        assert again["created"] is False
        assert again["processDefinitionKey"] == first["processDefinitionKey"]
        second = await client.deploy(ORDER.task("ship"))
        assert second["version"] == 2

        search = "/v2/process-definitions/listing"
        listed = (await client.good("POST", search, {"processId": "order"}))["items"]
        assert [each["version"] for each in listed] == [1, 2]
        latest = (await client.good("POST", search, {"latest": True}))["items"]
        assert [each["version"] for each in latest] == [2]
        key = first["processDefinitionKey"]
        source = await client.good("GET", f"/v2/process-definitions/{key}/source")
        assert source["content"] == bpmn(ORDER)

    talk(story)


def test_an_instance_runs_from_start_to_end() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        key = await client.start(key="order-42")
        same = {"instances": [{"processId": "order", "key": "order-42"}]}
        [again] = (await client.good("POST", "/v2/process-instances/batch", same))["instances"]
        assert again == {"processInstanceKey": key, "created": False}

        running = await client.show(key)
        [element] = running["elements"]
        assert (element["elementId"], element["kind"], element["state"]) == (
            "charge", "JOB", "ACTIVE",
        )  # fmt: skip
        job = await client.activate()
        assert job["payload"] == {"orderId": "42"}
        assert job["origin"]["headers"] == {"currency": "EUR"}
        assert job["origin"]["processInstanceKey"] == key
        done = {"jobKey": job["jobKey"], "lease": job["lease"], "result": {"receipt": 7}}
        assert (await client.good("POST", "/v2/jobs/completion", {"jobs": [done]}))["answers"] == [
            {"key": job["jobKey"], "code": None, "message": None}
        ]
        [waiting] = (await client.show(key))["elements"]
        assert waiting["waitsFor"] == ["message 'payment' for '42'"]
        message = {"name": "payment", "correlationKey": "42", "variables": {"paid": True}}
        assert (await client.good("POST", "/v2/messages/publication", message))["messageKey"]
        query = {"taskKeys": [key], "waitMs": 5_000}
        [outcome] = (await client.good("POST", "/v2/tasks/results", query))["tasks"]
        assert outcome["result"] == {"orderId": "42", "receipt": 7, "paid": True}
        ended = await client.show(key)
        assert ended["state"] == "COMPLETED"
        for field in ("version", "processDefinitionKey", "created"):
            assert ended[field] == running[field], field

    talk(story)


def test_many_are_started_and_listed_in_pages() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        body = {"instances": [{"processId": "order", "variables": {"n": n}} for n in range(5)]}
        receipts = (await client.good("POST", "/v2/process-instances/batch", body))["instances"]
        keys = [each["processInstanceKey"] for each in receipts]
        search = "/v2/process-instances/listing"
        first = await client.good("POST", search, {"processId": "order", "limit": 3})
        rest = await client.good("POST", search, {"after": first["after"]})
        found = [each["processInstanceKey"] for each in first["items"] + rest["items"]]
        assert sorted(found) == sorted(keys)
        assert (await client.good("POST", search, {"version": 2}))["items"] == []

    talk(story)


def test_an_error_goes_to_its_boundary() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        key = await client.start()
        job = await client.activate()
        thrown = {
            "jobKey": job["jobKey"], "lease": job["lease"], "code": "DECLINED",
            "variables": {"why": "no cover"},
        }  # fmt: skip
        [answer] = (await client.good("POST", "/v2/jobs/error", {"jobs": [thrown]}))["answers"]
        assert answer["code"] is None
        view = await client.show(key)
        assert (view["state"], view["variables"]["why"]) == ("COMPLETED", "no cover")
        [late] = (await client.good("POST", "/v2/jobs/error", {"jobs": [thrown]}))["answers"]
        assert late["code"] == "NOT_FOUND"

    talk(story)


def test_an_incident_names_its_element_and_is_resolved() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        key, other = await client.start(), await client.start()
        job = await client.activate()
        await client.good("POST", f"/v2/jobs/{job['jobKey']}/retries", {"retries": 0})
        failure = {"jobKey": job["jobKey"], "lease": job["lease"], "error": "the bank is closed"}
        await client.good("POST", "/v2/jobs/failure", {"jobs": [failure]})
        broken = job["origin"]["processInstanceKey"]
        assert broken in (key, other)

        query = {"processId": "order", "processInstanceKey": broken}
        [incident] = (await client.good("POST", "/v2/incidents/listing", query))["items"]
        assert incident["elementId"] == "charge"
        assert incident["error"] == "the bank is closed"
        search = ("POST", "/v2/process-instances/listing", {"withIncidents": True})
        [listed] = (await client.good(*search))["items"]
        assert (listed["processInstanceKey"], listed["incidents"]) == (broken, 1)
        refused = await client.bad(
            "POST", f"/v2/incidents/{incident['incidentKey']}/discard", None, 409
        )
        assert "modify or cancel the instance" in refused["detail"]
        await client.good("POST", f"/v2/incidents/{incident['incidentKey']}/resolution", {})
        assert (await client.good(*search))["items"] == []

    talk(story)


def test_an_instance_is_changed_and_cancelled() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        key = await client.start()
        here = f"/v2/process-instances/{key}"
        variables = {"variables": {"total": 7}}
        await client.good("PUT", f"/v2/element-instances/{key}/variables", variables)
        move = {"move": [{"sourceId": "charge", "targetId": "paid"}]}
        await client.good("POST", f"{here}/tokens", move)
        view = await client.show(key)
        assert view["variables"]["total"] == 7
        assert [each["elementId"] for each in view["elements"]] == ["paid"]

        new = await client.deploy(ORDER.task("ship"))
        target = {
            "targetProcessDefinitionKey": new["processDefinitionKey"],
            "mappingInstructions": [{"sourceElementId": "paid", "targetElementId": "paid"}],
        }
        await client.good("POST", f"{here}/migration", target)
        assert (await client.show(key))["version"] == 2
        await client.good("POST", f"{here}/cancellation")
        ended = await client.show(key)
        assert (ended["state"], ended["version"]) == ("CANCELED", 2)
        assert ended["processDefinitionKey"] == new["processDefinitionKey"]
        await client.bad("POST", f"{here}/cancellation", None, 404)

    talk(story)


def test_an_instance_is_migrated_to_another_process_and_found_there() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        sale = await client.deploy(Process("sale").task("charge").task("ship"))
        key = await client.start(key="order-42")
        target = {
            "targetProcessDefinitionKey": sale["processDefinitionKey"],
            "mappingInstructions": [{"sourceElementId": "charge", "targetElementId": "charge"}],
        }
        await client.good("POST", f"/v2/process-instances/{key}/migration", target)
        view = await client.show(key)
        assert (view["processId"], view["version"]) == ("sale", 1)
        listing = "/v2/process-instances/listing"
        found = (await client.good("POST", listing, {"processId": "sale"}))["items"]
        assert [each["processInstanceKey"] for each in found] == [key]
        assert (await client.good("POST", listing, {"processId": "order"}))["items"] == []
        assert await client.start(key="order-42") == key, "its key was given for the first process"
        job = await client.activate()
        assert job["origin"]["processId"] == "sale"

    talk(story)


# --- what is wrong ----------------------------------------------------------------------------


def test_an_element_that_does_not_run_here_is_named_with_its_line_and_nothing_is_deployed() -> None:
    async def story(client: Client) -> None:
        resources = [
            {"name": "good.bpmn", "content": bpmn(ORDER)},
            {"name": "bad.bpmn", "content": UNSUPPORTED},
        ]
        problem = await client.bad("POST", "/v2/deployments", {"resources": resources}, 400)
        assert problem["detail"].startswith("bad.bpmn: Expected ")
        assert "line 4 has <transaction> 'buy'" in problem["detail"]
        assert problem["fields"] == {"element": "buy", "line": 4, "resource": "bad.bpmn"}
        found = await client.good("POST", "/v2/process-definitions/listing", {})
        assert found["items"] == []

    talk(story)


def test_a_timer_that_only_the_engine_can_refuse_deploys_none_of_the_files() -> None:
    async def story(client: Client) -> None:
        wrong = Process("nightly").starts(every="99 99 * * *", id="night").task("run")
        resources = [
            {"name": "good.bpmn", "content": bpmn(ORDER)},
            {"name": "bad.bpmn", "content": bpmn(wrong)},
        ]
        problem = await client.bad("POST", "/v2/deployments", {"resources": resources}, 400)
        assert problem["detail"].startswith("bad.bpmn: The timer of 'night'")
        assert problem["fields"] == {"element": "night", "resource": "bad.bpmn"}
        found = await client.good("POST", "/v2/process-definitions/listing", {})
        assert found["items"] == []

    talk(story)


ASKING = """<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"
  xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
  <process id="p" isExecutable="true">
    <startEvent id="start" />
    <serviceTask id="buy" operationRef="purchase">
      <extensionElements><zeebe:properties /></extensionElements>
    </serviceTask>
    <sequenceFlow id="flow" sourceRef="start" targetRef="buy" />
  </process>
</definitions>
"""
LISTENERS = "<extensionElements><zeebe:executionListeners /></extensionElements></sequenceFlow>"


def test_what_a_file_asks_for_and_does_not_get_is_in_the_answer_to_its_deployment() -> None:
    async def story(client: Client) -> None:
        resources = [
            {"name": "asking.bpmn", "content": ASKING},
            {"name": "order.bpmn", "content": bpmn(ORDER)},
        ]
        for created in (True, False):
            answer = await client.good("POST", "/v2/deployments", {"resources": resources})
            asking, order = answer["items"]
            assert asking["created"] is created
            assert [
                (part["element"], part["line"], part["what"]) for part in asking["ignored"]
            ] == [
                ("buy", 5, "operationRef='purchase' of <serviceTask>"),
                ("buy", 6, "<zeebe:properties>"),
            ]
            assert all(part["why"] for part in asking["ignored"])
            assert order["ignored"] == []

    talk(story)


def test_listeners_of_a_flow_are_refused_by_their_line() -> None:
    async def story(client: Client) -> None:
        content = ASKING.replace('targetRef="buy" />', f'targetRef="buy">{LISTENERS}')
        resources = [{"name": "asking.bpmn", "content": content}]
        problem = await client.bad("POST", "/v2/deployments", {"resources": resources}, 400)
        assert "line 8 has <zeebe:executionListeners> in 'flow'" in problem["detail"]

    talk(story)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "bytes of x.bpmn"),
        ("no xml", "x.bpmn: "),
        ("<a/>", "x.bpmn: "),
        (UNSUPPORTED.replace(' isExecutable="true"', ""), "isExecutable"),
    ],
)
def test_a_file_that_is_no_process_is_refused(content: str, found: str) -> None:
    async def story(client: Client) -> None:
        body = {"resources": [{"name": "x.bpmn", "content": content}]}
        assert found in (await client.bad("POST", "/v2/deployments", body, 400))["detail"]

    talk(story)


def test_what_is_not_there_is_not_found() -> None:
    async def story(client: Client) -> None:
        here = f"/v2/process-instances/{UNKNOWN}"
        definition = {"targetProcessDefinitionKey": UNKNOWN}
        asked: list[tuple[str, str, Any]] = [
            ("GET", f"/v2/process-definitions/{UNKNOWN}/source", None),
            ("GET", f"{here}/details", None),
            ("POST", f"{here}/cancellation", None),
            ("POST", f"{here}/tokens", {"terminateIds": ["a"]}),
            ("POST", f"{here}/migration", definition),
            ("PUT", f"/v2/element-instances/{UNKNOWN}/variables", {"variables": {}}),
            ("POST", f"/v2/jobs/{UNKNOWN}/retries", {"retries": 1}),
            ("POST", "/v2/process-instances/batch", {"instances": [{"processId": "unheard-of"}]}),
        ]
        for method, where, body in asked:
            problem = await client.bad(method, where, body, 404)
            assert problem["code"] == "NOT_FOUND"

    talk(story)


def test_what_is_wrong_in_itself_is_refused() -> None:
    async def story(client: Client) -> None:
        await client.deploy(ORDER)
        key = await client.start()
        here = f"/v2/process-instances/{key}"
        publication = "/v2/messages/publication"
        instances = "/v2/process-instances/batch"

        def one(**more: Any) -> dict[str, Any]:
            return {"instances": [{"processId": "order"} | more]}

        asked: list[tuple[str, str, Any, str]] = [
            ("GET", "/v2/process-instances/order/details", None, "'order'"),
            ("POST", instances, one(variables=[1]), "object"),
            ("POST", instances, one(version=-1), "version"),
            ("POST", instances, one(colour="red"), "colour"),
            ("POST", publication, {"name": ""}, "message name"),
            ("POST", publication, {"name": "a", "variables": 7}, "object"),
            ("POST", publication, {"name": "a", "timeToLive": -1}, "timeToLive"),
            ("POST", f"{here}/tokens", {"activate": [{"elementId": "nowhere"}]}, "nowhere"),
            ("PUT", f"/v2/element-instances/{key}/variables", {"variables": "x"}, "object"),
            ("POST", "/v2/deployments", {"resources": []}, "resources"),
        ]
        for method, where, body, found in asked:
            problem = await client.bad(method, where, body, 400)
            assert problem["code"] == "INVALID_ARGUMENT"
            assert found in problem["detail"], problem
        assert [each["elementId"] for each in (await client.show(key))["elements"]] == ["charge"]

    talk(story)


def test_what_is_there_already_or_belongs_to_a_process_is_a_conflict() -> None:
    async def story(client: Client) -> None:
        message = {"name": "payment", "correlationKey": "9", "messageId": "m", "timeToLive": 60_000}
        await client.good("POST", "/v2/messages/publication", message)
        problem = await client.bad("POST", "/v2/messages/publication", message, 409)
        assert problem["code"] == "ALREADY_EXISTS"

        await client.deploy(ORDER)
        key = await client.start()
        other = await client.deploy(Process("order").task("other"))
        target = {
            "targetProcessDefinitionKey": other["processDefinitionKey"],
            "mappingInstructions": [{"sourceElementId": "charge", "targetElementId": "charge"}],
        }
        where = f"/v2/process-instances/{key}/migration"
        assert "'charge'" in (await client.bad("POST", where, target, 400))["detail"]
        assert (await client.show(key))["version"] == 1, "all or nothing"

        [element] = (await client.show(key))["elements"]
        task = await client.good("GET", f"/v2/tasks/{element['jobKey']}")
        assert (task["type"], task["payload"]) == ("charge", {"orderId": "42"})
        where = f"/v2/tasks/{element['jobKey']}/cancellation"
        refused = await client.bad("POST", where, None, 409)
        assert f"belongs to process instance {key}" in refused["detail"]

    talk(story)
