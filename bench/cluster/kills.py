"""What kill -9 of members costs: gaps in the order, and until partitions commit again.

HOLDFAST_BENCH_KILLS says how many members are killed for each figure.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.cluster.parcels import committed, home_beside
from bench.cluster.ticking import percentile
from bench.cluster.waiting import make_waiting_tasks, offsets_of_tasks
from bench.cluster.writing import etcd_write_seconds
from bench.harness import Figure, Run, remove
from bench.ours.cluster import OurCluster
from bench.ours.cluster_cuts import CutFollower
from bench.ours.cluster_load import Plan, Submitted, commits_after, running_load
from bench.peers.lease import TTL_SECONDS, LeaseElection
from holdfast.engine.kernel.runner import TOPIC
from holdfast.limits import CLUSTER_SILENT_TICKS_MAX, CLUSTER_TICK_MS, TICKS_PER_SECOND
from holdfast.sequence.api import LogKey

KILLS = int(os.environ.get("HOLDFAST_BENCH_KILLS", "10"))
WAITING_TASKS = 100_000
PARTITIONS = 4
FULL_PARTITION = 1  # has the tasks that wait
EVERY_MS = 10.0  # a task for each partition
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 0.5, 1.0
PAUSES, PAUSE_SECONDS = 3, 3.0
SILENT_SECONDS = (CLUSTER_SILENT_TICKS_MAX + 1) * CLUSTER_TICK_MS / 1_000  # until it is noticed
CALM_SECONDS = 8.0
GAP_TICKS = 3
VISIBLE_TICKS = 1.25
TICK_SECONDS = 1 / TICKS_PER_SECOND
MS = 1e3


class Measured:
    """A cluster under load, and what was done to it: everything is measured once, in one run."""

    def __init__(self, run: Run, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._kills = max(3, run.scaled(KILLS)) if run.quick else KILLS
        self.cluster = stack.enter_context(OurCluster(folder))
        self.follower = stack.enter_context(CutFollower(self.cluster.etcd.url))
        make_waiting_tasks(self.cluster.urls, run.scaled(WAITING_TASKS), PARTITIONS, FULL_PARTITION)
        self.etcd_p99_s = percentile(etcd_write_seconds(self.cluster.etcd), 0.99)
        self.visible_s = self._visible()
        self.gaps_s = self._kill_writers()
        self.again_s = self._kill_owners()
        self.parcels_s = self._kill_receivers()
        self.silent_s = self._pause_owners()
        with LeaseElection(self.cluster.etcd, folder) as election:
            self.lease_s = [election.seconds_without_leader() for _ in range(self._kills)]

    def _plan(self, name: str) -> Plan:
        every = list(range(1, PARTITIONS + 1))
        return Plan(self.cluster.urls, every, PARTITIONS, EVERY_MS, False, name)

    def _visible(self) -> list[float]:
        """Of each task, from its acknowledgement until a cut that holds it was seen."""
        with running_load(self._folder, self._plan("visible")) as load:
            time.sleep(CALM_SECONDS)
        self.follower.wait_past(self.follower.cuts[-1].number + 2)
        return list(visibility(self.cluster, self.follower, load.submitted()))

    def _kill_writers(self) -> list[float]:
        with running_load(self._folder, self._plan("writers")):
            return [
                self.follower.gap_around(self._kill(self.follower.writer))
                for _ in range(self._kills)
            ]

    def _kill_owners(self) -> list[float]:
        with running_load(self._folder, self._plan("owners")) as load:
            moments = [
                self._kill(self.cluster.owners()[FULL_PARTITION]) for _ in range(self._kills)
            ]
        submitted = load.submitted()
        return [commits_after(submitted, moment, {FULL_PARTITION}) for moment in moments]

    def _kill_receivers(self) -> list[float]:
        with running_load(self._folder, self._plan("parcels")):
            return [self._kill_receiver() for _ in range(self._kills)]

    def _kill_receiver(self) -> float:
        """Until a transaction that was sent right after the kill has its parcels there and back."""
        url, home = home_beside(self.cluster, FULL_PARTITION)
        done: list[float] = []
        moment = self._kill(
            self.cluster.owners()[FULL_PARTITION],
            lambda: done.append(committed(url, home, FULL_PARTITION, PARTITIONS)),
        )
        return done[0] - moment

    def _pause_owners(self) -> list[float]:
        moments: list[float] = []
        with running_load(self._folder, self._plan("pauses")) as load:
            for _ in range(PAUSES):
                process = self.cluster.members[self.cluster.owners()[FULL_PARTITION]].process
                moments.append(time.monotonic())
                process.pause()
                time.sleep(PAUSE_SECONDS)
                process.resume()
                self.cluster.wait_until_healthy()
        submitted = load.submitted()
        return [commits_after(submitted, moment, {FULL_PARTITION}) for moment in moments]

    def _kill(self, name: str, then: Callable[[], None] | None = None) -> float:
        """When it was killed; it has come back when this returns. Before that, `then` is done."""
        cut, moment = self.follower.cuts[-1].number, time.monotonic()
        self.cluster.members[name].kill()
        if then is not None:
            then()
        self.follower.wait_past(cut + 2)
        self.cluster.restart(name)
        self.cluster.wait_until_healthy()
        return moment


def visibility(
    cluster: OurCluster, follower: CutFollower, submitted: Sequence[Submitted]
) -> Iterator[float]:
    """Seconds from the acknowledgement of each task until a cut that holds it was seen."""
    offsets = offsets_of_tasks(cluster.urls[0])
    cuts = follower.positions_seen([LogKey(TOPIC, each) for each in range(1, PARTITIONS + 1)])
    for each in submitted:
        key = LogKey(TOPIC, each.partition)
        offset = offsets[each.key]
        seen = next(seen for position, seen in cuts[key] if position > offset)
        yield seen - each.acknowledged_s


def kills(run: Run) -> Iterator[Figure]:
    """A cluster with 100,000 waiting tasks in one partition, under load."""
    folder = run.folder("kills")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        measured = cache(lambda: Measured(run, folder, stack))  # when the first figure is
        for each in FIGURES:
            yield each.figure(measured)


class _Part(NamedTuple):
    """One figure about what was measured."""

    name: str
    against: str
    ours_s: Callable[[Measured], float]
    limit_s: Callable[[Measured], float]
    goal: str = "<= 1"

    def figure(self, measured: Callable[[], Measured]) -> Figure:
        return Figure(
            name=self.name,
            against=self.against,
            goal=self.goal,
            unit="ms",
            ours=lambda: self.ours_s(measured()) * MS,
            peer=lambda: self.limit_s(measured()) * MS,
            warm_up=False,
            rounds_max=1,
        )


def _gap_limit(found: Measured) -> float:
    return GAP_TICKS * TICK_SECONDS + found.etcd_p99_s


_GAP = "gap in the order when the writing member is killed"
_AGAIN = "a partition with 100,000 waiting tasks commits again when its owner is killed"
_PARCELS = "... and parcels of a transaction go there and back"

FIGURES = (
    _Part(
        f"{_GAP}, median", f"{GAP_TICKS} ticks and etcd's p99",
        lambda found: median(found.gaps_s), _gap_limit,
    ),
    _Part(
        f"{_GAP}, largest", f"{GAP_TICKS} ticks and etcd's p99",
        lambda found: max(found.gaps_s), _gap_limit,
    ),
    _Part(
        f"{_AGAIN}, median", f"{AGAIN_SECONDS} s",
        lambda found: median(found.again_s), lambda _: AGAIN_SECONDS,
    ),
    _Part(
        f"{_AGAIN}, largest", f"{AGAIN_SECONDS_MAX} s",
        lambda found: max(found.again_s), lambda _: AGAIN_SECONDS_MAX,
    ),
    _Part(
        f"{_PARCELS}, median", f"{AGAIN_SECONDS} s",
        lambda found: median(found.parcels_s), lambda _: AGAIN_SECONDS,
    ),
    _Part(
        f"{_PARCELS}, largest", f"{AGAIN_SECONDS_MAX} s",
        lambda found: max(found.parcels_s), lambda _: AGAIN_SECONDS_MAX,
    ),
    _Part(
        "... when its owner is paused with SIGSTOP, median",
        f"{AGAIN_SECONDS} s and {CLUSTER_SILENT_TICKS_MAX} ticks of silence",
        lambda found: median(found.silent_s), lambda _: AGAIN_SECONDS + SILENT_SECONDS,
    ),
    _Part(
        f"{_AGAIN}, against a leader by lease", f"etcdctl lock --ttl={TTL_SECONDS}",
        lambda found: median(found.again_s), lambda found: median(found.lease_s), "<= 0.2",
    ),
    _Part(
        "from acknowledged to ordered, p99", f"{VISIBLE_TICKS} ticks and etcd's p99",
        lambda found: percentile(found.visible_s, 0.99),
        lambda found: VISIBLE_TICKS * TICK_SECONDS + found.etcd_p99_s,
    ),
)  # fmt: skip
