"""The tables that batch operations choose from, as the pipeline would have written them.

The rows of items have the keys of items that are there. The others are of tasks that ended long
ago, behind them in the order of keys.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.ours.batch_items import PARTITIONS, Keys
from bench.ours.instances import BETWEEN_STARTS_US, FIRST_START_US, KEY_BITS
from holdfast.pipeline.schema import JOBS, PROCESS_INSTANCES, TABLES, Table
from holdfast.pipeline.tables.arrow import schema_of
from holdfast.pipeline.tables.delta import DeltaLog
from holdfast.pipeline.tables.files import BUCKET_BITS, WrittenFile, write_part
from holdfast.pipeline.tables.progress import TableProgress, store_progress
from holdfast.pipeline.tables.upkeep import ROWS_PER_FILE

FAR = 1 << 50  # of the log: the tables need not follow it to be as far as anybody asks for
BETWEEN_KEYS = 3  # of the tasks that ended: a task is one of three keys that are given out

_TIME = pa.timestamp("us", tz="UTC")


def write_tables(root: Path, tasks: Keys, instances: Keys, rows: int) -> None:
    """Tables of so many tasks, the dead letters among them, and of the instances."""
    logs = {name: DeltaLog(root, table) for name, table in TABLES.items()}
    waiting = sum(map(len, tasks.values()))
    ended = (rows - waiting) // PARTITIONS
    files: dict[str, list[WrittenFile]] = {JOBS.name: [], PROCESS_INSTANCES.name: []}
    for partition in range(1, PARTITIONS + 1):
        keys, types = _of_partition(tasks, partition)
        behind = (
            (int(keys[-1]) | ((1 << BUCKET_BITS) - 1)) + 1 if len(keys) else partition << KEY_BITS
        )
        old = behind + np.arange(max(0, ended), dtype=np.int64) * BETWEEN_KEYS
        for some in _files(keys):
            dead = _dead_letters(partition, keys[some], types[some], sorted(tasks))
            files[JOBS.name].append(_write(root, JOBS, partition, dead))
        for some in _files(old):
            files[JOBS.name].append(_write(root, JOBS, partition, _ended(partition, old[some])))
        keys, ids = _of_partition(instances, partition)
        for some in _files(keys):
            active = _active(partition, keys[some], ids[some], sorted(instances))
            files[PROCESS_INSTANCES.name].append(_write(root, PROCESS_INSTANCES, partition, active))
    for name, written in files.items():
        logs[name].commit(written, 0)
    positions = dict.fromkeys(range(1, PARTITIONS + 1), FAR)
    versions = {name: log.version for name, log in logs.items()}
    store_progress(root, TableProgress(0, positions, versions, 0, 0, {}))


def _of_partition(keys: Keys, partition: int) -> tuple[np.ndarray, np.ndarray]:
    """The keys of a partition in order, and the number of each one's name among the sorted."""
    chosen: list[np.ndarray] = [np.empty(0, np.int64)]
    numbers: list[np.ndarray] = [np.empty(0, np.int32)]
    for number, name in enumerate(sorted(keys)):
        some = keys[name][keys[name] >> KEY_BITS == partition]
        chosen.append(some)
        numbers.append(np.full(len(some), number, np.int32))
    found, names = np.concatenate(chosen), np.concatenate(numbers)
    order = np.argsort(found, kind="stable")
    return found[order], names[order]


def _files(keys: np.ndarray) -> Iterator[slice]:
    """The rows of each file: none too large, and no bucket in two of them."""
    at = 0
    while at < len(keys):
        end = min(at + ROWS_PER_FILE, len(keys))
        if end < len(keys):
            end = int(np.searchsorted(keys, (keys[end] >> BUCKET_BITS) << BUCKET_BITS))
        yield slice(at, end)
        at = end


def _dead_letters(
    partition: int, keys: np.ndarray, types: np.ndarray, names: list[str]
) -> dict[str, pa.Array]:
    rows = len(keys)
    return {
        **_job(partition, keys),
        "type": pa.DictionaryArray.from_arrays(types, names).cast(pa.string()),
        "state": _same("INCIDENT", rows),
        "error": _same("broken", rows),
        "incident_key": pa.array(keys + 1),
    }


def _ended(partition: int, keys: np.ndarray) -> dict[str, pa.Array]:
    random = np.random.default_rng(partition)
    kinds = random.integers(0, 20, len(keys)).astype(np.int32)
    names = [f"work-{number}" for number in range(20)]
    started = FIRST_START_US + np.arange(len(keys)) * BETWEEN_STARTS_US
    return {
        **_job(partition, keys),
        "type": pa.DictionaryArray.from_arrays(kinds, names).cast(pa.string()),
        "state": _same("COMPLETED", len(keys)),
        "ended": pa.array(started + random.integers(1, 10**9, len(keys))).cast(_TIME),
    }


def _job(partition: int, keys: np.ndarray) -> dict[str, pa.Array]:
    created = FIRST_START_US + np.arange(len(keys)) * BETWEEN_STARTS_US
    return {
        "job_key": pa.array(keys),
        "partition_id": pa.array(np.full(len(keys), partition, np.int32)),
        "created": pa.array(created).cast(_TIME),
        "activated": pa.array(created + 1_000).cast(_TIME),
        "worker": _same("bench", len(keys)),
        "position": pa.array(np.arange(len(keys)) * 5),
    }


def _active(
    partition: int, keys: np.ndarray, ids: np.ndarray, names: list[str]
) -> dict[str, pa.Array]:
    started = FIRST_START_US + np.arange(len(keys)) * BETWEEN_STARTS_US
    return {
        "process_instance_key": pa.array(keys),
        "partition_id": pa.array(np.full(len(keys), partition, np.int32)),
        "process_id": pa.DictionaryArray.from_arrays(ids, names).cast(pa.string()),
        "state": _same("ACTIVE", len(keys)),
        "started": pa.array(started).cast(_TIME),
        "position": pa.array(np.arange(len(keys)) * 5),
    }


def _same(word: str, rows: int) -> pa.Array:
    return pa.array([word]).take(pa.array(np.zeros(rows, np.int32)))


def _write(root: Path, table: Table, partition: int, columns: dict[str, pa.Array]) -> WrittenFile:
    keys = columns[table.keys[0]]
    empty = pa.nulls(len(keys))
    schema = schema_of(table)
    rows = pa.table([columns.get(field.name, empty).cast(field.type) for field in schema], schema)
    first, last = keys[0].as_py() >> BUCKET_BITS, keys[-1].as_py() >> BUCKET_BITS
    return write_part(root, table, partition, first, last, rows)
