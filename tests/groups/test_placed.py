"""Who is to own what, where another log than a group's says who does now."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.groups.sharing import placed

MEMBERS = ("a", "b", "c", "d")
owners = st.dictionaries(st.integers(1, 40), st.sampled_from(("", "gone", *MEMBERS)), max_size=40)


@given(owners)
def test_where_everybody_is_able_shares_differ_by_one_at_the_most(before: dict[int, str]) -> None:
    everybody = dict.fromkeys(before, MEMBERS)
    after = placed(before, everybody, everybody)
    shares = Counter(dict.fromkeys(MEMBERS, 0))
    shares.update(after.values())
    assert after.keys() == before.keys()
    assert max(shares.values()) - min(shares.values()) <= 1
    assert placed(after, everybody, everybody) == after


@given(owners)
def test_only_what_is_above_a_share_moves(before: dict[int, str]) -> None:
    everybody = dict.fromkeys(before, MEMBERS)
    after = placed(before, everybody, everybody)
    had = Counter(owner for owner in before.values() if owner in MEMBERS)
    share = len(before) // len(MEMBERS)
    moved = Counter(owner for each, owner in before.items() if after[each] != owner)
    assert all(moved[each] <= max(0, had[each] - share) for each in MEMBERS)


@given(owners, st.data())
def test_nobody_is_given_what_it_is_not_able_to_own(
    before: dict[int, str], data: st.DataObject
) -> None:
    able = {each: data.draw(st.sets(st.sampled_from(MEMBERS))) for each in before}
    ready = {each: {name for name in able[each] if name < "c"} for each in before}
    after = placed(before, able, ready)
    assert after.keys() == {each for each in before if able[each]}
    for partition, owner in after.items():
        assert owner in able[partition]
        if before[partition] not in able[partition] and ready[partition]:
            assert owner in ready[partition]
