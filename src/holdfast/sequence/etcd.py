"""Coordination in etcd: its keys as a store, a lease that is kept alive, and a watch for hints."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence

import grpc
import grpc.aio

from holdfast.errors import HoldfastError, Unavailable, Unknown
from holdfast.limits import (
    COORDINATION_LEASE_MS,
    ETCD_CALL_MS_MAX,
    ETCD_WATCH_RETRY_MS,
    ETCD_WATCH_RETRY_MS_MAX,
)
from holdfast.logs import log
from holdfast.sequence import etcd_messages as messages
from holdfast.sequence.etcd_client import EtcdClient, LeaseGone
from holdfast.sequence.etcd_numbers import EtcdNumbers
from holdfast.sequence.etcd_url import EtcdAddress
from holdfast.sequence.keys import KeySpan, Reading, Write, WriteAnswer
from holdfast.sequence.stored import StoredCoordination

_BEATS_A_LEASE = 3


class EtcdKeys:
    """Keys of one cluster in etcd, under its prefix. Keeps the port `KeyStore`."""

    def __init__(self, address: EtcdAddress, lease_ms: int = COORDINATION_LEASE_MS) -> None:
        self._lease_ms = lease_ms
        self.on_lapsed: Callable[[], None] = lambda: None
        self._client = EtcdClient(address)
        self._prefix = address.prefix
        self._lease = 0
        self._leased_until = 0.0  # by the monotonic clock, at the least
        self._granting = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None

    @property
    def available(self) -> bool:
        return self._client.available

    @property
    def numbers(self) -> EtcdNumbers:
        """What was counted and measured since the start."""
        return self._client.numbers

    async def read(self, *spans: KeySpan) -> Reading:
        if len(spans) == 1:
            request = messages.span_request(spans[0], self._prefix)
            answer = await self._client.read(messages.RANGE, request)
            return Reading(answer.header.revision, [messages.rows_of(answer, self._prefix)])
        request = messages.spans_request(spans, self._prefix)
        answer = await self._client.read(messages.TXN, request)
        rows = [messages.rows_of(each.range, self._prefix) for each in answer.responses]
        return Reading(answer.header.revision, rows)

    async def write(self, write: Write) -> WriteAnswer:
        lease = await self._granted() if any(put.is_leased for put in write.puts) else 0
        request = messages.write_request(write, self._prefix, lease)
        try:
            answer = await self._client.write(messages.TXN, request)
        except LeaseGone:
            self._lapse(lease)
            raise
        return WriteAnswer(answer.succeeded, answer.header.revision)

    async def compact(self, revision: int) -> None:
        request = messages.new("CompactionRequest", revision=revision)
        with contextlib.suppress(HoldfastError):  # somebody has done it, or it is done next time
            await self._client.write(messages.COMPACT, request)

    async def db_bytes(self) -> int:
        """The size of the database's file, of the server that is used."""
        answer = await self._client.read(messages.STATUS, messages.new("StatusRequest"))
        return answer.db_size

    async def hints(self, *spans: KeySpan) -> AsyncIterator[str]:
        """Watches, and begins again from now on whenever that breaks: anything may have changed."""
        pause_ms = ETCD_WATCH_RETRY_MS
        while True:
            try:
                async for key in self._watch(spans):
                    pause_ms = ETCD_WATCH_RETRY_MS
                    yield key
            except grpc.aio.AioRpcError as error:
                self._client.failed(error)
            except HoldfastError as error:
                log.debug("etcd is not watched at the moment", reason=error.message)
            await asyncio.sleep(pause_ms / 1_000)
            pause_ms = min(2 * pause_ms, ETCD_WATCH_RETRY_MS_MAX)

    async def _watch(self, spans: Sequence[KeySpan]) -> AsyncIterator[str]:
        call = await self._client.open(messages.WATCH)
        missing = len(spans)
        try:
            for span in spans:
                await call.write(messages.watch_request(span, self._prefix))
            async for answer in call:
                if answer.created:
                    missing -= 1
                    if not missing:
                        self.numbers.watches += 1
                        yield ""
                if (
                    answer.canceled
                ):  # what it had still to tell was compacted, or there is no leader
                    return
                for event in answer.events:
                    yield bytes(event.kv.key).decode(errors="replace").removeprefix(self._prefix)
        finally:
            call.cancel()

    # --- the lease ---

    @property
    def is_leased(self) -> bool:
        return bool(self._lease) and time.monotonic() < self._leased_until

    async def _granted(self) -> int:
        async with self._granting:  # of two leases only one would be kept alive
            if self._lease:
                return self._lease
            request = messages.new("LeaseGrantRequest", ttl=max(self._lease_ms // 1_000, 1))
            began = time.monotonic()
            try:
                answer = await self._client.write(messages.LEASE_GRANT, request)
            except Unknown as error:  # a lease that nobody uses runs out
                raise Unavailable(error.message) from None
            self._lease, self._leased_until = answer.id, began + self._lease_ms / 1_000
            if self._beating is None:
                self._beating = asyncio.create_task(self._beat())
            return answer.id

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 1_000 / _BEATS_A_LEASE)
            lease = self._lease
            if not lease:
                continue
            began = time.monotonic()
            try:
                async with asyncio.timeout(ETCD_CALL_MS_MAX / 1_000):
                    is_alive = await self._keep_alive(lease)
            except grpc.aio.AioRpcError as error:
                self._client.failed(error)
            except (HoldfastError, TimeoutError) as error:
                log.debug("the lease in etcd was not renewed", reason=str(error))
            else:
                if not is_alive:
                    self._lapse(lease)
                elif lease == self._lease:
                    self._leased_until = began + self._lease_ms / 1_000

    async def _keep_alive(self, lease: int) -> bool:
        call = await self._client.open(messages.LEASE_KEEP_ALIVE)
        try:
            await call.write(messages.new("LeaseKeepAliveRequest", id=lease))
            answer = await call.read()
        finally:
            call.cancel()
        if not hasattr(answer, "ttl"):  # gRPC's mark of an end
            raise Unavailable("etcd ended the stream that keeps the lease alive")
        return answer.ttl > 0

    def _lapse(self, lease: int) -> None:
        """Once for each lease, when the first caller notices."""
        if lease and lease == self._lease:
            self._lease = 0
            self.numbers.lapses += 1
            self.on_lapsed()

    async def close(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
        lease, self._lease = self._lease, 0
        if lease:
            request = messages.new("LeaseRevokeRequest", id=lease)
            with contextlib.suppress(HoldfastError):  # then it runs out
                await self._client.write(messages.LEASE_REVOKE, request)
        await self._client.close()


class EtcdCoordination(StoredCoordination):
    """What members of a cluster agree on, in etcd."""

    def __init__(self, address: EtcdAddress, nonce: str) -> None:
        self.keys = EtcdKeys(address)
        super().__init__(self.keys, nonce)

    @property
    def numbers(self) -> EtcdNumbers:
        """What was counted and measured of calls to etcd since the start."""
        return self.keys.numbers
