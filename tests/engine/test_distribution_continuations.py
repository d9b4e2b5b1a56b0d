"""Commands that wait until a queue has drained."""

import pytest
from distribution_checks import check_end, check_now
from distribution_cluster import Cluster
from distribution_domain import NOTES, Note, NoteIntent
from distribution_transcript import transcript

from holdfast.engine.distribution.values import ContinuationRef, DistributionIntent, Targets
from holdfast.engine.kernel import Command
from holdfast.errors import Code

ACKNOWLEDGE = DistributionIntent.ACKNOWLEDGE


def say_after(cluster: Cluster, number: int, by: str = "ann") -> None:
    value, claims = Note(number, "a"), {"sub": by}
    reply = cluster.ask(1, Command(NOTES, NoteIntent.SAY_AFTER, 0, value, claims))
    assert reply.rejection is None


def test_after_an_empty_queue_a_command_is_written_at_once() -> None:
    cluster = Cluster(3)
    cluster.note(1, 7, "b")
    say_after(cluster, 8)
    assert transcript(cluster, 1)[-3:] == ["> SAY_AFTER = 8", "> SAY = 8", "NOTED 1.2 = 8"]
    cluster.run()
    check_end(cluster)


def test_after_a_queue_a_command_is_written_when_those_who_stood_in_it_are_done() -> None:
    cluster = Cluster(3)
    cluster.note(1, 7, "a")
    cluster.note(1, 8, "a", to=(2,))
    say_after(cluster, 100)
    cluster.dark = {2}
    cluster.run(1)
    cluster.note(1, 9, "a", to=(3,))
    cluster.run(1)
    assert cluster.nodes[1].notes() == [7, 8, 9]
    check_now(cluster)
    cluster.dark = set()
    cluster.run(10)
    lines = [line for line in transcript(cluster, 1) if "CONTIN" in line or "= 100" in line]
    assert lines == [
        "> SAY_AFTER = 100",
        "CONTINUATION_REQUESTED 1.3 after a",
        "> CONTINUE 1.3 after a",
        "CONTINUED 1.3 after a",
        "> SAY = 100",
        "NOTED 1.5 = 100",
    ]
    check_end(cluster)


def test_what_joins_a_queue_later_does_not_delay_a_command_that_waits_for_it() -> None:
    cluster = Cluster(2)
    first = cluster.note(1, 7, "a")
    say_after(cluster, 100)
    cluster.note(1, 8, "a")
    cluster.cut = {(1, 2)}
    cluster.tell(1, ACKNOWLEDGE, first, Targets((2,)))
    assert cluster.nodes[1].notes() == [7, 8, 100]
    cluster.cut = set()
    cluster.run(60)
    assert transcript(cluster, 1)[-1] == "FINISHED 1.3"
    check_end(cluster)


def test_all_that_wait_for_the_same_end_of_a_queue_go_on_in_their_order() -> None:
    cluster = Cluster(2)
    cluster.note(1, 7, "a")
    for number in (100, 101, 102):
        say_after(cluster, number)
    last = cluster.note(1, 8, "a")
    say_after(cluster, 103)
    cluster.cut = {(2, 1)}
    cluster.tell(1, ACKNOWLEDGE, last - 4, Targets((2,)))
    assert cluster.nodes[1].notes() == [7, 8, 100, 101, 102]
    cluster.cut = set()
    cluster.run(60)
    assert cluster.nodes[1].notes() == [7, 8, 100, 101, 102, 103]
    check_end(cluster)


def test_a_command_that_waits_for_a_queue_keeps_the_claims_of_who_asked() -> None:
    cluster = Cluster(2)
    say_after(cluster, 100, by="ann")
    cluster.note(1, 7, "a")
    say_after(cluster, 101, by="bob")
    cluster.run()
    said = [(number, by) for _, number, by in cluster.nodes[1].view.all() if number >= 100]
    assert said == [(100, "ann"), (101, "bob")]
    check_end(cluster)


@pytest.mark.parametrize("ending", ["skip", "cancel"])
def test_a_command_goes_on_when_the_last_of_its_queue_is_given_up(ending: str) -> None:
    cluster = Cluster(2)
    cluster.dark = {2}
    cluster.note(1, 7, "a")
    key = cluster.note(1, 8, "a")
    say_after(cluster, 100)
    cluster.cancel(key - 1)
    _ = cluster.skip(key, 2) if ending == "skip" else cluster.cancel(key)
    assert cluster.nodes[1].notes() == [7, 8, 100]
    check_end(cluster)


@pytest.mark.parametrize("has_store", [True, False])
def test_a_command_that_waits_for_a_queue_outlives_a_restart(has_store: bool) -> None:
    cluster = Cluster(2)
    cluster.note(1, 7, "a")
    say_after(cluster, 100)
    say_after(cluster, 101)
    cluster.nodes[1].write_state()
    cluster.nodes[1].restart(with_store=has_store)
    cluster.run(60)
    assert cluster.nodes[1].notes() == [7, 100, 101]
    check_end(cluster)


def test_a_continuation_that_does_not_exist_is_rejected() -> None:
    cluster = Cluster(2)
    reply = cluster.tell(1, DistributionIntent.CONTINUE, 5, ContinuationRef("a"))
    assert reply.rejection is not None and reply.rejection.code == Code.NOT_FOUND
