"""The load of the cluster demo: keyed tasks at a fixed pace, through all members."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

import msgspec

from holdfast.client.remote import RemoteApi
from holdfast.errors import HoldfastError
from holdfast.gateway.tasks.shapes import NewTask
from holdfast.records.keys import partition_for

TYPE = "order"
_EVERY_SECONDS = 0.01  # a task for each partition
_AGAIN_SECONDS = 0.02  # before one that was not answered is sent through the next member
_LAST_SECONDS_MAX = 30.0  # for the answers that are out when the load ends


class Acknowledged(msgspec.Struct, frozen=True):
    """A task that a member took; times are of this machine's monotonic clock."""

    key: str
    task_key: str
    partition: int
    at_s: float


class ClusterLoad:
    """Submits until it is told to stop. A task without an answer is sent again with its key."""

    def __init__(self, urls: Sequence[str], partitions: int) -> None:
        self.acknowledged: list[Acknowledged] = []
        self._members = [RemoteApi(url) for url in urls]
        self._partitions = partitions
        self._sent = 0
        self._sending: set[asyncio.Task[None]] = set()
        self._pacing: asyncio.Task[None] | None = None

    @property
    def sent(self) -> int:
        return self._sent

    def times(self, partition: int) -> list[float]:
        """When tasks of a partition were acknowledged, in order."""
        return [each.at_s for each in self.acknowledged if each.partition == partition]

    def start(self) -> None:
        self._pacing = asyncio.get_running_loop().create_task(self._pace())

    async def stop(self) -> int:
        """Sends no more; how many of those that were sent nobody has acknowledged."""
        if self._pacing is not None:
            self._pacing.cancel()
        if self._sending:
            await asyncio.wait(self._sending, timeout=_LAST_SECONDS_MAX)
        unanswered = [each for each in self._sending if not each.done()]
        for each in unanswered:
            each.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)
        for api in self._members:
            await api.close()
        return len(unanswered)

    async def _pace(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for _ in range(self._partitions):
                self._sent += 1
                sending = loop.create_task(self._send(self._sent))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)
            due = max(due + _EVERY_SECONDS, loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await loop.create_future()

    async def _send(self, number: int) -> None:
        key, turn = f"order-{number}", number
        task = NewTask(TYPE, msgspec.Raw(b'{"number":%d}' % number), key=key)
        while True:
            api = self._members[turn % len(self._members)]
            try:
                (receipt,) = await api.tasks.submit([task])
            except HoldfastError:
                turn += 1
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                partition = partition_for(key, self._partitions)
                taken = Acknowledged(key, receipt.task_key, partition, time.monotonic())
                self.acknowledged.append(taken)
                return
