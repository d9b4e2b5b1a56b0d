"""kill -9 of members and restarts of the broker under load: nothing is lost, nothing done twice."""

import asyncio
import os
import time
import uuid
from pathlib import Path
from random import Random
from statistics import median

import pytest
from bench.ours.cluster_load import Completed, Plan, RunningLoad, commits_after, running_load
from bench.ours.kafka_cluster import OurKafkaCluster
from bench.peers.kafka import KafkaServer
from tests.cluster.real import Log, check_tasks, through_api

PARTITIONS = 4
KILLS = int(os.environ.get("HOLDFAST_KILLS", "50"))
RESTARTS = int(os.environ.get("HOLDFAST_RESTARTS", "5"))
SOAK_SECONDS_MAX = 3_600
SEED = int(os.environ.get("HOLDFAST_SEED", "0")) or int.from_bytes(os.urandom(4))


def plan(cluster: OurKafkaCluster, every_ms: float) -> Plan:
    """A keyed task for each partition at a pace, through all members, and a worker."""
    return Plan(cluster.urls, list(range(1, PARTITIONS + 1)), PARTITIONS, every_ms, True)


class Tormentor:
    """Does things to members and their broker under load, and lets them recover after each."""

    def __init__(self, cluster: OurKafkaCluster) -> None:
        print(f"HOLDFAST_SEED={SEED}")
        self.kills: list[tuple[float, set[int]]] = []  # when, and of which partitions the owner
        self.restarts: list[float] = []
        self._random = Random(SEED)
        self._cluster = cluster

    def kill_owner(self) -> None:
        owners = self._cluster.owners()
        name = self._random.choice(sorted(set(owners.values())))
        self._cluster.members[name].kill()
        self.kills.append((time.monotonic(), {e for e, owner in owners.items() if owner == name}))
        self._cluster.restart(name)
        self._cluster.wait_until_healthy()

    def pause_owner(self, seconds: float) -> None:
        """SIGSTOP: others take over; it wakes up and believes to be an owner still."""
        name = self._random.choice(sorted(set(self._cluster.owners().values())))
        process = self._cluster.members[name].process
        process.pause()
        time.sleep(seconds)
        process.resume()
        self._cluster.wait_until_healthy()

    def restart_broker(self) -> None:
        self.restarts.append(time.monotonic())
        self._cluster.broker.kill()
        self._cluster.broker.run()
        self._cluster.wait_until_healthy()

    def tell(self, load: RunningLoad) -> None:
        """Prints what it cost."""
        submitted = load.submitted()
        everything = set(range(1, PARTITIONS + 1))
        for what, spans in (
            ("after kills", [commits_after(submitted, at, o) for at, o in self.kills if o]),
            ("after restarts", [commits_after(submitted, at, everything) for at in self.restarts]),
        ):
            if spans:
                print(f"commits again {what}: median {median(spans):.2f} s, most {max(spans):.2f}")


def check_same(one: dict[int, Log], other: dict[int, Log]) -> None:
    """Members give out one log. Leases go on ending: what was read later may have more at its end.

    What was acknowledged is looked for in the first, which was read when the load had ended.
    """
    for partition, log in one.items():
        further = other[partition]
        end = min(max(log, default=-1), max(further, default=-1))
        differ = [at for at in log.keys() | further.keys() if log.get(at) != further.get(at)]
        assert all(at > end for at in differ), f"partition {partition} differs at {min(differ)}"


def check(cluster: OurKafkaCluster, load: RunningLoad, torment: Tormentor) -> None:
    """Ends the load, and looks at everything."""
    load.end()
    assert load.unanswered == 0
    cluster.wait_until_healthy()
    noted = load.noted()
    logs = {
        name: asyncio.run(through_api(member.url, PARTITIONS))
        for name, member in cluster.members.items()
    }
    first, *others = logs.values()
    for other in others:
        check_same(first, other)
    submitted = load.submitted()
    completed = [each for each in noted if isinstance(each, Completed)]
    print(f"{len(submitted)} acknowledged, {len(completed)} completed")
    assert min(len(submitted), len(completed)) > 100
    check_tasks(first, submitted, completed)
    torment.tell(load)
    for name, member in cluster.members.items():
        assert "two owners" not in member.log.read_text(), name
        assert "alarm" not in member.log.read_text(), name


@pytest.mark.xdist_group("kafka")
def test_nothing_is_lost_when_owners_are_killed_and_paused_and_the_broker_restarts(
    tmp_path: Path, kafka: KafkaServer
) -> None:
    name = f"kills-{uuid.uuid4().hex[:8]}"
    with (
        OurKafkaCluster(tmp_path, name, broker=kafka) as cluster,
        running_load(tmp_path, plan(cluster, 50.0)) as load,
    ):
        torment = Tormentor(cluster)
        torment.kill_owner()
        torment.pause_owner(3.0)
        torment.restart_broker()
        check(cluster, load, torment)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
def test_nothing_is_lost_in_fifty_kills_of_members_and_five_restarts_of_the_broker(
    tmp_path: Path,
) -> None:
    with (
        OurKafkaCluster(tmp_path, "soak") as cluster,
        running_load(tmp_path, plan(cluster, 50.0)) as load,
    ):
        torment = Tormentor(cluster)
        for number in range(KILLS):
            torment.kill_owner()
            if (number + 1) % max(1, KILLS // RESTARTS) == 0:
                torment.restart_broker()
        check(cluster, load, torment)
