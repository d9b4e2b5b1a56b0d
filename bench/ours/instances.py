"""A table of very many process instances, as the pipeline would have written it."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from holdfast.pipeline.schema import PROCESS_INSTANCES, TABLES
from holdfast.pipeline.tables.arrow import schema_of
from holdfast.pipeline.tables.delta import DeltaLog
from holdfast.pipeline.tables.files import BUCKET_BITS, WrittenFile, write_part
from holdfast.pipeline.tables.progress import TableProgress, store_progress
from holdfast.pipeline.tables.upkeep import ROWS_PER_FILE

PARTITIONS = 4
PROCESSES = 20
STATES = ("ACTIVE", "COMPLETED", "CANCELED")
SHARES = (0.1, 0.85, 0.05)  # of the states
KEY_BITS = 51  # above them is the partition
FIRST_START_US = 1_760_000_000_000_000
BETWEEN_STARTS_US = 250_000

_TIME = pa.timestamp("us", tz="UTC")


def write_instances(root: Path, count: int) -> None:
    """Tables in a folder, of which one has the instances, in files of the usual size."""
    logs = {name: DeltaLog(root, table) for name, table in TABLES.items()}
    random = np.random.default_rng(1)
    rows = min(ROWS_PER_FILE, count // PARTITIONS)
    files = [_write_file(root, number, rows, random) for number in range(count // rows)]
    logs[PROCESS_INSTANCES.name].commit(files, 0)
    positions = dict.fromkeys(range(1, PARTITIONS + 1), 10 * count)
    versions = {name: log.version for name, log in logs.items()}
    store_progress(root, TableProgress(0, positions, versions, 0, 0, {}))


def _write_file(root: Path, number: int, rows: int, random: np.random.Generator) -> WrittenFile:
    """The instances of one partition after those of its file before."""
    partition, turn = number % PARTITIONS + 1, number // PARTITIONS
    keys = (partition << KEY_BITS) + turn * rows * 12 + np.cumsum(random.integers(4, 12, rows))
    started = FIRST_START_US + (turn * rows + np.arange(rows)) * BETWEEN_STARTS_US
    process = random.integers(0, PROCESSES, rows)
    state = random.choice(len(STATES), rows, p=SHARES)
    is_active = state == 0
    columns = {
        "process_instance_key": pa.array(keys),
        "partition_id": pa.array(np.full(rows, partition, np.int32)),
        "process_definition_key": pa.array((1 << KEY_BITS) + process + 5),
        "process_id": _named(process, [f"process-{each}" for each in range(PROCESSES)]),
        "version": pa.array(random.integers(1, 5, rows).astype(np.int32)),
        "state": _named(state, list(STATES)),
        "started": pa.array(started).cast(_TIME),
        "ended": pa.array(started + random.integers(1, 10**9, rows), mask=is_active).cast(_TIME),
        "incidents": pa.array((random.random(rows) < 0.01).astype(np.int32)),
        "result": _named(keys % 1_000, [f'{{"total":{each}}}' for each in range(1_000)]),
        "position": pa.array(random.integers(0, 10 * rows, rows)),
    }
    schema = schema_of(PROCESS_INSTANCES)
    empty = pa.nulls(rows)
    table = pa.table([columns.get(field.name, empty).cast(field.type) for field in schema], schema)
    first, last = int(keys[0]) >> BUCKET_BITS, int(keys[-1]) >> BUCKET_BITS
    return write_part(root, PROCESS_INSTANCES, partition, first, last, table)


def _named(numbers: np.ndarray, names: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(numbers.astype(np.int32), names).cast(pa.string())
