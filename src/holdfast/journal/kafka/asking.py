"""What is asked of the brokers beside records: topics, offsets, times; these calls block."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,  # pyright: ignore[reportPrivateImportUsage]
    NewTopic,  # pyright: ignore[reportPrivateImportUsage]
    OffsetSpec,  # pyright: ignore[reportPrivateImportUsage]
    ResourceType,  # pyright: ignore[reportPrivateImportUsage]
)

from holdfast.errors import InvalidArgument, Unauthorized, Unavailable
from holdfast.journal.kafka.fetching import consumer
from holdfast.limits import (
    ENTRY_BYTES_MAX,
    KAFKA_ASK_AGAIN_MS,
    KAFKA_ASK_MS_MAX,
    KAFKA_BATCH_BYTES,
    KAFKA_NOTICE_MS,
    KAFKA_RECORD_OVERHEAD_BYTES,
)
from holdfast.logs import log

T = TypeVar("T")
_ASK_SECONDS = KAFKA_ASK_MS_MAX / 1000
_DENIED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
_AWAY = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
_STRANGER = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
_UNTRUSTED = (KafkaError._SSL,)
_CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",  # what is discarded is discarded by us, who know what is needed
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": str(ENTRY_BYTES_MAX + KAFKA_RECORD_OVERHEAD_BYTES),
    "unclean.leader.election.enable": "false",
}


class BrokerEnds(NamedTuple):
    """The first offset of a partition, and the one behind its last."""

    earliest: int
    next: int


def failed(what: str, reason: KafkaError, servers: str) -> Exception:
    """The error for what a broker, or the client for it, has refused."""
    if reason.code() in _STRANGER:
        return Unauthorized(
            f"Kafka rejects the credentials for {what}: {reason.str()}; see kafka_username and"
            " kafka_password_file"
        )
    if reason.code() in _UNTRUSTED:
        return Unauthorized(
            f"No TLS connection to Kafka at {servers}: {reason.str()}; see kafka_ca,"
            " kafka_certificate, and security in the address"
        )
    if reason.code() in _DENIED:
        return Unauthorized(f"Kafka does not allow {what}: {reason.str()}; see its ACLs")
    if reason.code() in _AWAY:
        return Unavailable(
            f"No Kafka broker answers at {servers}: check the address, that a broker runs there,"
            " and that its listener has this security"
        )
    return Unavailable(f"Kafka at {servers} did not give {what}: {reason.str()}")


class Brokers:
    """Asks brokers, from any thread."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        security = settings.get("security.protocol", "PLAINTEXT")
        self._servers = f"{settings['bootstrap.servers']} ({security})"
        self._stranger: KafkaError | None = None  # no trust, on either side
        told: dict[str, Any] = {**settings, "error_cb": self._erred}
        self._admin = AdminClient(told)
        self._times = consumer(settings)  # the one that can be asked for offsets by time

    def _erred(self, error: KafkaError) -> None:
        """Called by a thread of the client."""
        if error.code() in (*_STRANGER, *_UNTRUSTED):
            self._stranger = error

    def _failed(self, what: str, error: KafkaException) -> Exception:
        """What a question has failed with; the client itself only says that it got no answer."""
        self._admin.poll(0)
        return failed(what, self._stranger or error.args[0], self._servers)

    def cluster(self, seconds_max: float) -> tuple[str, dict[str, int]]:
        """The cluster's id, and all topics with their number of partitions."""
        patience = min(KAFKA_NOTICE_MS / 1000, seconds_max)
        try:
            found = self._admin.list_topics(timeout=patience)
        except KafkaException:
            log.warning("no Kafka broker has answered yet", servers=self._servers)
            try:
                found = self._admin.list_topics(timeout=seconds_max - patience)
            except KafkaException as error:
                raise self._failed("its topics", error) from error
        topics: dict[str, Any] = found.topics or {}
        return found.cluster_id or "", {
            name: len(topic.partitions) for name, topic in topics.items() if topic.error is None
        }

    def _is_led(self, topic: str) -> bool:
        """Whether each partition of a topic has a leader."""
        found: Any = (self._admin.list_topics(topic, timeout=_ASK_SECONDS).topics or {}).get(topic)
        parts = found.partitions.values() if found is not None and found.error is None else ()
        return bool(parts) and all(each.leader >= 0 for each in parts)

    def create(self, topic: str, partitions: int, replicas: int) -> None:
        """Makes sure that a topic is there."""
        config = dict(_CONFIG)
        if replicas > 1:
            config["min.insync.replicas"] = str(replicas - 1)
        new = NewTopic(topic, partitions, replicas or -1, config=config)
        try:
            self._admin.create_topics([new], operation_timeout=_ASK_SECONDS)[topic].result(
                _ASK_SECONDS
            )
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._failed(f"the topic {topic!r}", error) from error

        def led() -> None:
            if not self._is_led(topic):
                raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))

        # The client keeps what it has heard of a topic: it must not be that nobody leads it.
        self._retried(f"the leaders of topic {topic!r}", led)

    def limit_bytes(self, topic: str) -> int:
        """How large a batch of a topic may be; InvalidArgument if it is not kept as we need it."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        try:
            found = self._admin.describe_configs([resource])[resource].result(_ASK_SECONDS)
        except KafkaException as error:
            raise self._failed(f"the settings of topic {topic!r}", error) from error
        if "compact" in str(found["cleanup.policy"].value):
            raise InvalidArgument(
                f"Expected the topic {topic!r} to keep all its records, but its cleanup.policy is"
                f" {found['cleanup.policy'].value}; set it to delete",
                topic=topic,
            )
        limit_bytes = int(str(found["max.message.bytes"].value))
        if limit_bytes < KAFKA_BATCH_BYTES + KAFKA_RECORD_OVERHEAD_BYTES:
            raise InvalidArgument(
                f"Expected the topic {topic!r} to take batches of {KAFKA_BATCH_BYTES} bytes, but"
                f" its max.message.bytes is {limit_bytes}; remove the setting, or raise it",
                topic=topic,
            )
        return limit_bytes

    def ends(self, places: Sequence[tuple[str, int]]) -> dict[tuple[str, int], BrokerEnds]:
        """How far partitions reach. A topic that was just created may take a moment."""
        if not places:
            return {}
        earliest = self._offsets(places, OffsetSpec.earliest())
        latest = self._offsets(places, OffsetSpec.latest())
        return {place: BrokerEnds(earliest[place], latest[place]) for place in earliest}

    def _offsets(self, places: Sequence[tuple[str, int]], spec: Any) -> dict[tuple[str, int], int]:
        def asked() -> dict[tuple[str, int], int]:
            wanted: dict[TopicPartition, Any] = {
                TopicPartition(topic, partition - 1): spec for topic, partition in places
            }
            answers = self._admin.list_offsets(wanted, request_timeout=_ASK_SECONDS)
            return {
                (part.topic, part.partition + 1): answer.result(_ASK_SECONDS).offset
                for part, answer in answers.items()
            }

        return self._retried("the ends of partitions", asked)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """The first offset at or after a time; None if there is none."""

        def asked() -> int | None:
            part = TopicPartition(topic, partition - 1, timestamp_ms)
            (found,) = self._times.offsets_for_times([part], timeout=_ASK_SECONDS)
            if found.error is not None:
                raise KafkaException(found.error)
            return found.offset if found.offset >= 0 else None

        return self._retried("an offset by its time", asked)

    def discard(self, topic: str, partition: int, before: int) -> None:
        """Asks for records below an offset to be deleted, and does not wait for it."""
        self._admin.delete_records([TopicPartition(topic, partition - 1, before)])

    def close(self) -> None:
        self._times.close()

    def _retried(self, what: str, ask: Callable[[], T]) -> T:
        """What an answer says; asked again where a broker has to look first."""
        deadline = time.monotonic() + _ASK_SECONDS
        while True:
            try:
                return ask()
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, TimeoutError):
                    error = KafkaException(KafkaError(KafkaError._TIMED_OUT))
                denied = error.args[0].code() in (*_DENIED, *_STRANGER)
                if denied or time.monotonic() > deadline:
                    raise self._failed(what, error) from error
                with contextlib.suppress(KafkaException):
                    self._admin.list_topics(timeout=_ASK_SECONDS)  # who leads what now
            time.sleep(KAFKA_ASK_AGAIN_MS / 1000)
            self._look_again()

    def _look_again(self) -> None:
        """Has the client forget who led partitions before a broker restarted."""
        with contextlib.suppress(KafkaException):
            self._admin.list_topics(timeout=_ASK_SECONDS)
