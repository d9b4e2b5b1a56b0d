"""Messages over several partitions: each comes once, whatever the network does."""

import json
from itertools import pairwise
from typing import Any

import pytest
from process_cluster import Cluster
from process_talk import Talk

from holdfast.engine.jobs.values import JobEnded
from holdfast.engine.parcels.values import ParcelIntent, ParcelReady, ParcelsUpTo
from holdfast.model.dsl import Process, message, path
from holdfast.records import ValueType, partition_for

WAIT = Process("p").wait("w", message="m", key="key")
FAR = next(f"k{n}" for n in range(100) if partition_for(f"k{n}", 3) == 2)  # lives on partition 2


def test_a_message_finds_the_instance_on_another_partition() -> None:
    cluster = Cluster()
    cluster.deploy(WAIT)
    key = cluster.nodes[1].start(key=FAR)
    cluster.run(1)
    cluster.publish("m", FAR, ttl=0, x=1)
    cluster.run(1)
    assert cluster.nodes[1].result(key) == {"key": FAR, "x": 1}
    assert cluster.open_parcels() == 0
    cluster.check()


def test_a_parcel_that_is_not_acknowledged_goes_out_again_ever_more_seldom() -> None:
    cluster = Cluster(loss=1)
    cluster.deploy(WAIT)
    key = cluster.nodes[1].start(key=FAR)
    cluster.run(1_500)
    times = [moment for moment, _ in cluster.sent]
    gaps = [(after - before) / 1_000 for before, after in pairwise(times)]
    assert gaps == [10, 20, 40, 80, 160, 300, 300, 300]
    cluster.loss = 0
    cluster.run(300)
    assert cluster.open_parcels() == 0
    cluster.publish("m", FAR, ttl=0)
    sent = len(cluster.sent)
    cluster.run(600)
    assert not cluster.nodes[1].runs(key)
    assert len(cluster.sent) == sent + 2, "offer and answer; nothing is sent again"
    cluster.check()


def test_news_from_the_other_side_starts_the_pauses_anew() -> None:
    cluster = Cluster(loss=1)
    cluster.deploy(WAIT)
    node = cluster.nodes[1]
    keys = [node.start(key=FAR) for _ in range(2)]
    cluster.run(100)  # sent at 0, 10, 30 and 70 s; next at 150 s
    told = ParcelsUpTo(2, 1)
    assert node.ask(ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE, 0, told).rejection is None
    again = node.ask(ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE, 0, told)
    assert again.rejection is not None, "that was known"
    beyond = node.ask(ValueType.PARCEL, ParcelIntent.ACKNOWLEDGE, 0, ParcelsUpTo(2, 9))
    assert beyond.rejection is not None, "that was never sent"
    cluster.sent.clear()
    start = cluster.now_ms
    cluster.run(40)
    assert [(moment - start) / 1_000 for moment, _ in cluster.sent] == [10, 30]
    assert {ready.parcel.number for _, ready in cluster.sent} == {2}
    cluster.loss = 0
    for key in keys:
        node.cancel(key)
    # The first parcel is acknowledged by hand and never came: what follows it waits for it.
    assert cluster.nodes[2].view.parcels.received(1) == 0


def test_a_parcel_that_comes_twice_or_too_early_is_not_taken() -> None:
    cluster = Cluster(loss=1)
    cluster.deploy(WAIT)
    keys = [cluster.nodes[1].start(key=FAR) for _ in range(2)]
    first, second = [ready.parcel for ready in _ready(cluster)]
    to = cluster.nodes[2]

    def receive(parcel: object) -> str:
        reply = to.ask(ValueType.PARCEL, ParcelIntent.RECEIVE, 0, parcel)
        return "" if reply.rejection is None else str(reply.rejection.code)

    assert receive(second) == "INVALID_STATE"
    assert receive(first) == ""
    assert receive(first) == "ALREADY_EXISTS"
    assert receive(second) == ""
    assert len(list(to.view.messages.subscriptions.scan())) == 2
    cluster.loss = 0
    for key in keys:
        cluster.nodes[1].cancel(key)
    cluster.run(60)
    assert cluster.open_parcels() == 0
    cluster.check()


