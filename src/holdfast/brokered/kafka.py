"""The log and the group of members in Kafka."""

import logging
import ssl
from collections.abc import Callable
from typing import Any

from holdfast.brokered.joining import BrokeredLog
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.groups.api import MemberId, Membership
from holdfast.groups.kafka import KafkaMembership
from holdfast.journal.kafka import KafkaJournal
from holdfast.journal.kafka.address import (
    KafkaAccess,
    KafkaAddress,
    kafka_access,
    parse_kafka_url,
)
from holdfast.steady_clock import SteadyClock

REBALANCE_TOPIC = "rebalance"


def open_kafka(config: Config) -> BrokeredLog:
    """The broker that `journal` names; blocks until it answers. Unavailable if none does."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # the group says what it means to it
    address = parse_kafka_url(config.journal)
    connect = membership_settings(address, kafka_access(address, config))

    journal = KafkaJournal(address, config, SteadyClock(SystemClock()))

    def open_membership(member: MemberId, known: Callable[[], int]) -> Membership:
        return KafkaMembership(
            connect, address.topic(REBALANCE_TOPIC), member, known=known,
            session_ms=config.kafka_session_ms,
        )  # fmt: skip

    return BrokeredLog(
        journal, f"{journal.cluster_id}/{address.name}", config.journal, open_membership
    )


def membership_settings(address: KafkaAddress, access: KafkaAccess) -> dict[str, Any]:
    """How a member of the consumer group connects."""
    settings: dict[str, Any] = {
        "bootstrap_servers": list(address.servers),
        "security_protocol": address.security,
    }
    if address.security.endswith("SSL"):
        context = ssl.create_default_context(cafile=access.ca or None)
        if access.certificate:
            context.load_cert_chain(access.certificate, access.key or None)
        settings["ssl_context"] = context
    if access.username:
        settings |= {
            "sasl_mechanism": address.mechanism,
            "sasl_plain_username": access.username,
            "sasl_plain_password": access.password,
        }
    return settings
