"""What a peer promises to a benchmark."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol, TypeVar

from bench.costs import Sample


class Peer(Protocol):
    """A system that is started, measured and stopped; UnmeasurableError says why it cannot be."""

    name: str

    def start(self) -> None:
        """Installs what is missing, then starts the server."""
        ...

    def stop(self) -> None:
        """Ends every process of the peer and removes its data; may be called at any time."""
        ...


class TaskPeer(Peer, Protocol):
    """A task queue: one submitter process, one worker process and the server."""

    def no_op_tasks_per_second(self, count: int) -> Sample:
        """From the first submit until the peer has recorded the last task as completed."""
        ...


class LatencyPeer(Peer, Protocol):
    """A system that answers one request at a time."""

    def no_op_latency_seconds(self, count: int) -> list[float]:
        """Request to response of `count` no-ops, one after the other on one connection."""
        ...


class ProcessPeer(Peer, Protocol):
    """A workflow engine: one submitter process, worker processes and the server."""

    def two_step_processes_per_second(self, count: int) -> Sample:
        """From the first submit until the last is completed; every result is verified."""
        ...


P = TypeVar("P", bound=Peer)
V = TypeVar("V", float, Sample)


def measured(stack: ExitStack, peer: P, measure: Callable[[P], V]) -> Callable[[], V]:
    """A measurement that starts the peer the first time; the stack stops it."""
    started = False

    def run() -> V:
        nonlocal started
        if not started:
            stack.callback(peer.stop)
            peer.start()
            started = True
        return measure(peer)

    return run


@contextmanager
def running(peer: P) -> Iterator[P]:
    """The peer, started, and stopped whatever happens."""
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()
