"""Batch operations on a node of ours, whose selections are made by Spark in this process."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.ours.batch_items import PARTITIONS, make_items
from bench.ours.node import OurNode
from bench.places import SPARK
from holdfast.client.portal import Portal
from holdfast.client.remote import RemoteApi
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.engine.batch.values import BatchOperationExecutionIntent, BatchOperationType
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.errors import InvalidState, NotFound
from holdfast.gateway.batch.shapes import BatchOperationView, NewBatchOperation
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.journal.local import JournalReader
from holdfast.records import Record, RecordKind, ValueType

if TYPE_CHECKING:
    from holdfast.pipeline.select.requests import Request

LOOK_SECONDS = 0.05
LOOK_MEMORY_SECONDS = 0.2
WAIT_SECONDS = 3_600
QUIET_SECONDS = 1.5  # longer than what may pass until nothing runs any more

_T = BatchOperationType


@dataclass(frozen=True)
class Done:
    """An operation that has ended."""

    items: int
    completed: int
    seconds: float  # from the request until the last partition had reported
    executing_seconds: float  # ... of which items were done
    cpu_seconds: float  # of the node, all in all
    growth_bytes: int  # how much more memory the node held, at the most, than at the request

    @property
    def per_second(self) -> float:
        return self.items / self.seconds

    @property
    def wall_us(self) -> float:
        return self.executing_seconds / self.items * 1e6

    @property
    def cpu_us(self) -> float:
        return self.cpu_seconds / self.items * 1e6


class EndedBeforeError(Exception):
    """An operation has ended before it was as wanted, or could be stopped."""


class OurBatches:
    """A running node with items, and what can be asked of it."""

    def __init__(self, node: OurNode) -> None:
        self._node = node
        self._portal = Portal("bench")
        self._api = RemoteApi(node.url)
        self._log = JournalReader.open(str(node.folder / "journal"))

    def close(self) -> None:
        self._portal.call(self._api.close())
        self._portal.close()
        self._log.let_go()

    # --- whole operations ---------------------------------------------------------------------

    def retry_tasks(self, type_: str) -> Done:
        """All dead letters of a type are tried again."""
        return self._run(_T.RETRY_TASK, {"type": type_})

    def cancel_instances(self, process_id: str) -> Done:
        """All instances of a process are canceled."""
        return self._run(_T.CANCEL_PROCESS_INSTANCE, {"processId": process_id})

    def _run(self, type_: BatchOperationType, filter: Mapping[str, str]) -> Done:
        places = self._places()
        cpu = self._node.cpu_seconds()
        with _Memory(self._node) as memory:
            asked = time.time()
            key = self.begin(type_, filter)
            view = self.until(key, lambda view: view.operations_completed_count > 0)
            begun = min(each.timestamp_ms for each in self._steps(places, first=True)) / 1_000
            view = self.until(key, lambda view: view.end_date is not None)
        assert view.end_date is not None
        ended = view.end_date.timestamp()
        return Done(
            view.operations_total_count,
            view.operations_completed_count,
            ended - asked,
            ended - begun,
            self._node.cpu_seconds() - cpu,
            memory.growth_bytes,
        )

    def begin(self, type_: BatchOperationType, filter: Mapping[str, str]) -> str:
        new = NewBatchOperation(type=type_, filter=msgspec.Raw(msgspec.json.encode(filter)))
        receipt = self._portal.call(self._api.batches.create(new))
        assert receipt.batch_operation_key is not None
        return receipt.batch_operation_key

    def until(self, key: str, is_so: Callable[[BatchOperationView], bool]) -> BatchOperationView:
        """Looks at an operation until it is as wanted."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not is_so(view := self._portal.call(self._api.batches.get(key))):
            if view.end_date is not None:
                raise EndedBeforeError(str(view))
            assert time.monotonic() < deadline, f"it does not get there: {view}"
            time.sleep(LOOK_SECONDS)
        return view

    def is_running(self, key: str) -> bool:
        return self._portal.call(self._api.batches.get(key)).state == "ACTIVE"

    def is_suspended(self, key: str) -> bool:
        return self._portal.call(self._api.batches.get(key)).state == "SUSPENDED"

    # --- steering -----------------------------------------------------------------------------

    def suspend(self, key: str) -> float:
        """Seconds from the request until the last item was done; below 0.001 counts as that."""
        return self._seconds_of(lambda: self._api.batches.suspend(key))

    def cancel(self, key: str) -> float:
        return self._seconds_of(lambda: self._api.batches.cancel(key))

    def resume(self, key: str) -> None:
        self._portal.call(self._api.batches.resume(key))

    def _seconds_of(self, request: Callable[[], object]) -> float:
        places, asked = self._places(), time.time()
        try:
            self._portal.call(request())  # pyright: ignore[reportArgumentType] - it is a coroutine
        except (NotFound, InvalidState) as ended:
            raise EndedBeforeError(str(ended)) from ended
        time.sleep(QUIET_SECONDS)
        ran = [each.timestamp_ms for each in self._steps(places) if each.value.completed]
        return max(max(ran, default=0) / 1_000 - asked, 0.001)

    # --- live commands ------------------------------------------------------------------------

    def live_seconds(self, count: int, pause_seconds: float) -> list[float]:
        """How long each of so many live commands takes, one after the other with pauses."""
        return self._portal.call(self._live_seconds(count, pause_seconds))

    async def _live_seconds(self, count: int, pause_seconds: float) -> list[float]:
        spans: list[float] = []
        for _ in range(count):
            begun = time.perf_counter()
            await self._api.tasks.submit([NewTask("later")])
            spans.append(time.perf_counter() - begun)
            await asyncio.sleep(pause_seconds)
        return spans

    # --- the log ------------------------------------------------------------------------------

    def _places(self) -> dict[int, int]:
        """How far the log of each partition is."""
        return {each: self._log.bounds(TOPIC, each).next for each in range(1, PARTITIONS + 1)}

    def _steps(self, places: Mapping[int, int], *, first: bool = False) -> Iterator[Record]:
        """What was told of items since, or only the first of it on each partition."""
        executed = BatchOperationExecutionIntent.EXECUTED
        for partition, place in places.items():
            at, is_found = place, False
            while not (first and is_found) and (
                entries := self._log.read_now(TOPIC, partition, at)
            ):
                at = entries[-1].offset + 1
                for record in DISPATCH.codec.decode_many([entry.payload for entry in entries]):
                    is_step = record.value_type == ValueType.BATCH_OPERATION_EXECUTION
                    if is_step and (record.kind, record.intent) == (RecordKind.EVENT, executed):
                        yield record
                        is_found = True
                        if first:
                            break


