"""What receivers, people and signs of life change in the course of a distribution."""

import msgspec
import pytest
from distribution_checks import check_end, check_now
from distribution_cluster import Cluster
from distribution_domain import Note
from distribution_transcript import transcript

from holdfast.engine.distribution import commands
from holdfast.engine.distribution.values import (
    DistributionIntent,
    Postponement,
    Refusal,
    Resending,
    Targets,
)
from holdfast.errors import Code

ACKNOWLEDGE, POSTPONE = DistributionIntent.ACKNOWLEDGE, DistributionIntent.POSTPONE
RESUME = DistributionIntent.RESUME
REASON = "ValueError: 7 cannot be read"


def since(cluster: Cluster, partition: int, before: int) -> list[str]:
    return transcript(cluster, partition, times=True)[before:]


def seconds(cluster: Cluster, partition: int) -> list[float]:
    """When something was sent to a partition."""
    first = cluster.posted[0].sent_ms
    return [(each.sent_ms - first) / 1_000 for each in cluster.commands_to(partition)]


# --- a command that throws --------------------------------------------------------------------


def test_a_command_that_throws_blocks_its_queue_until_a_person_skips_it() -> None:
    cluster = Cluster(3)
    key = cluster.note(1, 7, "a", throws_at=(3,))
    cluster.note(1, 8, "a")
    cluster.run(40)
    assert cluster.nodes[2].notes() == [7, 8]
    assert cluster.nodes[3].notes() == []
    assert transcript(cluster, 3)[:4] == [
        "> NOTE 1.1 = 7",
        "! NOTE 1.1 INTERNAL",
        "> NOTE 1.1 = 7 (attempt 2)",
        "! NOTE 1.1 INTERNAL",
    ]
    assert [line for line in transcript(cluster, 1, times=True) if " at 3" in line] == [
        "0s > REFUSE 1.1 at 3 for '" + REASON + "'",
        "0s REFUSED 1.1 at 3 for '" + REASON + "'",
        "10s > REDISTRIBUTE at 3",
        "10s REDISTRIBUTED at 3 of 1.1 (attempt 2)",
        "10s > REFUSE 1.1 at 3 for '" + REASON + "'",
        "10s REFUSED 1.1 at 3 for '" + REASON + "'",
        "30s > REDISTRIBUTE at 3",
        "30s REDISTRIBUTED at 3 of 1.1 (attempt 3)",
        "30s > REFUSE 1.1 at 3 for '" + REASON + "'",
        "30s REFUSED 1.1 at 3 for '" + REASON + "'",
    ]
    flight = cluster.nodes[1].view.distributions.flight(3, key)
    assert flight.refusal == REASON, "people can see it"
    check_now(cluster)
    before = len(cluster.nodes[1].log)
    cluster.skip(key, 3, by="ann", reason="nobody needs it")
    cluster.run(60)
    assert since(cluster, 1, before) == [
        "40s > SKIP 1.1 at 3 by ann: nobody needs it",
        "40s SKIPPED 1.1 at 3 by ann: nobody needs it",
        "40s FINISHED 1.1",
        "40s DISTRIBUTING 1.2 at 3",
        "40s > ACKNOWLEDGE 1.2 at 3",
        "40s ACKNOWLEDGED 1.2 at 3",
        "40s FINISHED 1.2",
    ]
    assert cluster.nodes[3].notes() == [8]
    check_end(cluster)


def test_a_command_that_throws_is_done_once_the_receiver_can_do_it() -> None:
    cluster = Cluster(2)
    cluster.note(1, 7, "a", throws_at=(2,), until_attempt=3)
    cluster.run(29)
    assert cluster.nodes[2].notes() == []
    cluster.run(1)
    assert cluster.nodes[2].notes() == [7]
    check_end(cluster)


def test_commands_that_throw_are_sent_ever_more_seldom_though_others_are_heard() -> None:
    cluster = Cluster(2)
    key = cluster.note(1, 7, "a", throws_at=(2,))
    for number in range(60):
        cluster.note(1, number, "b")
        cluster.run(10)
    assert seconds(cluster, 2).count(0) == 2
    poison = [each for each in cluster.commands_to(2) if each.command.key == key]
    attempts = [each.command.delivery and each.command.delivery.attempt for each in poison]
    assert attempts == [1, 2, 3, 4, 5, 6]
    cluster.cancel(key)
    cluster.run(1)
    check_end(cluster)


def test_a_refusal_of_what_is_not_in_flight_is_rejected() -> None:
    cluster = Cluster(2)
    key = cluster.note(1, 7)
    cluster.run()
    told = cluster.tell(1, DistributionIntent.REFUSE, key, Refusal(2, "late"))
    assert told.rejection is not None and told.rejection.code == Code.NOT_FOUND
    check_end(cluster)


# --- people -----------------------------------------------------------------------------------


