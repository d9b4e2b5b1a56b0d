"""kill -9 and SIGSTOP of members under load: nothing acknowledged is lost, one order for all."""

import os
import time
from pathlib import Path
from random import Random
from statistics import median

import pytest
from bench.ours.cluster import NAMES, OurCluster
from bench.ours.cluster_cuts import CutFollower
from bench.ours.cluster_load import Plan, RunningLoad, commits_after, running_load
from tests.cluster.namespaces import NamespacedCluster, namespaces
from tests.cluster.real import check_all

PARTITIONS = 4
KILLS = int(os.environ.get("HOLDFAST_KILLS", "50"))  # of writers, and as many of owners
PAUSES, PAUSE_SECONDS = int(os.environ.get("HOLDFAST_PAUSES", "5")), 60.0
AWAY_SECONDS = 60.0
CUTS, CUT_SECONDS = 20, 5.0
SOAK_SECONDS_MAX = 7_200
# Members cut their logs behind snapshots; here everything is looked at, so nothing is cut.
UNCUT = {"HOLDFAST_SNAPSHOT_INTERVAL_MS": str(SOAK_SECONDS_MAX * 1_000)}
SEED = int(os.environ.get("HOLDFAST_SEED", "0")) or int.from_bytes(os.urandom(4))


def plan(cluster: OurCluster, every_ms: float = 20.0) -> Plan:
    """A keyed task for each partition at a pace, through all members, and a worker."""
    return Plan(cluster.urls, list(range(1, PARTITIONS + 1)), PARTITIONS, every_ms, True)


class Tormentor:
    """Does things to members of a cluster under load, and lets it recover after each."""

    def __init__(self, cluster: OurCluster, follower: CutFollower, seed: int = SEED) -> None:
        print(f"HOLDFAST_SEED={seed}")
        self.random = Random(seed)
        self.kills: list[tuple[float, set[int]]] = []  # when, and of which partitions the owner
        self.writer_kills: list[float] = []
        self._cluster, self._follower = cluster, follower

    def kill_writer(self) -> None:
        """The member that writes cuts."""
        self.writer_kills.append(self._kill(self._follower.writer))

    def kill_owner(self) -> None:
        """A member that owns something."""
        self._kill(self._owner())

    def _kill(self, name: str) -> float:
        owned = {each for each, owner in self._cluster.owners().items() if owner == name}
        cut, now = self._follower.cuts[-1].number, time.monotonic()
        self._cluster.members[name].kill()
        self.kills.append((now, owned))
        self._follower.wait_past(cut + 2)
        self._cluster.restart(name)
        self._rest()
        return now

    def pause_owner(self, seconds: float) -> None:
        """SIGSTOP: others take over; it wakes up and believes to be an owner still."""
        process = self._cluster.members[self._owner()].process
        process.pause()
        time.sleep(seconds)
        process.resume()
        self._rest()

    def etcd_away(self, seconds: float) -> None:
        """Members go on without it, and nobody takes over."""
        before = self._cluster.owners()
        self._cluster.etcd.kill()
        time.sleep(seconds)
        assert self._cluster.owners() == before
        cut = self._follower.cuts[-1].number
        self._cluster.etcd.run()
        self._follower.wait_past(cut, 30)
        self._rest()

    def _owner(self) -> str:
        return self.random.choice(sorted(set(self._cluster.owners().values())))

    def _rest(self) -> None:
        """Until all have all: of three disks one is behind at the most."""
        self._cluster.wait_until_healthy()

    def tell(self, load: RunningLoad) -> None:
        """Prints what kills cost; the benchmark has goals for it."""
        submitted = load.submitted()
        again = [commits_after(submitted, at, owned) for at, owned in self.kills if owned]
        gaps = [self._follower.gap_around(at) for at in self.writer_kills]
        for what, spans in (("partitions commit again", again), ("gap in the order", gaps)):
            if spans:
                print(f"{what}: median {median(spans):.3f} s, most {max(spans):.3f} s")


def check(
    cluster: OurCluster, follower: CutFollower, load: RunningLoad, torment: Tormentor
) -> None:
    """Ends the load, and looks at everything."""
    load.end()
    assert load.unanswered == 0
    cluster.wait_until_healthy(lag_max=0)
    checked = check_all(cluster, follower, load.noted())
    print(checked)
    torment.tell(load)
    assert min(checked) > 0


@pytest.mark.xdist_group("cluster")
def test_nothing_acknowledged_is_lost_when_writers_and_owners_are_killed_and_paused(
    tmp_path: Path,
) -> None:
    with (
        OurCluster(tmp_path, is_etcd_durable=False) as cluster,
        CutFollower(cluster.etcd.url) as follower,
        running_load(tmp_path, plan(cluster)) as load,
    ):
        torment = Tormentor(cluster, follower)
        torment.kill_writer()
        torment.kill_owner()
        torment.pause_owner(1.5)
        check(cluster, follower, load, torment)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
def test_nothing_acknowledged_is_lost_in_a_hundred_kills_five_minutes_of_pauses_and_without_etcd(
    tmp_path: Path,
) -> None:
    with (
        OurCluster(tmp_path, environment=UNCUT) as cluster,
        CutFollower(cluster.etcd.url) as follower,
        running_load(tmp_path, plan(cluster, 50.0)) as load,
    ):
        torment = Tormentor(cluster, follower)
        for _ in range(KILLS):
            torment.kill_writer()
            torment.kill_owner()
        for _ in range(PAUSES):
            torment.pause_owner(PAUSE_SECONDS)
        torment.etcd_away(AWAY_SECONDS)
        check(cluster, follower, load, torment)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
def test_nothing_acknowledged_is_lost_when_members_no_longer_reach_others_that_reach_them(
    tmp_path: Path,
) -> None:
    with (
        namespaces(NAMES) as net,
        NamespacedCluster(tmp_path, net, UNCUT) as cluster,
        CutFollower(cluster.etcd.url) as follower,
        running_load(tmp_path, plan(cluster, 50.0)) as load,
    ):
        torment = Tormentor(cluster, follower)
        for _ in range(CUTS):
            one, other = torment.random.sample(NAMES, 2)
            with net.cut(one, other):
                time.sleep(CUT_SECONDS)
            cluster.wait_until_healthy()
        check(cluster, follower, load, torment)
