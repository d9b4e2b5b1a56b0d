"""The rules of groups one by one: who gets what, the low watermark, reading back, leaving."""

import msgspec
import pytest
from tests.groups.group_checks import fingerprint
from tests.groups.group_story import GroupStory

from holdfast.errors import DataLoss, ResourceExhausted
from holdfast.groups import core as core_module
from holdfast.groups.api import Entry, NewPartition, member_id, name_of
from holdfast.groups.core import GroupCore
from holdfast.groups.effects import Alarm, Checkpoint
from holdfast.groups.merge import Verdict
from holdfast.groups.messages import Ask, AskKind, UpdateEpoch, asking, decode, encode
from holdfast.groups.read_back import read_back
from holdfast.groups.sharing import least_loaded, moves
from holdfast.groups.snapshot import load, snapshot_of
from holdfast.groups.state import GroupState
from holdfast.groups.watermark import Watermarks


def grown(tokens: str, *members: str) -> GroupStory:
    story = GroupStory(tokens)
    story.start(*members)
    story.generation(1, *members)
    story.settle(ticks=3)
    return story


def test_a_member_is_a_name_and_an_incarnation() -> None:
    assert member_id("web-1", "k3") == "web-1/k3"
    assert name_of("web-1/k3") == "web-1"


def test_the_least_loaded_is_chosen_and_ties_are_broken_by_preference_then_by_name() -> None:
    assert least_loaded({"a": 2, "b": 1, "c": 1}, "abc") == "b"
    assert least_loaded({"a": 2, "b": 1, "c": 1}, "abc", preferred="c") == "c"
    assert least_loaded({"a": 2, "b": 1}, "abc", preferred="a") == "c"


def test_a_move_has_to_narrow_the_difference() -> None:
    story = grown("a b c", "x/1", "y/1")
    state = story.cores["x/1"].state
    assert (state.load("x/1"), state.load("y/1")) == (2, 1)
    assert moves(state, "x/1", 4) == []


def test_a_member_drains_only_a_few_at_once() -> None:
    story = grown(" ".join("abcdefghijkl"), "x/1")
    story.start("y/1")
    story.generation(2, "x/1", "y/1")
    story.settle()
    story.tick()
    assert sum(each.target == "y/1" for each in story.state.partitions.values()) == 4
    story.settle(ticks=6)
    assert [len(each.split()) for each in story.running().values()] == [6, 6]


def test_the_low_watermark_is_held_back_by_one_that_has_none() -> None:
    marks = Watermarks()
    assert marks.lowest() is None
    marks.put("a", 5)
    marks.put("b", None)
    assert marks.lowest() is None
    marks.put("b", 3)
    marks.put("b", 7)
    assert marks.lowest() == 5
    marks.drop("a")
    assert marks.lowest() == 7


def test_the_low_watermark_of_a_group_does_not_go_back() -> None:
    story = grown("a", "x/1")
    core = story.cores["x/1"]
    core.committed("a", 1, watermark=100)
    story.settle(ticks=1)
    core.declare([NewPartition("b")])
    story.settle(ticks=1)
    core.committed("b", 1, watermark=50)
    story.settle(ticks=1)
    assert core.state.watermark == 100
    core.committed("b", 1, watermark=300)
    core.committed("a", 1, watermark=200)
    story.settle(ticks=1)
    assert core.state.watermark == 200


def test_a_snapshot_is_all_of_the_state() -> None:
    story = grown("a b c", "x/1", "y/1")
    story.finish("y/1", "b", NewPartition("ab", ("a", "b")))
    story.settle()
    for state in (each.state for each in story.cores.values()):
        other = GroupState()
        load(other, snapshot_of(state))
        assert fingerprint(other) == fingerprint(state)
        assert [*map(other.load, state.members)] == [*map(state.load, state.members)]


def test_a_log_is_read_back_from_a_checkpoint_with_messages_that_came_before_it() -> None:
    story = grown("a b", "x/1", "y/1")
    core = story.cores["x/1"]
    core.leading.checkpoint_bytes = 0
    core.leading.bytes_since = 1_000_000
    story.is_withholding = {"x/1"}
    story.tick()
    story.is_withholding = set()
    (checkpoint,) = [each for each in story.withheld if isinstance(each, UpdateEpoch)]
    assert checkpoint.snapshot is not None
    as_of = checkpoint.snapshot.as_of
    story.cores["y/1"].committed("b", 7)
    story.tick()  # this commit comes between its moment and the checkpoint
    story.append(checkpoint)
    story.read("y/1")
    kept = list(enumerate(story.log))[as_of:]
    assert fingerprint(read_back(kept, is_complete=False)) == fingerprint(story.state)
    assert read_back(kept, is_complete=False).partitions["b"].offset == 7


