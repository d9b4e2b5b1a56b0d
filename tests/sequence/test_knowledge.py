"""What a store lacks of what members know: never less than anybody knows, never a contradiction."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sequence.api import Chain, ClusterSettings, Range, Registered, Replica
from holdfast.sequence.knowledge import DiskSeen, Knowledge, StoredHead, StoredState, plan_repair

NAMES = ("a", "b", "c")
SETTINGS = ClusterSettings("one", 2)
MEMBERS = [Registered(name, f"key of {name}") for name in NAMES]
DISKS = tuple(Replica(name, f"disk of {name}") for name in NAMES)


def chain(partition: int, epoch: int, *, nonce: str = "", revision: int = 0) -> Chain:
    """The history of a partition up to an epoch; with a nonce, the last range is another one."""
    ranges = [
        Range(each, NAMES[each % 3], f"start {each}", DISKS, {"t": 10 * each})
        for each in range(1, epoch + 1)
    ]
    if nonce:
        ranges[-1] = msgspec.structs.replace(ranges[-1], nonce=nonce)
    return Chain(partition, tuple(ranges), revision or epoch)


def knows(name: str, epochs: tuple[int, int], cut: int = 0, **rest: object) -> Knowledge:
    replica = next(each for each in DISKS if each.member == name)
    seen = {at: DiskSeen(epoch, epoch) for at, epoch in enumerate(epochs, 1)}
    chains = [chain(at, epoch) for at, epoch in enumerate(epochs, 1) if epoch]
    found = Knowledge(
        name, replica, 2, f"start of {name}", SETTINGS, MEMBERS, chains, seen, cut,
        f"cut {cut}" if cut else "",
    )  # fmt: skip
    return msgspec.structs.replace(found, **rest)


def stored(epochs: tuple[int, int], cut: int = 0) -> StoredState:
    chains = {at: chain(at, epoch) for at, epoch in enumerate(epochs, 1) if epoch}
    head = StoredHead(cut, f"cut {cut}" if cut else "")
    return StoredState(SETTINGS, MEMBERS, [], chains, dict.fromkeys(DISKS, 2), head)


epochs = st.tuples(st.integers(0, 5), st.integers(0, 5))


@given(
    st.tuples(epochs, epochs, epochs), epochs, st.lists(st.integers(0, 9), min_size=4, max_size=4)
)
def test_the_store_gets_the_most_that_anybody_knows(known, there, cuts) -> None:
    members = [knows(*each) for each in zip(NAMES, known, cuts[:3], strict=True)]
    state = stored(there, cuts[3])
    plan = plan_repair(state, members)
    assert plan.problems == []
    after = {at: each.epoch for at, each in state.chains.items()}
    for each in plan.chains:
        assert each.epoch > after.get(each.partition, 0), "nothing newer is replaced"
        was = state.chains.get(each.partition)
        assert each.revision == (0 if was is None else was.revision), "it is guarded"
        after[each.partition] = each.epoch
    for at in (1, 2):
        assert after.get(at, 0) == max(there[at - 1], *(each[at - 1] for each in known))
    number = state.head.number if plan.cut is None else plan.cut.number
    assert number == max(cuts)
    assert plan.is_empty == (not plan.chains and plan.cut is None)


@given(
    epochs,
    st.sampled_from(NAMES),
    st.sampled_from([DiskSeen(8, 0), DiskSeen(6, 6), DiskSeen(0, 6)]),
)
def test_a_disk_that_has_seen_more_than_anybody_knows_stands_against_it(known, name, seen) -> None:
    members = [knows(each, known) for each in NAMES]
    at = NAMES.index(name)
    members[at] = msgspec.structs.replace(members[at], seen={1: seen})
    plan = plan_repair(stored((0, 0)), members)
    assert any(f"The disk of {name} has seen epoch" in each for each in plan.problems)


def test_a_promise_of_the_next_epoch_alone_is_no_contradiction() -> None:
    members = [knows(each, (3, 3), seen={1: DiskSeen(4, 3)}) for each in NAMES]
    assert plan_repair(stored((1, 1)), members).problems == []


def test_two_ranges_of_one_epoch_stand_against_it() -> None:
    other = [chain(1, 3, nonce="another start"), chain(2, 3)]
    members = [knows("a", (3, 3)), knows("b", (3, 3), chains=other), knows("c", (3, 3))]
    assert "two different ranges of epoch 3" in plan_repair(stored((1, 1)), members).problems[0]
    state = stored((1, 1))
    forked = msgspec.structs.replace(state, chains={1: chain(1, 2, nonce="after the roll-back")})
    members = [knows(each, (3, 3)) for each in NAMES]
    assert "known to the store" in plan_repair(forked, members).problems[0]


def test_pruned_ranges_and_other_disks_of_closed_ones_are_no_contradiction() -> None:
    whole = chain(1, 4, revision=9)
    moved = msgspec.structs.replace(whole.ranges[2], replicas=DISKS[:2])
    newer = Chain(1, (moved, whole.ranges[3]), 12)
    members = [knows("a", (4, 1), chains=[whole]), knows("b", (4, 1), chains=[newer])]
    plan = plan_repair(stored((2, 1)), [*members, knows("c", (3, 1))])
    assert plan.problems == []
    assert [each.ranges for each in plan.chains] == [newer.ranges], "the newest that was read"


def test_members_that_are_missing_are_counted_and_given_up() -> None:
    two = [knows("a", (3, 3)), knows("b", (3, 3))]
    assert "Member c does not answer" in plan_repair(stored((3, 3)), two).problems[0]
    plan = plan_repair(stored((3, 3)), two, ["c"])
    assert plan.problems == []
    assert plan.registered == MEMBERS[:2]
    assert plan.removed == ["key of c"]
    alone = plan_repair(stored((3, 3)), two[:1], ["b", "c"])
    assert any("at most 1 may be missing" in each for each in alone.problems)
    assert any("1 disks of partition 1 answer, but 2 are needed" in each for each in alone.problems)


def test_a_member_that_was_removed_after_the_copy_is_removed_again() -> None:
    members = [knows(each, (1, 1), registered=MEMBERS[:2]) for each in NAMES[:2]]
    plan = plan_repair(stored((1, 1)), members)
    assert plan.problems == []
    assert (plan.registered, plan.removed) == (MEMBERS[:2], ["key of c"])


def test_who_is_a_member_for_some_only_has_to_be_decided() -> None:
    members = [knows("a", (1, 1)), knows("b", (1, 1), registered=MEMBERS[:2])]
    plan = plan_repair(stored((1, 1)), members)
    assert any("a member for some" in each for each in plan.problems)
    assert plan_repair(stored((1, 1)), members, ["c"]).problems == []


def test_another_cluster_another_key_and_another_cut_stand_against_it() -> None:
    well = [knows(each, (1, 1), 5) for each in NAMES]
    other = ClusterSettings("another", 2)
    for wrong in (
        {"settings": other},
        {"registered": [*MEMBERS[:2], Registered("c", "another key")]},
        {"cut_nonce": "another cut 5"},
    ):
        members = [*well[:2], msgspec.structs.replace(well[2], **wrong)]
        assert plan_repair(stored((1, 1), 2), members).problems, wrong
    assert plan_repair(stored((1, 1), 2), well).problems == []


def test_starts_of_disks_are_counted_again() -> None:
    members = [knows(each, (1, 1), boots=7) for each in NAMES]
    plan = plan_repair(stored((1, 1)), members)
    assert plan.boots == {each.replica: (7, each.nonce) for each in members}
