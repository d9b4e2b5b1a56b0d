"""Deployments reach every partition of a node, however dark, full or broken one of them is."""

import asyncio
from datetime import timedelta

import pytest
from tests.gateway.distribution.dark_partitions import (
    DISTRIBUTION,
    PROCESS,
    deploy,
    deployed_on,
    go_dark,
    happened,
    only_target,
    pending,
    records,
)

from holdfast.config import Config
from holdfast.engine.distribution.values import (
    Decision,
    DistributionIntent,
    Resending,
    Sending,
    Targets,
)
from holdfast.engine.kernel import Command, Turn
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.deployments import DEPLOYMENT_QUEUE
from holdfast.engine.processes.values import ProcessIntent
from holdfast.engine.state import EngineState
from holdfast.errors import InvalidArgument, NotFound
from holdfast.gateway.distribution.shapes import (
    DistributionCancellation,
    DistributionQuery,
    DistributionSkip,
    TargetState,
    TargetView,
)
from holdfast.limits import (
    DEPLOYMENT_WAIT_MS,
    DISTRIBUTION_PAUSE_MS,
    DISTRIBUTION_PAUSE_MS_MAX,
    MIB,
    POSTPONE_MS_MIN,
    RESEND_BYTES_MAX,
)
from holdfast.metrics import DistributionMetrics
from holdfast.records import Delivery, Record, RecordKind
from holdfast.runtime.post import Post
from holdfast.testing import MemoryNode, SimulatedDisk, run

_I = DistributionIntent


# --- all is well ------------------------------------------------------------------------------


def test_a_deployment_is_on_every_partition_when_it_is_answered() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=4).start()
        (order,) = await deploy(node, "order")
        assert order.created and order.distributed
        assert deployed_on(node) == {each: ["order"] for each in range(1, 5)}
        assert await pending(node) == []
        assert node.clock.monotonic() == 0, "no time passes"

        key = int(order.process_definition_key)
        started, *acknowledged, finished = [
            record for record in happened(node, 1) if record.kind == RecordKind.EVENT
        ]
        assert (started.intent, started.key) == (_I.STARTED, key)
        assert (started.value.queue, started.value.partitions) == (DEPLOYMENT_QUEUE, (2, 3, 4))
        assert {each.intent for each in acknowledged} == {_I.ACKNOWLEDGED}
        assert sorted(p for each in acknowledged for p in each.value.partitions) == [2, 3, 4]
        assert (finished.intent, finished.key) == (_I.FINISHED, key)
        for partition in (2, 3, 4):
            command, received, event = records(node, partition)
            assert (command.kind, command.key) == (RecordKind.COMMAND, key)
            assert command.delivery == Delivery(DEPLOYMENT_QUEUE, 1)
            assert (received.value_type, received.intent) == (DISTRIBUTION, _I.RECEIVED)
            assert (event.value_type, event.intent) == (PROCESS, ProcessIntent.DEPLOYED)
        await node.close()

    run(story())


def test_with_one_partition_nothing_is_distributed() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=1).start()
        (order,) = await deploy(node, "order")
        assert order.distributed
        assert happened(node, 1) == []
        await node.close()

    run(story())


# --- a partition is dark ----------------------------------------------------------------------


def test_a_dark_partition_is_waited_for_a_while_then_the_answer_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 3)
        node = await MemoryNode(partitions=3).start()
        both = await asyncio.gather(deploy(node, "order"), deploy(node, "order"))
        assert [each.distributed for (each,) in both] == [False, False]
        assert [each.created for (each,) in both] == [True, False]
        assert node.clock.monotonic() == DEPLOYMENT_WAIT_MS / 1000
        assert deployed_on(node) == {1: ["order"], 2: ["order"], 3: []}

        dark.clear()
        await asyncio.sleep(1)
        again = await deploy(node, "order")
        assert again[0].distributed, "who asks meanwhile waits for it too"
        assert node.clock.monotonic() == DISTRIBUTION_PAUSE_MS / 1000
        await node.close()

    run(story())


def test_what_is_pending_is_shown_with_its_attempts_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        go_dark(monkeypatch, 2)
        node = await MemoryNode(partitions=3).start()
        (order,) = await deploy(node, "order")
        (view,) = await pending(node)
        assert (view.distribution_key, view.partition) == (order.process_definition_key, 1)
        assert (view.value_type, view.intent, view.queue) == ("PROCESS", "DEPLOY", DEPLOYMENT_QUEUE)
        assert view.started == order.deployed
        assert view.size_bytes > 500
        next_attempt = view.started + timedelta(milliseconds=DISTRIBUTION_PAUSE_MS)
        assert view.targets == [TargetView(2, TargetState.IN_FLIGHT, 1, next_attempt)]
        assert await node.gateway.distributions.get(view.distribution_key) == view

        pause_ms = DISTRIBUTION_PAUSE_MS
        for attempts in range(2, 10):
            wait = next_attempt.timestamp() - node.clock.now_ms() / 1000
            await asyncio.sleep(wait + 0.001)
            pause_ms = min(pause_ms * 2, DISTRIBUTION_PAUSE_MS_MAX)
            next_attempt += timedelta(milliseconds=pause_ms)
            target = TargetView(2, TargetState.IN_FLIGHT, attempts, next_attempt)
            assert await only_target(node) == target
        await node.close()

    run(story())


