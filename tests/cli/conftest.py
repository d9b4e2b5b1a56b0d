"""A shell for each test: a folder with an app in it, and no process left behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .shell import SHOP, Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / "shop.py").write_text(SHOP)
    shell = Shell(tmp_path)
    yield shell
    shell.close()
