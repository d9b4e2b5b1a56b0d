"""Everything beside the partitions of a member: delivers their effects to those they concern."""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from holdfast.clock import Clock
from holdfast.engine.batch.values import BatchesChanged
from holdfast.engine.distribution.values import CommandTaken, Sending
from holdfast.engine.jobs.values import JobsReported
from holdfast.engine.kernel import CommandRefused, Submission
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.parcels.values import ParcelReady, ParcelsReceived
from holdfast.engine.partition import DISPATCH
from holdfast.engine.state import EngineState
from holdfast.engine.transactions.values import TransactionDecided
from holdfast.errors import Moved
from holdfast.journal import Journal
from holdfast.logs import log
from holdfast.metrics import Metrics
from holdfast.partitions import Partitions
from holdfast.partitions.local import LocalPartitions
from holdfast.runtime.batch_driver import BatchDriver
from holdfast.runtime.gauges import distribution_gauges, refresh_work, transaction_gauges
from holdfast.runtime.post import Post


class Runtime:
    """Hears what the runner tells, and drives what partitions want done."""

    def __init__(
        self, runner: Runner[EngineState], journal: Journal, clock: Clock, metrics: Metrics
    ) -> None:
        self.partitions = LocalPartitions(runner, journal, clock)
        self.routed: Partitions = self.partitions  # with those that are elsewhere
        self.on_stopped: list[Callable[[int], None]] = []  # told when one is not open here any more
        self.post = Post(runner, lambda: self.routed, metrics.distribution)
        self.batches = BatchDriver(runner, clock)
        metrics.distribution.gauges = lambda: distribution_gauges(runner)
        metrics.transactions.gauges = lambda: transaction_gauges(runner, clock.now_ms())
        metrics.refresh = lambda: refresh_work(runner, clock.now_ms(), metrics.work)
        decided = metrics.transactions.decided

        def count(effect: TransactionDecided) -> None:
            decided[effect.state] += 1

        takers: dict[type[Any], Callable[[Any], None]] = {
            ParcelReady: self.post.parcel,
            ParcelsReceived: self.post.parcels_received,
            Sending: self.post.distribute,
            CommandTaken: self.post.taken,
            CommandRefused: self.post.refused,
            TransactionDecided: count,
            JobsReported: metrics.work.reported,
            BatchesChanged: lambda effect: self.batches.look(effect.partition),
        }
        followed = set(DISPATCH.followed.values())
        tell = self.partitions.followers.tell
        self._takers = {
            effect: [
                *([takers[effect]] if effect in takers else ()),
                *([tell] if effect in followed else ()),
            ]
            for effect in {*takers, *followed}
        }
        self._only_told = followed - takers.keys()
        runner.outside = self

    def stop(self) -> None:
        """Nothing more is driven; what is under way ends by itself."""
        self.batches.stop()

    @property
    def effects(self) -> Set[type[Any]]:
        """All that partitions may tell."""
        return self._takers.keys()

    # --- what the runner tells ----------------------------------------------------------------

    def demand(self, partition: int, effects: list[Any]) -> Iterable[Submission]:
        return self.partitions.demand(partition, effects)

    def deliver(self, effects: list[Any]) -> None:
        """Each effect goes to those it concerns; one that nobody can take stops no other."""
        only_told, heard = self._only_told, self.partitions.followers.heard
        for effect in effects:
            if type(effect) in only_told and type(effect) not in heard:
                continue  # nobody follows it: most ends of tasks
            try:
                for take in self._takers[type(effect)]:
                    take(effect)
            except Exception as error:
                log.error("effect not delivered", effect=type(effect).__name__, error=repr(error))

    def refresh(self, partition: int) -> None:
        self.partitions.followers.missed(partition)

    def stopped(self, partition: int) -> None:
        """The partition cannot be had here: its followers ask again, and are told so."""
        self.partitions.placed()
        self.partitions.followers.missed(partition)
        for callback in self.on_stopped:
            callback(partition)

    def left(self, partition: int, left: Sequence[Submission], error: Moved) -> None:
        self.partitions.left(partition, left, error)

    def started(self, partition: int) -> None:
        self.partitions.placed()
        self.partitions.opened(partition)
        self.post.started(partition)
        self.batches.look(partition)
