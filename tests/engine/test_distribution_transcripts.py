"""What partitions write while they distribute commands, line by line."""

from itertools import pairwise

import pytest
from distribution_checks import check_end
from distribution_cluster import Cluster
from distribution_transcript import transcript

from holdfast.engine.distribution import state as state_module
from holdfast.engine.distribution.values import DistributionIntent, Targets
from holdfast.errors import Code

ACKNOWLEDGE = DistributionIntent.ACKNOWLEDGE


# --- to whom ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("partitions", "to"), [(1, None), (1, (1,)), (3, (1,)), (3, ())])
def test_without_another_partition_nothing_is_written(
    partitions: int, to: tuple[int, ...] | None
) -> None:
    cluster = Cluster(partitions)
    cluster.note(1, 7, "a", to=to)
    cluster.run(60)
    assert transcript(cluster, 1) == ["> NOTE = 7", "NOTED 1.1 = 7"]
    assert not cluster.posted
    check_end(cluster)


def test_two_partitions_take_two_records_between_started_and_finished() -> None:
    cluster = Cluster(2)
    cluster.note(1, 7)
    cluster.run(60)
    assert transcript(cluster, 1) == [
        "> NOTE = 7",
        "NOTED 1.1 = 7",
        "STARTED 1.1 at 2",
        "> ACKNOWLEDGE 1.1 at 2",
        "ACKNOWLEDGED 1.1 at 2",
        "FINISHED 1.1",
    ]
    assert transcript(cluster, 2) == ["> NOTE 1.1 = 7", "NOTED 1.1 = 7"]
    assert len(cluster.finished) == 1
    check_end(cluster)


def test_three_partitions_acknowledge_one_by_one() -> None:
    cluster = Cluster(3)
    cluster.note(2, 7)
    cluster.run(60)
    assert transcript(cluster, 2) == [
        "> NOTE = 7",
        "NOTED 2.1 = 7",
        "STARTED 2.1 at 1 3",
        "> ACKNOWLEDGE 2.1 at 1",
        "ACKNOWLEDGED 2.1 at 1",
        "> ACKNOWLEDGE 2.1 at 3",
        "ACKNOWLEDGED 2.1 at 3",
        "FINISHED 2.1",
    ]
    for receiver in (1, 3):
        assert transcript(cluster, receiver) == ["> NOTE 2.1 = 7", "NOTED 2.1 = 7"]
    check_end(cluster)


def test_partitions_that_acknowledge_together_take_two_records_for_all() -> None:
    cluster = Cluster(5, gathers=True)
    cluster.note(1, 7, "a")
    cluster.run(60)
    assert transcript(cluster, 1) == [
        "> NOTE = 7",
        "NOTED 1.1 = 7",
        "STARTED 1.1 in a at 2 3 4 5",
        "> ACKNOWLEDGE 1.1 at 2 3 4 5",
        "ACKNOWLEDGED 1.1 at 2 3 4 5",
        "FINISHED 1.1",
    ]
    check_end(cluster)


@pytest.mark.parametrize("targets", [2, 7])
def test_undisturbed_a_distribution_takes_two_records_a_target_and_two_more(targets: int) -> None:
    cluster = Cluster(targets + 1)
    cluster.note(1, 7)
    cluster.run(600)
    own = 2  # the command itself, and what it did here
    assert len(cluster.nodes[1].log) - own == 2 * targets + 2


@pytest.mark.parametrize("to", [(3,), (4, 2), (1, 2, 3)])
def test_a_subset_of_the_partitions_is_told_and_nobody_else(to: tuple[int, ...]) -> None:
    cluster = Cluster(4)
    cluster.note(1, 7, to=to)
    cluster.run(60)
    told = sorted(set(to) - {1})
    assert transcript(cluster, 1)[2] == f"STARTED 1.1 at {' '.join(map(str, told))}"
    for receiver in (2, 3, 4):
        assert cluster.nodes[receiver].notes() == ([7] if receiver in told else [])
    check_end(cluster)


