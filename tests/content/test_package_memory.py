"""A large tree travels in memory that does not grow with it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from large_trees import MB

STORES = {"sqlite": "content.sqlite", "folder": "www"}


def travel(folder: Path, files: int, binary_mb: int, store: str) -> tuple[int, int]:
    """The most memory that building and that all of it took more than before, in KiB."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("large_trees.py"), folder, str(files),
         str(binary_mb), folder / STORES[store]],
        capture_output=True, text=True, check=True, env=dict(os.environ, TMPDIR=str(folder)),
    )  # fmt: skip
    nodes, size_bytes, built_kib, all_kib = map(int, done.stdout.split())
    assert nodes == files + -(-files // 1_000) + 2
    assert size_bytes > binary_mb * MB
    return built_kib, all_kib


@pytest.mark.parametrize("store", STORES)
def test_a_tree_travels_in_little_memory(store: str, tmp_path: Path) -> None:
    """96 MB and many files take a third of that: what was more would be much more for 2 GB."""
    built_kib, all_kib = travel(tmp_path, 3_000 if store == "sqlite" else 300, 96, store)
    assert built_kib <= 16 * 1024
    assert all_kib <= 32 * 1024


@pytest.mark.soak
@pytest.mark.parametrize("store", STORES)
def test_two_gigabytes_and_100_000_files_travel_in_128_mb(store: str, tmp_path: Path) -> None:
    _, all_kib = travel(tmp_path, 100_000, 2_000, store)
    assert all_kib <= 128 * 1024
