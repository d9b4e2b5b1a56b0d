"""One Spark for all tests that need it, and nodes that it reads and writes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from served_node import ServedNode

from holdfast.config import Config
from holdfast.pipeline import register
from holdfast.pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Two tasks at a time, each tried up to four times."""
    config = Config(spark_master="local[2,4]", log_level="error")
    session = open_session(config, ROOT / "build" / "spark")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[ServedNode]:
    """A node of its own for one test, in a folder and on a port."""
    served = ServedNode(tmp_path / "node")
    yield served
    served.close()
