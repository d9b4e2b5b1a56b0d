"""Stories of groups, told message by message.

A line without indent is a message in the log, with what became of it where it was not accepted; an
indented line is what a member does.
"""

from tests.groups.group_story import GroupStory, shown

from holdfast.groups.api import Generation, NewPartition
from holdfast.groups.merge import Verdict
from holdfast.groups.messages import Ask, AskKind, Committed, Picked, Regular
from holdfast.limits import GROUP_ANSWER_MS_MAX, GROUP_RESEND_MS, GROUP_RETRY_MS_MIN


def settled(tokens: str, *members: str) -> GroupStory:
    """A group in its first epoch, with everything picked and started."""
    story = GroupStory(tokens)
    story.start(*members)
    story.generation(1, *members)
    story.settle(ticks=3)
    story.told()
    return story


def test_first_start() -> None:
    story = GroupStory("a b c")
    story.start("x/1")
    story.generation(1, "x/1")
    story.settle(ticks=1)
    assert story.told() == [
        "generation 1: x/1",
        "x/1 UPDATE_EPOCH 0 generation 1",
        "x/1 REBALANCE_ANSWER 0 generation 1",
        "x/1 NEW_EPOCH 1",
        "  x/1 runs a",
        "  x/1 runs b",
        "  x/1 runs c",
        "x/1 REGULAR 1 started:a started:b started:c",
    ]


def test_first_start_of_two_shares_what_is_declared() -> None:
    story = GroupStory("a b c")
    story.start("x/1", "y/1")
    story.generation(1, "x/1", "y/1")
    story.settle(ticks=1)
    assert story.told() == [
        "generation 1: x/1 y/1",
        "x/1 UPDATE_EPOCH 0 generation 1",
        "x/1 REBALANCE_ANSWER 0 generation 1",
        "y/1 REBALANCE_ANSWER 0 generation 1",
        "x/1 NEW_EPOCH 1 b>y/1",
        "y/1 REGULAR 1 picked:b",
        "  x/1 runs a",
        "  x/1 runs c",
        "x/1 REGULAR 1 started:a started:c",
        "  y/1 runs b",
        "y/1 REGULAR 1 started:b",
    ]


def test_a_second_member_joins_and_is_given_what_the_first_drains() -> None:
    story = settled("a b c d", "x/1")
    story.start("y/1")
    story.generation(2, "x/1", "y/1")
    story.settle(ticks=3)
    assert story.told() == [
        "generation 2: x/1 y/1",
        "x/1 UPDATE_EPOCH 1 generation 2",
        "x/1 REBALANCE_ANSWER 1 generation 2",
        "y/1 REBALANCE_ANSWER 1 generation 2",
        "x/1 NEW_EPOCH 2",  # survivors keep what they own
        "y/1 REGULAR 2",
        "x/1 REGULAR 2",
        "x/1 REGULAR 2 proposed:a>y/1 proposed:b>y/1",
        "  x/1 stops a",
        "  x/1 stops b",
        "x/1 REGULAR 2 released:a released:b",
        "y/1 REGULAR 2 picked:a picked:b",
        "  y/1 runs a",
        "  y/1 runs b",
        "y/1 REGULAR 2 started:a started:b",
    ]
    assert story.running() == {"x/1": "c d", "y/1": "a b"}


def test_a_member_dies_with_partitions_that_it_has_not_picked() -> None:
    story = GroupStory("a b c d")
    story.start("x/1", "y/1", "z/1")
    story.generation(1, "x/1", "y/1", "z/1")
    story.settle()
    assert story.owners()["b"] == "y/1 SCHEDULED"
    story.finish("x/1", "a", NewPartition("a1"), NewPartition("a2"), NewPartition("a3"))
    story.told()
    story.die("z/1")  # a3 is shared with it
    assert story.owners() | {"a1": ""} == {
        "a": "x/1 FINISHED",
        "a1": "",
        "a2": "x/1 > y/1 READY",
        "a3": "x/1 > z/1 READY",
        "b": "y/1 SCHEDULED",
        "c": "z/1 SCHEDULED",
        "d": "x/1 RUNNING",
    }
    story.generation(2, "x/1", "y/1")
    story.settle(ticks=1)
    assert story.told() == [
        "z/1 dies",
        "generation 2: x/1 y/1",
        "x/1 UPDATE_EPOCH 1 generation 2",
        "  x/1 runs a1",
        "x/1 REBALANCE_ANSWER 1 generation 2 started:a1",
        "y/1 REBALANCE_ANSWER 1 generation 2 picked:a2 started:b",
        "x/1 NEW_EPOCH 2 c>y/1",  # a3, which nobody picked, is x's: it has fewer
        "  y/1 runs a2",
        "y/1 REGULAR 2 started:a2 picked:c",
        "  x/1 runs a3",
        "x/1 REGULAR 2 started:a3",
        "  y/1 runs c",
        "y/1 REGULAR 2 started:c",
    ]
    assert story.running() == {"x/1": "a1 a3 d", "y/1": "a2 b c"}


