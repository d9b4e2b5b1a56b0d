"""A log in Kafka: appending to it, nodes over it, tables of it; each in a module of its own."""

from collections.abc import Iterator

from bench.harness import Figure, Run, benchmark
from bench.kafka.appending import appending
from bench.kafka.nodes import nodes
from bench.kafka.tables import tables

PARTS = (nodes, appending, tables)


@benchmark("kafka")
def kafka(run: Run) -> Iterator[Figure]:
    for part in PARTS:
        yield from part(run)
