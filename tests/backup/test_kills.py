"""kill -9 in the middle of backups and restores: what was whole stays whole, a half is not seen."""

import json
import os
import subprocess
import sys
from pathlib import Path

from .kill_child import POINTS


def test_killed_backups_and_restores_leave_nothing_half(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "tests.backup.kill_child", str(tmp_path)],
        cwd=root, env=os.environ | {"HOLDFAST_LOG_LEVEL": "error"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    backups = [each for each in lines if "backup" in each]
    assert [tuple(each["backup"]) for each in backups] == list(POINTS)
    assert all(each["reached"] for each in backups)
    restores = [each for each in lines if "restore" in each]
    assert len(restores) >= 12  # pieces, the log, the state, and each move into place
    # Nobody opens the folder before the last step; afterwards it is whole.
    assert [each["whole"] for each in restores] == [False] * (len(restores) - 1) + [True]
