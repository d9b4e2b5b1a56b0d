"""Groups at their home: sessions, generations that outlive the home, the log, and operators."""

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast.client.group_home import NodeMembership, NodeSyncLog
from holdfast.errors import AlreadyExists, InvalidArgument, NotFound, ResourceExhausted
from holdfast.gateway.groups.shapes import (
    GenerationView,
    GroupPartitionQuery,
    Heartbeat,
    NewSession,
    PartitionMove,
    PartitionToken,
    SyncQuery,
)
from holdfast.groups.api import NewPartition
from holdfast.groups.messages import UpdateEpoch, encode
from holdfast.groups.owned import OwnedRun
from holdfast.groups.running import Group
from holdfast.limits import GROUP_CARD_BYTES_MAX, GROUP_MESSAGE_BYTES_MAX, GROUP_SESSION_MS
from holdfast.testing import run
from holdfast.testing.node import MemoryNode
from known_metrics import check_exported

read_answer = msgspec.msgpack.Decoder(tuple[list[tuple[int, int, bytes]], int, int]).decode


async def join(api: Any, member: str, known: int = 0, **options: Any) -> str:
    new = NewSession(f"{member}/1", member.encode(), known, **options)
    return (await api.groups.join("g", new)).session_id


async def beat(api: Any, session: str, known: int = 0, wait_ms: int = 0) -> GenerationView | None:
    return (await api.groups.heartbeat("g", session, Heartbeat(known, wait_ms))).generation


async def kept(api: Any, session: str, known: int, seconds: float) -> None:
    """Keeps a session for a time."""
    for _ in range(int(seconds)):
        assert await beat(api, session, known, 1_000) is None


def names(generation: GenerationView | None) -> list[str]:
    assert generation is not None
    return [each.member.partition("/")[0] for each in generation.members]


def test_members_come_and_go_and_each_change_is_a_generation_with_their_cards() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        api = node.gateway
        a = await join(api, "a")
        first = await beat(api, a, wait_ms=1_000)
        assert first is not None and names(first) == ["a"] and first.leader == "a/1"
        waiting = asyncio.ensure_future(beat(api, a, first.number, 5_000))
        b = await join(api, "b")
        second = await waiting
        assert second is not None and names(second) == ["a", "b"] and second.leader == "a/1"
        assert [each.card for each in second.members] == [b"a", b"b"]
        assert second == await beat(api, b)
        await api.groups.leave("g", a)
        third = await beat(api, b, second.number, 1_000)
        assert third is not None and names(third) == ["b"] and third.leader == "b/1"
        assert first.number < second.number < third.number
        with pytest.raises(NotFound, match="join again"):
            await beat(api, a)
        await node.close()

    run(story())


def test_joins_of_a_moment_share_a_generation() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        sessions = [await join(node.gateway, f"m{number}") for number in range(10)]
        found = [await beat(node.gateway, each, wait_ms=1_000) for each in sessions]
        assert {each.number for each in found if each} == {1}
        assert len(names(found[0])) == 10
        await node.close()

    run(story())


def test_a_member_that_is_not_heard_is_given_up_after_its_session() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        api = node.gateway
        a, b = await join(api, "a"), await join(api, "b", session_ms=2_000)
        found = await beat(api, a, wait_ms=1_000)
        assert names(found) == ["a", "b"]
        began = asyncio.get_running_loop().time()
        after = await beat(api, a, 1, 5_000)
        assert names(after) == ["a"]
        assert 1.8 < asyncio.get_running_loop().time() - began < 2.2
        with pytest.raises(NotFound):
            await beat(api, b)
        await node.close()

    run(story())


def test_a_restarted_home_goes_on_with_the_generation_that_the_log_has() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        a, b = await join(node.gateway, "a"), await join(node.gateway, "b")
        assert names(await beat(node.gateway, a, wait_ms=1_000)) == ["a", "b"]
        begun = UpdateEpoch(0, "a/1", 1, 1, ("a/1", "b/1"))
        await node.gateway.groups.append("g", encode(begun))
        await node.crash()
        await node.restart()
        api = node.gateway
        with pytest.raises(NotFound, match="join again"):
            await beat(api, a)
        a, b = await join(api, "a", known=1), await join(api, "b", known=1)
        await kept(api, a, 1, GROUP_SESSION_MS / 1_000 - 2)
        assert await beat(api, b, 1) is None, "nobody was lost, and nothing has changed"
        c = await join(api, "c")
        found = await beat(api, c, wait_ms=1_000)
        assert found is not None and found.number == 2 and names(found) == ["a", "b", "c"]
        assert [each.card for each in found.members] == [b"a", b"b", b"c"]
        await node.close()

    run(story())


def test_members_that_do_not_come_back_to_a_restarted_home_are_given_up() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        begun = UpdateEpoch(0, "a/1", 1, 7, ("a/1", "b/1"))
        await node.gateway.groups.append("g", encode(begun))
        await node.crash()
        await node.restart()
        b = await join(node.gateway, "b", known=9)
        found = await beat(node.gateway, b, 9, 1_000)
        assert found is not None and found.number == 10, "above all that a member has seen"
        assert names(found) == ["a", "b"]
        await kept(node.gateway, b, 10, GROUP_SESSION_MS / 1_000 - 1)
        assert names(await beat(node.gateway, b, 10, 2_000)) == ["b"]
        await node.close()

    run(story())


