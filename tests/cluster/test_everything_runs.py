"""Everything that runs on a node runs on a cluster whose members are killed, paused and drained.

One cluster for all: the stories go on together while the trouble takes place.
"""

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from bench.ours.cluster import OurCluster
from tests.cluster import stories
from tests.cluster.stories import WAIT, Course

STORIES = (
    "tasks", "processes", "distribution", "transactions", "content", "groups", "reading", "sdk",
)  # fmt: skip


def trouble(cluster: OurCluster, steady: str) -> None:
    """Drains a member, kills the owner of partition 1, pauses a member, drains an owner.

    The steady one is drained and never killed: there is a client that knows no other.
    """
    drain(cluster, steady)
    victim = cluster.owners()[1]
    cluster.members[victim].kill()
    cluster.wait_until(lambda found: all(each["owner"] != victim for each in found["partitions"]))
    time.sleep(0.5)  # of work without it
    cluster.restart(victim)
    cluster.wait_until_caught_up()
    paused = next(name for name in cluster.members if name not in (victim, steady))
    cluster.members[paused].process.pause()
    time.sleep(1.5)  # silence is noticed, and others take over
    cluster.members[paused].process.resume()
    cluster.wait_until_caught_up()
    drain(cluster, steady, is_draining=False)
    drain(cluster, cluster.owners()[1])
    for name in cluster.members:
        drain(cluster, name, is_draining=False)
    cluster.wait_until_healthy()


def drain(cluster: OurCluster, name: str, *, is_draining: bool = True) -> None:
    cluster.members[name].ask(f"/v2/cluster/members/{name}/drain", {"isDraining": is_draining})
    if is_draining:
        cluster.wait_until(lambda found: all(each["owner"] != name for each in found["partitions"]))


def test_everything_runs_on_a_cluster_in_trouble(tmp_path: Path) -> None:
    """One test, so that one cluster is enough for all stories."""
    store = {"HOLDFAST_CONTENT_STORE": str(tmp_path / "store")}
    with (
        OurCluster(tmp_path, is_etcd_durable=False, environment=store) as cluster,
        ThreadPoolExecutor(len(STORIES)) as pool,
    ):
        steady = next(name for name in cluster.members if name != cluster.owners()[1])
        courses: list[Course] = []
        running: dict[str, Future[None]] = {}
        for name in STORIES:
            place = tmp_path / f"story-{name}"
            place.mkdir()
            courses.append(Course(cluster.urls, cluster.members[steady].url, place))
            running[name] = pool.submit(getattr(stories, name), courses[-1])
            running[name].add_done_callback(lambda _, course=courses[-1]: course.began.set())
        try:
            for course in courses:
                assert course.began.wait(WAIT)
            trouble(cluster, steady)
        finally:
            for course in courses:
                course.over.set()
        errors = {name: each.exception() for name, each in running.items()}
    assert not {name: repr(error) for name, error in errors.items() if error is not None}
