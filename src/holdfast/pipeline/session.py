"""Spark: starts a session of our own, joins a cluster or reaches a server, quietly and soon.

The only place that makes a session. What it needs is said in `Config`.
"""

import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from holdfast.config import Config
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.logs import log
from holdfast.pipeline.archive import class_archive, drop_archives
from holdfast.pipeline.java import find_java, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT, CLUSTER = "sc://", "spark://"
REACH_SECONDS_MAX = 10.0  # how long a master or a server may take to answer a connection
EXECUTOR_SECONDS_MAX = 60.0  # how long a cluster may take to give us a first executor
_MASTERS = ("local", CLUSTER, CONNECT, "k8s://", "yarn")
_PORTS = {CONNECT: 15_002, CLUSTER: 7_077}
_LOOPBACK = "127.0.0.1"
_LOOK_SECONDS = 0.1
# A call to a server that is gone is given up after 9 s: 0.05 + 0.2 + 0.8 + 4 times 2. Spark's own
# patience is ten minutes, in which the process could not be told to end.
_CONNECT_RETRIES, _CONNECT_BACKOFF_MS = 7, 2_000

# The second logger is the one whose level Spark takes over where Python is the shell, and says so.
_LOGGING = """rootLogger.level = error
logger.repl.name = org.apache.spark.api.python.PythonGatewayServer
logger.repl.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
# What a session may say of itself, wherever it runs.
_QUERY_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.sql.dataFrameDebugging.enabled": "false",  # it looks at the stack at every call
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # The default starts a helper process for every file of every micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing"
        ".FileSystemBasedCheckpointFileManager"
    ),
}


def open_session(config: Config, cache: Path, *, lasting: bool = False) -> "SparkSession":
    """The session: one of ours in this process, on a cluster, or by Spark Connect.

    In one that lasts, Java compiles what it runs often as well as it can: Spark reads twice as fast
    after a while. One for a single question starts sooner without.
    """
    if not config.spark_master.startswith(_MASTERS):
        raise InvalidArgument(
            "Expected spark_master to be local[*], spark://host:port or sc://host:port, but found"
            f" {config.spark_master!r}",
            field="spark_master",
        )
    if config.spark_master.startswith(CONNECT):
        return _reach_server(config)
    return _start_driver(config, cache, lasting=lasting)


def _reach_server(config: Config) -> "SparkSession":
    """A session in a server of Spark Connect's."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    address_towards(config.spark_master)
    told = _told(config.spark_settings)
    builder = SparkSession.builder.remote(config.spark_master)
    for name, value in _QUERY_SETTINGS.items():
        builder = builder.config(name, value)
    try:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session = builder.getOrCreate()
        policy = DefaultPolicy(max_retries=_CONNECT_RETRIES, max_backoff=_CONNECT_BACKOFF_MS)
        session.client.set_retry_policies([policy])  # pyright: ignore[reportAttributeAccessIssue]
        version = session.version
    except ImportError as error:
        raise Unavailable(
            f"Expected the packages of Spark Connect, but {error}: pip install 'holdfast[pipeline]'"
        ) from error
    except PySparkException as error:
        raise Unavailable(
            f"Expected a Spark Connect server at {config.spark_master}, but {error}"
        ) from error
    try:
        for name, value in told.items():
            session.conf.set(name, value)
    except PySparkException as error:
        raise InvalidArgument(
            f"Expected spark_settings that a session may change; others are set where the server"
            f" is started: {error}",
            field="spark_settings",
        ) from error
    log.info("spark reached", server=config.spark_master, version=version)
    return session


def _start_driver(config: Config, cache: Path, *, lasting: bool) -> "SparkSession":
    """A driver in this process, whose executors are in it too or on a cluster."""
    from pyspark.errors import PySparkRuntimeError

    is_cluster = config.spark_master.startswith(CLUSTER)
    address = address_towards(config.spark_master) if is_cluster else _LOOPBACK
    java = find_java()
    os.environ["JAVA_HOME"] = str(java_home(java, cache))
    os.environ.setdefault("SPARK_LOCAL_IP", address)
    if config.spark_master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers may have it elsewhere
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    options, archive = _java_options(cache, lasting=lasting), class_archive(java)
    try:
        settings = _settings(config, address, cache, options + archive)
        session = _start_java(config.spark_master, settings)
    except PySparkRuntimeError as error:
        if not archive:
            raise
        log.warning("java did not start with its archive of classes: without it", error=str(error))
        drop_archives()
        settings = _settings(config, address, cache, options)
        session = _start_java(config.spark_master, settings)
    session.sparkContext.setLogLevel("ERROR")
    if is_cluster:
        _wait_for_executor(session, config.spark_master)
    log.info("spark started", master=config.spark_master, version=session.version)
    return session


