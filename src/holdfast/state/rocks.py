"""RocksDB as a store. The only module that imports rocksdict.

The journal is the write-ahead log, so RocksDB keeps none: after a crash it holds what its last
memtable flush held, rows and progress of the same moment, because all families share one real
column family and so one memtable. Replay brings the rest.

Every block that is read is checked against its checksum. One that does not match is DataLoss, for
a single row and for a scan: it is never taken for a row that is not there.
"""

import contextlib
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    IngestExternalFileOptions,
    Options,
    Rdict,
    ReadOptions,
    SstFileWriter,
    WriteBatch,
    WriteOptions,
)

from holdfast.errors import DataLoss, HoldfastError, Unavailable
from holdfast.limits import INGEST_FILE_BYTES, MIB, WALK_ROWS
from holdfast.state.api import Batch

# 2 memtables x 16 MiB + 32 MiB of blocks: state costs 64 MiB of memory however many rows there are.
_MEMTABLE_BYTES = 16 * MIB
_MEMTABLES = 2
_BLOCK_CACHE_BYTES = 32 * MIB

_FEW = 32  # rows: for no more of them a second iterator costs more than it saves

# RocksDB's messages for what the system lacks at the moment. They say nothing about stored bytes.
_PASSING = (
    "No space left", "Too many open files", "Permission denied", "Read-only file system",
    "Cannot allocate memory", "lock hold by current process", "While lock file", "already closed",
)  # fmt: skip


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(Cache(_BLOCK_CACHE_BYTES))
    blocks.set_bloom_filter(10, False)
    # Filters and indexes stay in memory with their files, about 3 bytes a row: the filter of a
    # large file does not fit a shard of a small cache, and would be read anew for every look.
    blocks.set_cache_index_and_filter_blocks(False)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(_MEMTABLE_BYTES)
    options.set_max_write_buffer_number(_MEMTABLES)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_max_background_jobs(2)
    # New rows are at the end of a queue, deleted ones at its head: compacting touches all between.
    options.set_level_zero_file_num_compaction_trigger(12)
    options.set_keep_log_file_num(2)
    options.set_max_open_files(256)
    options.set_stats_dump_period_sec(0)
    options.set_paranoid_checks(True)
    return options


