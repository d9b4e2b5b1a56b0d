"""Kafka for tests and benchmarks: its jars by the Maven client, in a cache of the user's.

Beside the jars are kept what each new broker needs and a Java of its own would have to make: the
first record of a cluster's metadata, and an archive of the classes that a broker loads, with which
it starts in half the time.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.harness import UnmeasurableError

VERSION = "4.1.1"
_SCALA = "2.13"
_LOGGING = "1.7.36"  # slf4j-simple, for what a broker has to say
_INSTALL_SECONDS_MAX = 600
_JAVA_SECONDS_MAX = 60
CLUSTER_ID = "aG9sZGZhc3QtdGVzdHMtMA"

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>holdfast</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    </dependency>"""


class Kafka:
    """An installed Kafka: how its programs are started."""

    def __init__(self, java: str, folder: Path) -> None:
        self.java = java
        self.folder = folder
        told = subprocess.run([java, "-version"], capture_output=True, timeout=_JAVA_SECONDS_MAX)
        fitting = hashlib.sha256(java.encode() + told.stderr).hexdigest()[:12]
        self.archive = folder / f"classes-{fitting}.jsa"
        self.checkpoint = folder / "bootstrap.checkpoint"

    def command(self, main: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
        """The command line of one of its programs."""
        return [self.java, *options, "-cp", f"{self.folder}/jars/*", main, *arguments]


def installed() -> Kafka:
    """Kafka of the tests' version; UnmeasurableError where it cannot be had."""
    java = _find_java()
    folder = _cache() / f"kafka-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    kafka = Kafka(java, folder)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        if not (folder / "jars").exists():
            fetch_jars(
                folder / "jars",
                ("org.apache.kafka", f"kafka_{_SCALA}", VERSION),
                ("org.slf4j", "slf4j-simple", _LOGGING),
            )
        if not kafka.checkpoint.exists():
            _format(kafka)
    return kafka


def fetch_jars(folder: Path, *coordinates: tuple[str, str, str]) -> None:
    """Fetches artifacts and all that they need into a folder, which is there whole or not at all.

    Whatever Maven is set up to use on this machine is used.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise UnmeasurableError("expected Maven's client to fetch jars with, found no mvn")
    draft = folder.with_name(f"{folder.name}-{os.getpid()}.draft")
    draft.mkdir(parents=True)
    wanted = "".join(
        _DEPENDENCY.format(group=group, artifact=artifact, version=version)
        for group, artifact, version in coordinates
    )
    (draft / "pom.xml").write_text(_POM.format(dependencies=wanted))
    try:
        _run(
            [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={draft}"],
            _INSTALL_SECONDS_MAX,
            draft,
        )
        (draft / "pom.xml").unlink()
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _format(kafka: Kafka) -> None:
    """Makes the first record of the metadata, which is the same for all brokers of a version."""
    folder = kafka.folder / f"format-{os.getpid()}"
    folder.mkdir()
    properties = folder / "server.properties"
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=1@127.0.0.1:1\nlisteners=CONTROLLER://127.0.0.1:1,"
        f"PLAINTEXT://127.0.0.1:2\nlog.dirs={folder}/data\n"
    )
    try:
        command = kafka.command(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)
        )
        _run(command, _JAVA_SECONDS_MAX, folder)
        (folder / "data" / "bootstrap.checkpoint").rename(kafka.checkpoint)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _find_java() -> str:
    from holdfast.errors import Unavailable
    from holdfast.pipeline.java import find_java

    try:
        return str(find_java())
    except Unavailable:
        raise UnmeasurableError("expected Java 17 or later for Kafka, found none") from None


def _cache() -> Path:
    told = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(told) if Path(told).is_absolute() else Path.home() / ".cache"
    return base / "holdfast-tests"


def _run(arguments: list[str], seconds_max: float, folder: Path) -> None:
    try:
        subprocess.run(arguments, cwd=folder, check=True, capture_output=True, timeout=seconds_max)
    except subprocess.CalledProcessError as error:
        said = (error.stdout + error.stderr).decode(errors="replace").strip().splitlines()
        tail = " | ".join(said[-3:])
        raise UnmeasurableError(f"Kafka {VERSION} cannot be had here: {tail}") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise UnmeasurableError(f"Kafka {VERSION} cannot be had here: {error}") from None
