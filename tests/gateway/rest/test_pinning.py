"""The public client pins the clock of a node: timers fire when it is turned, not before."""

import asyncio
from pathlib import Path

import pytest
from camunda_orchestration_sdk import CamundaAsyncClient
from camunda_orchestration_sdk.errors import BadRequestError, UnexpectedStatus
from camunda_orchestration_sdk.models import ClockPinRequest, ProcessCreationById
from sdk import AT_ONCE, client_of, file_of, served

from holdfast.clock import SystemClock
from holdfast.config import load_config
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.gateway.http import HttpServer
from holdfast.gateway.rest.pinned import PinnableClock
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import ActivationRequest, NewTask
from holdfast.model.dsl import Process
from holdfast.node import LocalNode
from holdfast.testing import MemoryNode

HOUR_MS = 3_600_000
SLOW = Process("slow").pause("a_while", "PT1H").task("charge").pause("again", "PT2H")


def test_timers_fire_when_the_pinned_clock_reaches_them(tmp_path: Path) -> None:
    async def story() -> None:
        clock = PinnableClock(SystemClock())
        node = await MemoryNode(partitions=2, clock=clock).start()
        server = HttpServer(node.gateway)
        await server.start()
        async with client_of(server.url) as client:
            await turn_the_hands(client, node.gateway, clock, tmp_path)
        await server.close()
        await node.close()

    asyncio.run(story())


async def turn_the_hands(
    client: CamundaAsyncClient, gateway: Gateway, clock: PinnableClock, folder: Path
) -> None:
    now_ms = clock.now_ms()
    await client.pin_clock(data=ClockPinRequest(timestamp=now_ms))
    await client.deploy_resources_from_files([file_of(SLOW, folder)])
    asked = ProcessCreationById(process_definition_id="slow")  # type: ignore[arg-type]
    started = await client.create_process_instance(data=asked)
    shown = await client.get_process_instance(started.process_instance_key, consistency=AT_ONCE)
    assert int(shown.start_date.timestamp() * 1_000) == now_ms, "it stands still"

    charge = ActivationRequest(["charge"], "me", 1, HOUR_MS, wait_ms=10_000)
    await client.pin_clock(data=ClockPinRequest(timestamp=now_ms + HOUR_MS - 1))
    assert await gateway.jobs.activate(charge.at_once()) == [], "a millisecond too early"
    await client.pin_clock(data=ClockPinRequest(timestamp=now_ms + HOUR_MS))
    [job] = await gateway.jobs.activate(charge)

    # a lease is until a moment, too: it ends when the clock says so
    await client.pin_clock(data=ClockPinRequest(timestamp=now_ms + 3 * HOUR_MS))
    [again] = await gateway.jobs.activate(charge)
    assert again.job_key == job.job_key and again.lease != job.lease
    await client.complete_job(job.job_key)  # type: ignore[arg-type]

    await client.reset_clock()
    assert abs(clock.now_ms() - SystemClock().now_ms()) < 10_000
    await client.get_process_instance(started.process_instance_key, consistency=AT_ONCE)
    await client.pin_clock(data=ClockPinRequest(timestamp=now_ms + 9 * HOUR_MS))
    [outcome] = await gateway.tasks.results([started.process_instance_key], 10_000)
    assert outcome.state == "COMPLETED"


def test_a_node_refuses_it_unless_it_was_started_for_it() -> None:
    async def story() -> None:
        async with served() as (client, _, _):
            with pytest.raises(UnexpectedStatus, match=r"(?s)403.*HOLDFAST_CLOCK_PINNING"):
                await client.pin_clock(data=ClockPinRequest(timestamp=0))
            with pytest.raises(UnexpectedStatus, match="403"):
                await client.reset_clock()
            with pytest.raises(BadRequestError):
                await client.pin_clock(data=ClockPinRequest(timestamp=-1))

    asyncio.run(story())


def test_a_node_that_was_started_for_it_keeps_the_time_of_the_machine_in_its_log(
    tmp_path: Path,
) -> None:
    config = load_config(tmp_path, {"HOLDFAST_CLOCK_PINNING": "1", "HOLDFAST_PARTITIONS": "1"})

    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", config)
        node.gateway.look.pin(0)
        await node.gateway.tasks.submit([NewTask("mail")])
        node.gateway.look.pin(None)
        entries = node.journal.read_now(TOPIC, 1, 0, 1_000_000)
        records = [DISPATCH.codec.decode(each.payload) for each in entries]
        assert {each.timestamp_ms for each in records} == {0}, "what the node writes is of its time"
        now_ms = SystemClock().now_ms()
        assert all(now_ms - 60_000 < each.timestamp_ms <= now_ms for each in entries)
        await node.close()

    asyncio.run(story())