def test_the_claims_of_who_asked_arrive_with_the_command_and_with_its_repetition() -> None:
    cluster = Cluster(3)
    cluster.note(1, 7, by="ann")
    cluster.dark = {3}
    cluster.run(15)
    cluster.dark = set()
    cluster.run(60)
    for receiver in (2, 3):
        assert [by for _, _, by in cluster.nodes[receiver].view.all()] == ["ann"]
    check_end(cluster)


# --- queues -----------------------------------------------------------------------------------


def test_in_a_queue_the_second_goes_to_each_partition_after_its_acknowledgement() -> None:
    cluster = Cluster(3)
    cluster.note(1, 7, "a")
    cluster.note(1, 8, "a")
    cluster.cut = {(1, 3)}
    cluster.run(5)
    cluster.cut = set()
    cluster.run(30)
    assert transcript(cluster, 1, times=True) == [
        "0s > NOTE = 7",
        "0s NOTED 1.1 = 7",
        "0s STARTED 1.1 in a at 2 3",
        "0s > NOTE = 8",
        "0s NOTED 1.2 = 8",
        "0s STARTED 1.2 in a",
        "0s ENQUEUED 1.2 at 2 3",
        "0s > ACKNOWLEDGE 1.1 at 2",
        "0s ACKNOWLEDGED 1.1 at 2",
        "0s DISTRIBUTING 1.2 at 2",
        "0s > ACKNOWLEDGE 1.1 at 3",
        "0s ACKNOWLEDGED 1.1 at 3",
        "0s FINISHED 1.1",
        "0s DISTRIBUTING 1.2 at 3",
        "0s > ACKNOWLEDGE 1.2 at 2",
        "0s ACKNOWLEDGED 1.2 at 2",
        "10s > REDISTRIBUTE at 3",
        "10s REDISTRIBUTED at 3 of 1.2 (attempt 2)",
        "10s > ACKNOWLEDGE 1.2 at 3",
        "10s ACKNOWLEDGED 1.2 at 3",
        "10s FINISHED 1.2",
    ]
    assert transcript(cluster, 3, times=True) == [
        "0s > NOTE 1.1 = 7",
        "0s RECEIVED 1.1 in a",
        "0s NOTED 1.1 = 7",
        "10s > NOTE 1.2 = 8 (attempt 2)",
        "10s RECEIVED 1.2 in a",
        "10s NOTED 1.2 = 8",
    ]
    check_end(cluster)


def test_queues_do_not_wait_for_each_other_and_who_is_in_none_waits_for_nobody() -> None:
    cluster = Cluster(2)
    for number, queue in [(1, "a"), (2, "a"), (3, "b"), (4, "ab"), (5, ""), (6, "")]:
        cluster.note(1, number, queue)
    lines = transcript(cluster, 1)
    assert [line for line in lines if line.startswith(("STARTED", "ENQUEUED"))] == [
        "STARTED 1.1 in a at 2",
        "STARTED 1.2 in a",
        "ENQUEUED 1.2 at 2",
        "STARTED 1.3 in b at 2",
        "STARTED 1.4 in ab at 2",
        "STARTED 1.5 at 2",
        "STARTED 1.6 at 2",
    ]
    cluster.run(1)
    assert sorted(cluster.nodes[2].notes()) == [1, 2, 3, 4, 5, 6]
    check_end(cluster)


def test_one_that_joins_the_queue_of_a_dark_partition_delays_nobody_else() -> None:
    cluster = Cluster(3)
    cluster.note(1, 7, "a", to=(2,))
    cluster.dark = {2}
    cluster.note(1, 8, "a")
    assert transcript(cluster, 1)[-2:] == ["STARTED 1.2 in a at 3", "ENQUEUED 1.2 at 2"]
    cluster.run(5)
    assert cluster.nodes[3].notes() == [8]
    cluster.dark = set()
    cluster.run(60)
    assert cluster.nodes[2].notes() == [7, 8]
    check_end(cluster)