def test_the_leader_dies_in_mid_rebalance() -> None:
    story = settled("a b c", "x/1", "y/1")
    story.start("z/1")
    story.generation(2, "x/1", "y/1", "z/1")
    story.say("x/1")
    story.read("y/1")
    story.say("y/1")
    story.die("x/1")  # it has begun a rebalance, and nobody ends it
    story.generation(3, "y/1", "z/1")
    story.settle(ticks=1)
    assert story.told() == [
        "generation 2: x/1 y/1 z/1",
        "x/1 UPDATE_EPOCH 1 generation 2",
        "y/1 REBALANCE_ANSWER 1 generation 2",
        "x/1 dies",
        "generation 3: y/1 z/1",
        "y/1 UPDATE_EPOCH 1 generation 3",
        "y/1 REBALANCE_ANSWER 1 generation 3",
        "z/1 REBALANCE_ANSWER 1 generation 3",
        "y/1 NEW_EPOCH 2 a>z/1",
        "z/1 REGULAR 2 picked:a",
        "  y/1 runs c",
        "y/1 REGULAR 2 started:c",
        "  z/1 runs a",
        "z/1 REGULAR 2 started:a",
    ]


def test_the_epoch_of_a_leader_that_was_replaced_is_refused_by_everybody() -> None:
    story = settled("a b", "x/1", "y/1")
    story.generation(2, "x/1", "y/1")
    for each in ("x/1", "x/1", "y/1"):
        story.read(each)
        story.say(each)
    story.is_withholding = {"x/1"}
    story.read("x/1")
    story.say("x/1")  # its NEW_EPOCH is on its way
    story.is_withholding = set()
    story.told()
    story.generation(3, "y/1", "x/1")
    story.say("y/1")
    (late,) = story.withheld
    assert shown(late) == "NEW_EPOCH 2"
    assert story.append(late) is Verdict.OLD_GENERATION
    story.settle(ticks=1)
    assert story.told()[-4:] == [
        "y/1 REBALANCE_ANSWER 1 generation 3",
        "y/1 NEW_EPOCH 2",
        "x/1 REGULAR 2",
        "y/1 REGULAR 2",
    ]
    assert {core.epoch for core in story.cores.values()} == {2}


def test_messages_of_an_older_epoch_do_not_count() -> None:
    story = settled("a b", "x/1", "y/1")
    story.cores["y/1"].committed("b", 7)
    story.is_withholding = {"y/1"}
    story.tick()  # the commit is on its way
    story.is_withholding = set()
    story.generation(2, "x/1", "y/1")
    story.settle()
    story.told()
    (late,) = story.withheld
    assert story.append(late) is Verdict.STALE
    assert story.append(Regular(1, "y/1", 99, True, (Picked("a"),))) is Verdict.STALE
    assert story.owners() == {"a": "x/1 RUNNING", "b": "y/1 RUNNING"}
    story.settle()
    assert story.cores["x/1"].state.partitions["b"].offset == 7  # its answer had it


