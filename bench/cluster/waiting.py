"""Tasks that wait in one partition of a cluster, and where tasks are in its logs."""

import asyncio
from collections.abc import Sequence
from itertools import count as numbers
from itertools import islice

import msgspec

from holdfast.client.remote import RemoteApi
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.partition import DISPATCH
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.limits import READ_BYTES_MAX
from holdfast.records import RecordKind, ValueType
from holdfast.records.keys import partition_for

TASKS_PER_SUBMIT = 1_000
TYPE = "waiting"

_decode_entries = msgspec.msgpack.Decoder(list[tuple[int, int, bytes]]).decode


def make_waiting_tasks(urls: Sequence[str], count: int, partitions: int, partition: int) -> None:
    """Submits so many tasks to one partition that nobody works on."""
    asyncio.run(_make(urls, count, partitions, partition))


async def _make(urls: Sequence[str], count: int, partitions: int, partition: int) -> None:
    api = RemoteApi(urls[0])
    keys = (key for n in numbers() if partition_for(key := f"w{n}", partitions) == partition)
    try:
        for start in range(0, count, TASKS_PER_SUBMIT):
            size = min(TASKS_PER_SUBMIT, count - start)
            await api.tasks.submit([NewTask(TYPE, key=key) for key in islice(keys, size)])
    finally:
        await api.close()


def offsets_of_tasks(url: str) -> dict[str, int]:
    """By idempotency key, the offset of the record that says that the task was made."""
    return asyncio.run(_offsets(url))


async def _offsets(url: str) -> dict[str, int]:
    api = RemoteApi(url)
    found: dict[str, int] = {}
    try:
        for each in (await api.journal.bounds()).partitions:
            at = each.earliest
            while at < each.next:
                entries = _decode_entries(
                    await api.journal.read(each.partition_id, at, READ_BYTES_MAX)
                )
                if not entries:
                    break
                records = DISPATCH.codec.decode_many([payload for _, _, payload in entries])
                for (offset, _, _), record in zip(entries, records, strict=True):
                    what = (record.kind, record.value_type, record.intent)
                    if what == (RecordKind.EVENT, ValueType.JOB, JobIntent.CREATED):
                        found[record.value.idempotency_key] = offset
                at = entries[-1][0] + 1
        return found
    finally:
        await api.close()
