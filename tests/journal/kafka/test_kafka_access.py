"""Addresses of Kafka, and brokers that ask who is there."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.peers.kafka import PASSWORD, USER
from tests.kafka_server import SecuredKafka

from holdfast.config import Config
from holdfast.errors import InvalidArgument, Unauthorized, Unavailable, Unknown
from holdfast.journal import Append, Appended, Start, Taken
from holdfast.journal.kafka.address import (
    KafkaAddress,
    client_settings,
    kafka_access,
    parse_kafka_url,
)

pytest.importorskip("confluent_kafka")
from confluent_kafka import admin as kafka_admin

from holdfast.journal.kafka import KafkaJournal

# --- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("kafka://a/orders", KafkaAddress(("a:9092",), "orders")),
        ("kafka://a:1,b:2/o_1-x", KafkaAddress(("a:1", "b:2"), "o_1-x")),
        (
            "kafka://a/o?security=SASL_SSL&mechanism=SCRAM-SHA-512",
            KafkaAddress(("a:9092",), "o", "SASL_SSL", "SCRAM-SHA-512"),
        ),
    ],
)
def test_an_address_is_read(url: str, address: KafkaAddress) -> None:
    assert parse_kafka_url(url) == address


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("etcd://a/orders", "kafka://host:9092"),
        ("kafka:///orders", "kafka://host:9092"),
        ("kafka://a", "NAME"),
        ("kafka://a/or.ders", "or.ders"),
        ("kafka://a/" + "x" * 49, "at most 48"),
        ("kafka://a:b/orders", "host:port"),
        ("kafka://a:70000/orders", "host:port"),
        ("kafka://u:p@a/orders", "kafka_password_file"),
        ("kafka://a/orders?security=TLS", "SASL_SSL"),
        ("kafka://a/orders?security=SASL_SSL&mechanism=X", "SCRAM-SHA-512"),
        ("kafka://a/orders?acks=1", "acks"),
    ],
)
def test_an_address_that_is_wrong_says_what_is_right(url: str, says: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_kafka_url(url)
    assert says in str(caught.value)
    assert "p@" not in str(caught.value)


@pytest.mark.parametrize(
    ("security", "config"),
    [
        ("PLAINTEXT", {"kafka_ca": __file__}),
        ("SSL", {"kafka_ca": "nowhere.pem"}),
        ("SSL", {"kafka_username": "u"}),
        ("SASL_SSL", {}),
        ("SASL_SSL", {"kafka_username": "u"}),
        ("SASL_SSL", {"kafka_username": "u", "kafka_password_file": "nowhere"}),
    ],
)
def test_settings_that_do_not_fit_the_address_are_refused(
    security: str, config: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument, match=r"kafka_|security="):
        kafka_access(KafkaAddress(("a:1",), "n", security), Config(**config))


def test_a_password_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    address = KafkaAddress(("a:1",), "n", "SASL_SSL")
    config = Config(kafka_username="u", kafka_password_file=str(tmp_path / "password"))
    settings = client_settings(address, kafka_access(address, config))
    assert (settings["sasl.username"], settings["sasl.password"]) == ("u", "secret")


# --- brokers that ask -------------------------------------------------------------------------


Operations: Any = kafka_admin.AclOperation  # pyright: ignore[reportPrivateImportUsage]
NEEDED = (
    Operations.READ,
    Operations.WRITE,
    Operations.CREATE,
    Operations.DELETE,
    Operations.DESCRIBE,
    Operations.DESCRIBE_CONFIGS,
)  # as the how-to says


def allow(
    kafka: SecuredKafka, principal: str, name: str, operations: Sequence[Any] = NEEDED
) -> None:
    """Gives a user permissions for all topics of a name."""
    allowed = [
        kafka_admin.AclBinding(  # pyright: ignore[reportPrivateImportUsage]
            kafka_admin.ResourceType.TOPIC,  # pyright: ignore[reportPrivateImportUsage]
            f"{name}.",
            kafka_admin.ResourcePatternType.PREFIXED,  # pyright: ignore[reportPrivateImportUsage]
            principal,
            "*",
            operation,
            kafka_admin.AclPermissionType.ALLOW,  # pyright: ignore[reportPrivateImportUsage]
        )
        for operation in operations
    ]
    client = kafka_admin.AdminClient({"bootstrap.servers": kafka.endpoint, "log_level": 0})
    for answer in client.create_acls(allowed).values():
        answer.result(30)


def forbid(kafka: SecuredKafka, principal: str) -> None:
    """Takes all permissions for topics from a user."""
    found = kafka_admin.AclBindingFilter(  # pyright: ignore[reportPrivateImportUsage]
        kafka_admin.ResourceType.TOPIC,  # pyright: ignore[reportPrivateImportUsage]
        None,  # pyright: ignore[reportArgumentType]
        kafka_admin.ResourcePatternType.ANY,  # pyright: ignore[reportPrivateImportUsage]
        principal,
        None,  # pyright: ignore[reportArgumentType]
        Operations.ANY,
        kafka_admin.AclPermissionType.ANY,  # pyright: ignore[reportPrivateImportUsage]
    )
    client = kafka_admin.AdminClient({"bootstrap.servers": kafka.endpoint, "log_level": 0})
    for answer in client.delete_acls([found]).values():
        answer.result(30)


async def use(url: str, config: Config) -> None:
    """All that a node does with its journal."""
    journal = KafkaJournal.open(url, config)
    try:
        journal.create_topic("t", 1)
        taken = await journal.take("t", 1)
        assert isinstance(taken, Taken)
        (outcome,) = await journal.append_many([Append("t", 1, [b"a"], *taken)])
        assert isinstance(outcome, Appended)
        await journal.append("t", 1, [b"b"])
        async for entries in journal.stream("t", 1, Start.EARLIEST):
            assert [each.payload for each in entries] == [b"a", b"b"]
            break
        assert journal.offset_at("t", 1, 1) <= outcome.first
        journal.discard("t", 1, outcome.next)
    finally:
        await journal.close()


@pytest.mark.xdist_group("kafka")
@pytest.mark.parametrize("security", ["SSL", "SASL_SSL"])
def test_a_user_works_with_the_permissions_that_the_docs_name_and_not_without(
    kafka: SecuredKafka, tmp_path: Path, security: str
) -> None:
    files, password = kafka.certificates, tmp_path / "password"
    password.write_text(PASSWORD)
    if security == "SSL":
        port, principal = kafka.tls_port, "User:CN=clerk"
        config = Config(
            kafka_ca=str(files.authority),
            kafka_certificate=str(files.certificate),
            kafka_key=str(files.key),
        )
    else:
        port, principal = kafka.sasl_port, f"User:{USER}"
        config = Config(
            kafka_ca=str(files.authority), kafka_username=USER, kafka_password_file=str(password)
        )
    name = f"guarded-{security.lower().replace('_', '-')}"
    url = f"kafka://127.0.0.1:{port}/{name}?security={security}"
    with pytest.raises(Unauthorized, match="ACL"):
        asyncio.run(use(url, config))
    allow(kafka, principal, name)
    asyncio.run(use(url, config))


@pytest.mark.xdist_group("kafka")
def test_a_wrong_password_is_told(
    kafka: SecuredKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.journal.kafka.topics.KAFKA_OPEN_MS_MAX", 1_500)
    (tmp_path / "password").write_text("wrong")
    config = Config(
        kafka_ca=str(kafka.certificates.authority),
        kafka_username=USER,
        kafka_password_file=str(tmp_path / "password"),
    )
    with pytest.raises(Unauthorized, match="kafka_password_file"):
        KafkaJournal.open(f"kafka://127.0.0.1:{kafka.sasl_port}/n?security=SASL_SSL", config)


@pytest.mark.xdist_group("kafka")
@pytest.mark.parametrize(
    ("security", "says"), [("SSL", "kafka_ca"), ("PLAINTEXT", r"\(PLAINTEXT\).*listener")]
)
def test_a_broker_that_is_not_trusted_or_not_spoken_to_as_it_wants_is_told(
    kafka: SecuredKafka, security: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.journal.kafka.topics.KAFKA_OPEN_MS_MAX", 1_500)
    url = f"kafka://127.0.0.1:{kafka.tls_port}/n?security={security}"
    with pytest.raises((Unauthorized, Unavailable), match=says):
        KafkaJournal.open(url, Config())


@pytest.mark.xdist_group("kafka")
def test_an_error_that_ends_a_producer_does_not_end_the_writing(
    kafka: SecuredKafka, tmp_path: Path
) -> None:
    """Kafka gives a producer no id that may not write, which ends it for good."""
    (tmp_path / "password").write_text(PASSWORD)
    config = Config(
        kafka_ca=str(kafka.certificates.authority),
        kafka_username=USER,
        kafka_password_file=str(tmp_path / "password"),
    )
    url = f"kafka://127.0.0.1:{kafka.sasl_port}/late?security=SASL_SSL"
    forbid(kafka, f"User:{USER}")
    allow(kafka, f"User:{USER}", "late", [each for each in NEEDED if each != Operations.WRITE])

    async def story() -> None:
        journal = KafkaJournal.open(url, config)
        try:
            journal.create_topic("t", 1)
            with pytest.raises((Unavailable, Unknown)):
                for _ in range(20):
                    await asyncio.sleep(0.1)
                    await journal.append("t", 1, [b"too early"])
            allow(kafka, f"User:{USER}", "late")
            async with asyncio.timeout(60):
                taken = await journal.take("t", 1)
            assert isinstance(taken, Taken)
            (outcome,) = await journal.append_many([Append("t", 1, [b"a"], *taken)])
            assert isinstance(outcome, Appended)
            assert [each.payload for each in await journal.read("t", 1, outcome.first)] == [b"a"]
        finally:
            await journal.close()

    asyncio.run(story())
