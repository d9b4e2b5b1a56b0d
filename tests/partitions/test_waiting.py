"""Partitions on the move: what reached no log waits for the next owner, and no longer than told."""

import asyncio
import gc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.partitions.members import Cluster, create, until

from holdfast.engine.jobs.queries import ListTasks
from holdfast.engine.jobs.values import JobsAvailable
from holdfast.errors import Moved, ResourceExhausted, Unavailable, Unknown
from holdfast.limits import OWNER_WAITING_COMMANDS_MAX
from holdfast.partitions.api import EffectTopic, Placement
from holdfast.records import partition_of

WAIT_MS = 2_000


@pytest.fixture(params=["unix", "simulated"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    return Cluster(request.param, tmp_path, wait_ms=WAIT_MS)


async def move_2_to_a(cluster: Cluster, epoch: int = 2) -> None:
    """Partition 2 is closed at b, then opened at a; both learn of it."""
    for member in cluster.members.values():
        member.placements.learn(Placement(2, "a", epoch))
    await cluster.members["a"].runner.open(2, epoch)


def test_what_is_asked_of_a_partition_on_the_move_is_done_by_its_next_owner(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.members["b"].runner.close_partition(2)
        submitted = [
            each.submit(2, [create(payload=b"%d" % number)])
            for number in range(10)
            for each in (cluster.a, cluster.b)
        ]
        asked = [
            asyncio.ensure_future(each.ask(2, ListTasks(0, 50))) for each in (cluster.a, cluster.b)
        ]
        together = cluster.b.submit_all({2: [create()], 4: [create()]})
        await asyncio.sleep(0.12)
        assert not any(each.done() for each in [*submitted, *asked, together[0]])
        await move_2_to_a(cluster)
        async with asyncio.timeout(1):
            replies = [*await asyncio.gather(*submitted), *await asyncio.gather(*together)]
            await asyncio.gather(*asked)
        assert {partition_of(reply.key) for (reply,) in replies} == {2, 4}
        found = await cluster.b.ask(2, ListTasks(0, 50))
        assert len(found.items) == 21  # each once

    cluster.play(story)


def test_what_a_closed_partition_had_taken_and_not_logged_is_done_by_its_next_owner(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        runner = cluster.members["b"].runner
        tickets = [cluster.b.submit(2, [create()]), cluster.a.submit(2, [create()])]
        runner._outcomes.away.add(2)
        runner._lives.drop(2, Moved("taken by somebody", partition=2), runner._work)
        await asyncio.sleep(0.1)
        assert not any(each.done() for each in tickets)
        await move_2_to_a(cluster)
        async with asyncio.timeout(1):
            await asyncio.gather(*tickets)
        assert len((await cluster.a.ask(2, ListTasks(0, 50))).items) == 2

    cluster.play(story)


def test_an_owner_that_is_away_is_waited_for_and_not_for_ever(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.members["b"].close()
        link = cluster.members["a"].links["b"]
        await until(lambda: not link.is_up)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(Unavailable, match="'b'"):
            await cluster.a.submit(4, [create()])
        assert 0.9 * WAIT_MS < (loop.time() - began) * 1_000 < 1.5 * WAIT_MS
        waiting = cluster.a.submit(4, [create()])
        await cluster.start("b")
        async with asyncio.timeout(1):
            await waiting

    cluster.play(story)


def test_a_query_whose_answer_was_lost_is_asked_again(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.a.submit(2, [create()])
        for _ in range(3):
            asked = asyncio.ensure_future(cluster.a.ask(2, ListTasks(0, 50)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # it was sent
            cluster.break_connection()
            async with asyncio.timeout(5):
                assert len((await asked).items) == 1

    cluster.play(story)


def test_no_more_wait_than_the_limit_says(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.members["b"].runner.close_partition(2)
        many = [create()] * (OWNER_WAITING_COMMANDS_MAX - 1)
        waiting = cluster.b.submit(2, many)
        with pytest.raises(ResourceExhausted, match="OWNER_WAITING_COMMANDS_MAX") as full:
            await cluster.b.submit(2, [create(), create()])
        assert full.value.retry_after_ms > 0
        waiting.cancel()

    cluster.play(story)


def test_a_member_that_joins_is_followed_and_one_that_leaves_is_not_missed(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        a = cluster.members["a"]
        told: list[Any] = []
        a.partitions.follow(EffectTopic(JobsAvailable, "mail"), told.append)
        a.partitions.remove("b")
        a.links.remove("b")
        assert a.partitions.remotes == {}
        waiting = a.partitions.submit(2, [create()])
        await asyncio.sleep(0.1)
        assert not waiting.done()
        a.partitions.add(a.links.add("b", cluster.addresses["b"]))
        await waiting
        await until(lambda: any(each is not None for each in told))

    cluster.play(story)


def known(name: str) -> Any:
    """A command that its partition knows again."""
    return msgspec.structs.replace(create(), request_id=name)


def test_a_command_whose_answer_was_lost_is_asked_again_if_it_is_known_again(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        for number in range(3):
            sent = [
                asyncio.ensure_future(
                    cluster.a.submit(2, [known(f"r{number}"), known(f"s{number}")])
                ),
                asyncio.ensure_future(cluster.a.submit(2, [known(f"t{number}"), create()])),
            ]
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # it was sent
            cluster.break_connection()
            async with asyncio.timeout(5):
                resolved, told = await asyncio.gather(*sent, return_exceptions=True)
            assert [partition_of(each.key) for each in resolved] == [2, 2]
            assert isinstance(told, Unknown | list), "one of two commands has no id"
            again = await cluster.b.submit(2, [known(f"r{number}"), known(f"s{number}")])
            assert [each.key for each in again] == [each.key for each in resolved]

    cluster.play(story)


def test_what_may_have_been_done_by_a_lost_owner_is_done_once_by_the_next(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        resolving = asyncio.ensure_future(cluster.a.submit(2, [known("r")]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        cluster.break_connection()
        await cluster.members["b"].runner.close_partition(2)
        await asyncio.sleep(0.1)
        await move_2_to_a(cluster)
        async with asyncio.timeout(5):
            (reply,) = await resolving
        (again,) = await cluster.a.submit(2, [known("r")])
        assert again.key == reply.key
        assert len((await cluster.a.ask(2, ListTasks(0, 50))).items) == 1

    cluster.play(story)


def test_what_is_not_resolved_in_time_stays_unknown(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        waiting = asyncio.ensure_future(cluster.a.submit(2, [known("r")]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await cluster.members["b"].close()
        with pytest.raises(Unknown):
            await waiting

    cluster.play(story)


def test_an_error_for_which_nobody_waits_any_more_is_no_news(cluster: Cluster) -> None:
    warned: list[Any] = []

    async def story(cluster: Cluster) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: warned.append(what))
        waiting = cluster.a.submit(2, [known("r")])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await cluster.members["b"].close()
        waiting.cancel()
        await asyncio.sleep(2 * WAIT_MS / 1_000)
        del waiting
        gc.collect()

    cluster.play(story)
    assert warned == []