def test_without_a_queue_those_for_whom_there_is_no_room_wait_and_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(state_module, "DISTRIBUTIONS_IN_FLIGHT_MAX", 2)
    cluster = Cluster(2)
    for number in (1, 2, 3, 4):
        cluster.note(1, number)
    cluster.note(1, 5, "a")
    cluster.run(60)
    lines = [line for line in transcript(cluster, 1) if not line.startswith((">", "NOTED"))]
    assert lines == [
        "STARTED 1.1 at 2",
        "STARTED 1.2 at 2",
        "STARTED 1.3",
        "ENQUEUED 1.3 at 2",
        "STARTED 1.4",
        "ENQUEUED 1.4 at 2",
        "STARTED 1.5 in a at 2",
        "ACKNOWLEDGED 1.1 at 2",
        "FINISHED 1.1",
        "DISTRIBUTING 1.3 at 2",
        "ACKNOWLEDGED 1.2 at 2",
        "FINISHED 1.2",
        "DISTRIBUTING 1.4 at 2",
        "ACKNOWLEDGED 1.5 at 2",
        "FINISHED 1.5",
        "ACKNOWLEDGED 1.3 at 2",
        "FINISHED 1.3",
        "ACKNOWLEDGED 1.4 at 2",
        "FINISHED 1.4",
    ]
    check_end(cluster)


# --- dark partitions --------------------------------------------------------------------------


@pytest.mark.parametrize("has_store", [None, True, False])
def test_a_dark_partition_delays_only_itself_and_is_asked_ever_more_seldom(
    has_store: bool | None,
) -> None:
    """The origin may end and begin again in between: it has not forgotten how often it asked."""
    cluster = Cluster(4)
    cluster.dark = {3}
    cluster.note(1, 7, "a")
    cluster.note(1, 8, "a")
    cluster.run(100)
    origin = cluster.nodes[1]
    if has_store is not None:
        origin.write_state()
        origin.restart(with_store=has_store)
    cluster.run(1_200)
    assert cluster.nodes[2].notes() == cluster.nodes[4].notes() == [7, 8]
    sent = cluster.commands_to(3)
    gaps = [(after.sent_ms - before.sent_ms) / 1_000 for before, after in pairwise(sent)]
    assert gaps == [10, 20, 40, 80, 160, 300, 300, 300]
    attempts = [each.command.delivery and each.command.delivery.attempt for each in sent]
    assert attempts == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len({each.command.key for each in sent}) == 1, "the second waits for the first"
    cluster.dark = set()
    cluster.run(300)
    assert cluster.nodes[3].notes() == [7, 8]
    check_end(cluster)


def test_ten_minutes_in_the_dark_are_written_down_on_the_log() -> None:
    cluster = Cluster(3)
    cluster.dark = {3}
    cluster.note(1, 7)
    cluster.run(600)
    cluster.dark = set()
    cluster.run(300)
    assert transcript(cluster, 1, times=True)[3:] == [
        "0s > ACKNOWLEDGE 1.1 at 2",
        "0s ACKNOWLEDGED 1.1 at 2",
        "10s > REDISTRIBUTE at 3",
        "10s REDISTRIBUTED at 3 of 1.1 (attempt 2)",
        "30s > REDISTRIBUTE at 3",
        "30s REDISTRIBUTED at 3 of 1.1 (attempt 3)",
        "70s > REDISTRIBUTE at 3",
        "70s REDISTRIBUTED at 3 of 1.1 (attempt 4)",
        "150s > REDISTRIBUTE at 3",
        "150s REDISTRIBUTED at 3 of 1.1 (attempt 5)",
        "310s > REDISTRIBUTE at 3",
        "310s REDISTRIBUTED at 3 of 1.1 (attempt 6)",
        "610s > REDISTRIBUTE at 3",
        "610s REDISTRIBUTED at 3 of 1.1 (attempt 7)",
        "610s > ACKNOWLEDGE 1.1 at 3",
        "610s ACKNOWLEDGED 1.1 at 3",
        "610s FINISHED 1.1",
    ]
    assert transcript(cluster, 3) == ["> NOTE 1.1 = 7 (attempt 7)", "NOTED 1.1 = 7"]
    check_end(cluster)


