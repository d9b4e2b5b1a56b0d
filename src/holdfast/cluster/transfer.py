"""The state of a partition goes from one member to another, while both work.

A member that is to stand by for a partition, and whose log lacks the beginning, asks another one
for the partition as it is now: a stream with checksums for each block and for all of it, in chunks
that it asks for one after the other. They go to a file. When all of it was read back and is whole,
its rows take the place of what the member's store had, in one ingestion; the journal is told where
the log begins for it, and the standby goes on from there.

A chunk that does not arrive, or arrives damaged, is asked for again. Nothing is sent that was not
asked for, so neither side holds more than a chunk.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias
from zlib import crc32

import msgspec

from holdfast.clock import Clock
from holdfast.engine.kernel.recovery import TOPIC
from holdfast.errors import (
    DataLoss,
    HoldfastError,
    InvalidArgument,
    InvalidState,
    NotFound,
    ResourceExhausted,
    Unavailable,
    Unknown,
)
from holdfast.journal import Bounds
from holdfast.limits import (
    TRANSFER_ATTEMPTS_MAX,
    TRANSFER_CHUNK_BYTES,
    TRANSFER_IDLE_MS,
    TRANSFER_RETRY_MS,
    TRANSFERS_MAX,
)
from holdfast.logs import log
from holdfast.state.portable import Header

TRANSFER = 96  # the kind of these calls between members


class BeginTransfer(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Call: send a partition as it is now."""

    partition: int