def test_one_that_only_waits_can_be_skipped_in_the_middle_of_its_queue() -> None:
    cluster = Cluster(3)
    cluster.dark = {3}
    keys = [cluster.note(1, number, "a") for number in (7, 8, 9)]
    cluster.run(1)
    before = len(cluster.nodes[1].log)
    cluster.skip(keys[1], 3, reason="wrong")
    assert since(cluster, 1, before) == [
        "1s > SKIP 1.2 at 3 by ann: wrong",
        "1s SKIPPED 1.2 at 3 by ann: wrong",
        "1s FINISHED 1.2",
    ]
    check_now(cluster)
    cluster.dark = set()
    cluster.run(60)
    assert cluster.nodes[3].notes() == [7, 9]
    assert cluster.nodes[2].notes() == [7, 8, 9]
    check_end(cluster)


def test_a_skip_names_partitions_and_leaves_the_others_alone() -> None:
    cluster = Cluster(4)
    cluster.dark = {3, 4}
    key = cluster.note(1, 7)
    cluster.run(1)
    assert cluster.skip(key, 2).rejection is not None, "that one has it"
    assert cluster.skip(key, 9).rejection is not None, "that one does not exist"
    assert cluster.skip(key).rejection is not None, "it names nobody"
    cluster.skip(key, 2, 3)
    assert transcript(cluster, 1)[-1] == "SKIPPED 1.1 at 3 by ann: "
    cluster.dark = set()
    cluster.run(10)
    assert [cluster.nodes[each].notes() for each in (2, 3, 4)] == [[7], [], [7]]
    check_end(cluster)


def test_one_that_was_skipped_on_its_way_is_done_before_the_next_or_not_at_all() -> None:
    for comes_late in (False, True):
        cluster = Cluster(2)
        cluster.cut = {(1, 2)}
        key = cluster.note(1, 7, "a")
        cluster.note(1, 8, "a")
        cluster.cut = set()
        cluster.skip(key, 2)
        (lost,) = [each for each in cluster.commands_to(2) if each.command.key == key]
        if comes_late:
            cluster.run()
        cluster.arrive(lost)
        cluster.run(60)
        assert cluster.nodes[2].notes() == ([8] if comes_late else [7, 8])
        assert "! ACKNOWLEDGE 1.1 NOT_FOUND" in transcript(cluster, 1)
        check_end(cluster)


def test_a_person_cancels_a_distribution_wherever_it_is_pending() -> None:
    cluster = Cluster(4)
    cluster.dark = {3, 4}
    cluster.note(1, 7, "a", to=(4,))
    key = cluster.note(1, 8, "a")
    cluster.note(1, 9, "a")
    cluster.run(1)
    before = len(cluster.nodes[1].log)
    cluster.cancel(key, by="bob", reason="a mistake")
    assert since(cluster, 1, before) == [
        "1s > CANCEL 1.2 by bob: a mistake",
        "1s CANCELED 1.2 at 3 4 by bob: a mistake",
        "1s FINISHED 1.2",
        "1s DISTRIBUTING 1.3 at 3",
    ]
    again = cluster.cancel(key)
    assert again.rejection is not None and again.rejection.code == Code.NOT_FOUND
    check_now(cluster)
    cluster.dark = set()
    cluster.run(60)
    notes = [cluster.nodes[each].notes() for each in (2, 3, 4)]
    assert notes == [[8, 9], [9], [7, 9]]
    check_end(cluster)


# --- a receiver that is behind ----------------------------------------------------------------


def postpone(cluster: Cluster, pause_ms: int, *keys: int) -> None:
    reply = cluster.tell(1, POSTPONE, 0, Postponement(2, keys, pause_ms))
    assert reply.rejection is None


def test_nothing_is_sent_to_a_partition_that_is_behind_until_it_has_room() -> None:
    cluster = Cluster(3)
    cluster.cut = {(1, 2)}
    key = cluster.note(1, 7, "a")
    cluster.run(1)
    postpone(cluster, 60_000, key)
    cluster.cut = set()
    cluster.note(1, 8, "b")
    cluster.note(1, 9)
    cluster.run(59.9)
    assert seconds(cluster, 2) == [0]
    assert cluster.nodes[3].notes() == [7, 8, 9], "nobody else waits"
    check_now(cluster)
    before = len(cluster.nodes[1].log)
    cluster.run(0.1)
    assert since(cluster, 1, before)[:2] == [
        "61s > REDISTRIBUTE at 2",
        "61s REDISTRIBUTED at 2 of 1.1 (attempt 1) 1.2 (attempt 1) 1.3 (attempt 1)",
    ]
    assert cluster.nodes[2].notes() == [7, 8, 9]
    cluster.note(1, 10)
    cluster.run()
    assert cluster.nodes[2].notes()[-1] == 10, "it is open again"
    check_end(cluster)


def test_what_was_sent_before_a_partition_was_behind_waits_too() -> None:
    cluster = Cluster(2)
    cluster.cut = {(1, 2)}
    cluster.note(1, 7)
    cluster.run(5)
    key = cluster.note(1, 8)
    cluster.run(1)
    postpone(cluster, 60_000, key)
    check_now(cluster)
    cluster.run(59)
    cluster.note(1, 9)
    assert seconds(cluster, 2) == [0, 5]
    cluster.cut = set()
    before = len(cluster.nodes[1].log)
    cluster.run(1)
    assert since(cluster, 1, before)[1] == (
        "66s REDISTRIBUTED at 2 of 1.1 (attempt 2) 1.2 (attempt 1) 1.3 (attempt 1)"
    )
    check_end(cluster)


