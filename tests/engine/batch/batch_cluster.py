"""Partitions with batch operations, a driver for each, and somebody who selects items for them.

What the driver of a node does is done here by hand and on the cluster's time: it looks at what a
partition wants, has pages selected, and asks for items to be done.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from distribution_cluster import Engine, Node, ParcelCluster

from holdfast.engine.batch.agenda import agenda, failing, starting, taking
from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.state import Selecting
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationExecutionIntent,
    BatchOperationIntent,
    BatchOperationType,
    Change,
    Execute,
    OperationRef,
)
from holdfast.engine.families import Tag
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import Activation, Failure, JobBatchIntent, JobIntent, NewJob
from holdfast.engine.kernel import Command, Reply, Submission
from holdfast.engine.partition import DISPATCH, open_partition
from holdfast.errors import ResourceExhausted
from holdfast.records import RecordKind, ValueType, partition_of

ENGINE = Engine(DISPATCH, open_partition)
BATCH, EXECUTION = ValueType.BATCH_OPERATION, ValueType.BATCH_OPERATION_EXECUTION
FIRST_TAG, LAST_TAG = Tag.BATCH_OPERATION, Tag.BATCH_OPERATIONS_LED
_I = BatchOperationIntent
_TAG_AT = 2  # behind the partition
RETRY = BatchOperationType.RETRY_TASK


class Pages:
    """Selects from lists that a test has made: by the number in the filter, and the partition."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, int], list[int]] = {}
        self.errors: list[Exception] = []  # each is thrown once, by whichever page comes
        self.broken: dict[int, Exception] = {}  # partition -> what its pages always end in
        self.size = 10_000  # items of a page, at most
        self.items_max = 10_000  # a page with more is too large for somebody

    def page(self, operation: BatchOperation, partition: int, cursor: str, limit: int) -> ItemPage:
        if partition in self.broken:
            raise self.broken[partition]
        if self.errors:
            raise self.errors.pop()
        number = json.loads(operation.filter)["number"]
        found, at = self.items.get((number, partition), []), int(cursor or 0)
        if len(found[at : at + limit]) > self.items_max:
            raise ResourceExhausted("Expected a smaller page")
        end = at + min(limit, self.size)
        more = str(end) if end < len(found) else None
        return ItemPage(tuple(found[at:end]), (), more)