# --- twice and late ---------------------------------------------------------------------------


def test_an_acknowledgement_that_comes_twice_or_late_changes_nothing() -> None:
    cluster = Cluster(3)
    key = cluster.note(1, 7, "a")
    cluster.note(1, 8, "a")
    cluster.cut = {(1, 3)}
    before = len(cluster.nodes[1].log)
    first, again = (cluster.tell(1, ACKNOWLEDGE, key, Targets((2,))) for _ in range(2))
    assert first.rejection is None
    assert again.rejection is not None and again.rejection.code == Code.NOT_FOUND
    assert transcript(cluster, 1)[before:] == [
        "> ACKNOWLEDGE 1.1 at 2",
        "ACKNOWLEDGED 1.1 at 2",
        "DISTRIBUTING 1.2 at 2",
        "> ACKNOWLEDGE 1.1 at 2",
        "! ACKNOWLEDGE 1.1 NOT_FOUND",
    ]
    cluster.cut = set()
    cluster.run(60)
    rows, before = cluster.nodes[1].dump(), len(cluster.nodes[1].log)
    late = cluster.tell(1, ACKNOWLEDGE, key, Targets((2, 3)))
    assert late.rejection is not None and late.rejection.code == Code.NOT_FOUND
    assert cluster.nodes[1].dump() == rows
    assert len(cluster.nodes[1].log) == before + 2
    check_end(cluster)


def test_an_acknowledgement_counts_for_those_partitions_that_were_not_known() -> None:
    cluster = Cluster(4)
    cluster.cut = {(1, 2), (1, 3), (1, 4)}
    key = cluster.note(1, 7)
    cluster.tell(1, ACKNOWLEDGE, key, Targets((2,)))
    cluster.tell(1, ACKNOWLEDGE, key, Targets((2, 3, 3)))
    assert transcript(cluster, 1)[-2:] == ["> ACKNOWLEDGE 1.1 at 2 3 3", "ACKNOWLEDGED 1.1 at 3"]
    cluster.tell(1, ACKNOWLEDGE, key, Targets((4,)))
    check_end(cluster)


def test_one_of_a_queue_that_comes_again_behind_a_later_one_is_acknowledged_and_not_done() -> None:
    cluster = Cluster(2)
    for number in (7, 8):
        cluster.note(1, number, "a")
    cluster.run()
    first = cluster.commands_to(2)[0]
    rows, before = cluster.nodes[2].dump(), len(cluster.nodes[2].log)
    cluster.posted.clear()
    cluster.arrive(first)
    cluster.run(1)
    assert transcript(cluster, 2)[before:] == ["> NOTE 1.1 = 7", "! NOTE 1.1 ALREADY_EXISTS"]
    assert cluster.nodes[2].dump() == rows
    (answer,) = cluster.posted
    assert (answer.to, answer.command.intent, answer.command.key) == (
        1,
        ACKNOWLEDGE,
        first.command.key,
    )
    assert transcript(cluster, 1)[-1] == "! ACKNOWLEDGE 1.1 NOT_FOUND"
    check_end(cluster)


def test_what_a_receiver_rejects_is_acknowledged() -> None:
    cluster = Cluster(2)
    cluster.cut = {(2, 1)}
    cluster.note(1, 7)
    cluster.run(5)
    cluster.cut = set()
    cluster.run(60)
    assert transcript(cluster, 2) == [
        "> NOTE 1.1 = 7",
        "NOTED 1.1 = 7",
        "> NOTE 1.1 = 7 (attempt 2)",
        "! NOTE 1.1 ALREADY_EXISTS",
    ]
    check_end(cluster)