class RocksStore:
    """An ordered map of bytes in RocksDB files."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.damage: DataLoss | None = None  # the first that was found
        self.on_damage: Callable[[DataLoss], None] | None = None  # told each time, in any thread
        options = _options()
        if read_only:  # writes nothing, not even a log of its own
            options.create_if_missing(False)
        else:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        access = AccessType.read_only() if read_only else AccessType.read_write()
        try:
            self._db: Any = Rdict(str(path), options, access_type=access)
        except Exception as error:  # rocksdict raises plain Exceptions with RocksDB's message
            raise self._failed(error, "it does not open") from error
        self._importing = path.with_name(f"{path.name}.importing")
        if not read_only:  # what an import left that was interrupted
            shutil.rmtree(self._importing, ignore_errors=True)
        self._write: Any = WriteOptions()
        self._write.disable_wal = True

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._db.get(key)
        except Exception as error:
            raise self._failed(error, "a row cannot be read") from error

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        try:
            return self._db.get(keys)
        except Exception as error:
            raise self._failed(error, "rows cannot be read") from error

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        rows = self._iterate(options, start)
        if not rows.valid():
            ended = [rows]
            del rows
            self._check(ended)
            return iter(())
        return self._scanned(rows, (end, options))

    def first(self, start: bytes, end: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        return self._first(start, end, limit, self._db.items)

    def first_keys(self, start: bytes, end: bytes, limit: int) -> list[bytes]:
        return self._first(start, end, limit, None)

    def _first(self, start: bytes, end: bytes, limit: int, items: Any) -> list[Any]:
        """The first rows, or only their keys.

        What is more than a few is read by an iterator that takes one call a row, not three, and
        does not tell of damage: if it ends early, the other one is asked whether there is no more.
        """
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        rows = self._iterate(options, start)
        key, value, move_on, found = rows.key, rows.value, rows.next, list[Any]()
        while (at := key()) is not None and len(found) < limit:
            if len(found) == _FEW:
                try:
                    rest = (items or self._db.keys)(from_key=at, read_opt=options)
                    found += islice(rest, limit - _FEW)
                except Exception as error:
                    raise self._failed(error, "rows cannot be read") from error
                if len(found) < limit:
                    last: Any = found[-1]
                    rows.seek(last if items is None else last[0])
                    move_on()
                break
            found.append(at if items is None else (at, value()))
            move_on()
        if len(found) < limit:
            ended = [rows]
            del rows, key, value, move_on
            self._check(ended)
        return found

    def scan_once(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        options: Any = ReadOptions()
        options.set_iterate_upper_bound(end)
        options.fill_cache(False)
        return self._scanned(self._iterate(options, start), (end, options))

    def _iterate(self, options: Any, start: bytes) -> Any:
        try:
            rows = self._db.iter(options)
        except Exception as error:
            raise self._failed(error, "rows cannot be read") from error
        rows.seek(start)
        return rows

    def _scanned(self, rows: Any, kept: object) -> Iterator[tuple[bytes, bytes]]:
        key, value, move_on = rows.key, rows.value, rows.next
        while (found := key()) is not None:
            yield found, value()
            move_on()
        ended = [rows]
        del rows, key, value, move_on
        self._check(ended)
        del kept  # RocksDB only points to the upper bound: the bytes live as long as the scan

    def _check(self, ended: list[Any]) -> None:
        """An iterator ends at damage as it does at the last row; only its status tells.

        It is handed over in a list, so that no frame of the error has it: as long as there is an
        iterator, RocksDB does not close.
        """
        try:
            ended.pop().status()
        except Exception as error:
            raise self._failed(error, "rows cannot be read") from error

    def walk(self) -> Iterator[int]:
        """Reads all rows from the files and checks them; yields how many after every few."""
        options: Any = ReadOptions()
        options.fill_cache(False)
        following: bytes | None = b""
        while following is not None:
            # An iterator for each piece: one that is kept would keep old files, too.
            rows = self._iterate(options, following)
            valid, move_on, count = rows.valid, rows.next, 0
            while count < WALK_ROWS and valid():
                move_on()
                count += 1
            following = rows.key()
            ended = [rows]
            del rows, valid, move_on
            self._check(ended)
            yield count

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        batch = self.batch()
        put, delete = batch.put, batch.delete
        for key, value in puts:
            put(key, value)
        for key in deletes:
            delete(key)
        self.write_batch(batch)

    def batch(self) -> Batch:
        return WriteBatch(raw_mode=True)

    def write_batch(self, batch: Batch) -> None:
        try:
            self._db.write(batch, self._write)
        except Exception as error:
            raise self._failed(error, "it takes no more rows") from error

    def remove(self, start: bytes, end: bytes) -> None:
        batch: Any = self.batch()
        batch.delete_range(start, end)
        self.write_batch(batch)
        self.flush()

    def ingest(self, pages: Iterator[Sequence[tuple[bytes, bytes]]]) -> Iterator[None]:
        """Rows become files of RocksDB beside it, and RocksDB takes all of them at once."""
        folder = self._importing / secrets.token_hex(4)
        folder.mkdir(mode=0o700, parents=True)
        files: list[str] = []
        try:
            for file in self._tables(folder, pages):
                if file is not None:
                    files.append(file)
                yield
            options = IngestExternalFileOptions()
            options.set_move_files(True)
            try:
                self._db.ingest_external_file(files, options)
            except Exception as error:
                raise self._failed(error, "rows cannot be taken in") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # there is another import
                self._importing.rmdir()

    def _tables(
        self, folder: Path, pages: Iterator[Sequence[tuple[bytes, bytes]]]
    ) -> Iterator[str | None]:
        """Writes rows into files; yields the name of each that is whole, and None in between."""
        writer: Any = None
        path, size_bytes, count = "", 0, 0
        for page in pages:
            try:
                if writer is None:
                    path, size_bytes, count = str(folder / f"{count}.sst"), 0, count + 1
                    writer = SstFileWriter(_options())
                    writer.open(path)
                for key, value in page:
                    writer[key] = value
                    size_bytes += len(key) + len(value)
                if size_bytes >= INGEST_FILE_BYTES:
                    writer.finish()
                    writer = None
            except Exception as error:
                raise self._failed(error, "rows cannot be written") from error
            yield path if writer is None else None
        if writer is not None:
            try:
                writer.finish()
            except Exception as error:
                raise self._failed(error, "rows cannot be written") from error
            yield path

    def flush(self) -> None:
        try:
            self._db.flush()
        except Exception as error:
            raise self._failed(error, "rows cannot be made durable") from error

    def checkpoint(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            Checkpoint(self._db).create_checkpoint(str(path))
        except Exception as error:
            raise self._failed(error, f"no copy can be made in {path}") from error

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes without caring for what was not durable, and tells nobody anything any more."""
        self.on_damage = None
        with contextlib.suppress(Exception):  # it writes what it can, and says what it cannot
            self._db.close()

    def damaged(self, reason: str) -> DataLoss:
        """Notes that the store does not hold what was written to it; the error to raise."""
        error = DataLoss(
            f"Expected the state in {self.path} to be as it was written, but {reason}",
            path=str(self.path),
        )
        self.damage = self.damage or DataLoss(error.message)  # without the frames of the other
        if self.on_damage is not None:
            self.on_damage(error)
        return error

    def _failed(self, error: Exception, what: str) -> HoldfastError:
        message = str(error)
        if any(passing in message for passing in _PASSING):
            return Unavailable(
                f"Expected to read and write the state in {self.path}, but {what}: {message}",
                path=str(self.path),
            )
        return self.damaged(f"{what}: {message}")
