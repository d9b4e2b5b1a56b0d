"""The conductor by itself: what it lets go of, and what it follows, as chains change."""

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast.cluster.conductor import Conductor
from holdfast.cluster.placing import HandOver, MemberSight
from holdfast.limits import CLUSTER_ACTOR_MS
from holdfast.sequence.api import Chain, LiveMember, Range, Replica
from holdfast.testing import VirtualClock, run

HERE, THERE, THIRD = Replica("a", "d1"), Replica("b", "d2"), Replica("c", "d3")
BOTH = (HERE, THERE)


class Chains:
    """Chains that a test writes."""

    def __init__(self) -> None:
        self.on_chain: list[Callable[[Chain], None]] = []
        self.on_fenced: list[Callable[[int], None]] = []
        self.chains: dict[int, Chain] = {}
        self.fenced: set[int] = set()

    def write(self, partition: int, epoch: int, owner: str, replicas: Any = BOTH) -> None:
        ranges = (Range(epoch, owner, f"nonce of {owner}", replicas, {}),)
        chain = self.chains[partition] = Chain(partition, ranges, epoch)
        for tell in self.on_chain:
            tell(chain)

    def fence(self, partition: int) -> None:
        self.fenced.add(partition)
        for tell in self.on_fenced:
            tell(partition)

    def is_fenced(self, partition: int) -> bool:
        return partition in self.fenced

    def chain(self, partition: int) -> Chain:
        return self.chains.get(partition) or Chain(partition)

    async def learn(self, partition: int) -> Chain:
        return self.chain(partition)

    async def hand_over(self, partition: int, to: LiveMember) -> Chain:
        raise AssertionError("nobody is asked to hand over")


