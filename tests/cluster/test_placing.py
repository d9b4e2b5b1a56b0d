"""The rule of placement: one actor, an end, few moves, and nothing that flaps."""

from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cluster.placing import (
    Action,
    Adopt,
    HandOver,
    MemberSight,
    PlacementPlan,
    Sight,
    action,
    is_missing_replicas,
    is_wrong_set,
    preferred,
    wanted_set,
)
from holdfast.sequence.api import Chain, Range, Replica

PARTITIONS = 8
NAMES = ("a", "b", "c", "d", "e")


class Process(NamedTuple):
    """A member of the model: whether it runs, on which disk, in which start."""

    runs: bool
    disk: int
    start: int
    drains: bool = False


class World:
    """Members that all see the same, and partitions that do what the rule says."""

    def __init__(self, names: str = "abc") -> None:
        self.processes = {name: Process(True, 0, 0) for name in names}
        self.chains = {each: Chain(each) for each in range(1, PARTITIONS + 1)}
        self.open: dict[int, str] = {}
        self.is_calm = self.is_rebalancing = True

    def sight(self, me: str) -> Sight:
        members = {
            name: MemberSight(
                sha256(name.encode()).hexdigest(),
                f"{name}{each.disk}" if each.runs else None,
                f"{name}/{each.start}" if each.runs else None,
                each.drains,
            )
            for name, each in self.processes.items()
        }
        return Sight(
            me, members, 3, PARTITIONS, is_calm=self.is_calm, is_rebalancing=self.is_rebalancing
        )

    def actions(self, partition: int) -> dict[str, Action]:
        """Who wants to do what about a partition."""
        found = {}
        for name, process in self.processes.items():
            if process.runs:
                is_open = self.open.get(partition) == name
                wanted = self.wanted(partition, self.sight(name), is_open=is_open)
                if wanted is not None:
                    found[name] = wanted
        return found

    def wanted(self, partition: int, sight: Sight, *, is_open: bool) -> Action | None:
        """What a member that sees this wants to do about a partition."""
        plan = PlacementPlan(self.chains.values, sight)
        return action(self.chains[partition], sight, plan, is_open=is_open)

    def step(self) -> int:
        """Everybody does what it finds; how many acted. Two for one partition are too many."""
        acted = 0
        for partition in self.chains:
            actions = self.actions(partition)
            assert len(actions) <= 1, (partition, actions)
            for name, wanted in actions.items():
                acted += 1
                if isinstance(wanted, Adopt):
                    assert self.last(partition).owner == name
                    self.open[partition] = name
                else:
                    self._open(partition, wanted.to if isinstance(wanted, HandOver) else name)
        return acted

    def _open(self, partition: int, owner: str) -> None:
        chain, sight = self.chains[partition], self.sight(owner)
        process = self.processes[owner]
        replicas = wanted_set(partition, chain.last, sight)
        assert replicas, "somebody runs"
        opened = Range(chain.epoch + 1, owner, f"{owner}/{process.start}", replicas, {})
        self.chains[partition] = msgspec.structs.replace(chain, ranges=(*chain.ranges, opened))
        self.open.pop(partition, None)

    def hand(self, partition: int, to: str) -> None:
        """Somebody moves a partition by hand."""
        self._open(partition, to)
        self.open[partition] = to

    def settle(self) -> int:
        """Until nobody wants anything any more; how many ranges were opened."""
        before = sum(len(each.ranges) for each in self.chains.values())
        for _ in range(50):
            if not self.step():
                return sum(len(each.ranges) for each in self.chains.values()) - before
        raise AssertionError("it does not end")

    def last(self, partition: int) -> Range:
        last = self.chains[partition].last
        assert last is not None
        return last

    def owners(self) -> dict[int, str]:
        return {each: self.last(each).owner for each in self.chains}

    def shares(self) -> list[int]:
        """How many partitions each member has, the fewest first."""
        counts = Counter(self.owners().values())
        return sorted(counts[name] for name, each in self.processes.items() if each.runs)

    def change(self, name: str, **fields: object) -> None:
        self.processes[name] = self.processes[name]._replace(**fields)  # pyright: ignore
        if fields.get("runs") is False:
            self.open = {each: owner for each, owner in self.open.items() if owner != name}

    def _has(self, replica: Replica) -> bool:
        process = self.processes.get(replica.member)
        return (
            process is not None
            and process.runs
            and f"{replica.member}{process.disk}" == replica.disk
        )

    def check(self) -> None:
        """All that can be had is there."""
        running = {name for name, each in self.processes.items() if each.runs}
        staying = {name for name in running if not self.processes[name].drains}
        for partition in self.chains:
            last = self.last(partition)
            there = {each.member for each in last.replicas if self._has(each)}  # with that disk
            if len(there) >= 2:
                assert last.owner in running
                assert self.open[partition] == last.owner
                if there & staying:
                    assert last.owner in staying
                    assert last.owner in there or not self.is_calm


