"""Real etcd servers for tests, on loopback: those that the benchmarks use."""

import contextlib
from collections.abc import Iterator

import pytest
from bench.harness import UnmeasurableError
from bench.peers.etcd import EtcdServer, EtcdServers, binary


@contextlib.contextmanager
def etcd_server(version: str = "3.5", *, tls: list[str] | None = None) -> Iterator[EtcdServer]:
    """An empty server; the test is skipped, with the reason, where that version cannot be had."""
    _skip_without(version)
    server = EtcdServer(version, tls=tls or [])
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def etcd_servers() -> Iterator[EtcdServers]:
    """Three servers of one etcd."""
    _skip_without("3.5")
    servers = EtcdServers()
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


def _skip_without(version: str) -> None:
    try:
        binary(version)
    except UnmeasurableError as reason:
        pytest.skip(f"etcd {version} is not tested here: {reason}")
