"""The port over partitions of this member and of another, on real sockets and simulated ones."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.partitions.members import (
    COUNT,
    HOME,
    IN_FLIGHT_MAX,
    Cluster,
    activation,
    complete,
    create,
    key_of_new,
    until,
)

from holdfast.engine.asker import Asker
from holdfast.engine.jobs.queries import FindStandings, FindTask, ListTasks
from holdfast.engine.jobs.values import JobEnded, JobsAvailable, JobState
from holdfast.errors import (
    Code,
    InvalidArgument,
    Moved,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.partitions.api import EffectTopic, Placement
from holdfast.partitions.serving import MemberServing
from holdfast.partitions.wire import SUBMIT, encode_commands
from holdfast.records import partition_of


@pytest.fixture(params=["unix", "simulated"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Cluster:
    return Cluster(request.param, tmp_path)


# --- commands and queries ---------------------------------------------------------------------


def test_commands_reach_every_partition_from_every_member(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        for partitions in (cluster.a, cluster.b):
            assert partitions.count == COUNT
            for partition in HOME:
                key = await key_of_new(partitions, partition, payload=b'{"x":1}')
                assert partition_of(key) == partition
                for asking in (cluster.a, cluster.b):
                    found = await asking.ask(partition, FindTask(key))
                    assert found is not None and found.job is not None
                    assert (found.state, found.payload) == (JobState.WAITING, b'{"x":1}')
        assert list(cluster.a.near) == [1, 3]
        assert [each.member for each in cluster.b.placement()] == ["a", "b", "a", "b"]

    cluster.play(story)


def test_a_rejection_and_a_list_of_jobs_come_back_as_from_here(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        for partition in (1, 2):
            keys = [await key_of_new(cluster.a, partition) for _ in range(3)]
            (taken,) = await cluster.a.activate(partition, activation(jobs_max=2))
            jobs = taken.value
            assert [job.key for job in jobs] == keys[:2]
            done = [complete(job.key, job.lease) for job in jobs]
            refused = complete(keys[2], 77)
            replies = await cluster.a.submit(partition, [*done, refused])
            assert [reply.rejection is None for reply in replies] == [True, True, False]
            error = replies[2].error()
            assert error is not None and error.fields["key"] == keys[2]

    cluster.play(story)


def test_an_activation_where_nothing_waits_is_not_put_on_the_log(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        for partition in (1, 2):
            owner = cluster.members[HOME[partition]]
            before = owner.runner.processors[partition].next_position
            (reply,) = await cluster.a.activate(partition, activation())
            assert reply.rejection is not None and reply.rejection.code is Code.NOT_FOUND
            assert owner.runner.processors[partition].next_position == before

    cluster.play(story)


def test_submit_all_reaches_partitions_of_both_members_and_keeps_their_order(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        for partitions in (cluster.a, cluster.b):
            tickets = partitions.submit_all({each: [create(), create()] for each in (4, 1, 3, 2)})
            found = [[reply.key for reply in await ticket] for ticket in tickets]
            assert [list(map(partition_of, keys)) for keys in found] == [
                [4, 4], [1, 1], [3, 3], [2, 2],
            ]  # fmt: skip

    cluster.play(story)


def test_if_there_is_no_room_here_nothing_goes_elsewhere(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        busy = cluster.a.submit(1, [create()])
        with pytest.raises(ResourceExhausted):
            cluster.a.submit_all({2: [create()], 1: [create()] * IN_FLIGHT_MAX})
        await busy
        assert (await cluster.a.ask(2, ListTasks(0, 10))).items == []

    cluster.play(story)


def test_a_partition_elsewhere_that_has_no_room_says_when_to_come_back(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        busy = cluster.a.submit(2, [create()])
        with pytest.raises(ResourceExhausted) as full:
            await cluster.a.submit(2, [create()] * IN_FLIGHT_MAX)
        assert full.value.retry_after_ms > 0
        await busy

    cluster.play(story)


def test_what_is_submitted_in_one_turn_travels_in_one_frame(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        connection = cluster.members["a"].connections[-1]
        sent, received = connection.traffic.frames_sent, connection.traffic.frames_received
        tickets = [cluster.a.submit(2 + 2 * (each % 2), [create()]) for each in range(40)]
        await asyncio.gather(*tickets)
        # one frame for all of them, and perhaps one of the gateway's own
        assert connection.traffic.frames_sent <= sent + 2
        assert connection.traffic.frames_received <= received + 3  # of one round, or two

    cluster.play(story)


def test_an_asker_sees_elsewhere_what_it_may_see_here(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        for partition in (1, 2):
            key = await key_of_new(cluster.a, partition)
            assert await cluster.a.ask(partition, FindTask(key), Asker("mallory")) is None

    cluster.play(story)


def test_a_partition_that_does_not_exist_is_refused_by_the_owner(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        link = cluster.members["a"].links["b"]
        with pytest.raises(InvalidArgument, match="from 1 to 4"):
            await link.call(SUBMIT, encode_commands(9, [create()], 0))
        with pytest.raises(InvalidArgument, match="kind 99"):
            await link.call(99, b"")

    cluster.play(story)


# --- topics -----------------------------------------------------------------------------------


def test_effects_of_partitions_elsewhere_are_told_once_to_everyone(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        anything: list[Any] = []
        mails: list[Any] = []
        cluster.a.follow(EffectTopic(JobsAvailable), anything.append)
        stop = cluster.a.follow(EffectTopic(JobsAvailable, "mail"), mails.append)
        other: list[Any] = []
        cluster.a.follow(EffectTopic(JobsAvailable, "mail"), other.append)
        for partition in (1, 2, 3, 4):
            await key_of_new(cluster.b, partition)
        await until(lambda: len(anything) == 4)
        assert sorted(effect.partition for effect in anything) == [1, 2, 3, 4]
        assert sorted(effect.partition for effect in mails) == [1, 2, 3, 4]
        stop()
        await key_of_new(cluster.a, 2)
        await until(lambda: len(other) == 5)
        assert (len(mails), len(anything)) == (4, 5)

    cluster.play(story)


def test_a_caller_that_follows_and_then_asks_misses_nothing(cluster: Cluster) -> None:
    """The job may end before, between or after: in each case its end is asked or told."""

    async def story(cluster: Cluster) -> None:
        for partition in (1, 2):
            key = await key_of_new(cluster.a, partition, keep_ms=60_000)
            ended: list[Any] = []
            stop = cluster.a.follow(EffectTopic(JobEnded, key, partition), ended.append)
            asked = asyncio.ensure_future(cluster.a.ask(partition, FindStandings((key,))))
            (taken,) = await cluster.b.activate(partition, activation())
            await cluster.b.submit(partition, [complete(key, taken.value[0].lease)])
            (standing,) = await asked
            if standing.state is not JobState.COMPLETED:
                await until(lambda ended=ended: ended)
                assert ended[0].outcome.state is JobState.COMPLETED
            stop()

    cluster.play(story)


def test_after_a_break_topics_are_followed_again_and_followers_ask_again(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        told: list[Any] = []
        cluster.a.follow(EffectTopic(JobsAvailable, "mail", 2), told.append)
        ended = cluster.a.follow(EffectTopic(JobsAvailable, "fax"), told.append)
        ended()
        cluster.break_connection()
        await until(lambda: None in told)
        assert told == [None]
        assert (await cluster.a.ask(2, ListTasks(0, 10))).items == []
        await key_of_new(cluster.b, 2)
        await until(lambda: len(told) == 2)
        assert told[1] == JobsAvailable(2, "mail")
        serving: Any = cluster.members["b"].connections[-1]
        assert isinstance(serving._exchange.handler, MemberServing)
        topics = [
            each for each in serving._exchange.handler._topics if each.effect is JobsAvailable
        ]
        assert topics == [EffectTopic(JobsAvailable, "mail", 2)]

    cluster.play(story)


def test_a_partition_that_missed_something_tells_those_elsewhere_too(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        told: list[Any] = []
        other: list[Any] = []
        cluster.a.follow(EffectTopic(JobsAvailable, "mail", 2), told.append)
        cluster.a.follow(EffectTopic(JobsAvailable, "mail", 4), other.append)
        await cluster.a.ask(2, FindTask(1))  # the topics are there
        cluster.members["b"].runtime.refresh(2)
        await until(lambda: told)
        assert (told, other) == ([None], [])

    cluster.play(story)


# --- members that go away ---------------------------------------------------------------------


def test_a_member_that_is_away_makes_only_its_own_partitions_unavailable(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.members["b"].close()
        link = cluster.members["a"].links["b"]
        await until(lambda: not link.is_up)
        for work in (
            lambda: cluster.a.submit(2, [create()]),
            lambda: cluster.a.activate(2, activation()),
            lambda: cluster.a.ask(2, FindTask(1)),
        ):
            with pytest.raises(Unavailable, match="'b'") as away:
                await work()
            assert away.value.fields["partition"] == 2  # so that a list can go on without it
        assert partition_of(await key_of_new(cluster.a, 1)) == 1
        told: list[Any] = []
        cluster.a.follow(EffectTopic(JobsAvailable), told.append)
        await cluster.start("b")
        await link.up()
        assert told == [None]
        await key_of_new(cluster.a, 2)
        await until(lambda: len(told) == 2)

    cluster.play(story)


def test_a_submission_under_way_at_a_break_is_unknown(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        ticket = cluster.a.submit(2, [create()])
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # it was sent
        cluster.break_connection()
        with pytest.raises(Unknown) as unknown:
            await ticket
        assert unknown.value.fields["partition"] == 2
        link = cluster.members["a"].links["b"]
        await until(lambda: link.is_up)
        found = await cluster.a.ask(2, ListTasks(0, 10))
        assert len(found.items) <= 1

    cluster.play(story)


def test_a_request_that_is_sent_again_after_a_break_is_done_once(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        command = msgspec.structs.replace(create(), request_id="order 17")
        link = cluster.members["a"].links["b"]
        keys: list[int] = []
        for seconds in (0, 0.0005, 0.002, 0.01):
            ticket = cluster.a.submit(2, [command])
            await asyncio.sleep(seconds)  # it may have been done, and its answer be on its way
            broken = link.connection
            cluster.break_connection()
            answered = await asyncio.gather(ticket, return_exceptions=True)
            await until(lambda broken=broken: link.connection not in (None, broken))
            if isinstance(answered[0], Unknown | Unavailable):
                answered = [await cluster.a.submit(2, [command])]
            keys.append(answered[0][0].key)  # pyright: ignore
        found = await cluster.a.ask(2, ListTasks(0, 10))
        assert [task.key for task in found.items] == sorted(set(keys))
        assert len(set(keys)) == 1

    cluster.play(story)


# --- moves ------------------------------------------------------------------------------------


def test_what_reaches_a_former_owner_goes_on_to_the_one_it_knows(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        a, b = cluster.members["a"], cluster.members["b"]
        mistaken = [Placement(1, "b", 2), Placement(3, "b", 2)]
        for placement in mistaken:
            a.placements.learn(placement)
        b.placements.learn(Placement(1, "a", 3))
        told: list[Any] = []
        cluster.a.follow(EffectTopic(JobsAvailable, "mail", 1), told.append)
        key = await key_of_new(cluster.a, 1)
        assert (partition_of(key), a.placements.of(1)) == (1, Placement(1, "a", 3))
        assert told[0] is None  # it follows the owner now, and may have missed something
        with pytest.raises(Moved) as moved:  # b knows of none that is newer
            await cluster.a.submit(3, [create()])
        assert moved.value.fields == {"partition": 3, "member": "a", "epoch": 1}
        with pytest.raises(Moved):
            await cluster.a.ask(3, FindTask(1))
        b.placements.learn(Placement(3, "a", 3))
        assert await cluster.a.ask(3, FindTask(1)) is None
        (reply,) = await cluster.a.activate(3, activation())
        assert reply.rejection is not None

    cluster.play(story)


def test_an_older_placement_changes_nothing(cluster: Cluster) -> None:
    async def story(cluster: Cluster) -> None:
        placements = cluster.members["a"].placements
        assert not placements.learn(Placement(1, "b", 1))
        assert not placements.learn_from(Moved("elsewhere", partition=1, member="b", epoch=0))
        assert not placements.learn_from(Moved("elsewhere"))
        assert not placements.learn_from(Moved("elsewhere", partition=9, member="b", epoch=9))
        assert placements.of(1) == Placement(1, "a", 1)
        assert placements.learn(Placement(1, "z", 2))
        with pytest.raises(Unavailable, match="'z'"):
            cluster.a.submit(1, [create()])

    cluster.play(story)


def test_a_partition_that_is_closed_elsewhere_says_so_and_its_neighbour_goes_on(
    cluster: Cluster,
) -> None:
    async def story(cluster: Cluster) -> None:
        runner = cluster.members["b"].runner
        await runner.close_partition(2)
        for work in (
            lambda: cluster.a.submit(2, [create()]),
            lambda: cluster.a.activate(2, activation()),
            lambda: cluster.a.ask(2, FindTask(1)),
        ):
            with pytest.raises(Moved):
                await work()
        assert partition_of(await key_of_new(cluster.a, 4)) == 4
        await runner.open(2)
        assert partition_of(await key_of_new(cluster.a, 2)) == 2

    cluster.play(story)
