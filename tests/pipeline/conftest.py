"""Nodes that Spark reads and writes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from served_node import ServedNode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ServedNode]:
    """A node of its own for one test, in a folder and on a port."""
    served = ServedNode(tmp_path / "node")
    yield served
    served.close()
