"""The straight way is a short cut: what it writes is what a walk writes, byte for byte."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
from process_talk import Talk
from random_scripts import Story

from holdfast.engine.processes.plan import Node
from holdfast.model.dsl import Process, otherwise, over, path, timeout, when

SEEDS = 20
TWO_STEP = Process("p").task("first").task("second").end()


def nowhere(node: Node) -> Node | None:
    """No way is straight: all is left to walks."""
    return None


def never(nodes: list[Node]) -> bool:
    """No instance is canceled straight."""
    return False


def straight_nodes(talk: Talk) -> int:
    plans = talk.view.processes.plans.values()
    return sum(node.straight is not None for plan in plans for node in plan.nodes)


def told(seed: int) -> Story:
    story = Story(seed)
    story.tell()
    return story


def test_random_processes_write_the_same_log_with_and_without_straight_ways() -> None:
    straight = 0
    for seed in range(SEEDS):
        short = told(seed)
        straight += straight_nodes(short)
        with patch("holdfast.engine.processes.plan._straight", nowhere):
            long = told(seed)
            assert not straight_nodes(long)
        assert [each.payload for each in short.log] == [each.payload for each in long.log]
        assert short.dump() == long.dump(), f"seed {seed}"
    assert straight >= SEEDS // 2, "the stories have straight ways to compare"


def test_random_processes_write_the_same_log_with_and_without_straight_cancels() -> None:
    for seed in range(SEEDS):
        short = told(seed)
        with patch("holdfast.engine.processes.plan._cancels_straight", never):
            long = told(seed)
        assert [each.payload for each in short.log] == [each.payload for each in long.log]
        assert short.dump() == long.dump(), f"seed {seed}"


CANCELED = {
    "a job": TWO_STEP,
    "two jobs": Process("p").parallel(path().task("first"), path().task("b")).end(),
    "an event beside it": Process("p").task("first", on=[timeout("PT1H", path().task("b"))]).end(),
    "a job in a scope": Process("p").sub("s", path().task("first")).end(),
    "a job with inputs": Process("p").task("first", inputs={"one": "number + 1"}).end(),
    "items": Process("p").task("first", each=over("[1, 2]", item="item")).end(),
    "a choice before it": Process("p")
    .choose(when("number = 1", path().task("first")), otherwise())
    .end(),
}


@pytest.mark.parametrize("process", CANCELED.values(), ids=CANCELED.keys())
@pytest.mark.parametrize("job", ["waits", "is held", "is stuck", "is done"])
@pytest.mark.parametrize("keep_ms", [0, 1_000])
def test_a_canceled_instance_writes_the_same_log(process: Process, job: str, keep_ms: int) -> None:
    def canceled() -> Talk:
        talk = Talk()
        with patch("process_talk.KEEP_MS", keep_ms):
            key = talk.run(process, number=1)
        if job != "waits":
            taken = talk.take("first")
            if job == "is stuck":
                talk.fail(taken)
            elif job == "is done":
                talk.complete(taken)
        if talk.runs(key):
            assert talk.cancel(key).rejection is None
        assert not talk.runs(key)
        return talk

    short = canceled()
    with patch("holdfast.engine.processes.plan._cancels_straight", never):
        long = canceled()
    assert [each.payload for each in short.log] == [each.payload for each in long.log]
    assert short.effects == long.effects
    assert short.processor._turn.moves == long.processor._turn.moves
    assert short.dump() == long.dump() == short.replayed().state.dump()


def two_step() -> Talk:
    talk = Talk()
    talk.run(TWO_STEP, number=1)
    assert straight_nodes(talk) in (0, 3)
    talk.work("first", {"one": 1})
    assert talk.work("second") == {"number": 1, "one": 1}
    return talk


def test_a_two_step_process_writes_the_same_log_and_ends() -> None:
    short = two_step()
    with patch("holdfast.engine.processes.plan._straight", nowhere):
        long = two_step()
    assert straight_nodes(short) == 3, "start, first and second"
    assert [each.payload for each in short.log] == [each.payload for each in long.log]
    assert short.effects == long.effects
    assert not list(short.view.processes.instances.scan())


def beside_another() -> Talk:
    """The first token that comes to its end is not the last one."""
    talk = Talk()
    talk.run(Process("p").parallel(path().task("a").end("e"), path().task("b").end("f")), x=1)
    talk.work("a")
    assert list(talk.view.processes.instances.scan()), "the other token is on its way"
    talk.work("b")
    return talk


def called() -> Talk:
    """Somebody waits for the end."""
    talk = Talk()
    talk.deploy(Process("called").task("inner").end())
    talk.run(Process("p").call("c", process="called").task("after").end())
    talk.work("inner")
    talk.work("after")
    return talk


@pytest.mark.parametrize("story", [beside_another, called], ids=lambda story: story.__name__)
def test_an_instance_ends_with_its_last_token_and_tells_who_waits(
    story: Callable[[], Talk],
) -> None:
    short = story()
    with patch("holdfast.engine.processes.plan._straight", nowhere):
        long = story()
    assert straight_nodes(short) and not straight_nodes(long)
    assert [each.payload for each in short.log] == [each.payload for each in long.log]
    assert not list(short.view.processes.instances.scan())


def test_a_straight_way_counts_the_moves_of_a_walk() -> None:
    """A step takes a bounded number of moves, so they have to be counted."""

    def moves() -> list[int]:
        talk, found = Talk(), list[int]()
        talk.deploy(TWO_STEP)
        for act in (
            lambda: talk.start("p"),
            lambda: talk.work("first"),
            lambda: talk.work("second"),
        ):
            act()
            found.append(talk.processor._turn.moves)
        return found

    short = moves()
    with patch("holdfast.engine.processes.plan._straight", nowhere):
        assert moves() == short and all(short)