def test_the_leader_says_what_can_be_discarded_and_the_rest_is_enough() -> None:
    story = grown("a b", "x/1")
    core = GroupCore("x/2")
    entries = [Entry(at, 0, encode(each)) for at, each in enumerate(story.log)]
    core.restore(entries)
    again = GroupCore("x/1")
    found = [
        effect.offset
        for entry in entries
        for effect in again.read(entry)
        if isinstance(effect, Checkpoint)
    ]
    assert len(found) == 1
    shorter = GroupCore("z/1")
    shorter.restore([entry for entry in entries if entry.offset >= found[0]], is_complete=False)
    assert fingerprint(shorter.state) == fingerprint(core.state)


def test_a_rebalance_that_comes_behind_a_later_message_of_its_leader_does_not_count() -> None:
    story = grown("a b", "x/1", "y/1")
    story.finish("x/1", "a", NewPartition("a1"))
    state, counter = story.state, story.state.members["x/1"].counter
    assert counter is not None
    late = UpdateEpoch(state.epoch, "x/1", counter, state.generation + 1, ("x/1", "y/1"))
    before = fingerprint(state)
    assert story.append(late) is Verdict.DUPLICATE
    state.offset -= 1
    assert fingerprint(state) == before
    state.offset += 1
    assert story.append(msgspec.structs.replace(late, counter=counter + 1)) is Verdict.ACCEPTED
    assert state.rebalance is not None


def test_a_log_that_begins_in_the_middle_is_data_loss() -> None:
    story = grown("a b", "x/1")
    end = [Entry(at, 0, encode(each)) for at, each in enumerate(story.log)][-1:]
    with pytest.raises(DataLoss, match="begins in the middle"):
        GroupCore("z/1").restore(end, is_complete=False)


def test_an_entry_that_cannot_be_read_is_alarmed_and_skipped() -> None:
    core = GroupCore("x/1")
    (effect,) = core.read(Entry(0, 0, b"\xc1"))
    assert isinstance(effect, Alarm)
    (effect,) = core.restore([Entry(0, 0, b"\x95\x09\x01\x01\x01\x01")])
    assert isinstance(effect, Alarm)


def test_messages_are_decoded_as_they_were_and_may_have_more_fields() -> None:
    story = grown("a b c", "x/1", "y/1")
    for message in story.log:
        assert decode(encode(message)) == message
        longer = msgspec.msgpack.encode([*msgspec.msgpack.decode(encode(message)), "newer"])
        assert decode(longer) == message


def test_people_who_are_no_members_may_ask_but_not_during_a_rebalance() -> None:
    story = grown("a b", "x/1", "y/1")
    assert story.append(asking("people/1", (Ask(AskKind.PARK, "b"),))).value == "accepted"
    story.settle()
    assert story.owners()["b"] == "y/1 PARKED"
    story.generation(2, "x/1", "y/1")
    story.say("x/1")
    assert story.append(asking("people/1", (Ask(AskKind.RESUME, "b"),))).value == "rebalancing"
    story.settle()
    assert story.append(asking("people/1", (Ask(AskKind.RESUME, "b"),))).value == "accepted"
    story.settle(ticks=1)
    assert story.owners()["b"] == "y/1 RUNNING"


def test_a_member_that_leaves_lets_go_of_everything_and_starts_nothing() -> None:
    story = grown("a b c", "x/1", "y/1")
    core = story.cores["x/1"]
    core.committed("a", 5)
    story.told()
    story.do("x/1", core.leave())
    story.settle(ticks=2)
    assert story.running() == {"x/1": "", "y/1": "b"}
    assert story.told() == [
        "  x/1 stops a",
        "  x/1 stops c",
        "x/1 REGULAR 1 committed:a",
    ]
    story.die("x/1")
    story.generation(2, "y/1")
    story.settle()
    assert "  y/1 runs a from 5" in story.told()


def test_a_group_has_room_for_so_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    story = grown("a b", "x/1")
    monkeypatch.setattr(core_module, "GROUP_PARTITIONS_MAX", 3)
    with pytest.raises(ResourceExhausted, match="finish some first"):
        story.finish("x/1", "a", NewPartition("a1"), NewPartition("a2"))
    assert "a" in story.cores["x/1"].running


def test_what_was_declared_and_finished_is_not_made_again() -> None:
    story = grown("a b", "x/1")
    story.finish("x/1", "a")
    story.settle()
    story.start("y/1")  # it declares the same
    story.generation(2, "y/1", "x/1")
    story.settle(ticks=2)
    assert list(story.owners()) == ["b"]