def test_a_newer_start_of_a_name_replaces_the_former_at_once() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        api = node.gateway
        former = await join(api, "a")
        await beat(api, former, wait_ms=1_000)
        session = (await api.groups.join("g", NewSession("a/2"))).session_id
        found = await beat(api, session, 1, 1_000)
        assert found is not None and [each.member for each in found.members] == ["a/2"]
        with pytest.raises(AlreadyExists, match="under the name of this member"):
            await beat(api, former)
        await node.close()

    run(story())


def test_messages_are_read_from_an_offset_on_and_waited_for() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        api = node.gateway

        async def read(offset: int, wait_ms: int = 0) -> list[tuple[int, int, bytes]]:
            return read_answer(await api.groups.read("g", SyncQuery(offset, wait_ms=wait_ms)))[0]

        bodies = [encode(UpdateEpoch(0, f"{each}/1", 1, 1, (f"{each}/1",))) for each in "abc"]
        assert await read(-1) == []
        for body in bodies:
            await api.groups.append("g", body)
        assert [each[2] for each in await read(0)] == bodies
        assert [each[2] for each in await read(1)] == bodies[1:]
        waiting = asyncio.ensure_future(read(3, 10_000))
        await asyncio.sleep(1)
        await api.groups.append("g", bodies[0])
        assert [each[2] for each in await waiting] == bodies[:1]
        answer = read_answer(await api.groups.read("g", SyncQuery(-1)))
        assert answer == ([], 0, 4)
        await node.close()

    run(story())


def test_bad_input_is_refused_up_front() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        groups = node.gateway.groups
        for name in ("", "a b", "../x", "ü", "x" * 101, "-a"):
            with pytest.raises(InvalidArgument, match="name of a group"):
                await groups.group(name)
        for member in ("", "a", "/1", "a/", "a/b/c", "x" * 101 + "/1"):
            with pytest.raises(InvalidArgument, match="member"):
                await groups.join("g", NewSession(member))
        with pytest.raises(InvalidArgument, match="card"):
            await groups.join("g", NewSession("a/1", bytes(GROUP_CARD_BYTES_MAX + 1)))
        with pytest.raises(InvalidArgument, match="sessionMs"):
            await groups.join("g", NewSession("a/1", session_ms=1))
        for message in (b"", bytes(GROUP_MESSAGE_BYTES_MAX + 1)):
            with pytest.raises(InvalidArgument, match="message"):
                await groups.append("g", message)
        for token in ("", "x" * 201, "a\n"):
            with pytest.raises(InvalidArgument, match="token"):
                await groups.park("g", PartitionToken(token))
        assert await groups.groups() == [], "nothing of this has made a group"
        for call in (
            groups.group("g"), groups.partitions("g", GroupPartitionQuery()),
            groups.move("g", PartitionMove("p", "a")), groups.park("g", PartitionToken("p")),
            groups.resume("g", PartitionToken("p")), groups.leave("g", "s"),
            groups.heartbeat("g", "s", Heartbeat()),
        ):  # fmt: skip
            with pytest.raises(NotFound, match="'g'"):
                await call
        await node.close()

    run(story())


def test_a_node_counts_its_groups_and_says_what_of_their_logs_is_needed() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        api = node.gateway
        work: list[str] = []

        class Works:
            async def run(self, owned: OwnedRun) -> None:
                work.append(owned.token)
                await owned.leaving()

        now = asyncio.get_running_loop().time
        groups: list[Group] = []
        for name in ("a", "b", "c"):
            log = NodeSyncLog(api, "g")
            await log.look()
            groups.append(
                Group(
                    "g", name, log,
                    lambda member: NodeMembership(api, "g", member, GROUP_SESSION_MS, now),
                    Works(), partitions=[NewPartition(each) for each in ("p", "q", "r")],
                )
            )  # fmt: skip
        tasks = []
        for each in groups:
            tasks.append(asyncio.ensure_future(each.run()))
            await asyncio.sleep(2)
        exposition = await api.node.metrics()
        check_exported(exposition)
        numbers = exposition.decode()
        for line in ("members", "owned", "running"):
            assert f'holdfast_group_{line}{{group="g"}} 3.0' in numbers
        assert 'holdfast_group_rebalances_total{group="g"} 3.0' in numbers
        assert 'holdfast_group_alarms_total{group="g"} 0.0' in numbers
        bounds = node.journal.bounds("group-g", 1)
        assert bounds.earliest > 0, "what an epoch stands for is discarded"
        assert await node.node.groups.needs() == {"group-g": bounds.earliest}
        for each in groups:
            each.stop()
        await asyncio.gather(*tasks)
        await node.close()

    run(story())


def test_a_message_that_nobody_understands_is_refused() -> None:
    async def story() -> None:
        node = await MemoryNode().start()
        with pytest.raises(InvalidArgument, match="message of a group"):
            await node.gateway.groups.append("g", b"hello")
        await node.close()

    run(story())


def test_there_are_not_more_groups_than_a_node_can_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.groups.home.GROUPS_MAX", 2)

    async def story() -> None:
        node = await MemoryNode().start()
        groups = node.gateway.groups
        for name in ("one", "two"):
            await groups.join(name, NewSession("a/1"))
        with pytest.raises(ResourceExhausted, match="at most 2 groups"):
            await groups.join("three", NewSession("a/1"))
        assert [each.group for each in await groups.groups()] == ["one", "two"]
        await node.close()

    run(story())
