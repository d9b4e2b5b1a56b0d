"""A binary of 2 GB, and a tree of 100,000 files in one commit: memory grows by little."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("large_store.py")
MEMORY = Path("/dev/shm")  # what is there is not the process's
GROWTH_MIB_MAX = 64


def grown_mib(url: str, what: str, size: int) -> int:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), url, what, str(size)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    print(f"{url} {what} {size}: {done.stdout}", end="")
    found = re.match(r"(-?\d+) MiB", done.stdout)
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("name", ["content.sqlite", "www"])
def test_a_few_thousand_files_take_little_memory(name: str) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        assert grown_mib(f"{folder}/{name}", "files", 3_000) < GROWTH_MIB_MAX // 4


@pytest.mark.soak
@pytest.mark.parametrize("name", ["content.sqlite", "www"])
@pytest.mark.parametrize(("what", "size"), [("binary", 2_048), ("files", 100_000)])
def test_much_content_takes_little_memory(tmp_path: Path, name: str, what: str, size: int) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:  # gone at once: it is large
        assert grown_mib(f"{folder}/{name}", what, size) < GROWTH_MIB_MAX
