"""What a cluster costs and how quick it is; each part in a module of its own."""

from collections.abc import Iterator

from bench.cluster.acknowledging import acknowledged_appends
from bench.cluster.cuts import cuts_in_etcd
from bench.cluster.kills import kills
from bench.cluster.throughput import throughput
from bench.harness import Figure, Run, benchmark

PARTS = (kills, throughput, acknowledged_appends, cuts_in_etcd)


@benchmark("cluster")
def cluster(run: Run) -> Iterator[Figure]:
    for part in PARTS:
        yield from part(run)
