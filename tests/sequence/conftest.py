"""Servers that the tests of coordination share."""

from collections.abc import Iterator

import pytest
from bench.peers.etcd import VERSIONS, EtcdServer
from tests.etcd_server import etcd_server


@pytest.fixture(scope="session", params=VERSIONS)
def shared_etcd(request: pytest.FixtureRequest) -> Iterator[EtcdServer]:
    """A server of each version, for tests that do nothing to it but use a cluster of their own."""
    with etcd_server(request.param) as server:
        yield server