def test_all_partitions_are_opened_once_and_shared_evenly() -> None:
    world = World()
    assert world.settle() == PARTITIONS
    assert world.shares() == [2, 3, 3]
    assert world.step() == 0
    world.check()


@pytest.mark.parametrize("partitions", [3, 4, 7, 64])
@pytest.mark.parametrize("members", [1, 2, 3, 5])
def test_no_member_is_preferred_for_more_than_its_share(partitions: int, members: int) -> None:
    for luck in range(20):
        keys = [sha256(b"%d/%d" % (luck, each)).hexdigest() for each in range(members)]
        sight = Sight(keys[0], {key: MemberSight(key) for key in keys}, 3, partitions)
        owned = Counter(preferred(each, sight)[0] for each in range(1, partitions + 1))
        assert max(owned.values()) <= -(-partitions // members)
        assert sorted(preferred(1, sight)) == sorted(keys)


def test_a_member_that_joins_takes_its_share_and_nothing_else_moves() -> None:
    world = World("ab")
    world.settle()
    before = world.owners()
    world.processes["c"] = Process(True, 0, 0)
    world.settle()
    moved = {each for each, owner in world.owners().items() if owner != before[each]}
    assert {world.owners()[each] for each in moved} == {"c"}
    assert world.shares() == [2, 3, 3]


def test_more_members_than_replicas_share_evenly_too() -> None:
    world = World("abcde")
    world.settle()
    assert world.shares() == [1, 1, 2, 2, 2]
    world.change("e", runs=False)
    world.settle()
    assert world.shares() == [2, 2, 2, 2]
    world.check()


def test_an_owner_whose_disk_is_no_longer_one_of_the_partitions_hands_it_over() -> None:
    world = World()
    world.settle()
    world.is_rebalancing = False
    for name in "de":
        world.processes[name] = Process(True, 0, 0)
    world.settle()
    for partition in world.chains:
        last = world.last(partition)
        assert last.owner in {each.member for each in last.replicas}
    world.check()


def test_a_lost_member_moves_its_own_partitions_only_and_gets_its_share_again() -> None:
    world = World()
    world.settle()
    before, shares = world.owners(), world.shares()
    lost = [each for each, owner in before.items() if owner == "b"]
    assert lost
    world.is_calm = world.is_rebalancing = False
    world.change("b", runs=False)
    assert world.settle() == len(lost)
    assert world.shares() == [4, 4]  # the least loaded takes each
    now = world.owners()
    assert {each: now[each] for each in now if each not in lost} == {
        each: owner for each, owner in before.items() if owner != "b"
    }
    world.change("b", runs=True, start=1)
    assert world.settle() == 0  # it is back: nothing moves before it is calm
    world.is_calm = world.is_rebalancing = True
    assert world.settle() <= len(lost)
    assert world.shares() == shares


def test_what_people_moved_stays_until_members_come_or_go() -> None:
    world = World()
    world.settle()
    mine = [each for each, owner in world.owners().items() if owner == "a"]
    world.is_rebalancing = False
    for partition in mine:
        world.hand(partition, "b")
    assert world.settle() == 0
    world.is_rebalancing = True
    world.settle()
    assert world.shares() == [2, 3, 3]


def test_a_member_that_flaps_makes_nothing_flap() -> None:
    world = World()
    world.settle()
    world.is_calm = False
    world.is_rebalancing = True
    world.change("b", runs=False)
    moved = world.settle()
    for start in range(1, 20):
        world.change("b", runs=True, start=start)
        assert world.settle() == 0
        world.change("b", runs=False)
        assert world.settle() == 0
    assert moved <= PARTITIONS


def only(full: str) -> Callable[[int, str], bool]:
    """Nobody else has all of any partition."""
    return lambda _, name: name == full


def test_of_those_that_have_the_log_one_that_has_the_state_takes_a_partition_first() -> None:
    world = World()
    world.settle()
    owner = world.last(1).owner
    survivors = [name for name in world.processes if name != owner]
    for is_back in (False, True):
        world.processes[owner] = world.processes[owner]._replace(runs=is_back, start=1)
        for full in survivors:
            sights = {
                name: msgspec.structs.replace(world.sight(name), has_all=only(full))
                for name, each in world.processes.items()
                if each.runs
            }
            wanted = {name: world.wanted(1, sights[name], is_open=False) for name in sights}
            assert [name for name, found in wanted.items() if found is not None] == [full]


def test_an_owner_that_starts_anew_takes_its_own_partitions() -> None:
    world = World()
    world.settle()
    before = world.owners()
    world.is_calm = world.is_rebalancing = False
    for name in "abc":  # all at once
        world.change(name, runs=False)
    for name in "abc":
        world.change(name, runs=True, start=1)
    assert world.settle() == PARTITIONS
    assert world.owners() == before


def test_a_member_that_is_away_keeps_its_place_and_gets_no_other() -> None:
    keys = {name: sha256(name.encode()).hexdigest() for name in "abcd"}
    there = {name: MemberSight(key, f"{name}0", f"{name}/0") for name, key in keys.items()}
    for away in "abcd":
        members = there | {away: MemberSight(keys[away], f"{away}0")}
        for partition in range(1, PARTITIONS + 1):
            sight = Sight("a", members, 3, PARTITIONS)
            fresh = wanted_set(partition, None, sight)
            assert {each.member for each in fresh} == set("abcd") - {away}
            before = wanted_set(partition, None, Sight("a", there, 3, PARTITIONS))
            last = Range(1, "a", "a/0", before, {})
            assert wanted_set(partition, last, sight) == before


def test_a_draining_member_gives_everything_away_and_gets_nothing() -> None:
    world = World()
    world.settle()
    world.change("a", drains=True)
    world.is_calm = False
    world.settle()
    assert "a" not in world.owners().values()
    world.change("b", runs=False)
    world.settle()
    assert set(world.owners().values()) == {"c"}
    world.check()


def test_a_replaced_disk_changes_sets_when_it_is_calm_and_not_before() -> None:
    world = World()
    world.settle()
    world.is_calm = False
    world.change("b", runs=False)
    world.settle()
    world.change("b", runs=True, start=1, disk=1)
    world.settle()
    assert all(is_wrong_set(each, world.last(each), world.sight("a")) for each in world.chains)
    assert "b" not in world.owners().values()  # it has none of the log
    world.is_calm = True
    world.settle()
    disks = {Replica(name, f"{name}{int(name == 'b')}") for name in "abc"}
    assert {frozenset(world.last(each).replicas) for each in world.chains} == {frozenset(disks)}


def test_a_removed_member_leaves_the_sets_and_a_new_one_joins_them() -> None:
    world = World()
    world.settle()
    del world.processes["c"]
    world.open = {each: owner for each, owner in world.open.items() if owner != "c"}
    world.settle()
    assert all(
        {each.member for each in world.last(partition).replicas} == {"a", "b"}
        for partition in world.chains
    )
    assert all(not is_missing_replicas(world.last(each), world.sight("a")) for each in world.chains)
    world.processes["d"] = Process(True, 0, 0)
    assert all(is_missing_replicas(world.last(each), world.sight("a")) for each in world.chains)
    world.settle()
    assert all(len(world.last(each).replicas) == 3 for each in world.chains)
    world.check()


def test_one_that_has_not_all_of_the_log_is_waited_for() -> None:
    world = World()
    world.settle()
    mine = [each for each, owner in world.owners().items() if owner == "a"]
    for partition in mine:
        world.hand(partition, "b")
    sight = world.sight("b")
    wanted = {each: world.wanted(each, sight, is_open=True) for each in world.chains}
    moves = [each for each, found in wanted.items() if found == HandOver("a")]
    assert len(moves) == len(mine)
    behind = msgspec.structs.replace(sight, has_all=only("b"))
    started = msgspec.structs.replace(sight, is_settled=False)
    for partition in moves:
        assert world.wanted(partition, behind, is_open=True) is None
        assert world.wanted(partition, started, is_open=False) is None


events = st.lists(
    st.one_of(
        st.tuples(st.just("crash"), st.sampled_from(NAMES)),
        st.tuples(st.just("start"), st.sampled_from(NAMES)),
        st.tuples(st.just("wipe"), st.sampled_from(NAMES)),
        st.tuples(st.just("drain"), st.sampled_from(NAMES)),
        st.tuples(st.just("join"), st.sampled_from(NAMES)),
        st.tuples(st.just("remove"), st.sampled_from(NAMES)),
        st.tuples(st.just("calm"), st.booleans()),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(events)
def test_one_acts_and_it_ends_whatever_happens(story: list[tuple[str, object]]) -> None:
    world = World()
    world.settle()
    for what, about in story:
        if what == "calm":
            world.is_calm = world.is_rebalancing = bool(about)
        else:
            happen(world, what, str(about))
        if any(each.runs for each in world.processes.values()):
            world.settle()
            world.check()


def happen(world: World, what: str, name: str) -> None:
    if what == "join" and name not in world.processes:
        world.processes[name] = Process(True, 7, 0)
    elif name not in world.processes:
        return
    process = world.processes[name]
    others = [each for each, one in world.processes.items() if one.runs and each != name]
    if what == "crash":
        world.change(name, runs=False)
    elif what == "start" and not process.runs:
        world.change(name, runs=True, start=process.start + 1, drains=False)
    elif what == "wipe" and not process.runs and len(others) >= 2 and world.is_calm:
        world.change(name, runs=True, start=process.start + 1, disk=process.disk + 1)
    elif what == "drain":
        world.change(name, drains=True)
    elif what == "remove" and len(others) >= 2 and world.is_calm:
        world.change(name, runs=False)
        world.settle()
        del world.processes[name]
