"""The pipeline reads a cluster by the addresses of its members; batch operations select from it."""

import asyncio
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from bench.ours.cluster import OurCluster
from tests.cluster.test_everything_runs import trouble

from holdfast.pipeline.log import entries_between, open_log
from holdfast.pipeline.schema import TABLES
from holdfast.pipeline.tables.delta import DeltaLog, files_at

HERE = Path(__file__).parents[1]


class Pipeline:
    """`holdfast pipeline run` over all members."""

    def __init__(self, urls: list[str], tables: Path, *options: str) -> None:
        command = [
            sys.executable, "-m", "holdfast.cli", "pipeline", "run", ",".join(urls), "--tables",
            str(tables), "--json", *options,
        ]  # fmt: skip
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def wait_until_started(self) -> None:
        assert self._process.stdout is not None and self._process.stdout.readline()

    def ended(self) -> None:
        """Waits until it has done what it was told."""
        self._process.communicate(timeout=150)
        assert self._process.returncode == 0

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)


def rows(tables: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table on disk."""
    table = TABLES[name]
    files = files_at(tables, table, DeltaLog(tables, table).version)
    return [row for file in files for row in pq.read_table(file.path).to_pylist()]


def counts(tables: Path) -> dict[int, int]:
    """How many records of each partition are in the tables: each once, and without a gap."""
    positions: dict[int, list[int]] = {}
    for row in rows(tables, "records"):
        positions.setdefault(row["partition_id"], []).append(row["position"])
    assert all(sorted(found) == list(range(len(found))) for found in positions.values())
    return {partition: len(found) for partition, found in positions.items()}


def in_log(url: str) -> Counter[int]:
    """How many records members give out, by partition."""
    log = open_log(url)
    try:
        return Counter(
            partition
            for partition, bounds in log.bounds().items()
            for piece in entries_between(log, partition, 0, bounds.next)
            for _ in piece
        )
    finally:
        log.close()


def ends(tables: Path) -> dict[int, str]:
    """What became of the instances."""
    return {row["process_instance_key"]: row["state"] for row in rows(tables, "process_instances")}


@pytest.mark.soak
def test_the_scenario_of_the_sdk_with_tables_and_batch_operations_runs_on_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(HERE / "gateway" / "rest"))
    from sdk import client_of  # pyright: ignore[reportMissingImports]
    from test_scenario import parcels, story  # pyright: ignore[reportMissingImports]

    tables = tmp_path / "tables"
    shared = {"HOLDFAST_TABLES": str(tables)}
    with OurCluster(tmp_path, is_etcd_durable=False, environment=shared) as cluster:
        steady = "c"
        url = cluster.members[steady].url

        async def scenario() -> None:
            async with client_of(url) as client:
                await story(client, tmp_path)
                await parcels(client, url, tmp_path)

        pipeline = Pipeline(cluster.urls, tables)
        try:
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(asyncio.run, scenario())
                pipeline.wait_until_started()
                trouble(cluster, steady)  # while it searches, and while operations run
                trouble(cluster, steady)
                running.result()
        finally:
            pipeline.stop()
        # The tables of the stream that went on over the trouble, and new ones as of a cut.
        fresh = tmp_path / "fresh"
        Pipeline([url], fresh, "--as-of-cut", "latest").ended()
        kept, found, there = counts(tables), counts(fresh), in_log(url)
        assert all(kept[each] <= found[each] <= there[each] for each in there)
        assert ends(tables) == ends(fresh)
