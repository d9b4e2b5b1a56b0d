"""The items of operations, page by page, from snapshots that the pipeline makes on request."""

import asyncio
from pathlib import Path

from holdfast.clock import Clock
from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import BatchOperation, BatchOperationType
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.limits import BATCH_SELECTION_LOOK_MS, BATCH_SELECTION_WAIT_MS
from holdfast.pipeline.batch.sources import condition_of, source_of, visible_of
from holdfast.pipeline.schema import INCIDENTS
from holdfast.pipeline.select.presence import Present, present
from holdfast.pipeline.select.requests import Request, answer, request, withdraw
from holdfast.pipeline.select.snapshot import Snapshot
from holdfast.pipeline.tables.columns import column_of_keys
from holdfast.pipeline.tables.versions import Versions

_NOBODY_SECONDS = 5.0  # a pipeline that is started again is back by then
_PREVIEW_SECONDS = 10.0  # a waiting client hears in between that it takes longer
_PREVIEW_SECONDS_MAX = 25.0  # a client gives up after 30


class PipelineSelector:
    """Asks the pipeline for the snapshot of an operation, once, and reads it."""

    def __init__(self, versions: Versions, clock: Clock) -> None:
        self._root: Path = versions.root
        self._versions = versions
        self._clock = clock
        self._snapshots: dict[str, Snapshot] = {}

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        """At most so many items of a partition, from a cursor on; "" is the beginning."""
        snapshot = await self.snapshot(operation.selection.name, operation)
        return await asyncio.to_thread(self._page, snapshot, operation, partition, cursor, limit)

    async def snapshot(self, name: str, operation: BatchOperation) -> Snapshot:
        """The snapshot with a name, made now if it is not there: as of the operation's positions.

        Each partition waits for itself. The first that comes asks for it, and if an error was the
        answer, the next one that comes asks again.
        """
        if (known := self._snapshots.get(name)) is not None:
            return known
        wanted, since = self._request(name, operation), self._clock.monotonic()
        batch = self._versions.progress().batch
        while (found := answer(self._root, name)) is None:
            now, before = self._clock.monotonic(), batch
            batch = self._versions.progress().batch
            if batch != before or present(self._root) is Present.STARTING:
                since = now  # it is on its way
            elif now - since >= BATCH_SELECTION_WAIT_MS / 1_000:
                raise _too_late()
            await self._look_later(wanted)
        self._snapshots[name] = found
        return found

    async def preview(self, name: str, operation: BatchOperation) -> Snapshot:
        """As above, for somebody who waits: says soon if it takes longer, or if nobody is there.

        An Unavailable with the field `pipeline` is worth asking again.
        """
        wanted, since = self._request(name, operation), self._clock.monotonic()
        batch = self._versions.progress().batch
        while (found := answer(self._root, name)) is None:
            seconds, there = self._clock.monotonic() - since, present(self._root)
            if there is None and seconds >= _NOBODY_SECONDS:
                raise Unavailable(
                    "Expected a pipeline that selects items, but none runs; start one with"
                    " holdfast pipeline run, or the node with --pipeline"
                )
            is_moving = self._versions.progress().batch != batch
            if seconds >= _PREVIEW_SECONDS and (there is Present.STARTING or is_moving):
                doing = "it is starting" if there is Present.STARTING else "its tables catch up"
                raise Unavailable(
                    f"The pipeline cannot select items: {doing}; try again",
                    pipeline="STARTING" if there is Present.STARTING else "CATCHING_UP",
                )
            if seconds >= _PREVIEW_SECONDS_MAX:
                raise _too_late()
            await self._look_later(wanted)
        return found

    def _request(self, name: str, operation: BatchOperation) -> Request:
        table, positions = source_of(operation).table.name, operation.selection.positions
        return Request(
            name, table, condition_of(operation), dict(positions), visible=visible_of(operation)
        )

    async def _look_later(self, wanted: Request) -> None:
        request(self._root, wanted)
        await asyncio.sleep(BATCH_SELECTION_LOOK_MS / 1_000)

    def drop(self, name: str) -> None:
        """Neither the snapshot nor a request for it is needed any more."""
        self._snapshots.pop(name, None)
        withdraw(self._root, name)

    def _page(
        self, snapshot: Snapshot, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        try:
            found = snapshot.page(partition, int(cursor) if cursor else None, limit)
        except FileNotFoundError as error:
            self._snapshots.pop(snapshot.name, None)
            raise Unavailable(
                f"Expected the selection {snapshot.name} to stay, but {error}"
            ) from error
        except ValueError as error:
            raise InvalidArgument(f"Expected a cursor, but found {cursor!r}") from error
        instances: tuple[int, ...] = ()
        if operation.type is BatchOperationType.RESOLVE_INCIDENT:
            instances = self._instances(found.keys)
        cursor_after = None if found.next is None else str(found.next)
        return ItemPage(tuple(found.keys), instances, cursor_after)

    def _instances(self, incidents: list[int]) -> tuple[int, ...]:
        """The instances that incidents stop; 0 for those of plain tasks. That never changes."""
        version = self._versions.progress().versions.get(INCIDENTS.name)
        if version is None or not incidents:
            return (0,) * len(incidents)
        files = self._versions.files(INCIDENTS, version)
        try:
            found = column_of_keys(INCIDENTS, files, incidents, "process_instance_key")
        except FileNotFoundError as error:
            raise Unavailable(f"Expected the tables to stay while read, but {error}") from error
        return tuple(found.get(key) or 0 for key in incidents)


def _too_late() -> Unavailable:
    return Unavailable(
        f"Expected the pipeline to select items within {BATCH_SELECTION_WAIT_MS // 1_000} s, but it"
        " has not; is holdfast pipeline run at work?"
    )
