"""Every setting of a node, with its default and what it may be."""

from typing import Any

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.limits import (
    COMMANDS_IN_FLIGHT_MAX,
    CONNECTIONS_MAX,
    CONNECTIONS_PER_ADDRESS_MAX,
    CONTENT_SUBSCRIBER_KEPT_MS,
    MIB,
    PARTITIONS_MAX,
    SEGMENT_BYTES,
    SEGMENT_BYTES_MIN,
    SPAN_MS_MAX,
)

FILE_NAME = "holdfast.toml"
DEFAULT_PARTITIONS = 4
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a node is set up. Every field can be set as `HOLDFAST_<FIELD>` in the environment."""

    partitions: int | None = None  # fixed at the first start on a folder; None: unchanged, 4 if new
    host: str = "127.0.0.1"  # beyond this machine only with authorization
    port: int = 8080  # 0: any free one
    console: bool = True  # serve the web console at /console
    tls_certificate: str = ""  # a file (PEM), with the chain; "": HTTP without encryption
    tls_key: str = ""  # a file (PEM); "": the key is in the certificate's file
    allowed_hosts: str = ""  # further names of the node in requests: "db-1, holdfast.example.org"
    allowed_origins: str = ""  # web pages that may use the node: "https://ui.example.org"
    connections_max: int = (
        CONNECTIONS_MAX  # of clients; fewer where the process may have fewer files
    )
    connections_per_address_max: int = CONNECTIONS_PER_ADDRESS_MAX  # loopback: 3/4 of all
    segment_bytes: int = SEGMENT_BYTES  # the size of a file of the log
    journal_bytes_max: int = (
        16_384 * MIB
    )  # a reader that is stuck cannot keep more of the log than this
    snapshot_interval_ms: int = 300_000  # the time between two snapshots of the state
    snapshot_store: str = ""  # a second place for snapshots: a folder, or s3://bucket/prefix
    tables: str = ""  # the folder of the pipeline's tables; "": FOLDER/tables
    content_store: str = ""  # large files of content: s3://bucket/prefix or a folder
    content_subscriber_kept_ms: int = (
        CONTENT_SUBSCRIBER_KEPT_MS  # how long the log is kept for a silent subscriber
    )
    journal: str = ""  # kafka://host:9092/NAME keeps the log in Kafka; "": in files
    kafka_username: str = ""  # with SASL
    kafka_password_file: str = ""  # a file with the password of that user
    kafka_ca: str = ""  # the authority of the brokers' certificates (PEM); "": the system's
    kafka_certificate: str = ""  # the client certificate for the brokers: a file (PEM)
    kafka_key: str = ""  # the key of that certificate
    kafka_replicas: int = 0  # the replication factor of new topics; 0: the brokers' default
    kafka_session_ms: int = 6_000  # a member that is silent for longer is taken over
    cluster: str = ""  # etcd://host:port[,host:port], or etcds:// for TLS; "": a node of its own
    cluster_ca: str = ""  # the authority of etcd's certificate (PEM); "": the system's
    cluster_certificate: str = ""  # the client certificate for etcd: a file (PEM)
    cluster_key: str = ""  # the key of that certificate
    cluster_standbys: bool = True  # follow the partitions of others, to take them over quickly
    member: str = ""  # its name in the cluster; "": the beginning of its public key
    member_address: str = "127.0.0.1:0"  # where it listens for other members; port 0: any free one
    member_url: str = ""  # where clients reach it; "": host and port
    commands_in_flight_max: int = COMMANDS_IN_FLIGHT_MAX  # by partition
    idempotency_window_ms: int = 86_400_000  # how long idempotency keys are remembered
    keep_result_ms: int = 3_600_000  # how long results and errors are kept
    ended_kept_ms: int = 86_400_000  # what ended earlier is not listed
    ended_kept_max: int = 10_000  # tasks, instances and incidents each that are listed; 0: none
    spark_master: str = "local[*]"  # or spark://… for a cluster, sc://… for Spark Connect
    spark_memory_mb: int = 1_024  # of the driver; with a local master, of all of Spark
    spark_small_records: int = 2_000  # micro-batches that the driver does itself; 0: none
    spark_settings: str = ""  # any others of Spark: "name=value, name=value"
    authorization: bool = False  # authenticate and authorize every request
    jwt_keys: str = ""  # keys that sign trusted tokens: a file (PEM, JWKS), or a URL of a JWKS
    jwt_issuer: str = ""  # the issuer that tokens must have; "": any
    jwt_audience: str = ""  # the audience that tokens must have; "": any
    jwt_user_claim: str = "sub"  # the claim with the user's name
    jwt_groups_claim: str = "groups"  # the claim with the user's groups
    oidc_issuer: str = ""  # where people sign in to the console: "https://login.example.org/shop"
    oidc_client_id: str = ""  # the client id of this node there
    oidc_client_secret_file: str = ""  # a file with its secret; "": a public client
    oidc_redirect_url: str = ""  # of /console/sign-in/callback; "": by the name the browser uses
    oidc_scopes: str = "openid profile"  # requested; some providers need more for groups
    console_session_ms: int = 28_800_000  # how long a sign-in to the console lasts
    basic_authentication: bool = False  # accept user names and passwords: for development
    clock_pinning: bool = False  # users with the permission may set the clock: for tests
    log_level: str = "warning"  # debug, info, warning, error or critical
    log_json: bool = False  # log JSON lines

    def __post_init__(self) -> None:
        for name in CHECKED:
            if problem := problem_of(name, getattr(self, name)):
                raise InvalidArgument(f"{name}: {problem}")


_BOUNDS: dict[str, tuple[int, int | None]] = {
    "partitions": (1, PARTITIONS_MAX),
    "port": (0, 65_535),
    "connections_max": (1, None),
    "connections_per_address_max": (1, None),
    "segment_bytes": (SEGMENT_BYTES_MIN, None),  # the journal knows the most
    "journal_bytes_max": (1, None),
    "snapshot_interval_ms": (1, None),
    "content_subscriber_kept_ms": (1, None),
    "kafka_replicas": (0, 32_767),  # 16 bits in Kafka's protocol
    "kafka_session_ms": (1, None),
    "commands_in_flight_max": (1, None),
    "ended_kept_ms": (0, None),
    "ended_kept_max": (0, None),
    "console_session_ms": (1_000, SPAN_MS_MAX),
    "idempotency_window_ms": (0, SPAN_MS_MAX),
    "keep_result_ms": (0, SPAN_MS_MAX),
    "spark_memory_mb": (1, None),
    "spark_small_records": (0, None),
}
CHECKED = (*_BOUNDS, "log_level")
_KINDS = {int: "a whole number", bool: "true or false", str: "a text"}


def problem_of(name: str, value: Any) -> str | None:
    """What is wrong with a value that has the right type."""
    if name == "log_level" and value.lower() not in LOG_LEVELS:
        return f"expected a log level among {', '.join(LOG_LEVELS)}, but found {value!r}"
    least, most = _BOUNDS.get(name, (None, None))
    if value is None or least is None:
        return None
    if value < least or (most is not None and value > most):
        bounds = f"at least {least}" if most is None else f"{least} to {most}"
        return f"expected {bounds}, but found {value}"
    return None


def kind_of(name: str) -> str:
    """What a setting is, in words."""
    kind = Config.__annotations__[name]
    return _KINDS.get(kind, _KINDS[int])
