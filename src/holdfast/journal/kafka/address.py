"""Where Kafka is and how it is reached, from a URL and the settings: kafka://host:9092/NAME."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import msgspec

from holdfast.config import Config
from holdfast.errors import InvalidArgument

PORT = 9092
_FORM = "kafka://host:9092[,host:9092]/NAME[?security=SASL_SSL&mechanism=SCRAM-SHA-512]"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,47}", re.ASCII)  # a dot would end it in a topic
_SECURITY = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class KafkaAddress(msgspec.Struct, frozen=True):
    """What a URL says."""

    servers: tuple[str, ...]  # host:port
    name: str  # what the topics begin with
    security: str = "PLAINTEXT"
    mechanism: str = "PLAIN"

    def topic(self, topic: str) -> str:
        """What a topic is called in Kafka."""
        return f"{self.name}.{topic}"


def parse_kafka_url(url: str) -> KafkaAddress:
    """What a URL says; InvalidArgument with the form if it is not of it."""
    parts = urlsplit(url)
    name, options = parts.path.removeprefix("/"), dict(parse_qsl(parts.query))
    if parts.scheme != "kafka" or not parts.netloc or parts.fragment:
        raise InvalidArgument(f"Expected a URL of the form {_FORM}, but found {url!r}")
    if "@" in parts.netloc:
        raise InvalidArgument(
            "Expected a URL without a user and a password, but found them in it; set"
            " kafka_username and kafka_password_file"
        )
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"Expected {_FORM}, with a NAME of at most 48 letters, digits, '_' and '-', but found"
            f" the name {name!r}"
        )
    security, mechanism = options.pop("security", "PLAINTEXT"), options.pop("mechanism", "PLAIN")
    for what, found, known in (
        ("security", security, _SECURITY),
        ("mechanism", mechanism, _MECHANISMS),
    ):
        if found not in known:
            raise InvalidArgument(
                f"Expected {what} to be one of {', '.join(known)}, but found {found!r} in {url!r}"
            )
    if options:
        raise InvalidArgument(
            f"Expected the options security and mechanism, but found {sorted(options)} in {url!r}"
        )
    servers = tuple(_server(each, url) for each in parts.netloc.split(","))
    return KafkaAddress(servers, name, security, mechanism)


def _server(text: str, url: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon:
        host, port = text, str(PORT)
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise InvalidArgument(f"Expected host:port, but found {text!r} in {url!r}")
    return f"{host}:{port}"


class KafkaAccess(msgspec.Struct, frozen=True):
    """Who asks, and whom to believe: PEM files and a password."""

    username: str = ""
    password: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""


def kafka_access(address: KafkaAddress, config: Config) -> KafkaAccess:
    """What the settings say, for the security that the URL names; InvalidArgument if amiss."""
    is_tls, is_sasl = address.security.endswith("SSL"), address.security.startswith("SASL")
    files = {
        "kafka_ca": config.kafka_ca,
        "kafka_certificate": config.kafka_certificate,
        "kafka_key": config.kafka_key,
    }
    if not is_tls and any(files.values()):
        raise InvalidArgument(
            f"Expected security=SSL or SASL_SSL with files for TLS, but found {address.security}"
        )
    for name, file in files.items():
        if file and not Path(file).is_file():
            raise InvalidArgument(f"Expected {name} to name a file, but found {file!r}")
    if not is_sasl and (config.kafka_username or config.kafka_password_file):
        raise InvalidArgument(
            f"Expected security=SASL_SSL with kafka_username, but found {address.security}"
        )
    if is_sasl and not (config.kafka_username and config.kafka_password_file):
        raise InvalidArgument(
            f"Expected kafka_username and kafka_password_file with {address.security}, but found"
            " one of them empty"
        )
    password = _password(config.kafka_password_file) if is_sasl else ""
    return KafkaAccess(config.kafka_username, password, *files.values())


def _password(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise InvalidArgument(
            f"Expected kafka_password_file to name a file, but {error}"
        ) from error


def client_settings(address: KafkaAddress, access: KafkaAccess) -> dict[str, str | int | float]:
    """What every client of librdkafka is told."""
    settings: dict[str, str | int | float] = {
        "bootstrap.servers": ",".join(address.servers),
        "client.id": f"holdfast-{address.name}",
        "security.protocol": address.security,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "log_level": 0,  # what matters comes back as an error
    }
    told = {
        "ssl.ca.location": access.ca,
        "ssl.certificate.location": access.certificate,
        "ssl.key.location": access.key,
        "sasl.mechanism": address.mechanism if access.username else "",
        "sasl.username": access.username,
        "sasl.password": access.password,
    }
    return settings | {name: value for name, value in told.items() if value}
