"""A real Kafka broker for tests, on loopback: the one that the benchmarks use, with TLS."""

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from bench.harness import UnmeasurableError
from bench.peers.kafka import KafkaServer, Tls
from bench.peers.kafka_install import installed
from tests.gateway.http.authority import Authority

if TYPE_CHECKING:
    from holdfast.clock import Clock
    from holdfast.journal.kafka import KafkaJournal

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: what a client of the broker's TLS listeners needs."""

    authority: Path
    certificate: Path  # of the user CN=clerk
    key: Path


def certificates(folder: Path) -> tuple[Tls, Certificates]:
    """An authority with a certificate for the broker and one for a client."""
    authority = Authority(folder)
    certificate, key = authority.sign("broker")
    both = folder / "broker.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    return Tls(both, authority.file), Certificates(authority.file, *authority.sign("clerk"))


class SecuredKafka(KafkaServer):
    """A broker that listens with TLS, too."""

    def __init__(self, folder: Path) -> None:
        tls, self.certificates = certificates(folder)
        super().__init__(tls=tls)


@contextlib.contextmanager
def kafka_server() -> Iterator[SecuredKafka]:
    """An empty broker; the test is skipped, with the reason, where Kafka cannot be had."""
    skip_without_kafka()
    with tempfile.TemporaryDirectory(prefix="holdfast-kafka-") as folder:
        server = SecuredKafka(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()


def skip_without_kafka() -> None:
    try:
        installed()
    except UnmeasurableError as reason:
        pytest.skip(f"Kafka is not tested here: {reason}")


def fresh_url(server: KafkaServer) -> str:
    """The URL of a journal that nobody has used yet."""
    return f"{server.url}/t{os.getpid()}-{next(_numbers)}"


def open_kafka_journal(url: str, clock: "Clock | None" = None) -> "KafkaJournal":
    """The journal in Kafka that a URL names, without security."""
    from holdfast.config import Config
    from holdfast.journal.kafka import KafkaJournal

    return KafkaJournal.open(url, Config(), clock)
