"""A Kafka broker of our own on loopback: one node in KRaft mode, quick to start and to rebalance.

Clients of the plain listener may do everything. With TLS there are two more listeners, one that
asks for the client's certificate and one for a user's name and password; their clients may do what
the ACLs say.
"""

import shutil
import signal
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.harness import UnmeasurableError
from bench.peers.kafka_install import CLUSTER_ID, Kafka, installed
from bench.peers.process import Process, ServerProcess, answers, data_folder, free_port

_HOST = "127.0.0.1"
_START_ATTEMPTS_MAX = 3  # a free port may be taken by somebody else before the broker has it
_READY_SECONDS_MAX = 180  # of a machine that has much else to do
USER, PASSWORD = "clerk", "correct horse"

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL"
    ),
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    # One node: what is written has all its copies.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Quick to start.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "4",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.index.size.max.bytes": "1048576",
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "50",
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "2000",  # a restart waits for as long
    # Quick to notice what members and producers do.
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "300",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
    "producer.id.expiration.check.interval.ms": "200",
    "log.retention.check.interval.ms": "500",
}

_SECURED = {
    "ssl.keystore.type": "PEM",
    "ssl.truststore.type": "PEM",
    "listener.name.ssl.ssl.client.auth": "required",
    "listener.name.sasl_ssl.ssl.client.auth": "none",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' user_{USER}="{PASSWORD}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass(frozen=True)
class Tls:
    """Files in PEM: the broker's certificate with its key, and the authority it believes."""

    certificate_and_key: Path
    authority: Path


class KafkaServer(ServerProcess):
    """One broker with nothing in it, until it is stopped for good."""

    def __init__(
        self, *, tls: Tls | None = None, heap_megabytes: int = 256, short_lived: bool = True
    ) -> None:
        self.port = self.tls_port = self.sasl_port = 0
        self.folder: Path | None = None
        self._controller_port = 0
        self._tls = tls
        self._heap_megabytes = heap_megabytes
        self._short_lived = short_lived
        self._kafka: Kafka | None = None
        self._more: dict[str, str] = {}

    @property
    def endpoint(self) -> str:
        return f"{_HOST}:{self.port}"

    @property
    def url(self) -> str:
        return f"kafka://{self.endpoint}"

    @property
    def cluster_id(self) -> str:
        return CLUSTER_ID

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Starts on free ports, with nothing in it."""
        self._kafka = installed()
        for attempt in range(1, _START_ATTEMPTS_MAX + 1):
            self._prepare()
            try:
                self.run()
                return
            except UnmeasurableError:
                self.stop()
                if attempt == _START_ATTEMPTS_MAX:
                    raise

    def run(self, settings: Mapping[str, str] | None = None) -> None:
        """Starts, or starts again with what it has, on the same ports; other settings stay."""
        self.launch(settings)
        self.wait_until_ready()

    def launch(self, settings: Mapping[str, str] | None = None) -> None:
        """Starts the process, and does not wait for it. It ends with the thread that calls this."""
        assert self._kafka is not None
        assert self.folder is not None
        self._more |= settings or {}
        self._write_settings()
        command = self._kafka.command(
            "kafka.Kafka", str(self.folder / "server.properties"), options=self._java_options()
        )
        self._process = Process(command, self.folder / "kafka.log")

    def wait_until_ready(self) -> None:
        assert self._process is not None
        ports = list(self._listeners().values())
        self._process.wait_until(lambda: all(map(answers, ports)), _READY_SECONDS_MAX)

    def stop(self) -> None:
        """Ends it and removes what it wrote."""
        if self._process is not None:
            # A class archive is written by a broker that ends by itself; there is one for all.
            is_archived = self._kafka is None or self._kafka.archive.exists()
            self._process.stop(signal.SIGKILL if is_archived else signal.SIGTERM)
            self._process = None
        if self.folder is not None:
            self._keep_archive()
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _prepare(self) -> None:
        """The folder of a cluster that has not begun."""
        assert self._kafka is not None
        self.folder = data_folder("kafka")
        self.port, self.tls_port, self.sasl_port = free_port(), free_port(), free_port()
        self._controller_port = free_port()
        data = self.folder / "data"
        data.mkdir()
        shutil.copy(self._kafka.checkpoint, data)
        directory = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        (data / "meta.properties").write_text(
            f"version=1\ncluster.id={CLUSTER_ID}\nnode.id=1\ndirectory.id={directory}\n"
        )

    def _listeners(self) -> dict[str, int]:
        if self._tls is None:
            return {"PLAINTEXT": self.port}
        return {"PLAINTEXT": self.port, "SSL": self.tls_port, "SASL_SSL": self.sasl_port}

    def _write_settings(self) -> None:
        assert self.folder is not None
        listeners = ",".join(f"{name}://{_HOST}:{port}" for name, port in self._listeners().items())
        settings = _SETTINGS | {
            "controller.quorum.voters": f"1@{_HOST}:{self._controller_port}",
            "listeners": f"{listeners},CONTROLLER://{_HOST}:{self._controller_port}",
            "advertised.listeners": listeners,
            "log.dirs": str(self.folder / "data"),
        }
        if self._tls is not None:
            settings |= _SECURED | {
                "ssl.keystore.location": str(self._tls.certificate_and_key),
                "ssl.truststore.location": str(self._tls.authority),
            }
        lines = [f"{name}={value}\n" for name, value in (settings | self._more).items()]
        (self.folder / "server.properties").write_text("".join(lines))

    def _java_options(self) -> list[str]:
        assert self._kafka is not None
        assert self.folder is not None
        options = [
            f"-Xmx{self._heap_megabytes}m",
            "-XX:+UseSerialGC",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-Dorg.slf4j.simpleLogger.showDateTime=true",
        ]
        if self._short_lived:  # no test lives long enough to gain from Java's second compiler
            options.append("-XX:TieredStopAtLevel=1")
        if self._kafka.archive.exists():
            return [*options, f"-XX:SharedArchiveFile={self._kafka.archive}"]
        return [*options, f"-XX:ArchiveClassesAtExit={self.folder / 'classes.jsa'}"]

    def _keep_archive(self) -> None:
        assert self.folder is not None
        draft = self.folder / "classes.jsa"
        if self._kafka is not None and draft.exists() and not self._kafka.archive.exists():
            near = self._kafka.archive.with_suffix(f".{self.folder.name}")
            shutil.move(draft, near)
            near.rename(self._kafka.archive)
