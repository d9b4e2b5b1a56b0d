"""The rules of chains, replicas, owners and takers, one by one."""

import pytest

from holdfast.journal.cluster.chain import (
    EntryPlace,
    Opening,
    closed_count,
    closed_counts,
    earliest,
    extended,
    is_older,
    is_opened_by,
    is_rolled_back,
    offset_of,
    place_of,
    pruned,
    range_of,
    resettled,
)
from holdfast.journal.cluster.owner import Lack, OwnerRange
from holdfast.journal.cluster.replica import (
    Again,
    Bound,
    Keep,
    Missing,
    OwnerAlive,
    Promise,
    ReplicaRules,
    Unregistered,
)
from holdfast.journal.cluster.taker import TakeOver, TakePhase
from holdfast.sequence.api import Chain, Replica

A, B, C, D = (Replica(name, f"disk of {name}") for name in "abcd")
T, U = "records", "content"


def opening(owner: str, *replicas: Replica) -> Opening:
    return Opening(owner, f"start of {owner}", replicas or (A, B, C))


def chain_of(*tails: dict[str, int]) -> Chain:
    """Ranges closed behind so many entries each, and an open one."""
    chain = extended(Chain(1), {}, opening("a"))
    for tail, owner in zip(tails, "bcdbcd", strict=False):
        chain = extended(chain, tail, opening(owner))
    return Chain(1, chain.ranges, len(chain.ranges))


# --- chains ---


def test_offsets_and_places_in_a_chain_are_two_ways_to_say_the_same() -> None:
    chain = chain_of({T: 3, U: 1}, {}, {T: 2})
    places = [place_of(chain, T, offset) for offset in range(7)]
    assert places == [(1, 0), (1, 1), (1, 2), (3, 0), (3, 1), (4, 0), (4, 1)]
    assert [offset_of(chain, T, EntryPlace(*each)) for each in places if each] == list(range(7))
    assert place_of(chain, U, 1) == (4, 0)


def test_entries_beyond_the_end_of_a_closed_range_are_void() -> None:
    chain = chain_of({T: 3})
    assert offset_of(chain, T, EntryPlace(1, 3)) is None
    assert offset_of(chain, T, EntryPlace(9, 0)) is None
    assert (closed_count(chain, 1, T), closed_count(chain, 2, T)) == (3, None)
    assert closed_counts(chain, 1) == {T: 3}


def test_ranges_that_nobody_needs_are_pruned_from_the_front() -> None:
    chain = chain_of({T: 3, U: 1}, {T: 2}, {T: 4})
    assert pruned(chain, {T: 5}) == chain  # the content of range 1 is needed
    left = pruned(chain, {T: 8, U: 1})
    assert [each.epoch for each in left.ranges] == [3, 4]
    assert (earliest(left, T), place_of(left, T, 4), place_of(left, T, 5)) == (5, None, (3, 0))
    assert [each.epoch for each in pruned(chain, {T: 99, U: 99}).ranges] == [4]


def test_the_set_of_a_closed_range_may_change_and_that_of_the_open_one_not() -> None:
    chain = chain_of({T: 3})
    changed = range_of(resettled(chain, 1, (A, B, D)), 1)
    assert changed is not None and changed.replicas == (A, B, D)
    with pytest.raises(AssertionError):
        resettled(chain, 2, (A, B, D))


def test_a_store_that_was_put_back_is_told_by_what_was_known_and_by_what_disks_have() -> None:
    chain = chain_of({T: 3})
    assert is_older(chain_of(), chain) and not is_older(chain, chain)
    assert not is_rolled_back(chain, promise=3, newest=2)
    assert is_rolled_back(chain, promise=4, newest=0)
    assert is_rolled_back(chain, promise=3, newest=3)


# --- replicas ---


def test_a_replica_reports_what_is_durable_and_nothing_else() -> None:
    rules = ReplicaRules()
    assert rules.append(1, T, 0, 2) == Keep(0)
    assert rules.append(1, T, 2, 1) == Keep(0)  # while the first is being written
    assert rules.append(1, T, 0, 2) == Again(durable=0)
    assert rules.counts(1) == {}
    assert rules.stored(1, T, 2) == 2
    assert rules.append(1, T, 1, 4) == Keep(skip=2)  # 1 and 2 are here or on their way
    assert rules.append(1, T, 6, 1) == Missing(has=5)


