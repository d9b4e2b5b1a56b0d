"""Batch operations: very many items by one filter, beside live work, and how soon they stop."""

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

from bench.harness import Figure, Measure, Run, UnmeasurableError, benchmark, fixed, remove
from bench.ours.batches import Done, EndedBeforeError, OurBatches, our_batches
from bench.peers import Pgqueuer, measured
from holdfast.engine.batch.values import BatchOperationType

MEGABYTE = 1_000_000
GROWTH_MB_MAX = 64.0
ROUNDS_MAX = 3  # where a round needs items of its own
FEW_TIMES = 5  # few items are soon done: so often in a round
LIVE_PAUSE_SECONDS = 0.01
LIVE_AT_ONCE = 50  # then it is seen whether the operation beside them still runs
SLOW_TIMES = 6  # operations beside live commands: the next one begins when one has ended
SPARE = 2  # operations more than rounds: on a quick machine one may end before it is stopped


@dataclass(frozen=True)
class Sizes:
    """How many there are of everything."""

    rows: int = 10_000_000  # tasks in the tables, dead letters and others
    many: int = 1_000_000
    most: int = 2_000_000
    few: int = 20_000
    beside: int = 100_000  # of each round against a peer
    slow: int = 1_200_000  # beside live commands, of all operations
    stopped: int = 100_000  # of each operation that is stopped before its end
    live: int = 500  # live commands of each round
    rounds: int = ROUNDS_MAX

    @classmethod
    def of(cls, run: Run) -> "Sizes":
        return cls(
            *(run.scaled(each) for each in (cls.rows, cls.many, cls.most)),
            few=cls.few // 2 if run.quick else cls.few,
            beside=run.scaled(cls.beside),
            slow=run.scaled(cls.slow),
            stopped=cls.stopped,
            live=run.scaled(cls.live),
            rounds=min(run.rounds, ROUNDS_MAX),
        )

    def tasks(self) -> dict[str, int]:
        """Dead letters by their type."""
        rounds = range(self.rounds)
        return {
            "warm": self.few,
            "many": self.many,
            "most": self.most,
            **{f"slow-{number}": self.slow // SLOW_TIMES for number in range(SLOW_TIMES)},
            **{f"few-{number}": self.few for number in range(FEW_TIMES)},
            **{f"beside-{number}": self.beside for number in rounds},
            **{
                f"{how}-{number}": self.stopped
                for how in ("suspended", "canceled")
                for number in range(self.rounds + SPARE)
            },
        }

    def instances(self) -> dict[str, int]:
        """Instances by their process."""
        return {f"order-{number}": self.beside for number in range(self.rounds)}


@benchmark("batch")
def batch(run: Run) -> Iterator[Figure]:
    folder, sizes = run.folder("batch"), Sizes.of(run)
    with ExitStack() as stack:
        stack.callback(remove, folder)
        ours = stack.enter_context(
            our_batches(folder / "node", sizes.tasks(), sizes.instances(), sizes.rows)
        )
        yield from figures(ours, sizes)


def figures(ours: OurBatches, sizes: Sizes) -> Iterator[Figure]:
    """All figures, of a node that has done an operation before."""
    ours.retry_tasks("warm")
    yield from _many(ours, sizes)
    yield from _against_a_queue(ours, sizes)
    yield from _few_and_most(ours, sizes)
    yield from _live(ours, sizes)
    yield from _stopped(ours, sizes)


def _many(ours: OurBatches, sizes: Sizes) -> Iterator[Figure]:
    """All of a very large operation."""
    many: Callable[[], Done] = cache(lambda: ours.retry_tasks("many"))
    yield Figure(
        name=f"retried of {sizes.many:,} dead letters, among {sizes.rows:,} tasks, 8 partitions",
        against="all of them",
        goal=">= 1",
        unit="items",
        ours=lambda: many().completed,
        peer=fixed(sizes.many),
        warm_up=False,
        rounds_max=1,
    )
    yield Figure(
        name=f"memory that an operation with {sizes.many:,} items takes, the first large one",
        against="64 MB",
        goal="<= 1",
        unit="MB",
        ours=lambda: many().growth_bytes / MEGABYTE,
        peer=fixed(GROWTH_MB_MAX),
        warm_up=False,
        rounds_max=1,
    )
    with ExitStack() as stack:
        yield Figure(
            name=f"retrying {sizes.many:,} dead letters",
            against="pgqueuer: bulk enqueue and drain of as many no-ops",
            goal=">= 2",
            unit="items/s",
            ours=lambda: many().per_second,
            peer=_queue(stack, sizes.many),
            warm_up=False,
            rounds_max=1,
        )


def _against_a_queue(ours: OurBatches, sizes: Sizes) -> Iterator[Figure]:
    """The same with fewer, over some rounds."""
    count = sizes.beside
    types = iter(range(sizes.rounds))
    ids = iter(range(sizes.rounds))
    with ExitStack() as stack:
        peer = _queue(stack, count)
        yield Figure(
            name=f"retrying {count:,} dead letters",
            against="pgqueuer: bulk enqueue and drain of as many no-ops",
            goal=">= 2",
            unit="items/s",
            ours=lambda: ours.retry_tasks(f"beside-{next(types)}").per_second,
            peer=peer,
            warm_up=False,
            rounds_max=sizes.rounds,
        )
        yield Figure(
            name=f"canceling {count:,} process instances, each with a job",
            against="pgqueuer: bulk enqueue and drain of as many no-ops",
            goal=">= 2",
            unit="items/s",
            ours=lambda: ours.cancel_instances(f"order-{next(ids)}").per_second,
            peer=peer,
            warm_up=False,
            rounds_max=sizes.rounds,
        )


def _queue(stack: ExitStack, count: int) -> Measure:
    return measured(stack, Pgqueuer(), lambda peer: peer.no_op_tasks_per_second(count))


def _few_and_most(ours: OurBatches, sizes: Sizes) -> Iterator[Figure]:
    """What an item costs, by how many there are."""
    most: Callable[[], Done] = cache(lambda: ours.retry_tasks("most"))
    few: Callable[[], list[Done]] = cache(
        lambda: [ours.retry_tasks(f"few-{number}") for number in range(FEW_TIMES)]
    )
    yield Figure(
        name=f"time of an item of {sizes.most:,}",
        against=f"an item of {sizes.few:,}",
        goal="<= 1.15",
        unit="us",
        ours=lambda: most().wall_us,
        peer=lambda: statistics.median(each.wall_us for each in few()),
        warm_up=False,
        rounds_max=1,
    )
    yield Figure(
        name=f"processor time of an item of {sizes.most:,}",
        against=f"an item of {sizes.few:,}",
        goal="<= 1.15",
        unit="us",
        ours=lambda: most().cpu_us,
        peer=lambda: statistics.median(each.cpu_us for each in few()),
        warm_up=False,
        rounds_max=1,
    )
    yield Figure(
        name=f"memory that one with {sizes.most:,} items takes after it",
        against="64 MB",
        goal="<= 1",
        unit="MB",
        ours=lambda: most().growth_bytes / MEGABYTE,
        peer=fixed(GROWTH_MB_MAX),
        warm_up=False,
        rounds_max=1,
    )


def _live(ours: OurBatches, sizes: Sizes) -> Iterator[Figure]:
    """What live commands feel of an operation."""
    beside = _Beside(ours, sizes.live)
    yield Figure(
        name="live commands beside an operation, p99",
        against="the same without one",
        goal="<= 1.5",
        unit="ms",
        ours=lambda: _p99_ms(beside.live_seconds()),
        peer=lambda: _p99_ms(ours.live_seconds(sizes.live, LIVE_PAUSE_SECONDS)),
        warm_up=False,
        rounds_max=sizes.rounds,
    )
    beside.end()


class _Beside:
    """Operations that run beside live commands, one after the other, as often as one has ended."""

    def __init__(self, ours: OurBatches, count: int) -> None:
        self._ours = ours
        self._count = count
        self._types = iter(range(SLOW_TIMES))
        self._key: str | None = None

    def live_seconds(self) -> list[float]:
        """How long each live command took while an operation ran; it is suspended at the end."""
        spans: list[float] = []
        while len(spans) < self._count:
            key = self._running()
            more = self._ours.live_seconds(min(LIVE_AT_ONCE, self._count), LIVE_PAUSE_SECONDS)
            if self._ours.is_running(key):
                spans += more
            else:  # some of them had nothing beside them
                self._key = None
        self.end(cancel=False)
        return spans

    def _running(self) -> str:
        """An operation that has begun: the one that was suspended, or the next."""
        while True:
            try:
                if self._key is None:
                    number = next(self._types, None)
                    if number is None:
                        raise UnmeasurableError(
                            f"all {SLOW_TIMES} operations ended before {self._count} live commands"
                            " were done beside them: this machine needs more items"
                        )
                    retry = BatchOperationType.RETRY_TASK
                    self._key = self._ours.begin(retry, {"type": f"slow-{number}"})
                elif self._ours.is_suspended(self._key):
                    self._ours.resume(self._key)
                self._ours.until(self._key, lambda view: view.operations_completed_count > 0)
                return self._key
            except EndedBeforeError:
                self._key = None

    def end(self, *, cancel: bool = True) -> None:
        """Nothing runs any more; what was suspended can be resumed."""
        if self._key is None:
            return
        try:
            (self._ours.cancel if cancel else self._ours.suspend)(self._key)
        except EndedBeforeError:
            self._key = None


def _p99_ms(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100)[98] * 1_000


def _stopped(ours: OurBatches, sizes: Sizes) -> Iterator[Figure]:
    """From the request until nothing runs any more, on any partition."""
    for how, stop in (("suspended", ours.suspend), ("canceled", ours.cancel)):
        yield Figure(
            name=f"an operation that is {how}, until its last item was done",
            against="a second",
            goal="<= 1",
            unit="s",
            ours=_stopping(ours, how, stop, sizes),
            peer=fixed(1.0),
            warm_up=False,
            rounds_max=sizes.rounds,
        )


def _stopping(
    ours: OurBatches, how: str, stop: Callable[[str], float], sizes: Sizes
) -> Callable[[], float]:
    """Begins an operation and stops it; one that has ended by then does not count."""
    types = iter(range(sizes.rounds + SPARE))

    def stopped() -> float:
        for number in types:
            key = ours.begin(BatchOperationType.RETRY_TASK, {"type": f"{how}-{number}"})
            try:
                ours.until(key, lambda view: view.operations_completed_count > 0)
                return stop(key)
            except EndedBeforeError:
                continue
        raise UnmeasurableError(
            f"operations with {sizes.stopped:,} items end here before they can be {how}"
        )

    return stopped
