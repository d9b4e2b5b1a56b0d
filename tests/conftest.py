"""What all tests have in common: Spark, etcd and Kafka where they are needed; no traces."""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bench.peers.etcd import EtcdServer
    from pyspark.sql import SparkSession
    from tests.kafka_server import SecuredKafka

ROOT = Path(__file__).parents[1]

# Spark starts a Java for every pipeline that a test runs in a process of its own. None of them
# lives long enough to gain from Java's second compiler, which costs as much as all the rest.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


# What takes long to start is started once: the tests that use it are run by one process.
_SHARED = ("spark", "kafka")


@pytest.hookimpl(tryfirst=True)  # before groups are made of the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in _SHARED:
            is_used = isinstance(item, pytest.Function) and name in item.fixturenames
            if is_used and item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Commands of the CLI that run in this process leave files to their owner; tests go on."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture
def logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], list[logging.LogRecord]]:
    """What holdfast has logged so far, of any level; a record has its `event` and its `fields`."""
    monkeypatch.setattr(logging.getLogger("holdfast"), "propagate", True)
    caplog.set_level(logging.DEBUG, logger="holdfast")
    return lambda: [each for each in caplog.records if each.name == "holdfast"]


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """Two tasks at a time, each tried up to four times, for all tests of the group `spark`.

    Tests that start Spark in processes of their own are the group `spark-processes`: they run
    beside these, one after the other.
    """
    from holdfast.config import Config
    from holdfast.pipeline import register
    from holdfast.pipeline.session import open_session

    config = Config(spark_master="local[2,4]", log_level="error")
    session = open_session(config, ROOT / "build" / "spark")
    register(session)
    yield session
    session.stop()


@pytest.fixture
def etcd() -> "Iterator[EtcdServer]":
    """A real etcd of the test's own, on loopback, to be killed and paused; it takes 0.3 s."""
    from tests.etcd_server import etcd_server

    with etcd_server() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> "Iterator[SecuredKafka]":
    """A real broker for all tests of the group `kafka`, which one process runs one by one.

    Each uses a name of its own in it. A test may kill the broker, and has it run when it ends.
    """
    from tests.kafka_server import kafka_server

    with kafka_server() as server:
        yield server


@pytest.fixture
def kafka_url(kafka: "SecuredKafka") -> str:
    """The URL of a journal in that broker, of a name of the test's own."""
    from tests.kafka_server import fresh_url

    return fresh_url(kafka)
