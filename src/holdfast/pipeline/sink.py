"""`holdfast` as a sink of Spark: rows become tasks, process instances or messages, exactly once.

    orders.write.format("holdfast").mode("append").option("type", "ship").option(
        "keyColumn", "order_id"
    ).save("http://127.0.0.1:8080")

Spark runs a part of its work again when it fails, or twice at once when it is slow, and each run
sends its rows. The node takes a row once, because every row has a key: an idempotency key, or the
id of a message. It knows a key for as long as `windowMs` says, or its own configuration, which is a
day; and the id of a message for as long as the message is kept, which `ttlMs` says. What Spark
sends again has to come within that time. Nothing is left to commit or to abort.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from holdfast.client.patience import patiently
from holdfast.client.portal import Portal
from holdfast.client.remote import RemoteApi
from holdfast.errors import (
    AlreadyExists,
    DeadlineExceeded,
    HoldfastError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.pipeline.log import is_node_url
from holdfast.pipeline.sink_rows import Row, SinkPlan, rows_of

ROWS_PER_REQUEST = 1_000
REQUEST_BYTES = 4 << 20  # a third of what a node takes: a row of 3 MiB still fits
REQUESTS_IN_FLIGHT = 4  # by executor: the node is at work while rows are made
MESSAGES_IN_FLIGHT = 32  # they go one by one
PATIENCE_MS = 30_000  # by default: for a node to come back, or to have room

# A key makes it safe to send again even if nobody knows whether the node took it.
_PASSING = (ResourceExhausted, Unavailable, Unknown, DeadlineExceeded)
_WRONG = (InvalidArgument, NotFound)


@dataclass
class SinkWritten(WriterCommitMessage):
    """What one run of one part of the work did."""

    rows: int
    created: int  # the others were there already


class LogWriter(DataSourceArrowWriter):
    """Sends the rows of a DataFrame to a node."""

    def __init__(self, url: str, plan: SinkPlan, patience_ms: int) -> None:
        self._url = url
        self._plan = plan
        self._patience_ms = patience_ms

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkWritten:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        return send_rows(self._url, self._plan, self._patience_ms / 1000, partition, iterator)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """Sends the rows of a stream to a node, micro-batch by micro-batch."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SinkWritten:
        return self._writer.write(iterator)


def check_url(address: str) -> str:
    """The address of a node that many processes can write to."""
    if not is_node_url(address):
        raise InvalidArgument(
            f"Expected the URL of a node such as http://127.0.0.1:8080, but found {address!r}: a"
            " folder has one writer, and Spark is many; run `holdfast start` on it",
            field="path",
        )
    return address


def send_rows(
    url: str, plan: SinkPlan, patience_s: float, partition: int, batches: Iterator[pa.RecordBatch]
) -> SinkWritten:
    """Sends all rows, some requests at a time; an error names its row."""
    sender = _Sender(url, patience_s, partition)
    try:
        count = 0
        for batch in batches:
            for row in rows_of(plan, batch, count):
                sender.add(row)
            count += batch.num_rows
        sender.finish()
        return SinkWritten(count, sender.created)
    finally:
        sender.close()


class _Sender:
    """Puts rows together and keeps some requests in flight."""

    def __init__(self, url: str, patience_s: float, partition: int) -> None:
        self.created = 0
        self._api = RemoteApi(url)
        self._patience_s = patience_s
        self._partition = partition
        self._portal = Portal("holdfast-sink")
        self._rows: list[Row] = []
        self._bytes = 0
        self._in_flight: deque[Future[int]] = deque()

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self._bytes += row.content_bytes
        if len(self._rows) == ROWS_PER_REQUEST or self._bytes >= REQUEST_BYTES:
            self._send_on()

    def finish(self) -> None:
        if self._rows:
            self._send_on()
        while self._in_flight:
            self.created += self._in_flight.popleft().result()

    def close(self) -> None:
        for request in self._in_flight:
            request.cancel()
        self._portal.call(self._api.close())
        self._portal.close()

    def _send_on(self) -> None:
        while len(self._in_flight) >= REQUESTS_IN_FLIGHT:
            self.created += self._in_flight.popleft().result()
        self._in_flight.append(self._portal.start(self._send(self._rows)))
        self._rows, self._bytes = [], 0

    async def _send(self, rows: list[Row]) -> int:
        """How many of the rows are new. If one is wrong, the halves of them lead to it."""
        try:
            return await patiently(lambda: self._request(rows), _PASSING, self._patience_s)
        except _WRONG as error:
            if len(rows) == 1:
                raise self._named(rows[0], error) from error
        middle = len(rows) // 2
        return await self._send(rows[:middle]) + await self._send(rows[middle:])

    async def _request(self, rows: list[Row]) -> int:
        requests = [row.request for row in rows]
        tasks = [each for each in requests if isinstance(each, NewTask)]
        if tasks:
            return sum(receipt.created for receipt in await self._api.tasks.submit(tasks))
        instances = [each for each in requests if isinstance(each, NewProcessInstance)]
        if instances:
            return sum(receipt.created for receipt in await self._api.instances.start(instances))
        room = asyncio.Semaphore(MESSAGES_IN_FLIGHT)

        async def publish(message: NewMessage) -> int:
            async with room:
                return await self._publish(message)

        messages = [each for each in requests if isinstance(each, NewMessage)]
        return sum(await asyncio.gather(*[publish(each) for each in messages]))

    async def _publish(self, message: NewMessage) -> int:
        try:
            await self._api.messages.publish(message)
        except AlreadyExists:
            return 0
        return 1

    def _named(self, row: Row, error: HoldfastError) -> HoldfastError:
        return type(error)(
            f"{error.message}; this is row {row.number} of partition {self._partition}, with the"
            f" key {row.key!r}",
            **error.fields,
        )
