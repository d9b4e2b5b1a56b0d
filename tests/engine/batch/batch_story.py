"""A random story of batch operations in a cluster where everything goes wrong, from one number."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

from batch_checks import check_operations
from batch_cluster import BATCH, BatchCluster, check_end
from distribution_cluster import Fall, Node

from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationType,
    Change,
    OperationRef,
)
from holdfast.engine.kernel import Command
from holdfast.errors import DeadlineExceeded, Forbidden, ResourceExhausted, Unavailable
from holdfast.records import partition_of

PARTITIONS, OPERATIONS, DECISIONS = 4, 4, 14
CHAOS_MS, CALM_SECONDS_MAX = 120_000, 3 * 3_600
_I, _T = BatchOperationIntent, BatchOperationType

# What is much at once: lowered, so that small stories come to these ends too.
LIMITS: dict[str, tuple[int, ...]] = {
    "holdfast.engine.kernel.processor.STEP_COMMANDS_MAX": (1, 3, 4_096),
    "holdfast.engine.batch.executing.BATCH_EXECUTE_ITEMS_MAX": (1, 3, 256),
    "holdfast.engine.batch.executing.BATCH_PAGE_ITEMS_MAX": (2, 10_000),
    "holdfast.engine.batch.initializing.BATCH_ATTEMPTS_MAX": (2, 10),
}


class Story:
    """One seed: its weather, what is asked, and what must be true in the end."""

    def __init__(self, seed: int) -> None:
        self.cluster = BatchCluster(PARTITIONS, seed=seed, gathers=seed % 2 == 0)
        self._random = self.cluster.random
        self._falling = self._random.choice([0.0, 0.01, 0.03])
        self._wanted: dict[bytes, dict[int, list[int]]] = {}
        self.ends: dict[int, Any] = {}

    def tell(self) -> None:
        """Chaos, then calm; all that must hold is checked at the end."""
        with self._limits():
            self._prepare()
            self._chaos()
            self._calm()
        self.ends = check_operations(self.cluster, self._wanted)
        check_end(self.cluster)

    @contextmanager
    def _limits(self) -> Iterator[None]:
        with ExitStack() as stack:
            for name, values in LIMITS.items():
                stack.enter_context(patch(name, self._random.choice(values)))
            yield

    # --- what happens -------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Tasks that wait for a person, some that do not, and some that are gone."""
        cluster, random = self.cluster, self._random
        self._tasks: dict[int, list[int]] = {}
        for partition in cluster.nodes:
            keys = cluster.dead_letters(partition, 24)
            keys += [cluster.waiting_task(partition), keys[0] - 1_000]
            random.shuffle(keys)
            self._tasks[partition] = keys
        cluster.pages.size = random.choice([2, 5, 100])

    def _chaos(self) -> None:
        cluster, random = self.cluster, self._random
        cluster.loss, cluster.doubling = random.choice([0.0, 0.3]), random.choice([0.0, 0.3])
        cluster.delay, cluster.delay_ms_max = 0.5, random.choice([500, 25_000])
        cluster.crowding = random.choice([0.0, 0.1])
        cluster.abandoning = 0.02
        cluster.falls = self._fall
        cluster.page_ms = lambda: random.choice([0, 10, 3_000])
        cluster.limit = lambda: random.choice([0, 1, 3])
        for number in range(OPERATIONS):
            after_ms = random.randrange(CHAOS_MS // 2)
            cluster.later(after_ms, partial(self._create, number))
        cluster.execute_ms = lambda: random.choice([0, 0, 5, 400])
        cluster.page_doubling = random.choice([0.0, 0.3])
        for _ in range(random.randrange(DECISIONS)):
            cluster.later(random.randrange(CHAOS_MS), self._decide)
        for _ in range(random.randrange(8)):
            cluster.later(random.randrange(CHAOS_MS), self._fail_a_page)
        for _ in range(random.randrange(3)):
            cluster.later(random.randrange(CHAOS_MS), self._darken)
        cluster.run(CHAOS_MS / 1_000)

    def _calm(self) -> None:
        cluster = self.cluster
        cluster.loss = cluster.doubling = cluster.delay = cluster.crowding = cluster.abandoning = 0
        cluster.falls, cluster.page_doubling = lambda node: None, 0
        cluster.dark, cluster.pages.errors = set(), []
        cluster.run(200)  # nodes that are down come back, what is late comes
        cluster.dark = set()
        spent = 0
        while cluster.active() or any(cluster.left(node) for node in cluster.nodes.values()):
            assert spent < CALM_SECONDS_MAX, f"no end: {self._left()}"
            for leader, node in cluster.nodes.items():
                for key, _ in list(node.view.batches.operations.scan()):
                    if partition_of(key) == leader:
                        self._ask(leader, _I.RESUME, key, OperationRef())
                        self._ask(leader, _I.CHANGE, key, Change(0, 0))
            cluster.run(600)
            spent += 600

    def _left(self) -> dict[int, Counter[str]]:
        nodes = self.cluster.nodes.items()
        return {number: Counter(self.cluster.left(node)) for number, node in nodes}

    def _create(self, number: int) -> None:
        random = self._random
        # Every task is in one operation at most, but for those that cannot be done anyway.
        share = {each: keys[number::OPERATIONS] for each, keys in self._tasks.items()}
        filter_ = self.cluster.select(share)
        self._wanted[filter_] = share
        some = tuple(random.sample(range(1, PARTITIONS + 1), 2))
        operation = BatchOperation(
            random.choice([_T.RETRY_TASK, _T.DISCARD_TASK]),
            filter_,
            throttle=random.choice([0, 1, 3, 20]),
            priority=random.randint(-1, 1),
            partitions=random.choice([(), (), some]),
        )
        leader = random.randint(1, PARTITIONS)
        command = Command(BATCH, _I.CREATE, 0, operation)
        self.cluster.submit(leader, command)
        for _ in range(random.randrange(6)):
            self.cluster.later(random.randrange(10_000), self._decide)

    def _decide(self) -> None:
        random = self._random
        node = self.cluster.nodes[random.randint(1, PARTITIONS)]
        if node.is_down:
            return
        keys = [key for key, _ in node.view.batches.operations.scan()]
        if not keys:
            return
        key = random.choice(keys)
        intent = random.choice([_I.SUSPEND] * 4 + [_I.RESUME] * 4 + [_I.CANCEL, _I.CHANGE])
        value: Any = OperationRef()
        if intent is _I.CHANGE:
            value = Change(0, random.choice([None, 0, 5]), random.choice([None, 3]))
        self._ask(partition_of(key), intent, key, value)

    def _ask(self, leader: int, intent: BatchOperationIntent, key: int, value: Any) -> None:
        self.cluster.submit(leader, Command(BATCH, intent, key, value))

    def _fail_a_page(self) -> None:
        errors = [
            Unavailable("away"), DeadlineExceeded("slow"), ValueError("a bug"),
            ResourceExhausted("large"), Forbidden("no"),
        ]  # fmt: skip
        self.cluster.pages.errors.append(self._random.choice(errors))

    def _darken(self) -> None:
        """A partition is out for a while."""
        here, cluster = self._random.randint(1, PARTITIONS), self.cluster
        cluster.dark.add(here)
        cluster.later(30_000, partial(cluster.dark.discard, here))
        cluster.later(30_000, partial(cluster.reach, here))

    def _fall(self, node: Node) -> Fall | None:
        random = self._random
        if random.random() >= self._falling:
            return None
        is_written, has_store = random.choice([(True, True), (False, True), (False, False)])
        down_ms = random.choice([0, 3_000, 60_000])
        return Fall(random.random() < 0.5, is_written, has_store, down_ms)
