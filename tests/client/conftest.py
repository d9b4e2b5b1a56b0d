"""What the tests of workers share."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def process_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module with an app of its own, as child processes import it; new for each test."""
    monkeypatch.setenv("PROCESS_TASKS_FOLDER", str(tmp_path / "processes"))
    sys.modules.pop("process_tasks", None)
    module = importlib.import_module("process_tasks")
    yield module
    module.app.close()
