"""Batch operations: create them, see how far they are, steer them, try again what failed."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from holdfast.clock import Clock
from holdfast.engine.batch.needs import of_type
from holdfast.engine.batch.queries import FindVisible, LedOperation
from holdfast.engine.batch.values import (
    BatchesChanged,
    BatchOperation,
    BatchOperationEnded,
    BatchOperationIntent,
    BatchOperationState,
    BatchOperationType,
    Change,
    OperationRef,
    Selection,
)
from holdfast.engine.identity.values import (
    EVERY_ID,
    Permission,
    ResourceType,
)
from holdfast.engine.kernel import Command, Required
from holdfast.engine.progress import FindProgress
from holdfast.errors import InvalidState, NotFound, Unavailable
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked, is_asker
from holdfast.gateway.batch.api import BatchApi
from holdfast.gateway.batch.counts import BatchCounts
from holdfast.gateway.batch.listing import page_of
from holdfast.gateway.batch.pace import Pace
from holdfast.gateway.batch.shapes import (
    BatchChange,
    BatchFailureGroups,
    BatchFailures,
    BatchItemPage,
    BatchItemQuery,
    BatchOperationPage,
    BatchOperationQuery,
    BatchOperationReceipt,
    BatchOperationView,
    BatchPreview,
    BatchRetry,
    BatchShare,
    NewBatchOperation,
)
from holdfast.gateway.batch.tables import (
    BatchTables,
    OpenTables,
    PastOperation,
    failed_items,
    no_tables,
)
from holdfast.gateway.batch.views import Live, ended_view
from holdfast.gateway.processes.instances import migration_of, modification_of
from holdfast.limits import (
    BATCH_ENDED_KEPT,
    BATCH_THROTTLE_MAX,
    PAGE_ITEMS_MAX,
    PRIORITY_MAX,
    RETRIES_MAX,
)
from holdfast.logs import log
from holdfast.partitions import EffectTopic
from holdfast.records import ValueType, partition_of
from holdfast.records.keys import NO_KEY, counter_of

_BATCH = ValueType.BATCH_OPERATION
_I, _S = BatchOperationIntent, BatchOperationState
_replace = msgspec.structs.replace
# stands for operations of which it is not known who created them
_OF_OTHERS = BatchOperation(BatchOperationType.CANCEL_PROCESS_INSTANCE, b"{}")


class BatchService(BatchApi):
    """What can be asked about batch operations."""

    def __init__(self, asked: Asked, clock: Clock, opening: OpenTables | None) -> None:
        self._asked = asked
        self._clock = clock
        self._live = Live(asked)
        self._pace = Pace()
        self.counts = BatchCounts(asked, self._live, self._pace, clock)
        self._created_ms: dict[int, int] = {}  # of operations that this node was asked for
        self._ended: dict[int, PastOperation] = {}  # the last ones, the oldest first
        self._open_tables = opening or no_tables
        self._tables: BatchTables | None = None
        self._opening = asyncio.Lock()
        self._is_caught_up = False  # the tables know all that ended before this node started
        self._noting: asyncio.Task[None] | None = None
        asked.follow(EffectTopic(BatchesChanged), self._changed)
        asked.follow(EffectTopic(BatchOperationEnded), self._told)

    # --- what happens -------------------------------------------------------------------------

    def _changed(self, _: BatchesChanged | None) -> None:
        """Items were done: now and then it is noted how many."""
        now = self._clock.monotonic()
        if self._pace.is_due(now) and self._noting is None:
            self._noting = asyncio.get_running_loop().create_task(self._note(now))
            self._noting.add_done_callback(self._noted)

    async def _note(self, now: float) -> None:
        counts = await self._live.counts(await self._live.all())
        self._pace.note(now, {key: each.total - each.left for key, each in counts.items()})

    def _noted(self, noting: "asyncio.Task[None]") -> None:
        self._noting = None
        if not noting.cancelled() and (error := noting.exception()) is not None:
            log.info("pace of batch operations not noted", error=str(error))

    def _told(self, effect: BatchOperationEnded | None) -> None:
        if effect is not None:  # one that was missed is in the tables
            self.ended(effect)

    def ended(self, effect: BatchOperationEnded) -> None:
        """An operation is over: its selection goes, its end is known until the tables have it."""
        view = ended_view(effect.key, effect.operation, effect.end, effect.ended_ms)
        view = _replace(view, start_date=self._started(effect.key))
        self._created_ms.pop(effect.key, None)
        self.counts.ended(effect)
        while len(self._ended) >= BATCH_ENDED_KEPT:
            del self._ended[next(iter(self._ended))]
        self._ended[effect.key] = PastOperation(effect.operation, view)
        if self._tables is not None:
            try:
                self._tables.drop(effect.operation)
            except OSError as error:  # it is only in the way, and goes when a node starts
                log.warning("selection not dropped", key=effect.key, error=str(error))

    async def open_tables(self) -> BatchTables:
        """The tables, opened once; what was selected for operations that are over is dropped."""
        async with self._opening:
            if self._tables is None:
                tables = await self._open_tables()
                tables.keep_only([each.operation for each in await self._live.all()])
                self._tables = tables
            return self._tables

    # --- a new one ----------------------------------------------------------------------------

    async def create(self, new: NewBatchOperation) -> BatchOperationReceipt:
        """A new operation, or what it would do."""
        modification, migration = new.modification, new.migration
        operation = BatchOperation(
            new.type,
            bytes(new.filter),
            None if modification is None else modification_of(modification, self._asked.count),
            None if migration is None else migration_of(migration, self._asked.count),
            checks.within(new.retries, 0, RETRIES_MAX, "retries"),
        )
        return await self._begin(operation, new)

    async def retry(self, batch_operation_key: str, retry: BatchRetry) -> BatchOperationReceipt:
        """A new operation for the items, or the partitions, that failed in one that has ended."""
        key = self._key(batch_operation_key)
        if (led := await self._live.led(key)) is not None:
            raise InvalidState(f"Operation {key} has not ended: it is {led.state}")
        past = await self._past(key)
        if retry.failed is BatchFailures.ITEMS:
            if not past.view.operations_failed_count:
                raise InvalidState(f"Operation {key} has no failed items")
            await self._check_creator(past.operation)
            chosen, partitions = failed_items(key), past.operation.partitions
        else:
            partitions = tuple(each.partition_id for each in past.view.errors)
            if not partitions:
                raise InvalidState(f"Operation {key} has no failed partitions")
            chosen = past.operation.filter
        operation = _replace(
            past.operation, filter=chosen, partitions=partitions, repeats=key,
            claims=None, visible=None,
            retries=past.operation.retries if retry.retries is None
            else checks.within(retry.retries, 0, RETRIES_MAX, "retries"),
        )  # fmt: skip
        return await self._begin(operation, retry)

    async def _begin(
        self, operation: BatchOperation, asked: NewBatchOperation | BatchRetry
    ) -> BatchOperationReceipt:
        """What is chosen is as of now: all that was durable before it was asked for."""
        await self._asked.check(of_type(operation.type))
        throttle = checks.within(asked.throttle, 0, BATCH_THROTTLE_MAX, "throttle")
        priority = checks.within(asked.priority, -PRIORITY_MAX, PRIORITY_MAX, "priority")
        tables = await self.open_tables()
        tables.check(operation)
        operation = _replace(
            operation,
            throttle=throttle,
            priority=priority,
            selection=Selection("", await self._positions()),
            visible=await self._asked.ask_any(FindVisible()),
        )
        if asked.dry_run:
            return BatchOperationReceipt(operation.type, preview=await _preview(tables, operation))
        partition = self._asked.anywhere()
        command = Command(_BATCH, _I.CREATE, NO_KEY, operation)
        (reply,) = await self._asked.submit(partition, [command])
        if error := reply.error():
            raise error
        self._created_ms[reply.key] = self._clock.now_ms()
        return BatchOperationReceipt(operation.type, str(reply.key))

    async def _check_creator(self, operation: BatchOperation) -> None:
        """An asker who may not see everything sees the items of operations of their own."""
        if is_asker(operation.claims):
            return
        everything = (EVERY_ID,)
        await self._asked.check(
            Required(
                ResourceType.PROCESS_DEFINITION, (Permission.READ_PROCESS_INSTANCE,), everything
            ),
            Required(ResourceType.TASK, (Permission.READ,), everything),
        )

    # --- looking ------------------------------------------------------------------------------

    async def get(self, batch_operation_key: str) -> BatchOperationView:
        key = self._key(batch_operation_key)
        if (led := await self._live.led(key)) is None:
            return (await self._past(key)).view
        view = await self._live_view(led)
        if view is None:  # it has just ended
            return (await self._past(key)).view
        if view.start_date is None:  # it was created before this node started
            view = _replace(view, start_date=await self._start_in_tables(key))
        return view

    async def page(self, query: BatchOperationQuery) -> BatchOperationPage:
        """Running operations, then ended ones, the newest first."""
        checks.within(query.page.limit, 1, PAGE_ITEMS_MAX, "limit")
        await self._catch_up()
        running = await self._live.all()
        known: dict[str, BatchOperationView] = {}
        for led in running:
            key = led.key
            if key not in self._created_ms:  # it was created before this node started
                started = await self._start_in_tables(key)
                self._created_ms[key] = 0 if started is None else int(started.timestamp() * 1_000)
            view = await self._live_view(led)
            if view is not None:
                known[str(key)] = view
        known |= {past.view.batch_operation_key: past.view for past in self._ended.values()}
        return await page_of(query, known.values(), self.open_tables, self._clock.now_ms())

    async def _catch_up(self) -> None:
        """Once: what ended just before this node started is in the tables alone."""
        if self._is_caught_up:
            return
        try:  # no operation has this key: it is only waited for
            await (await self.open_tables()).past(NO_KEY, await self._positions())
        except Unavailable:
            return
        self._is_caught_up = True

    async def items(self, query: BatchItemQuery) -> BatchItemPage:
        checks.within(query.page.limit, 1, PAGE_ITEMS_MAX, "limit")
        asked = query.filter
        for text, what in (
            (asked.batch_operation_key, "batch operation"),
            (asked.item_key, "item"),
            (asked.process_instance_key, "process instance"),
        ):
            if text is not None:
                checks.key_from(text, self._asked.count, what)
        await self._check_items(asked.batch_operation_key)
        return await (await self.open_tables()).items(query)

    async def failures(self, batch_operation_key: str) -> BatchFailureGroups:
        key = self._key(batch_operation_key)
        await self._check_items(batch_operation_key)
        return await (await self.open_tables()).failures(key)

    async def _check_items(self, batch_operation_key: str | None) -> None:
        """Forbidden, unless the asker created the operation or may see everything."""
        if batch_operation_key is None:
            return await self._check_creator(_OF_OTHERS)
        key = self._key(batch_operation_key)
        led = await self._live.led(key)
        try:
            operation = (await self._past(key)).operation if led is None else led.operation
        except NotFound:
            operation = _OF_OTHERS  # its items are not there either, or only those of others
        await self._check_creator(operation)

    async def _past(self, key: int) -> PastOperation:
        """An operation that has ended.

        NotFound is for what never was: where the tables cannot tell, Unavailable says so.
        """
        if (known := self._ended.get(key)) is not None:
            return known
        missing = f"There is no batch operation with key {key}"
        if counter_of(key) > (await self._asked.ask(partition_of(key), FindProgress())).key_counter:
            raise NotFound(f"{missing}: this key was never given out", key=str(key))
        try:
            tables = await self.open_tables()
            past = await tables.past(key, {})
            if past is None or past.view.end_date is None:  # the tables may be behind
                past = await tables.past(key, await self._positions())
        except Unavailable as error:
            raise Unavailable(
                f"Batch operation {key} does not run; if it has ended, the tables know, but:"
                f" {error.message}. Ask again when holdfast pipeline run has caught up",
                key=str(key),
                lasting=1,
            ) from error
        if past is None:
            raise NotFound(f"{missing}: none runs, and the tables have none", key=str(key))
        return past

    async def _start_in_tables(self, key: int) -> datetime | None:
        try:
            past = await (await self.open_tables()).past(key, {})
        except Unavailable:
            return None
        return None if past is None else past.view.start_date

    async def _live_view(self, led: LedOperation) -> BatchOperationView | None:
        found = await self._live.view(led)
        if found is None:
            return None
        view = _replace(found, start_date=self._started(led.key))
        if led.state is not _S.ACTIVE:
            return view
        done = (
            view.operations_completed_count + view.operations_failed_count
            + view.operations_skipped_count + view.operations_canceled_count
        )  # fmt: skip
        rate = self._pace.per_second(led.key, self._clock.monotonic(), done)
        if rate is None:
            return view
        end = None
        if rate > 0 and view.is_selected:
            left = view.operations_total_count - done
            end = self._now() + timedelta(seconds=left / rate)
        return _replace(view, items_per_second=round(rate, 1), estimated_end=end)

    # --- steering -----------------------------------------------------------------------------

    async def suspend(self, batch_operation_key: str) -> None:
        await self._do(batch_operation_key, _I.SUSPEND, OperationRef())

    async def resume(self, batch_operation_key: str) -> None:
        await self._do(batch_operation_key, _I.RESUME, OperationRef())

    async def cancel(self, batch_operation_key: str) -> None:
        await self._do(batch_operation_key, _I.CANCEL, OperationRef())

    async def change(self, batch_operation_key: str, change: BatchChange) -> None:
        if change.throttle is not None:
            checks.within(change.throttle, 0, BATCH_THROTTLE_MAX, "throttle")
        if change.priority is not None:
            checks.within(change.priority, -PRIORITY_MAX, PRIORITY_MAX, "priority")
        value = Change(throttle=change.throttle, priority=change.priority)
        await self._do(batch_operation_key, _I.CHANGE, value)

    async def _do(self, batch_operation_key: str, intent: BatchOperationIntent, value: Any) -> None:
        key = self._key(batch_operation_key)
        command = Command(_BATCH, intent, key, value)
        (reply,) = await self._asked.submit(partition_of(key), [command])
        if error := reply.error():
            raise error

    # --- words --------------------------------------------------------------------------------

    def _key(self, text: str) -> int:
        return checks.key_from(text, self._asked.count, "batch operation")

    async def _positions(self) -> dict[int, int]:
        """How far the logs are, as the tables count them: by the journal's offsets."""
        found = await self._asked.ask_all(FindProgress())
        return {
            each: known.next_position if known.log_end is None else known.log_end
            for each, known in enumerate(found, 1)
        }

    def _started(self, key: int) -> datetime | None:
        return checks.moment(self._created_ms.get(key, 0))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1_000, UTC)


async def _preview(tables: BatchTables, operation: BatchOperation) -> BatchPreview:
    chosen = await tables.preview(operation)
    return BatchPreview(
        sum(chosen.counts.values()),
        [BatchShare(partition, items) for partition, items in sorted(chosen.counts.items())],
        [str(key) for key in chosen.sample],
    )
