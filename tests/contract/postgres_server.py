"""A PostgreSQL server for tests, on loopback: the one that the benchmarks use."""

import contextlib
from collections.abc import Iterator

import pytest
from bench.harness import UnmeasurableError
from bench.peers.postgres import Postgres


@contextlib.contextmanager
def postgres_server() -> Iterator[Postgres]:
    """A server with an empty cluster; the Debian package is installed where root can."""
    server = Postgres(durable=False)
    try:
        server.start()
    except UnmeasurableError as reason:
        server.stop()
        pytest.skip(f"PostgreSQL is not tested here: {reason}. Install the package postgresql")
    try:
        yield server
    finally:
        server.stop()