class Doors:
    """What is open, and what was said about it."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.said: list[tuple[str, int]] = []
        self.on_open: Callable[[int], None] = lambda partition: None

    async def open(self, partition: int, epoch: int | None = None) -> None:
        self.said.append(("open", partition))
        self.on_open(partition)

    async def close_partition(self, partition: int) -> None:
        self.said.append(("close", partition))

    def epoch(self, partition: int) -> int | None:
        return self.epochs.get(partition)

    def lose(self, partition: int) -> None:
        self.said.append(("lose", partition))
        self.epochs.pop(partition, None)

    def stand_by(self, partition: int) -> None:
        self.said.append(("stand by", partition))

    def forget(self, partition: int) -> None:
        self.said.append(("forget", partition))

    def follow_again(self) -> None:
        pass


class View:
    """Three members; while etcd is away nothing but letting go is done."""

    def __init__(self) -> None:
        self.is_etcd_there = False
        self.gone: set[str] = set()

    def members(self) -> dict[str, MemberSight]:
        names = {"a": HERE, "b": THERE, "c": THIRD}
        return {
            name: MemberSight(
                name.encode().hex(), each.disk, None if name in self.gone else f"nonce of {name}"
            )
            for name, each in names.items()
        }

    def live(self) -> dict[str, LiveMember]:
        return {}

    def can_act(self) -> bool:
        return self.is_etcd_there

    def has_all(self, partition: int, member: str) -> bool:
        return True

    def tell(self, chain: Chain) -> None:
        raise AssertionError("there is nothing to tell")


class Stage:
    """A conductor of two partitions, and what is around it."""

    def __init__(self) -> None:
        self.chains, self.doors, self.view = Chains(), Doors(), View()
        self.conductor = Conductor("a", "d1", 2, 3, self.chains, self.doors, self.view)
        self.doors.on_open = self._opened
        for partition in (1, 2):
            self.chains.write(partition, 3, "a")
            self.doors.epochs[partition] = 3

    def _opened(self, partition: int) -> None:
        epoch = self.doors.epochs[partition] = self.chains.chain(partition).epoch + 1
        self.chains.write(partition, epoch, "a", (HERE, THERE, THIRD))

    async def look(self) -> list[tuple[str, int]]:
        """What is said when it has looked at what has changed."""
        self.doors.said.clear()
        self.conductor.look()
        await asyncio.sleep(0.01)
        return list(self.doors.said)


def play(story: Callable[[Stage], Any]) -> None:
    async def whole() -> None:
        stage = Stage()
        stage.conductor.start()
        await asyncio.sleep(0.01)
        await story(stage)
        await stage.conductor.stop()

    run(whole(), VirtualClock())


def test_a_partition_is_lost_once_somebody_has_it_in_a_newer_epoch() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.look() == []
        stage.chains.write(1, 4, "b")
        await asyncio.sleep(0.01)
        assert stage.doors.said == [("lose", 1)], "at once, though nothing was appended"
        assert await stage.look() == [], "and once"
        assert stage.conductor.owned() == [2]

    play(story)


def test_a_partition_in_its_own_epoch_or_one_that_is_not_known_yet_is_kept() -> None:
    async def story(stage: Stage) -> None:
        stage.chains.write(1, 3, "a")
        stage.doors.epochs[2] = 4  # it was opened, and the chain has not come yet
        assert await stage.look() == []
        assert stage.conductor.owned() == [1, 2]

    play(story)


def test_a_partition_that_is_on_the_move_is_let_go_when_that_is_over() -> None:
    async def story(stage: Stage) -> None:
        doing = type("Doing", (), {"wanted": HandOver("b"), "task": None})()
        stage.conductor._doing[1] = doing
        stage.chains.write(1, 4, "b")
        assert await stage.look() == [], "the member that moves it closes it"
        assert stage.conductor.is_used(1)
        del stage.conductor._doing[1]
        assert await stage.look() == [("lose", 1)]

    play(story)


def test_a_log_is_followed_while_it_is_kept_here_and_forgotten_after_that() -> None:
    async def story(stage: Stage) -> None:
        stage.chains.write(1, 4, "b", (THERE, THIRD))
        assert await stage.look() == [("lose", 1), ("forget", 1)]
        assert not stage.conductor.is_used(1)
        stage.chains.write(1, 5, "b", (HERE, THERE, THIRD))
        assert await stage.look() == [("stand by", 1)]
        assert stage.conductor.is_used(1)
        stage.chains.write(1, 6, "b", (Replica("a", "another disk"), THERE))
        assert await stage.look() == [("forget", 1)], "the disk is named, not the member"

    play(story)


def test_a_partition_that_was_fenced_is_let_go_though_no_newer_epoch_is_known() -> None:
    async def story(stage: Stage) -> None:
        assert await stage.look() == []
        stage.chains.fence(1)
        await asyncio.sleep(0.01)
        assert stage.doors.said == [("lose", 1)], "at once: its appends are refused"
        assert await stage.look() == [], "and once"
        assert stage.conductor.owned() == [2]

    play(story)


def test_a_partition_that_its_actor_does_not_take_is_taken_by_another_that_has_its_log() -> None:
    async def story(stage: Stage) -> None:
        stage.chains.write(2, 4, "c", (HERE, THERE, THIRD))
        assert await stage.look() == [("lose", 2)]
        stage.view.is_etcd_there, stage.view.gone = True, {"c"}
        assert await stage.look() == [], "b owns nothing: it is the one to take it"
        await asyncio.sleep(CLUSTER_ACTOR_MS / 2_000)
        stage.chains.write(1, 3, "a")  # somebody is at work
        await asyncio.sleep(0.6 * CLUSTER_ACTOR_MS / 1_000)
        assert stage.doors.said == []
        await asyncio.sleep(CLUSTER_ACTOR_MS / 1_000)
        assert stage.doors.said == [("open", 2)], "b does nothing"

    play(story)


def test_a_partition_whose_log_is_elsewhere_is_not_taken_however_late_it_is() -> None:
    async def story(stage: Stage) -> None:
        stage.chains.write(2, 4, "c", (THERE, THIRD))
        await stage.look()
        stage.view.is_etcd_there, stage.view.gone = True, {"c"}
        assert await stage.look() == []
        await asyncio.sleep(5 * CLUSTER_ACTOR_MS / 1_000)
        assert stage.doors.said == []

    play(story)
