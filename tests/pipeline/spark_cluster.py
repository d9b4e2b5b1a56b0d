"""Spark outside of this process, from the package: a cluster, a server, a pipeline on them."""

import asyncio
import contextlib
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyspark

from holdfast.pipeline.archive import class_archive
from holdfast.pipeline.java import find_java, java_home

WORKERS = 2
DEADLINE_SECONDS = 120.0
LASTING_MS = 3_600_000  # longer than any of these tests takes
EXECUTOR = "CoarseGrainedExecutorBackend"
DAEMON = "holdfast.pipeline.daemon"  # as in a session of our own: workers start sooner
NO_ZIP = "none"  # executors import pyspark as it is installed: from Spark's zip it takes longer
_BIN = Path(pyspark.__file__).resolve().parent / "bin"  # as a session of ours finds it


@functools.cache
def small() -> str:
    """Options of a Java that starts soon: with the archive of classes that a session has made."""
    shared = [each for each in class_archive(find_java()) if "SharedArchiveFile" in each]
    return " ".join(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xlog:disable", *shared])


def wait_until(what: str, is_so: Callable[[], Any]) -> Any:
    """Waits for something to be so, and says what did not become so."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"expected {what} within {DEADLINE_SECONDS:.0f} s"
        time.sleep(0.1)
    return found


class SparkProcess:
    """One process of Spark's, with all that it starts; what it says is in a file."""

    def __init__(self, folder: Path, name: str, *command: str) -> None:
        self.name = name
        self._said = folder / f"{name}.log"
        environment = os.environ | {
            "JAVA_HOME": str(java_home(find_java(), folder)),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONNECT_MODE": "0",
            "SPARK_DAEMON_JAVA_OPTS": small(),
            "SPARK_DAEMON_MEMORY": "640m",  # at most; a Connect server needs as much
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONWARNINGS": "ignore",
        }
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [_BIN / command[0], *command[1:]], cwd=folder, env=environment, stdout=said,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def told(self, pattern: str) -> str:
        """What it says sooner or later."""

        def find() -> str | None:
            assert self._process.poll() is None, f"{self.name} ended: {self._said.read_text()}"
            found = re.search(pattern, self._said.read_text())
            return found and found.group(1)

        return wait_until(f"{self.name} to say {pattern!r}", find)

    def tree(self) -> list[psutil.Process]:
        """It and all that it started, the last first."""
        with contextlib.suppress(psutil.NoSuchProcess):
            mine = psutil.Process(self._process.pid)
            return [*reversed(mine.children(recursive=True)), mine]
        return []

    def stop(self) -> None:
        """It and all that it started are gone when this returns."""
        tree = self.tree()
        for each in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        self._process.wait(30)
        wait_until("what it started to end", lambda: all(map(_has_ended, tree)))


def _has_ended(process: psutil.Process) -> bool:
    """The process that adopts orphans may leave them as zombies for seconds."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class SparkCluster:
    """A master and two workers with a core each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[SparkProcess] = []

    def start(self) -> str:
        """Returns the address of the master once all workers are known to it."""
        told = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = self._start("master", "org.apache.spark.deploy.master.Master", *told)
        url = master.told(r"Starting Spark master at (spark://\S+)")
        size = ("--cores", "1", "--memory", "512m", "--work-dir", str(self._folder / "work"))
        for number in range(WORKERS):
            name = f"worker{number}"
            self._start(name, "org.apache.spark.deploy.worker.Worker", *told, *size, url)
        for worker in self._processes[1:]:
            worker.told(r"(Successfully registered with master)")
        return url

    def _start(self, name: str, *command: str) -> SparkProcess:
        self._processes.append(SparkProcess(self._folder, name, "spark-class", *command))
        return self._processes[-1]

    def executors(self) -> list[psutil.Process]:
        """Those that run now."""
        found: list[psutil.Process] = []
        for process in self._processes[1:]:
            for each in process.tree()[:-1]:
                with contextlib.suppress(psutil.Error):
                    if any(EXECUTOR in word for word in each.cmdline()):
                        found.append(each)
        return found

    def executor_that_reads(self, port: int) -> psutil.Process | None:
        """One that has a task under way which is connected to a port."""
        for executor in self.executors():
            with contextlib.suppress(psutil.Error):
                for each in executor.children(recursive=True):
                    places = [link.raddr for link in each.net_connections("tcp")]
                    if any(place and place.port == port for place in places):
                        return executor
        return None

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.stop()


@contextlib.contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """The address of a Spark Connect server that runs for as long as this does."""
    settings = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": f"-Xss4m {small()}",
        "spark.python.daemon.module": DAEMON,
    }
    words = [word for name in settings for word in ("--conf", f"{name}={settings[name]}")]
    server = SparkProcess(
        folder, "server", "spark-submit", *words,
        "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal",
    )  # fmt: skip
    try:
        yield "sc://" + server.told(r"Spark Connect server started at: (\S+:\d+)")
    finally:
        server.stop()


class PipelineOn:
    """`holdfast pipeline run` with a Spark elsewhere, as a person starts it."""

    def __init__(self, master: str, address: str, tables: Path, *words: str) -> None:
        command = [sys.executable, "-m", "holdfast.cli", "pipeline", "run", address]
        command += ["--tables", str(tables), "--json", *words]
        # However little there is to do, executors do it.
        settings = {"HOLDFAST_SPARK_MASTER": master, "HOLDFAST_SPARK_SMALL_RECORDS": "0"}
        if master.startswith("spark://"):
            settings["HOLDFAST_SPARK_SETTINGS"] = (
                f"spark.executor.memory=512m, spark.executor.extraJavaOptions={small()},"
                f" spark.python.daemon.module={DAEMON}, spark.executorEnv.SPARK_HOME={NO_ZIP}"
            )
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # for as long as it runs
        self._process = subprocess.Popen(
            command, env=os.environ | settings, stdout=self._said, start_new_session=True
        )

    def has_started(self) -> bool:
        """Whether its own stream runs: tables may get on by one that is left from another."""
        return b'"started"' in os.pread(self._said.fileno(), 4096, 0)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> int:
        return self._process.wait(DEADLINE_SECONDS)

    def stop(self) -> int:
        """Asks it to end; returns what it ends with."""
        self._process.terminate()
        return self._process.wait(60)

    def kill(self) -> None:
        """It and its Java, if they still run."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class Gate:
    """Before a node's API: while it is closed, readers of the log have to wait."""

    def __init__(self) -> None:
        self._api: Any = None
        self._opened = asyncio.Event()
        self._opened.set()
        self.waiting = 0
        self.journal: Any = None

    def before(self, api: Any) -> "Gate":
        self._api, self.journal = api, _GatedJournal(self, api.journal)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def close(self) -> None:
        self._opened.clear()

    async def open(self) -> None:
        self._opened.set()

    async def passed(self) -> None:
        """Returns when it is open."""
        self.waiting += 1
        try:
            await self._opened.wait()
        finally:
            self.waiting -= 1


class _GatedJournal:
    """The part of the API that is about the log."""

    def __init__(self, gate: Gate, journal: Any) -> None:
        self._gate = gate
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def read(self, *arguments: Any) -> bytes:
        await self._gate.passed()
        return await self._journal.read(*arguments)