def test_a_member_that_was_left_out_stops_and_its_late_messages_do_not_count() -> None:
    story = settled("a b", "x/1", "y/1")
    story.generation(2, "x/1", "y/1")
    story.say("x/1")
    story.read("x/1")
    story.say("x/1")
    story.read("x/1")
    story.tick(GROUP_ANSWER_MS_MAX)  # y says nothing for so long
    story.read("x/1")
    story.say("x/1")
    assert story.running() == {"x/1": "a b", "y/1": "b"}  # y does not know yet
    story.told()
    assert story.append(Regular(2, "y/1", 99, True, (Committed("b", 5),))) is Verdict.NOT_A_MEMBER
    story.read("y/1")
    assert story.told() == [
        "y/1 REGULAR 2 committed:b -> not a member",
        "  y/1 is left out",
        "  y/1 stops b",
    ]


def test_a_member_that_hears_late_of_a_generation_whose_epoch_is_without_it_is_left_out() -> None:
    story = settled("a b", "x/1")
    story.start("y/1")
    heard = Generation(2, "x/1", ("x/1", "y/1"))
    story.do("x/1", story.cores["x/1"].joined(heard))
    for _ in range(2):
        story.say("x/1")
        story.read("x/1")
    story.tick(GROUP_ANSWER_MS_MAX)  # y is paused
    story.read("y/1")
    assert story.told() == [
        "x/1 UPDATE_EPOCH 1 generation 2",
        "x/1 REBALANCE_ANSWER 1 generation 2",
        "x/1 NEW_EPOCH 2",
    ]
    story.do("y/1", story.cores["y/1"].joined(heard))  # it was told, and looks only now
    assert story.told() == ["  y/1 is left out"]


def test_a_partition_splits() -> None:
    story = settled("a b c", "x/1", "y/1")
    story.finish("x/1", "a", NewPartition("a1"), NewPartition("a2"))
    story.settle(ticks=1)
    assert story.told() == [
        "x/1 REGULAR 1 finished:a(a1,a2)",
        "  x/1 runs a1",  # both have one: its own
        "y/1 REGULAR 1 picked:a2",
        "  y/1 runs a2",
        "x/1 REGULAR 1 started:a1",
        "y/1 REGULAR 1 started:a2",
    ]
    assert story.owners()["a"] == "x/1 FINISHED"  # its children refer to it
    story.finish("x/1", "a1")
    story.settle()
    assert "a" in story.owners()
    story.finish("y/1", "a2")
    story.settle()
    assert story.owners() == {"b": "y/1 RUNNING", "c": "x/1 RUNNING"}


def test_a_merge_is_reported_by_both_parents_and_made_once() -> None:
    story = settled("a b", "x/1", "y/1")
    child = NewPartition("ab", parents=("a", "b"))
    story.finish("y/1", "b", child)  # not the smallest: it only announces it
    story.settle()
    assert story.owners() == {"a": "x/1 RUNNING", "b": "y/1 FINISHED"}
    story.finish("x/1", "a", child)
    story.settle(ticks=1)
    assert story.told() == [
        "y/1 REGULAR 1 finished:b(ab)",
        "x/1 REGULAR 1 finished:a(ab)",
        "  x/1 runs ab",
        "x/1 REGULAR 1 started:ab",
    ]
    assert story.owners() == {"a": "x/1 FINISHED", "ab": "x/1 RUNNING", "b": "y/1 FINISHED"}


def test_a_merge_whose_smallest_parent_ends_first_waits_for_the_other() -> None:
    story = settled("a b", "x/1", "y/1")
    child = NewPartition("ab", parents=("a", "b"))
    story.finish("x/1", "a", child)
    story.settle(ticks=1)
    assert story.owners() == {"a": "x/1 FINISHED", "ab": "x/1 CREATED", "b": "y/1 RUNNING"}
    story.finish("y/1", "b", child)
    story.settle(ticks=1)
    assert story.told() == [
        "x/1 REGULAR 1 finished:a(ab)",
        "y/1 REGULAR 1 finished:b(ab)",
        "  x/1 runs ab",
        "x/1 REGULAR 1 started:ab",
    ]


def test_a_message_is_lost_and_the_next_one_shows_the_gap() -> None:
    story = settled("a b", "x/1", "y/1")
    story.is_withholding = {"y/1"}
    story.finish("y/1", "b", NewPartition("b1"))
    story.is_withholding = set()
    story.cores["y/1"].ask(Ask(AskKind.PARK, "a"))
    story.settle()
    assert story.told() == [
        "y/1 REGULAR 1 -> gap",
        "y/1 REGULAR 1 finished:b(b1)",  # whole: with the ask, too
        "  x/1 stops a",
        "x/1 REGULAR 1 parked:a(parked by hand)",
        "  y/1 runs b1",
    ]