def test_what_comes_later_waits_behind_it_and_is_listed_by_page_queue_and_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        go_dark(monkeypatch, 3)
        node = await MemoryNode(partitions=3).start()
        keys = [each.process_definition_key for each in await deploy(node, "a", "b", "c")]
        first, second, third = await pending(node)
        assert [each.distribution_key for each in (first, second, third)] == keys
        assert second.targets == [TargetView(3, TargetState.WAITING, 0, behind=keys[0])]
        assert third.targets == second.targets, "it is the first that has to go"

        gateway = node.gateway
        page = await gateway.distributions.page(DistributionQuery(limit=2))
        assert (page.items, page.after) == ([first, second], keys[1])
        page = await gateway.distributions.page(DistributionQuery(limit=2, after=page.after))
        assert (page.items, page.after) == ([third], None)
        assert await pending(node, queue=DEPLOYMENT_QUEUE, target=3) == [first, second, third]
        assert await pending(node, queue="another") == []
        assert await pending(node, target=2) == []
        with pytest.raises(InvalidArgument, match="Expected target from 1 to 3, but found 4"):
            await pending(node, target=4)
        await node.close()

    run(story())


def test_a_resumed_partition_gets_everything_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 2)
        node = await MemoryNode(partitions=3).start()
        await deploy(node, "a", "b", "c")
        await asyncio.sleep(3_600)
        assert deployed_on(node)[2] == []

        dark.clear()
        before = node.clock.monotonic()
        assert await node.gateway.distributions.resume(2) == 1, "the others wait behind it"
        await asyncio.sleep(0.001)
        assert await pending(node) == []
        assert deployed_on(node)[2] == ["a", "b", "c"]
        assert node.clock.monotonic() - before < 0.01
        assert await node.gateway.distributions.resume(2) == 0
        (listed, *_) = await deploy(node, "a")
        assert listed.distributed
        await node.close()

    run(story())


# --- a partition is full, or broken -----------------------------------------------------------


def test_a_full_partition_is_left_alone_for_a_while_and_then_gets_everything() -> None:
    async def story() -> None:
        node = await MemoryNode(partitions=3, config=Config(commands_in_flight_max=5)).start()
        waiting = node.node.runner._inbox.in_flight
        waiting[2] = 5
        (order,) = await deploy(node, "order")
        assert not order.distributed
        await asyncio.sleep(POSTPONE_MS_MIN / 2000)  # between two attempts
        target = await only_target(node)
        assert (target.partition, target.state, target.attempts) == (2, TargetState.POSTPONED, 0)
        assert target.next_attempt is not None
        in_ms = target.next_attempt.timestamp() * 1000 - node.clock.now_ms()
        assert 0 < in_ms <= POSTPONE_MS_MIN
        asked = happened(node, 1, _I.POSTPONED)
        seldom = DEPLOYMENT_WAIT_MS // POSTPONE_MS_MIN
        assert seldom / 2 <= len(asked) <= seldom + 1
        assert asked[0].value.keys == (int(order.process_definition_key),)

        waiting[2] = 0
        await asyncio.sleep(POSTPONE_MS_MIN / 1000)
        assert await pending(node) == []
        assert deployed_on(node) == {each: ["order"] for each in range(1, 4)}
        await node.close()

    run(story())


def test_a_command_that_throws_is_shown_with_its_reason_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        broken = {2}
        kind = int(PROCESS), int(ProcessIntent.DEPLOY)
        handle = DISPATCH.handlers[kind]

        def throw(turn: Turn[EngineState], command: Record) -> None:
            if turn.partition in broken:
                assert command.delivery is not None
                raise ValueError(f"no luck with attempt {command.delivery.attempt}")
            handle(turn, command)

        monkeypatch.setitem(DISPATCH.handlers, kind, throw)
        node = await MemoryNode(partitions=3).start()
        (order,) = await deploy(node, "order")
        assert not order.distributed
        assert deployed_on(node) == {1: ["order"], 2: [], 3: ["order"]}
        target = await only_target(node)
        assert (target.state, target.attempts) == (TargetState.REFUSED, 1)
        assert target.refusal == "ValueError: no luck with attempt 1"

        await asyncio.sleep(DISTRIBUTION_PAUSE_MS / 1000)
        target = await only_target(node)
        assert (target.state, target.attempts) == (TargetState.REFUSED, 2)
        assert target.refusal == "ValueError: no luck with attempt 2"

        broken.clear()
        await asyncio.sleep(2 * DISTRIBUTION_PAUSE_MS / 1000)
        assert await pending(node) == []
        assert deployed_on(node)[2] == ["order"]
        await node.close()

    run(story())