def test_a_promise_that_is_being_written_already_binds() -> None:
    rules = ReplicaRules()
    rules.append(1, T, 0, 1)
    assert rules.fence(1, 2) == Promise(2, is_new=True)
    assert rules.append(1, T, 1, 1) == Bound(2)
    assert rules.stored(1, T, 1) is None, "it is stored, and not reported"
    assert rules.durable_promise == 1
    rules.promised(2)
    assert (rules.durable_promise, rules.counts(1)) == (2, {T: 1})
    assert rules.fence(1, 2) == Promise(2, is_new=False)


def test_a_replica_that_hears_the_owner_refuses_unless_the_owner_agrees() -> None:
    rules = ReplicaRules()
    assert rules.fence(1, 2, hears_owner=True) == OwnerAlive()
    assert rules.fence(1, 2, is_registered=False, is_drain=True) == Unregistered()
    assert rules.fence(1, 2, hears_owner=True, is_drain=True) == Promise(2, is_new=True)
    assert rules.fence(1, 2, hears_owner=True) == Promise(2, is_new=True), "it has promised"
    assert ReplicaRules(promise=5).fence(1, 2) == Bound(5)


def test_a_copy_binds_like_a_fence_and_is_not_reported() -> None:
    rules = ReplicaRules()
    assert rules.copy(1, 2, T, 0, 3) == Keep(0)
    assert rules.promise == 2
    assert rules.stored(1, T, 3) is None
    assert rules.copy(1, 1, T, 3, 1) == Bound(2)


def test_entries_on_a_disk_stand_for_a_promise_after_a_restart() -> None:
    rules = ReplicaRules(0, {3: {T: 1}})
    assert (rules.promise, rules.newest) == (3, 3)
    assert rules.append(2, T, 0, 1) == Bound(3)


def test_a_closed_range_is_filled_up_to_its_end_whatever_was_promised() -> None:
    rules = ReplicaRules(promise=7)
    assert rules.fill(2, T, 0, 5, end=3) == Keep(0)
    assert rules.taken(2, T) == 3
    assert rules.stored(2, T, 3) is None
    assert rules.fill(2, T, 3, 2, end=3) == Again(durable=3)


def test_what_did_not_get_to_the_disk_is_taken_again() -> None:
    rules = ReplicaRules()
    rules.append(1, T, 0, 2)
    rules.lost(1, T)
    assert rules.append(1, T, 0, 2) == Keep(0)


def test_a_log_begins_behind_a_snapshot() -> None:
    rules = ReplicaRules()
    rules.jump(2, T, 10)
    assert rules.append(2, T, 9, 1) == Again(durable=10)
    assert rules.append(2, T, 10, 1) == Keep(0)


# --- owners ---


def owned(chain: Chain) -> OwnerRange:
    assert chain.last is not None
    return OwnerRange(chain.last)


def test_what_a_quorum_of_the_set_has_reported_is_acknowledged() -> None:
    ours = owned(chain_of())
    assert (ours.append(T, 3), ours.append(T, 2), ours.append(U, 1)) == (0, 3, 0)
    assert ours.reported(A, T, 5) is None
    assert ours.reported(D, T, 5) is None, "not a disk of the set"
    assert ours.reported(Replica("b", "another disk"), T, 5) is None
    assert ours.reported(B, T, 3) == 3
    assert ours.reported(B, T, 1) is None, "an old report takes nothing back"
    assert (ours.acknowledged(T), ours.acknowledged(U), ours.is_drained) == (3, 0, False)
    assert ours.lacks(B) == [Lack(T, 3, 5), Lack(U, 0, 1)]


def test_a_fenced_owner_takes_nothing_new_and_still_counts() -> None:
    ours = owned(chain_of())
    ours.append(T, 1)
    assert not ours.fenced(1), "a promise to this very epoch is none against it"
    assert ours.fenced(2) and not ours.fenced(2)
    assert ours.append(T, 1) is None
    ours.reported(A, T, 1)
    assert ours.reported(B, T, 1) == 1


