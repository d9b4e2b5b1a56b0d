"""A partition ends at any step of a distribution, on either side: all is done once, in order."""

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest
from distribution_checks import Timekeeper, check_end
from distribution_cluster import Cluster, Fall, Node
from distribution_domain import NOTES, Note, NoteIntent

from holdfast.engine.kernel import Command

PARTITIONS, NUMBERS = 3, (7, 8)
FALLS = [
    Fall(is_durable, is_written, has_store, down_ms)
    for is_durable, (is_written, has_store), down_ms in product(
        (True, False), ((True, True), (False, True), (False, False)), (0, 15_000)
    )
]
Falls = Callable[[Node], Fall | None]


def tell(falls: Falls, *, restarts: bool = True, is_noticed: bool = True) -> Cluster:
    """Two in a queue for three partitions; the client asks again until it is heard."""
    cluster = Cluster(PARTITIONS)
    cluster.latency_ms = lambda sender, to: 5 * sender + 7 * to  # answers come one by one
    cluster.restarts, cluster.is_noticed = restarts, is_noticed
    cluster.falls = falls

    def ask(number: int) -> None:
        node = cluster.nodes[1]
        if node.is_down or number not in node.notes():
            cluster.submit(1, Command(NOTES, NoteIntent.NOTE, 0, Note(number, "a")))
            cluster.later(1_000, partial(ask, number))

    for after_ms, number in enumerate(NUMBERS):
        cluster.later(after_ms, partial(ask, number))
    cluster.run(600)
    return cluster


def check(cluster: Cluster) -> None:
    wanted = cluster.nodes[1].notes()
    assert sorted(wanted) == list(NUMBERS)
    for receiver in range(2, PARTITIONS + 1):
        assert cluster.nodes[receiver].notes() == wanted
    for node in cluster.nodes.values():
        Timekeeper(node)
        assert not node.bugs
    check_end(cluster)


def _steps() -> list[tuple[int, int]]:
    """Every (partition, step) of a calm day."""
    nodes = tell(lambda node: None).nodes
    return [(number, step) for number, node in nodes.items() for step in range(node.steps)]


def falls_at(*moments: tuple[tuple[int, int], Fall]) -> Falls:
    found = dict(moments)
    return lambda node: found.get((node.number, node.steps))


STEPS = _steps()


def test_a_calm_day_has_steps_on_either_side() -> None:
    assert {number for number, _ in STEPS} == {1, 2, 3}
    assert len(STEPS) == 2 + 4 + 2 + 2, "two are asked for, four answers come, two arrive twice"


@pytest.mark.parametrize("moment", STEPS, ids=str)
def test_a_partition_that_ends_at_a_step_and_begins_again_changes_nothing(
    moment: tuple[int, int],
) -> None:
    for fall in FALLS:
        for restarts, is_noticed in product((True, False), repeat=2):
            falls = falls_at((moment, fall))
            cluster = tell(falls, restarts=restarts, is_noticed=is_noticed)
            assert sum(len(node.downtimes) for node in cluster.nodes.values()) == 1
            check(cluster)


@pytest.mark.parametrize("first", STEPS, ids=str)
def test_two_partitions_may_end_or_one_may_end_twice(first: tuple[int, int]) -> None:
    for second in STEPS:
        for durable in product((True, False), repeat=2):
            falls = falls_at((first, Fall(durable[0])), (second, Fall(durable[1], down_ms=15_000)))
            check(tell(falls))


@pytest.mark.parametrize("is_durable", [True, False])
@pytest.mark.parametrize("number", range(1, PARTITIONS + 1))
def test_a_partition_that_ends_at_its_first_ten_steps_gets_on_in_the_end(
    number: int, is_durable: bool
) -> None:
    def falls(node: Node) -> Fall | None:
        is_falling = node.number == number and node.steps < 10
        return Fall(is_durable, is_written=node.steps % 2 == 0) if is_falling else None

    check(tell(falls))


def test_without_anybody_who_notices_time_alone_sends_again() -> None:
    """The step that sends the first is durable, and its letters are never posted."""
    cluster = tell(falls_at(((1, 0), Fall(True))), restarts=False, is_noticed=False)
    (first, *_) = cluster.commands_to(2)
    assert first.command.delivery is not None and first.command.delivery.attempt == 2
    check(cluster)


def test_what_was_in_flight_goes_out_when_its_origin_starts_without_a_record_of_it() -> None:
    cluster = tell(falls_at(((1, 0), Fall(True))))
    intents = [record.intent for record in cluster.nodes[1].records()]
    assert len(intents) == len(tell(lambda node: None).nodes[1].records())
    check(cluster)
