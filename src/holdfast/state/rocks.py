"""RocksDB as a store. The only module that imports rocksdict.

The journal is the write-ahead log, so RocksDB keeps none: after a crash it holds what its last
memtable flush held, rows and progress of the same moment, because all families share one real
column family and so one memtable. Replay brings the rest.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from holdfast.errors import DataLoss
from holdfast.limits import MIB

# 2 memtables x 16 MiB + 32 MiB of blocks: state costs 64 MiB of memory however many rows there are.
_MEMTABLE_BYTES = 16 * MIB
_MEMTABLES = 2
_BLOCK_CACHE_BYTES = 32 * MIB


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
    return options


class RocksStore:
    """An ordered map of bytes in RocksDB files."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db: Any = Rdict(str(path), _options())
        except Exception as error:  # rocksdict raises plain Exceptions with RocksDB's message
            raise DataLoss(
                f"Expected RocksDB state in {path}, but it does not open: {error}", path=str(path)
            ) from error
        self._write: Any = WriteOptions()
        self._write.disable_wal = True

    def get(self, key: bytes) -> bytes | None:
        return self._db.get(key)

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return self._db.get(keys)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        return _holding((end, options), self._db.items(from_key=start, read_opt=options))

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key, value in puts:
            put(key, value)
        for key in deletes:
            delete(key)
        self._db.write(batch, self._write)

    def flush(self) -> None:
        self._db.flush()

    def checkpoint(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        Checkpoint(self._db).create_checkpoint(str(path))

    def close(self) -> None:
        self._db.flush()
        self._db.close()


def _holding(kept: object, rows: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """RocksDB only points to a scan's upper bound: the bytes must live as long as the scan."""
    yield from rows
    del kept