class _Memory:
    """The most memory that a node holds meanwhile, beyond what it held before."""

    def __init__(self, node: OurNode) -> None:
        self.growth_bytes = 0
        self._node = node
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> "_Memory":
        self._before = self._node.memory_bytes()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_MEMORY_SECONDS):
            grown = self._node.memory_bytes() - self._before
            self.growth_bytes = max(self.growth_bytes, grown)


@contextmanager
def our_batches(
    folder: Path, tasks: Mapping[str, int], instances: Mapping[str, int], rows: int
) -> Iterator[OurBatches]:
    """A node with dead letters by type and instances by process, among so many tasks in tables."""
    from bench.ours.batch_tables import write_tables
    from holdfast.pipeline.schema import TABLES
    from holdfast.pipeline.select.selection import select
    from holdfast.pipeline.select.serving import SelectionServing
    from holdfast.pipeline.session import open_session

    keys = make_items(folder, tasks, instances)
    root, clock = folder / "tables", SystemClock()
    write_tables(
        root, {each: keys[each] for each in tasks}, {each: keys[each] for each in instances}, rows
    )
    with ExitStack() as stack:
        spark = open_session(Config(log_level="error"), SPARK, lasting=True)
        stack.callback(spark.stop)

        def answer(wanted: "Request") -> None:
            """As the pipeline does it."""
            select(
                spark, root, TABLES[wanted.table], wanted.filter, wanted.as_of,
                clock.monotonic(), visible=wanted.visible, name=wanted.name, clock=clock,
            )  # fmt: skip

        serving = SelectionServing(root, answer, clock)
        serving.start()
        stack.callback(serving.stop)
        node = stack.enter_context(OurNode(folder, PARTITIONS))
        ours = OurBatches(node)
        stack.callback(ours.close)
        yield ours
