"""Processes: two steps done by a worker process, and one activity over very many items."""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack

from bench.harness import Figure, Run, benchmark, fixed, remove
from bench.ours.processes import OurProcesses, our_processes
from bench.peers import DbosTwoStep, ProcessPeer, RestateTwoStep, measured

INSTANCES = 20_000
PROCESSES = 2  # the worker and the client share two cores with them
PEERS: tuple[tuple[type[ProcessPeer], int, str], ...] = (
    (DbosTwoStep, 800, ">= 50"),  # so many take each of them 5 to 10 s
    (RestateTwoStep, 4_000, ">= 15"),
)
MANY_ITEMS, FEW_ITEMS = 200_000, 2_000
LIVE_MS_MAX = 500.0  # they go on: a person who clicks does not wait longer


@benchmark("processes")
def processes(run: Run) -> Iterator[Figure]:
    folder = run.folder("processes")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        ours = stack.enter_context(our_processes(folder))
        for kind, count, goal in PEERS:
            with ExitStack() as theirs:  # a peer does not run while another one is measured
                yield Figure(
                    name=f"two-step processes, {kind.name}",
                    against=f"the same in {kind.name}",
                    goal=goal,
                    unit="processes/s",
                    ours=lambda: ours.run(run.scaled(INSTANCES)),
                    peer=measured(
                        theirs,
                        kind(),
                        lambda peer, n=count: peer.two_step_processes_per_second(run.scaled(n)),
                    ),
                    cost_of="process",
                )
        with our_processes(folder / "several", PROCESSES) as several:
            yield Figure(
                name=f"two-step processes, a node of {PROCESSES} processes",
                against="a node of one process",
                goal=">= 1",
                unit="processes/s",
                ours=lambda: several.run(run.scaled(INSTANCES)),
                peer=lambda: ours.run(run.scaled(INSTANCES)),
                cost_of="process",
            )
        yield from _items(run, ours)


def _items(run: Run, ours: OurProcesses) -> Iterator[Figure]:
    """One multi-instance activity over many items, and what live commands feel of it."""
    many = run.scaled(MANY_ITEMS)
    beside: list[float] = []  # how long a live command took beside each of the rounds

    def many_items() -> float:
        each = ours.each(many)
        beside.append(statistics.median(each.live_seconds) * 1e3)
        return each.seconds / many * 1e6

    yield Figure(
        name=f"cost of an item of {many:,}",
        against=f"an item of {FEW_ITEMS:,}",
        goal="<= 1.3",
        unit="us/item",
        ours=many_items,
        peer=lambda: ours.each(FEW_ITEMS).seconds / FEW_ITEMS * 1e6,
    )
    yield Figure(
        name=f"a live command beside {many:,} items, p50",
        against="half a second",
        goal="<= 1",
        unit="ms",
        ours=beside.pop,
        peer=fixed(LIVE_MS_MAX),
        warm_up=False,
    )