def test_an_owner_that_stopped_to_hand_over_can_still_be_fenced() -> None:
    ours = owned(chain_of())
    ours.append(T, 1)
    ours.stop()
    assert ours.append(T, 1) is None and not ours.is_ended
    assert ours.fenced(2), "callers that wait for what was sent must be told"


def test_a_report_of_more_than_was_sent_fences_the_owner() -> None:
    ours = owned(chain_of())
    ours.append(T, 1)
    assert ours.reported(A, T, 2) is None
    assert ours.is_ended and ours.acknowledged(T) == 0


def test_an_answer_is_confirmed_by_a_quorum_that_has_promised_nothing_newer() -> None:
    ours = owned(chain_of())
    assert not ours.is_confirmed({A: 1})
    assert ours.is_confirmed({A: 1, B: 0})
    assert not ours.is_confirmed({A: 1, B: 2, C: 2})


# --- takers ---


def test_a_taker_fences_copies_and_closes_behind_the_longest_answers() -> None:
    chain = chain_of()
    take = TakeOver(chain, opening("b", B, C, D))
    take.promised(D, {T: 9})  # not of the range's own set
    take.promised(B, {T: 2, U: 1})
    assert not take.can_choose
    take.promised(C, {T: 3})
    assert take.choose() == {T: 3, U: 1}
    assert (take.lacks(B), take.lacks(C)) == ([Lack(T, 2, 3)], [Lack(U, 0, 1)])
    assert (take.holders(T), take.holders(U)) == ([C], [B])
    take.copied(B, {T: 3, U: 1})
    assert not take.can_close
    take.promised(A, {T: 5, U: 1})  # a late answer has all of the tail, and more
    wanted = take.close()
    assert wanted.last is not None
    assert (wanted.last.starts, wanted.last.replicas) == ({T: 3, U: 1}, (B, C, D))
    assert wanted.revision == chain.revision


def closing(chain: Chain) -> TakeOver:
    take = TakeOver(chain, opening("b"))
    for each in (B, C):
        take.promised(each, {})
    take.choose()
    take.close()
    return take


def test_what_became_of_a_write_is_told_by_the_nonce() -> None:
    chain = chain_of()
    assert closing(chain).read_back(chain) is TakePhase.CLOSING
    mine, another = (extended(chain, {}, opening(owner)) for owner in "bc")
    assert closing(chain).read_back(mine) is TakePhase.WON
    assert closing(chain).read_back(another) is TakePhase.BEATEN
    assert closing(chain).read_back(extended(mine, {}, opening("c"))) is TakePhase.BEATEN
    resettled_since = Chain(1, chain.ranges, chain.revision + 1)
    assert closing(chain).read_back(resettled_since) is TakePhase.BEATEN
    assert not is_opened_by(mine, 2, Opening("b", "an earlier start", (A, B, C)))


def test_a_taker_that_hears_of_more_than_its_chain_has_stops() -> None:
    chain = chain_of({T: 1})
    promised, entries = (TakeOver(chain, opening("c")) for _ in range(2))
    promised.saw(5, 0)
    entries.promised(B, {}, newest=3)
    assert {promised.phase, entries.phase} == {TakePhase.BEATEN}
    assert promised.is_rolled_back(chain) and entries.is_rolled_back(chain)
    assert not entries.is_rolled_back(chain_of({T: 1}, {})), "somebody was faster"


def test_a_partition_that_was_never_written_has_nothing_to_fence() -> None:
    take = TakeOver(Chain(1), opening("a"))
    assert take.can_close
    assert take.close().epoch == 1


def test_an_owner_hands_over_what_a_quorum_holds() -> None:
    chain = chain_of({T: 4})
    ours = owned(chain)
    ours.append(T, 2)
    ours.stop()
    with pytest.raises(AssertionError, match="a quorum holds all"):
        TakeOver.by_owner(chain, ours, opening("c"))
    for each in (A, C):
        ours.reported(each, T, 2)
    wanted = TakeOver.by_owner(chain, ours, opening("c")).close()
    assert wanted.last is not None
    assert (wanted.last.owner, wanted.last.starts) == ("c", {T: 6})