def test_a_sign_of_life_of_a_partition_that_is_behind_does_not_open_it() -> None:
    cluster = Cluster(2)
    cluster.cut = {(1, 2)}
    key = cluster.note(1, 7)
    cluster.run(35)  # sent at 0, 10 and 30 s
    postpone(cluster, 60_000, key)
    cluster.note(2, 8)
    cluster.run(59)
    assert cluster.nodes[1].notes() == [7, 8]
    assert seconds(cluster, 2) == [0, 10, 30]
    cluster.cut = set()
    cluster.run(1)
    assert "> NOTE 1.1 = 7 (attempt 3)" in transcript(cluster, 2)
    check_end(cluster)


def test_a_postponement_of_what_is_not_in_flight_is_rejected() -> None:
    cluster = Cluster(2)
    key = cluster.note(1, 7)
    cluster.run()
    reply = cluster.tell(1, POSTPONE, 0, Postponement(2, (key,), 100))
    assert reply.rejection is not None and reply.rejection.code == Code.NOT_FOUND
    assert reply.rejection.reason == (
        f"Expected one of the distributions {key} to be in flight to partition 2, but none is"
    )
    check_end(cluster)


# --- a dark partition is back -----------------------------------------------------------------


@pytest.mark.parametrize("sign", ["resume", "its own command", "an acknowledgement", "a refusal"])
def test_what_a_dark_partition_missed_is_due_at_once_when_it_gives_a_sign_of_life(
    sign: str,
) -> None:
    cluster = Cluster(3)
    cluster.dark = {2}
    cluster.note(1, 7)
    answered = cluster.note(1, 8)
    cluster.note(1, 9, "a")
    cluster.note(1, 10, "a")
    cluster.run(100)  # all sent at 0, 10, 30 and 70 s; next at 150 s
    cluster.dark = set()
    before = len(cluster.nodes[1].log)
    if sign == "resume":
        cluster.tell(1, RESUME, 0, Resending(2))
    elif sign == "its own command":
        cluster.note(2, 99, to=(1,))
    elif sign == "an acknowledgement":
        cluster.tell(1, ACKNOWLEDGE, answered, Targets((2,)))
    else:
        cluster.tell(1, DistributionIntent.REFUSE, answered, Refusal(2, "not now"))
    cluster.run(1)
    resumed = [line for line in since(cluster, 1, before) if "RESUMED" in line]
    missed = "1.1 1.2 1.3" if sign in ("resume", "its own command") else "1.1 1.3"
    assert resumed == [f"100s RESUMED at 2 of {missed}"]
    assert {7, 9, 10} <= set(cluster.nodes[2].notes())
    cluster.run(60)
    check_end(cluster)


def test_what_is_sent_after_a_sign_of_life_starts_its_pauses_anew() -> None:
    cluster = Cluster(2)
    cluster.cut = {(1, 2)}
    cluster.note(1, 7)
    cluster.run(100)
    cluster.tell(1, RESUME, 0, Resending(2))
    cluster.run(60)
    assert seconds(cluster, 2) == [0, 10, 30, 70, 100, 110, 130]
    cluster.cut = set()
    cluster.run(60)
    check_end(cluster)


def test_a_partition_that_answered_in_time_is_not_resumed() -> None:
    cluster = Cluster(2)
    cluster.cut = {(1, 2)}
    cluster.note(1, 7)
    cluster.note(2, 8)
    cluster.run(5)
    assert not [line for line in transcript(cluster, 1) if "RESUMED" in line]
    cluster.cut = set()
    cluster.run(60)
    check_end(cluster)


def test_there_is_nothing_to_resume_at_a_partition_that_has_everything() -> None:
    cluster = Cluster(2)
    cluster.note(1, 7)
    cluster.run()
    reply = cluster.tell(1, RESUME, 0, Resending(2))
    assert reply.rejection is not None and reply.rejection.code == Code.NOT_FOUND


def test_a_step_sends_again_no_more_than_it_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "RESEND_BYTES_MAX", 2 * len(msgspec.msgpack.encode(Note())))
    cluster = Cluster(2)
    cluster.cut = {(1, 2)}
    for number in range(5):
        cluster.note(1, number)
    cluster.run(9)
    before = len(cluster.nodes[1].log)
    cluster.run(1)
    assert [line for line in since(cluster, 1, before) if ">" not in line] == [
        "10s REDISTRIBUTED at 2 of 1.1 (attempt 2) 1.2 (attempt 2)",
        "10s REDISTRIBUTED at 2 of 1.3 (attempt 2) 1.4 (attempt 2)",
        "10s REDISTRIBUTED at 2 of 1.5 (attempt 2)",
    ]
    cluster.cut = set()
    cluster.run(20)
    assert cluster.nodes[2].notes() == [0, 1, 2, 3, 4]
    check_end(cluster)