def _start_java(master: str, settings: dict[str, str]) -> "SparkSession":
    """A session, in a Java that is started for it if there is none yet."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("holdfast")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _settings(config: Config, address: str, cache: Path, options: list[str]) -> dict[str, str]:
    source = Path(__file__).parents[2]
    paths = [str(source), os.environ.get("PYTHONPATH", "")]
    settings = _QUERY_SETTINGS | {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": f"{config.spark_memory_mb}m",
        "spark.driver.host": address,
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "spark.sql.warehouse.dir": str(cache / "warehouse"),
    }
    if config.spark_master.startswith("local"):  # workers elsewhere may not find it
        settings["spark.python.daemon.module"] = "holdfast.pipeline.daemon"
        # Over TCP a task waits 40 ms: for the acknowledgement of a packet that is delayed.
        settings["spark.python.unix.domain.socket.enabled"] = "true"
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    return settings | _told(config.spark_settings)


def _java_options(cache: Path, *, lasting: bool) -> list[str]:
    quiet = cache / "log4j2.properties"
    quiet.write_text(_LOGGING)
    return [
        "-Xss4m",  # Spark matches texts of errors with patterns that need a deep stack
        "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=off:stderr",
        *([] if lasting else ["-XX:TieredStopAtLevel=1"]),
        f"-Dlog4j2.configurationFile={quiet.absolute().as_uri()}",
    ]  # fmt: skip


def _told(text: str) -> dict[str, str]:
    """Settings as a person writes them."""
    told: dict[str, str] = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = each.partition("=")
        if not sign:
            raise InvalidArgument(f"Expected name=value in spark_settings, but found {each!r}")
        told[name.strip()] = value.strip()
    return told


def address_towards(master: str) -> str:
    """The address of this machine that a master or a server sees; an error soon if none answers.

    Spark itself would try for a minute or more, and say nothing.
    """
    failures: list[str] = []
    for host, port in _places(master):
        if not host:
            raise InvalidArgument(
                f"Expected the host of Spark in spark_master, but found {master!r}",
                field="spark_master",
            )
        try:
            with socket.create_connection((host, port), REACH_SECONDS_MAX) as connection:
                return connection.getsockname()[0]
        except OSError as error:
            failures.append(f"{host}:{port}: {error}")
    raise Unavailable(
        f"Expected Spark to answer at {master}, but {'; '.join(failures)}. Is it started, and"
        " is spark_master its address?"
    )


def _places(master: str) -> list[tuple[str, int]]:
    """Hosts and ports in an address: a cluster may have several masters."""
    scheme = CONNECT if master.startswith(CONNECT) else CLUSTER
    try:
        places = [urlsplit(f"//{each}") for each in master[len(scheme) :].split("/")[0].split(",")]
        return [(place.hostname or "", place.port or _PORTS[scheme]) for place in places]
    except ValueError as error:
        raise InvalidArgument(
            f"Expected {scheme}host:port, but found {master!r}", field="spark_master"
        ) from error


def _wait_for_executor(session: "SparkSession", master: str) -> None:
    """A cluster without room gives none, and Spark would wait for it for ever."""
    tracker = session.sparkContext._jsc.sc().statusTracker()  # pyright: ignore
    deadline = time.monotonic() + EXECUTOR_SECONDS_MAX
    while len(tracker.getExecutorInfos()) < 2:  # the driver counts as one
        if time.monotonic() > deadline:
            session.stop()
            raise Unavailable(
                f"Expected an executor of {master} within {EXECUTOR_SECONDS_MAX:.0f} s, but there"
                " is none. Does a worker have a free core and the memory that"
                " spark.executor.memory asks for, and can it reach this machine?"
            )
        time.sleep(_LOOK_SECONDS)