# --- a person decides -------------------------------------------------------------------------


def test_a_skipped_partition_goes_without_it_and_on_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 2, 3)
        node = await MemoryNode(partitions=3).start()
        first, second = [each.process_definition_key for each in await deploy(node, "a", "b")]
        dark.remove(2)
        skip = DistributionSkip(2, "ann", "a is not for it")
        await node.gateway.distributions.skip(first, skip)
        await asyncio.sleep(0.001)
        assert deployed_on(node)[2] == ["b"]
        assert [[each.partition for each in view.targets] for view in await pending(node)] == [
            [3], [3],
        ]  # fmt: skip
        (skipped,) = happened(node, 1, _I.SKIPPED)
        assert skipped.value == Decision("ann", "a is not for it", (2,))
        assert skipped.key == int(first)

        for key in (first, second):
            with pytest.raises(NotFound, match=f"Expected distribution {key} to be pending"):
                await node.gateway.distributions.skip(key, skip)
        await node.close()

    run(story())


def test_a_canceled_distribution_ends_and_its_waiting_caller_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        go_dark(monkeypatch, 2, 3)
        node = await MemoryNode(partitions=4).start()
        deploying = asyncio.ensure_future(deploy(node, "order"))
        await asyncio.sleep(1)
        (view,) = await pending(node)
        assert [each.partition for each in view.targets] == [2, 3]
        cancellation = DistributionCancellation("ann", "by mistake")
        await node.gateway.distributions.cancel(view.distribution_key, cancellation)
        await deploying
        assert node.clock.monotonic() == 1, "not after the whole pause"

        assert await pending(node) == []
        (canceled,) = happened(node, 1, _I.CANCELED)
        assert canceled.value == Decision("ann", "by mistake", (2, 3))
        (finished,) = happened(node, 1, _I.FINISHED)
        assert (finished.key, finished.value) == (canceled.key, Targets())
        assert deployed_on(node) == {1: ["order"], 2: [], 3: [], 4: ["order"]}
        with pytest.raises(NotFound, match="No distribution with key"):
            await node.gateway.distributions.get(view.distribution_key)
        await asyncio.sleep(3_600)
        assert happened(node, 1, _I.REDISTRIBUTED) == [], "nothing is sent any more"
        await node.close()

    run(story())


# --- the node stops and starts ----------------------------------------------------------------


@pytest.mark.parametrize("told", [True, False], ids=["stopped", "killed"])
def test_a_node_that_starts_sends_again_what_was_in_flight_and_keeps_its_attempts(
    monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 2)
        node = await MemoryNode(partitions=3, disk=SimulatedDisk()).start()
        await deploy(node, "a", "b")
        await asyncio.sleep(DISTRIBUTION_PAUSE_MS / 1000)
        before = await pending(node)
        assert before[0].targets[0].attempts == 2

        async def restart() -> None:
            await (node.close() if told else node.crash())
            await node.restart()
            await asyncio.sleep(0.001)

        await restart()
        assert await pending(node) == before
        dark.clear()
        await restart()
        assert await pending(node) == []
        assert deployed_on(node) == {each: ["a", "b"] for each in range(1, 4)}
        assert [each.delivery for each in records(node, 2) if each.delivery] == [
            Delivery(DEPLOYMENT_QUEUE, 2), Delivery(DEPLOYMENT_QUEUE, 1),
        ]  # fmt: skip
        await node.close()

    run(story())


# --- much at once -----------------------------------------------------------------------------


def test_what_goes_to_one_partition_goes_in_portions_that_its_log_takes() -> None:
    async def story() -> None:
        submitted: list[tuple[int, int, int]] = []

        class Receiver:
            def submit(
                self, partition: int, commands: list[Command], size_bytes: int
            ) -> "asyncio.Future[None]":
                submitted.append((partition, len(commands), size_bytes))
                return asyncio.get_running_loop().create_future()

        post = Post(Receiver(), Receiver, DistributionMetrics())  # type: ignore[arg-type]
        command = Command(DISTRIBUTION, _I.RESUME, 1, Resending(2), None, Delivery())
        for size_bytes in (3 * MIB, 3 * MIB, 3 * MIB, 1, RESEND_BYTES_MAX + 1, 2 * MIB):
            post.distribute(Sending((2, 3), command, size_bytes))
        await asyncio.sleep(0)
        portions = [(2, 6 * MIB), (2, 3 * MIB + 1), (1, RESEND_BYTES_MAX + 1), (1, 2 * MIB)]
        assert submitted == [(each, *portion) for each in (2, 3) for portion in portions]

    run(story())