class BatchCluster(ParcelCluster):
    """Partitions whose batch operations are driven."""

    def __init__(self, partitions: int = 3, *, seed: int = 0, gathers: bool = False) -> None:
        super().__init__(partitions, engine=ENGINE, seed=seed, gathers=gathers)
        self.pages = Pages()
        self.page_ms: Callable[[], int] = lambda: 0
        self.execute_ms: Callable[[], int] = lambda: 0  # until what is wanted is asked for
        self.limit: Callable[[], int] = lambda: 0
        self.page_doubling = 0.0  # how often a page comes twice
        self.is_driven = True
        self._under_way: dict[tuple[int, int], int] = {}  # (partition, operation) -> driver's life
        self._executing: set[int] = set()
        self._lives = dict.fromkeys(self.nodes, 0)
        self._wakes: set[tuple[int, int]] = set()
        self.number = 0

    # --- what tests say -----------------------------------------------------------------------

    def dead_letters(self, partition: int, count: int, type_: str = "send") -> list[int]:
        """Tasks that wait for a person."""
        node = self.nodes[partition]
        new = [Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob(type_, b"{}"))] * count
        keys = [reply.key for reply in self._submit(node, new)]
        value = Activation((type_,), "worker", count, 60_000)
        ask = Command(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)
        (reply,) = self._submit(node, [ask])
        failed = [
            Command(ValueType.JOB, JobIntent.FAIL, job.key, Failure(job.lease, "broken", True))
            for job in reply.value
        ]
        self._submit(node, failed)
        return keys

    def waiting_task(self, partition: int) -> int:
        new = Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("calm", b"{}"))
        return self._submit(self.nodes[partition], [new])[0].key

    def _submit(self, node: Node, commands: Sequence[Command]) -> list[Reply]:
        ticket = object()
        node.inbox.append(Submission(commands, ticket))
        while id(ticket) not in node.answers:
            self._round([node])
        return node.answers.pop(id(ticket))

    def select(self, items: dict[int, list[int]]) -> bytes:
        """A filter that chooses these items, by partition."""
        self.number += 1
        for partition, keys in items.items():
            self.pages.items[self.number, partition] = keys
        return json.dumps({"number": self.number}).encode()

    def create(
        self,
        leader: int,
        filter_: bytes,
        claims: dict[str, Any] | None = None,
        **rest: Any,
    ) -> int:
        operation = BatchOperation(rest.pop("type", RETRY), filter_, **rest)
        reply = self.ask(leader, Command(BATCH, _I.CREATE, 0, operation, claims))
        assert reply.rejection is None, reply.rejection
        return reply.key

    def control(self, intent: BatchOperationIntent, key: int) -> Reply:
        return self.ask(partition_of(key), Command(BATCH, intent, key, OperationRef()))

    def change(self, key: int, throttle: int | None = None, priority: int | None = None) -> Reply:
        value = Change(0, throttle, priority)
        return self.ask(partition_of(key), Command(BATCH, _I.CHANGE, key, value))

    def end_of(self, key: int) -> Any:
        """The last event of an operation, if it has ended."""
        found = [
            record.value
            for record in self.nodes[partition_of(key)].records()
            if record.kind is RecordKind.EVENT
            and (record.value_type, record.intent, record.key) == (BATCH, _I.COMPLETED, key)
        ]
        assert len(found) <= 1, "an operation ends once"
        return found[0] if found else None

    def resolved(self, partition: int) -> list[int]:
        """Jobs whose incidents were resolved, with every repetition."""
        return [
            record.value.job_key
            for record in self.nodes[partition].records()
            if record.kind is RecordKind.EVENT
            and (record.value_type, record.intent) == (ValueType.INCIDENT, IncidentIntent.RESOLVED)
        ]

    def left(self, node: Node) -> list[str]:
        """Rows of batch operations and parcels that a partition has."""
        tags = (raw[_TAG_AT] for raw, _ in node.dump())
        return [Tag(tag).name for tag in tags if FIRST_TAG <= tag <= LAST_TAG or tag == Tag.OUTBOX]

    # --- the network --------------------------------------------------------------------------

    def _rise(self, node: Node, has_store: bool) -> None:
        self._lives[node.number] += 1
        self._executing.discard(node.number)
        super()._rise(node, has_store)

    def run(self, seconds: float = 0) -> None:
        self.later(0, lambda: None)  # so that drivers look once at least
        super().run(seconds)

    # --- the drivers --------------------------------------------------------------------------

    def _round(self, nodes: Iterable[Node]) -> None:
        super()._round(nodes)
        if self.is_driven:
            for node in self.nodes.values():
                if not node.is_down:
                    self._drive(node)

    def _drive(self, node: Node) -> None:
        wanted = agenda(node.view.batches, self.now_ms)
        for key in wanted.selecting:
            if self._under_way.get((node.number, key)) != self._lives[node.number]:
                self._begin(node, key)
        if wanted.executing and node.number not in self._executing:
            self._executing.add(node.number)
            value = Execute(self.limit())
            ask = Command(EXECUTION, BatchOperationExecutionIntent.EXECUTE, wanted.executing, value)
            life = self._lives[node.number]
            self.later(self.execute_ms(), partial(self._execute, node, life, ask))
        if wanted.later_ms is not None and (node.number, wanted.later_ms) not in self._wakes:
            self._wakes.add((node.number, wanted.later_ms))
            self.later(max(wanted.later_ms - self.now_ms, 0), lambda: None)

    def _execute(self, node: Node, life: int, ask: Command) -> None:
        if life == self._lives[node.number] and not node.is_down:
            self._give(node, [ask], partial(self._executing.discard, node.number))

    def _begin(self, node: Node, key: int) -> None:
        part = node.view.batches.parts.get(key)
        place = node.number, key
        self._under_way[place] = self._lives[node.number]
        if not part.is_started:
            self._give(node, [starting(key)], partial(self._under_way.pop, place, None))
            return
        selecting = node.view.batches.selecting(key)
        act = partial(self._select, node, key, self._lives[node.number], selecting, part.chunks)
        self.later(self.page_ms(), act)

    def _select(self, node: Node, key: int, life: int, selecting: Selecting, chunks: int) -> None:
        """A page comes, for the node that asked for it if it still lives."""
        if life != self._lives[node.number] or node.is_down:
            return
        stored = node.view.batches.operations.get(key)
        forget = partial(self._under_way.pop, (node.number, key), None)
        if stored is None:
            forget()
            return
        try:
            cursor, limit = selecting.cursor, selecting.page_items
            page = self.pages.page(stored.operation, node.number, cursor, limit)
            commands = taking(key, selecting, chunks, page)
        except Exception as error:
            commands = [failing(key, selecting, chunks, error)]
        if self._happens(self.page_doubling):
            node.inbox.append(Submission(commands))
        self._give(node, commands, forget)

    def _give(self, node: Node, commands: list[Command], then: Callable[[], Any]) -> None:
        node.inbox.append(Submission(commands))
        life = self._lives[node.number]

        def done() -> None:
            if life == self._lives[node.number]:
                then()

        self.later(0, lambda: self.later(0, done))  # after the step that takes them


def check_end(cluster: BatchCluster) -> None:
    """Nothing is left of any operation, anywhere, and replay comes to the same."""
    for node in cluster.nodes.values():
        left = cluster.left(node)
        assert not left, f"partition {node.number}: left behind: {left}"
        assert not node.bugs, node.bugs
        assert node.replayed().state.dump() == node.dump(), "replay is not what happened"
