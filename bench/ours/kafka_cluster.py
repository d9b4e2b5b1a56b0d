"""A cluster of ours on this machine over a real Kafka broker: members in processes of their own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.ours.cluster import NAMES, OurCluster, OurMember
from bench.peers.kafka import KafkaServer

SESSION_MS = 2_000  # the broker of tests and benchmarks allows less than others do


class OurKafkaMember(OurMember):
    """`holdfast start --journal` over a folder."""

    joins = "--journal"


class OurKafkaCluster(OurCluster):
    """A broker and members over it; a context manager. A broker that is given is not stopped."""

    def __init__(
        self,
        folder: Path,
        log: str,
        names: Sequence[str] = NAMES,
        options: Sequence[str] = (),
        *,
        broker: KafkaServer | None = None,
        log_level: str = "warning",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        settings = {"HOLDFAST_KAFKA_SESSION_MS": str(SESSION_MS)} | dict(environment or {})
        super().__init__(folder, names, options, log_level=log_level, environment=settings)
        self.broker = broker or KafkaServer()
        self._is_ours = broker is None
        self._log = log

    def member(self, name: str) -> OurMember:
        url = f"{self.broker.url}/{self._log}"
        return OurKafkaMember(
            name, self._folder, url, self._options, log_level=self._log_level,
            environment=self._environment,
        )  # fmt: skip

    def _start_server(self) -> None:
        if self._is_ours:
            self.broker.start()

    def _stop_server(self) -> None:
        if self._is_ours:
            self.broker.stop()

    def _is_healthy(self, status: Any, lag_max: int, states: Sequence[str] = ("UP",)) -> bool:
        """All members are there, and each has its share."""
        up = [each["member"] for each in status["members"] if each["state"] in states]
        shares = Counter(each["owner"] for each in status["partitions"])
        counts = [shares[each] for each in up]
        return (
            len(up) == len(self.members)
            and all(each["state"] == "HEALTHY" for each in status["partitions"])
            and max(counts) - min(counts) <= 1
        )
