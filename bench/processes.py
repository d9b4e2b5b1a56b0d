"""Two-step processes, worker in its own process, durable: how many a second."""

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol, cast

from bench.harness import Figure, Run, UnmeasurableError, benchmark, remove
from bench.peers import DbosTwoStep, ProcessPeer, RestateTwoStep, measured

OURS = 50_000
PEERS: tuple[tuple[type[ProcessPeer], int, str], ...] = (
    (DbosTwoStep, 800, ">= 50"),  # so many take each of them 5 to 10 s
    (RestateTwoStep, 4_000, ">= 20"),
)


class TwoStep(Protocol):
    """Our node with its worker, ready for two-step processes."""

    def run(self, count: int) -> float:
        """Processes a second, from the first submit until the last is completed."""
        ...


@benchmark("processes")
def processes(run: Run) -> Iterator[Figure]:
    folder = run.folder("processes")
    with ExitStack() as stack:
        stack.callback(remove, folder)
        ours = stack.enter_context(_ours(run, folder))
        for kind, count, goal in PEERS:
            with ExitStack() as theirs:  # a peer does not run while another one is measured
                yield Figure(
                    name="two-step processes per second",
                    against=kind.name,
                    goal=goal,
                    unit="processes/s",
                    ours=lambda: ours.run(run.scaled(OURS)),
                    peer=measured(
                        theirs,
                        kind(),
                        lambda peer, n=count: peer.two_step_processes_per_second(run.scaled(n)),
                    ),
                )


def _ours(run: Run, folder: Path) -> AbstractContextManager[TwoStep]:
    """Imported by name, and only now, because the module is not there yet."""
    try:
        module = importlib.import_module("bench.ours.processes")
    except ModuleNotFoundError as missing:
        raise UnmeasurableError(f"ours cannot be measured yet: {missing}") from missing
    return cast("AbstractContextManager[TwoStep]", module.two_step(run, folder))