def _ready(cluster: Cluster) -> list[ParcelReady]:
    cluster.run(0)
    return [ready for _, ready in cluster.sent]


@pytest.mark.parametrize("seed", range(8))
def test_every_message_is_correlated_once_whatever_the_network_does(seed: int) -> None:
    """Two instances and two messages for each key: each instance has another message."""
    cluster = Cluster(seed=seed, loss=0.3, doubling=0.3, delay=0.4, crash=0.2)
    cluster.deploy(WAIT)
    keys = [f"key-{number}" for number in range(8)]
    for key in keys:
        for _ in range(2):
            node = cluster.random.choice(list(cluster.nodes.values()))
            node.start(key=key)
            cluster.run(cluster.random.choice([0, 3]))
        cluster.publish("m", key, n=1)
        cluster.run(cluster.random.choice([0, 3]))
        cluster.publish("m", key, n=2)
    cluster.run(1_800)
    results = [
        (outcome["key"], outcome["n"])
        for node in cluster.nodes.values()
        for outcome in _results(node)
    ]
    assert sorted(results) == [(key, number) for key in keys for number in (1, 2)]
    cluster.crash = 0
    cluster.run(3_600)
    assert cluster.open_parcels() == 0
    cluster.check()
    for node in cluster.nodes.values():
        assert not list(node.view.messages.subscriptions.scan())
        assert not list(node.view.messages.messages.scan())


def _results(node: Talk) -> list[dict[str, Any]]:
    return [
        json.loads(effect.outcome.result)
        for effect in node.effects
        if isinstance(effect, JobEnded) and effect.outcome.type == "p"
    ]


@pytest.mark.parametrize("seed", range(4))
def test_an_event_that_does_not_interrupt_counts_every_message(seed: int) -> None:
    cluster = Cluster(seed=seed, loss=0.3, doubling=0.3, delay=0.4, crash=0.2)
    news = message("m", path().compute("c", "n + 1", result="n"), key="key", interrupting=False)
    cluster.deploy(Process("p").task("a", on=[news]))
    key = cluster.nodes[1].start(key=FAR, n=0)
    for _ in range(15):
        cluster.publish("m", FAR)
        cluster.run(cluster.random.choice([0, 1, 20]))
    cluster.run(3_000)
    assert cluster.nodes[1].variables(key)["n"] == 15
    cluster.nodes[1].cancel(key)
    cluster.crash = 0
    cluster.run(4_000)
    assert cluster.open_parcels() == 0
    cluster.check()


@pytest.mark.parametrize("seed", range(4))
def test_a_message_for_one_that_is_gone_goes_to_the_next_that_waits(seed: int) -> None:
    cluster = Cluster(seed=seed, loss=0.2, doubling=0.2, delay=0.5, crash=0.1)
    cluster.deploy(WAIT)
    node = cluster.nodes[1]
    first = node.start(key=FAR)
    cluster.run(100)
    second = cluster.nodes[3].start(key=FAR)
    cluster.run(100)
    cluster.publish("m", FAR, n=1)
    if node.runs(first):
        node.cancel(first)  # while the message is on its way
    cluster.run(1_000)
    assert not cluster.nodes[3].runs(second)
    cluster.crash = 0
    cluster.run(4_000)
    assert cluster.open_parcels() == 0
    cluster.check()


def test_a_kept_message_that_came_too_late_is_there_for_one_that_starts_later() -> None:
    cluster = Cluster()
    cluster.deploy(WAIT)
    first = cluster.nodes[1].start(key=FAR)
    cluster.run(1)
    cluster.publish("m", FAR, n=1)
    cluster.nodes[1].cancel(first)  # the message is offered, and on its way
    cluster.run(1)
    later = cluster.nodes[3].start(key=FAR)
    cluster.run(1)
    assert cluster.nodes[3].result(later)["n"] == 1
    assert cluster.open_parcels() == 0
    cluster.check()
