"""All or none, whatever happens: crashes at every append, and weather of all kinds."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random
from typing import Any

import pytest
from distribution_cluster import Fall, Node
from process_talk import deployment
from transaction_cluster import (
    JOB,
    TransactionCluster,
    complete,
    publish,
    start,
    submit,
)

from holdfast.engine.jobs.values import Completion, Failure, JobIntent, JobRef, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.processes.values import ProcessIntent
from holdfast.engine.transactions.values import TransactionOperation, TransactionState
from holdfast.model.dsl import Process
from holdfast.records import ValueType

COMMITTED, ABORTED = TransactionState.COMMITTED, TransactionState.ABORTED
LONG_S = 2_000  # for everything that is sent again, and for outcomes to be forgotten


def deploy(cluster: TransactionCluster) -> None:
    new = deployment(Process("p").task("ship"))
    assert (
        cluster.ask(1, Command(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, new)).rejection is None
    )
    cluster.run(1)


def good(cluster: TransactionCluster) -> list[TransactionOperation]:
    job = cluster.held(2)
    return [
        submit(1, "tx1", "k1"), complete(job, "tx2"), submit(2, "tx3", "k2"),
        publish(3, "tx4", "i"), start(3, "tx5", key="k3"),
    ]  # fmt: skip


def bad(cluster: TransactionCluster) -> list[TransactionOperation]:
    return [*good(cluster), start(2, "tx6", "nobody")]


def lost(cluster: TransactionCluster) -> list[TransactionOperation]:
    """The home's own part can be done when it begins, and no longer when all have voted."""
    keyed = NewJob("a", b"1", idempotency_key="k1", window_ms=3_600_000)
    cluster.later(10, lambda: cluster.submit(1, Command(JOB, JobIntent.CREATE, 0, keyed)))
    cluster.latency_ms = lambda sender, to: 100
    return good(cluster)


STORIES: dict[str, Callable[[TransactionCluster], list[TransactionOperation]]] = {
    "good": good,
    "bad": bad,
    "lost": lost,
}


def run_story(story: str, falls: Callable[[Node, int], Fall | None]) -> tuple[Any, dict[int, int]]:
    """A transaction from partition 1 on; `falls` is asked with the number of each node's step."""
    cluster = TransactionCluster()
    deploy(cluster)
    operations = STORIES[story](cluster)
    before = {number: node.steps for number, node in cluster.nodes.items()}
    cluster.falls = lambda node: falls(node, node.steps - before[node.number])
    answer = cluster.outcome(1, *operations)
    cluster.run(LONG_S)
    steps = {number: node.steps - before[number] for number, node in cluster.nodes.items()}
    known = cluster.check()
    assert [each.state for each in known] == [answer.state], "it is done once, as it was answered"
    assert not any(list(node.view.transactions.known.scan()) for node in cluster.nodes.values())
    assert not any(list(node.view.parcels.all_open()) for node in cluster.nodes.values())
    return answer, steps


def fall_at(point: tuple[int, int], fall: Fall, node: Node, step: int) -> Fall | None:
    return fall if (node.number, step) == point else None


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("is_durable", [True, False], ids=["durable", "lost"])
def test_a_crash_at_any_append_leaves_all_or_nothing(story: str, is_durable: bool) -> None:
    calm, steps = run_story(story, lambda node, at: None)
    assert calm.state == (COMMITTED if story == "good" else ABORTED)
    ended: Counter[str] = Counter()
    points = [(number, at) for number, last in steps.items() for at in range(last)]
    for point, down_ms in product(points, (0, 45_000)):  # back at once, or the home gives up
        fall = Fall(is_durable, is_written=point[1] % 2 == 0, down_ms=down_ms)
        answer, _ = run_story(story, partial(fall_at, point, fall))
        ended[answer.state] += 1
    if story == "bad":
        assert set(ended) == {ABORTED}
    assert sum(ended.values()) >= 20
    if story == "good":
        assert ended[COMMITTED] > ended[ABORTED] > 0


# --- several at once, and everybody else --------------------------------------------------------


def story_of(seed: int, transactions: int) -> Counter[str]:
    """Transactions that want the same jobs and keys, workers and clients that do, and trouble."""
    random = Random(seed)
    cluster = TransactionCluster(4, seed=seed)
    deploy(cluster)
    jobs = [cluster.held(random.randint(1, 4), random.choice([5_000, 3_600_000])) for _ in range(6)]
    cluster.loss, cluster.doubling, cluster.delay = 0.1, 0.1, 0.2
    cluster.abandoning = 0.05

    def falls(node: Node) -> Fall | None:
        if random.random() > 0.03:
            return None
        return Fall(
            random.random() < 0.5, random.random() < 0.5, random.random() < 0.7,
            random.choice([0, 0, 2_000, 60_000]),
        )  # fmt: skip

    cluster.falls = falls
    for number in range(transactions):
        wanted = [_operation(random, jobs, f"tx{number}-{n}") for n in range(random.randint(1, 5))]
        command = cluster.command(*wanted, timeout_ms=random.choice([1_000, 30_000, 120_000]))
        home = random.choice(wanted).partition
        for again in range(random.choice([1, 1, 3])):  # a client without an answer asks again
            after_ms = random.randrange(60_000) + again * 5_000
            cluster.later(after_ms, lambda to=home, what=command: cluster.submit(to, what))
    for _ in range(20):
        command = _meddling(random, jobs)
        to = random.randint(1, 4) if not command.key else command.key >> 51
        cluster.later(
            random.randrange(60_000), lambda to=to, what=command: cluster.submit(to, what)
        )
    cluster.run(300)
    cluster.falls = lambda node: None
    cluster.loss = cluster.doubling = cluster.delay = cluster.abandoning = 0
    cluster.run(LONG_S)
    known = cluster.check()
    assert not any(list(node.view.parcels.all_open()) for node in cluster.nodes.values())
    return Counter(each.state for each in known)


def _operation(random: Random, jobs: list[Any], text: str) -> TransactionOperation:
    partition, key = random.randint(1, 4), random.choice(["", f"k{random.randint(1, 4)}"])
    match random.randrange(4):
        case 0:
            return submit(partition, text, key)
        case 1:
            return complete(random.choice(jobs), text)
        case 2:
            return publish(partition, text, key)
        case _:
            return start(partition, text, random.choice(["p", "p", "p", "nobody"]), key)


def _meddling(random: Random, jobs: list[Any]) -> Command:
    job = random.choice(jobs)
    match random.randrange(4):
        case 0:
            return Command(JOB, JobIntent.COMPLETE, job.key, Completion(job.lease, b"1"))
        case 1:
            return Command(JOB, JobIntent.FAIL, job.key, Failure(job.lease, "boom"))
        case 2:
            return Command(JOB, JobIntent.CANCEL, job.key, JobRef())
        case _:
            new = NewJob("a", b"1", idempotency_key=f"k{random.randint(1, 4)}", window_ms=60_000)
            return Command(JOB, JobIntent.CREATE, 0, new)


def test_transactions_in_bad_weather_are_done_wholly_or_not_at_all() -> None:
    ended: Counter[str] = Counter()
    for seed in range(200):
        ended += story_of(seed, 12)
    assert ended[COMMITTED] > 300 and ended[ABORTED] > 300, ended


@pytest.mark.soak
def test_many_seeds_of_bad_weather() -> None:
    for seed in range(1_000, 3_000):
        story_of(seed, 20)


def test_the_same_seed_is_the_same_story() -> None:
    assert story_of(7, 12) == story_of(7, 12)
