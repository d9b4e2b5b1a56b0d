"""The benchmark of batch operations measures what it says, at a size that takes seconds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.xdist_group("spark-processes")
def test_every_figure_is_measured_on_real_items(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("tiny_batch.py")), str(tmp_path / "node")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=380,
    )
    assert child.returncode == 0, child.stderr[-4_000:]
    figures: dict[str, tuple[float, float | None]] = json.loads(child.stdout.splitlines()[-1])
    assert len(figures) == 11
    retried = figures["retried of 6,000 dead letters, among 80,000 tasks, 8 partitions"]
    assert retried == [6_000, 6_000]
    assert all(ours > 0 or "memory" in name for name, (ours, _) in figures.items()), figures
    for word in ("suspended", "canceled"):
        seconds, limit = figures[f"an operation that is {word}, until its last item was done"]
        assert 0 < seconds < 60 and limit == 1
