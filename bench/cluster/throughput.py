"""No-op tasks on three members of this machine, against one node: how many, and what each costs."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

from bench.harness import Figure, Run, fixed, remove
from bench.ours.cluster import OurCluster
from bench.ours.node import OurNode
from bench.tasks import share_of_a_core, tasks_per_second

TASKS = 40_000
ROUNDS_MAX = 3
IDLE_SECONDS = 10.0
IDLE_SHARE_MAX = 0.03  # of a core, for each member
US = 1e6

WAYS: Mapping[str, Mapping[str, str]] = {
    "with standbys": {},
    "without standbys": {"HOLDFAST_CLUSTER_STANDBYS": "false"},
}


class _Worked:
    """Tasks that were done on a node or a cluster: the rate and what each cost."""

    def __init__(self, home: OurNode | OurCluster, url: str, count: int) -> None:
        self._home, self._url, self._count = home, url, count
        self.costs: list[float] = []

    def rate(self) -> float:
        before = self._home.cpu_seconds()
        rate = tasks_per_second(self._url, self._count).value
        self.costs.append((self._home.cpu_seconds() - before) / self._count)
        return rate


def throughput(run: Run) -> Iterator[Figure]:
    """One node, and a cluster in each way, in turn."""
    folder = run.folder("throughput")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        node = stack.enter_context(OurNode(folder / "node"))
        for way, environment in WAYS.items():
            with OurCluster(folder / way.replace(" ", "-"), environment=environment) as cluster:
                yield from _of(run, way, node, cluster)


def _of(run: Run, way: str, node: OurNode, cluster: OurCluster) -> Iterator[Figure]:
    count = run.scaled(TASKS)
    one, three = _Worked(node, node.url, count), _Worked(cluster, cluster.urls[0], count)
    yield Figure(
        name=f"no-op tasks, three members on one machine {way}",
        against="one node",
        goal=">= 0.3",
        unit="tasks/s",
        ours=three.rate,
        peer=one.rate,
        rounds_max=ROUNDS_MAX,
    )
    ours, peer = iter(three.costs[1:]), iter(one.costs[1:])  # the first was to warm up
    if len(three.costs) > 1:
        yield Figure(
            name=f"... processor time of all members for a task, {way}",
            against="one node's",
            goal="<= 3.5",
            unit="µs",
            ours=lambda: next(ours) * US,
            peer=lambda: next(peer) * US,
            warm_up=False,
            rounds_max=len(three.costs) - 1,
        )
    yield Figure(
        name=f"an idle member of three, {way}",
        against="3% of a core",
        goal="<= 1",
        unit="of a core",
        ours=lambda: (
            share_of_a_core(cluster, IDLE_SECONDS / (5 if run.quick else 1)) / len(cluster.members)
        ),
        peer=fixed(IDLE_SHARE_MAX),
        warm_up=False,
        rounds_max=1,
    )