class NextChunk(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Call: the chunk with a number, from 0 on; the last one that was given may be asked again."""

    transfer: str
    number: int


class TransferBegun(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Answer: the partition stands for its topics up to these offsets."""

    transfer: str
    position: int  # the first record that the rows do not have
    offsets: dict[str, int]  # by topic, where the log is needed from


class PartitionChunk(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Answer: some bytes of the stream."""

    content: bytes
    crc: int
    is_last: bool


_encode = msgspec.msgpack.Encoder().encode
_decode_call = msgspec.msgpack.Decoder(BeginTransfer | NextChunk).decode
_decode_answer = msgspec.msgpack.Decoder(TransferBegun | PartitionChunk).decode


# --- the member that has it -------------------------------------------------------------------


class KnownLogs(Protocol):
    """What is asked of the journal of the member that has the partition."""

    def topics(self) -> dict[str, int]: ...

    def bounds(self, topic: str, partition: int) -> Bounds: ...


class Exports(Protocol):
    """What is asked of the upkeep of the member that has the partition."""

    held: dict[object, tuple[int, int]]  # records that are kept for others

    async def exported(self, partition: int) -> tuple[Header, AsyncGenerator[bytes, None]]: ...


class _Sending:
    """One partition on its way, as far as it was asked for."""

    def __init__(self, stream: AsyncGenerator[bytes, None], now: float) -> None:
        self._stream = stream
        self._left = bytearray()
        self._number = -1  # of the last chunk
        self._last = b""
        self._one = asyncio.Lock()
        self.used = now

    async def chunk(self, number: int) -> bytes:
        """The next chunk, or the last one again."""
        async with self._one:
            if number == self._number + 1:
                self._last, self._number = await self._next(), number
            elif number != self._number:
                raise InvalidArgument(
                    f"Expected a request for chunk {self._number + 1}, or for the one before"
                    f" again, but found {number}; begin the transfer anew"
                )
            return self._last

    async def _next(self) -> bytes:
        left, is_last = self._left, False
        while len(left) < TRANSFER_CHUNK_BYTES and not is_last:
            piece = await anext(self._stream, None)
            is_last = piece is None
            left += piece or b""
        content = bytes(left[:TRANSFER_CHUNK_BYTES])
        del left[:TRANSFER_CHUNK_BYTES]
        return _encode(PartitionChunk(content, crc32(content), is_last and not left))

    async def close(self) -> None:
        await self._stream.aclose()


class TransferSource:
    """Sends partitions to members that ask for them."""

    def __init__(self, exports: Exports, journal: KnownLogs, clock: Clock) -> None:
        self._exports = exports
        self._journal = journal
        self._clock = clock
        self._sendings: dict[str, _Sending] = {}

    async def answer(self, body: bytes) -> bytes:
        """Answers a call of another member."""
        try:
            call = _decode_call(body)
        except msgspec.MsgspecError as error:
            raise InvalidArgument(f"Expected a call of this version, but {error}") from error
        await self._drop_idle()
        if isinstance(call, BeginTransfer):
            return _encode(await self._begin(call.partition))
        sending = self._sendings.get(call.transfer)
        if sending is None:
            raise NotFound(
                "Expected a transfer that is under way, but this one has ended; begin it anew"
            )
        sending.used = self._clock.monotonic()
        try:
            return await sending.chunk(call.number)
        except HoldfastError:
            await self._drop(call.transfer)
            raise

    async def _begin(self, partition: int) -> TransferBegun:
        if len(self._sendings) >= TRANSFERS_MAX:
            raise ResourceExhausted(
                f"Expected at most {TRANSFERS_MAX} partitions on their way to other members, but"
                f" {len(self._sendings)} are; try again later",
                limit="TRANSFERS_MAX",
                retry_after_ms=TRANSFER_RETRY_MS,
            )
        # Of its other topics the partition has no state: all of their logs is needed.
        offsets = {
            topic: self._journal.bounds(topic, partition).earliest
            for topic, count in self._journal.topics().items()
            if partition <= count
        }
        header, stream = await self._exports.exported(partition)
        transfer = secrets.token_hex(8)
        self._exports.held[transfer] = partition, header.offset
        self._sendings[transfer] = _Sending(stream, self._clock.monotonic())
        log.info("partition is sent", partition=partition, position=header.position)
        return TransferBegun(transfer, header.position, offsets | {TOPIC: header.offset})

    async def _drop_idle(self) -> None:
        since = self._clock.monotonic() - TRANSFER_IDLE_MS / 1000
        for transfer, sending in list(self._sendings.items()):
            if sending.used < since:
                await self._drop(transfer)

    async def _drop(self, transfer: str) -> None:
        self._exports.held.pop(transfer, None)
        if (sending := self._sendings.pop(transfer, None)) is not None:
            await sending.close()

    async def close(self) -> None:
        """Sends nothing more."""
        for transfer in list(self._sendings):
            await self._drop(transfer)


# --- the member that wants it -----------------------------------------------------------------

Ask: TypeAlias = Callable[[str, bytes], Awaitable[bytes]]
"""Calls a member with the kind TRANSFER."""

Sources: TypeAlias = Callable[[int], Sequence[str]]
"""The members that may have a partition, the best first."""

BeginAt: TypeAlias = Callable[[int, Mapping[str, int]], Awaitable[None]]
"""Tells the journal where the logs of a partition begin for this member, by topic."""


class Arrivals(Protocol):
    """What is asked of the upkeep of the member that wants the partition."""

    async def take_in(
        self, partition: int, file: Path, begin: Callable[[], Awaitable[None]]
    ) -> None: ...

    async def take_snapshot(self, *, again: bool = False) -> None: ...


class TransferTarget:
    """Fetches partitions that this member is to stand by for and whose log it lacks."""

    def __init__(
        self, folder: Path, arrivals: Arrivals, ask: Ask, sources: Sources, begin_at: BeginAt
    ) -> None:
        """What arrives is in files of the folder until it was taken in."""
        self._folder = folder
        self._arrivals = arrivals
        self._ask = ask
        self._sources = sources
        self._begin_at = begin_at
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._few = asyncio.Semaphore(TRANSFERS_MAX // 2)

    def fetch(self, partition: int) -> "asyncio.Task[None]":
        """Fetches a partition until it is there; one that is under way goes on."""
        if partition not in self._tasks:
            task = asyncio.get_running_loop().create_task(self._fetch(partition))
            self._tasks[partition] = task
            task.add_done_callback(lambda _: self._tasks.pop(partition, None))
        return self._tasks[partition]

    async def close(self) -> None:
        """Fetches nothing more."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, partition: int) -> None:
        file = self._folder / f"partition-{partition}.arriving"
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            async with self._few:
                while not await self._try_all(partition, file):  # noqa: ASYNC110
                    await asyncio.sleep(TRANSFER_RETRY_MS / 1000)
        finally:
            file.unlink(missing_ok=True)
        if len(self._tasks) > 1:
            return  # the last one has a snapshot taken for all
        await asyncio.sleep(0)  # the standby begins
        with contextlib.suppress(HoldfastError, OSError):  # told where it was found
            await self._arrivals.take_snapshot(again=True)

    async def _try_all(self, partition: int, file: Path) -> bool:
        for member in self._sources(partition):
            try:
                begun = await self._receive(member, partition, file)
                offsets = begun.offsets
                await self._arrivals.take_in(
                    partition, file, lambda offsets=offsets: self._begin_at(partition, offsets)
                )
            except InvalidState as error:  # it was opened here meanwhile, and needs nothing
                log.info("partition not fetched", partition=partition, why=error.message)
            except (HoldfastError, OSError) as error:
                log.warning(
                    "partition not fetched", partition=partition, source=member, error=str(error)
                )
                continue
            else:
                log.info("partition fetched", partition=partition, source=member)
            return True
        return False

    async def _receive(self, member: str, partition: int, file: Path) -> TransferBegun:
        begun = _decode_answer(await self._ask(member, _encode(BeginTransfer(partition))))
        if not isinstance(begun, TransferBegun):
            raise DataLoss(f"Expected {member} to begin a transfer, but it sent something else")
        with file.open("wb") as taken:
            number, is_last = 0, False
            while not is_last:
                chunk = await self._chunk(member, NextChunk(begun.transfer, number))
                await asyncio.to_thread(taken.write, chunk.content)
                number, is_last = number + 1, chunk.is_last
        return begun

    async def _chunk(self, member: str, call: NextChunk) -> PartitionChunk:
        """A chunk that is as it was sent; asked for again while the way to the member is broken."""
        body, attempts = _encode(call), 0
        while True:
            attempts += 1
            try:
                chunk = _decode_answer(await self._ask(member, body))
                if isinstance(chunk, PartitionChunk) and crc32(chunk.content) == chunk.crc:
                    return chunk
                raise DataLoss(f"Chunk {call.number} from {member} does not match its checksum")
            except (Unavailable, Unknown, DataLoss):
                if attempts >= TRANSFER_ATTEMPTS_MAX:
                    raise
            await asyncio.sleep(TRANSFER_RETRY_MS / 1000)