def test_the_last_message_is_lost_and_is_missed_after_a_while() -> None:
    story = settled("a", "x/1")
    story.is_withholding = {"x/1"}
    story.finish("x/1", "a", NewPartition("a1"))
    story.is_withholding = set()
    story.tick()
    story.settle()
    assert story.told() == []
    story.tick(GROUP_RESEND_MS)
    story.settle()
    assert story.told() == ["x/1 REGULAR 1 finished:a(a1)", "  x/1 runs a1"]
    (late,) = story.withheld
    assert story.append(late) is Verdict.DUPLICATE


def test_a_message_that_is_doubled_counts_once() -> None:
    story = settled("a", "x/1")
    story.finish("x/1", "a", NewPartition("a1"))
    story.append(story.log[-1])
    story.settle()
    assert story.told() == [
        "x/1 REGULAR 1 finished:a(a1)",
        "x/1 REGULAR 1 finished:a(a1) -> duplicate",
        "  x/1 runs a1",
    ]


def test_a_lone_leader_and_its_own_stale_answer() -> None:
    story = GroupStory("a")
    story.start("x/1")
    story.generation(1, "x/1")
    story.say("x/1")
    story.read("x/1")
    story.is_withholding = {"x/1"}
    story.say("x/1")  # the answer to generation 1 is on its way
    story.is_withholding = set()
    story.generation(2, "x/1")
    story.say("x/1")
    (late,) = story.withheld
    story.append(late)
    story.settle()
    assert story.told() == [
        "generation 1: x/1",
        "x/1 UPDATE_EPOCH 0 generation 1",
        "generation 2: x/1",
        "x/1 UPDATE_EPOCH 0 generation 2",
        "x/1 REBALANCE_ANSWER 0 generation 1 -> old generation",
        "x/1 REBALANCE_ANSWER 0 generation 2",
        "x/1 NEW_EPOCH 1",
        "  x/1 runs a",
        "x/1 REGULAR 1 started:a",
    ]


def test_a_stuck_partition_is_parked_alone_and_tried_again_later() -> None:
    story = settled("a b", "x/1")
    story.do("x/1", story.cores["x/1"].failed("a", "no disk"))
    story.settle()
    assert story.told() == ["x/1 REGULAR 1 parked:a(no disk)"]
    assert story.running() == {"x/1": "b"}
    story.tick(GROUP_RETRY_MS_MIN - 1)
    assert story.told() == []
    story.tick(1)
    story.settle(ticks=1)
    assert story.told() == ["  x/1 runs a", "x/1 REGULAR 1 started:a"]
    story.do("x/1", story.cores["x/1"].failed("a", "no disk"))
    story.settle()
    assert story.cores["x/1"].state.partitions["a"].attempts == 2


def test_people_move_a_partition_and_it_stays_there() -> None:
    story = settled("a b", "x/1", "y/1")
    story.cores["y/1"].ask(Ask(AskKind.MOVE, "a", "y"))
    story.settle(ticks=4)
    assert story.told() == [
        "y/1 REGULAR 1",
        "x/1 REGULAR 1 proposed:a>y/1",
        "  x/1 stops a",
        "x/1 REGULAR 1 released:a",
        "y/1 REGULAR 1 picked:a",
        "  y/1 runs a",
        "y/1 REGULAR 1 started:a proposed:b>x/1",  # the other one makes room
        "  y/1 stops b",
        "y/1 REGULAR 1 released:b",
        "x/1 REGULAR 1 picked:b",
        "  x/1 runs b",
        "x/1 REGULAR 1 started:b",
    ]


def test_a_claim_to_what_another_owns_is_alarmed() -> None:
    story = settled("a b", "x/1", "y/1")
    counter = story.cores["y/1"].state.members["y/1"].counter
    assert counter is not None
    story.append(Regular(1, "y/1", counter + 1, False, (Committed("a", 1),)))
    story.read("x/1")
    assert story.told()[1:] == [
        "  ALARM y/1 sent Committed for partition 'a' in epoch 1, but x/1 owns it"
    ]
