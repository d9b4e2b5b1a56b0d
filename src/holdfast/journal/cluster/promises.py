"""What a disk must not forget beside its log: promises, runs and where its log begins.

It is one small file with a checksum, written anew as a whole and put in the place of the old one.
"""

import asyncio

import msgspec
from crc32c import crc32c

from holdfast.errors import DataLoss, HoldfastError, ResourceExhausted
from holdfast.journal.cluster.runs import Run
from holdfast.journal.local.disk import FULL, Disk, read_whole, replace_whole
from holdfast.limits import DISK_FULL_RETRY_MS

FILE = "promises"  # in the folder of the journal
_CRC_BYTES = 4


class DiskNoted(msgspec.Struct):
    """The contents of the file."""

    promises: dict[int, int] = msgspec.field(default_factory=dict[int, int])  # by partition
    runs: dict[str, dict[int, list[Run]]] = msgspec.field(
        default_factory=dict[str, dict[int, list[Run]]]
    )  # by topic and partition, in the order of the log
    earliest: dict[str, dict[int, int]] = msgspec.field(
        default_factory=dict[str, dict[int, int]]
    )  # by topic and partition: the logical offset below which nothing is kept


class DiskNotes:
    """The file, and what is to be written into it."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._waiting: list[asyncio.Future[None]] = []
        self.path = f"{folder}/{FILE}"
        data = read_whole(disk, self.path)
        self.is_found = data is not None
        self.noted = DiskNoted() if data is None else decode_noted(data, self.path)
        self.is_dirty = False  # the file does not say yet what is noted

    def promise(self, partition: int) -> int:
        """The epoch below which nothing of a partition is taken or reported."""
        return self.noted.promises.get(partition, 0)

    def raise_promise(self, partition: int, epoch: int) -> None:
        """It holds at once; it counts when it is durable."""
        if epoch > self.promise(partition):
            self.noted.promises[partition] = epoch
            self.is_dirty = True

    def begin_runs(self, topic: str, partition: int, runs: list[Run]) -> None:
        """The runs of a log have changed."""
        self.noted.runs.setdefault(topic, {})[partition] = runs
        self.is_dirty = True

    def drop(self, partition: int) -> None:
        """Nothing of a partition is kept any more, but for what was promised.

        Its runs stay as an empty list: what the log of the disk has of it is not needed.
        """
        for by_partition in self.noted.runs.values():
            if partition in by_partition:
                by_partition[partition].clear()
        for offsets in self.noted.earliest.values():
            offsets.pop(partition, None)
        self.is_dirty = True

    def earliest(self, topic: str, partition: int) -> int:
        """The logical offset below which nothing is kept."""
        return self.noted.earliest.get(topic, {}).get(partition, 0)

    def raise_earliest(self, topic: str, partition: int, offset: int) -> None:
        """Written with whatever else is written next: after a crash it is found out again."""
        offset = max(offset, self.earliest(topic, partition))
        self.noted.earliest.setdefault(topic, {})[partition] = offset

    def stored(self) -> asyncio.Future[None]:
        """Done when all that is noted so far is durable; somebody has to call `store`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.is_dirty:
            self._waiting.append(done)
        else:
            done.set_result(None)
        return done

    def store(self) -> None:
        """Writes the file durably, and tells those who wait for it."""
        waiting, self._waiting = self._waiting, []
        try:
            replace_whole(self._disk, self._folder, FILE, encode_noted(self.noted))
        except Exception as error:
            told = _not_stored(self.path, error) if isinstance(error, OSError) else error
            for done in waiting:
                if not done.done():
                    done.set_exception(told)
            raise told from error
        self.is_dirty = False
        for done in waiting:
            if not done.done():
                done.set_result(None)


_decoder = msgspec.msgpack.Decoder(DiskNoted)


def encode_noted(noted: DiskNoted) -> bytes:
    """The bytes of the file."""
    data = msgspec.msgpack.encode(noted)
    return crc32c(data).to_bytes(_CRC_BYTES, "little") + data


def decode_noted(data: bytes, path: str) -> DiskNoted:
    """What the bytes say; DataLoss if they are not what was written."""
    crc, body = int.from_bytes(data[:_CRC_BYTES], "little"), data[_CRC_BYTES:]
    if len(data) > _CRC_BYTES and crc32c(body) == crc:
        try:
            return _decoder.decode(body)
        except msgspec.MsgspecError:
            pass
    raise DataLoss(
        f"expected the promises of this disk in {path}, but they do not match their checksum; a"
        " member that forgets its promises must not continue: move its folder away and start it"
        " with an empty one, it then gets everything from the other members",
        file=path,
        position=0,
    )


def _not_stored(path: str, error: OSError) -> HoldfastError:
    if error.errno in FULL:
        return ResourceExhausted(
            f"expected room for the promises of this disk in {path}, but found: {error}; nothing is"
            " promised or begun without it; free space",
            file=path,
            retry_after_ms=DISK_FULL_RETRY_MS,
        )
    return DataLoss(
        f"expected the disk to keep the promises in {path}, but found: {error}; check the disk and"
        " restart",
        file=path,
        position=0,
    )


def no_promises(path: str) -> DataLoss:
    """The error for a log whose promises are gone."""
    return DataLoss(
        f"expected the promises of this disk in {path}, but the file is missing beside a log; a"
        " member that forgets its promises must not continue: move its folder away and start it"
        " with an empty one, it then gets everything from the other members",
        file=path,
        position=0,
    )
