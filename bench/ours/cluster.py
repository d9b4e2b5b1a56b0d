"""A cluster of ours on this machine: a real etcd and members in processes of their own."""

import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from bench.peers.etcd import EtcdServer
from bench.peers.process import Process, free_port

START_SECONDS_MAX = 120.0  # of a machine that has much else to do
SETTLE_SECONDS_MAX = 120.0
LOOK_SECONDS = 0.05
LAG_MAX = 100  # entries under way: a replica that has all but these has caught up
ASK_SECONDS_MAX = 10.0
NAMES = ("a", "b", "c")


class OurMember:
    """`holdfast start --cluster` over a folder, on the same port whenever it is started."""

    joins = "--cluster"  # the option that takes where members find each other

    def __init__(
        self,
        name: str,
        folder: Path,
        etcd: str,
        options: Sequence[str] = (),
        *,
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
        log_level: str = "warning",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`within` is the beginning of its command, as where it runs in a network of its own."""
        self.name = name
        self.folder = folder / name
        self.log = folder / f"{name}.log"
        self.host, self.port = host, free_port()
        self._within = within
        self._environment = path_of_code() | dict(environment or {})
        self._options = [
            *(self.joins, etcd, "--member", name, "--host", host, "--port", str(self.port)),
            *("--listen-members", f"{host}:0", "--log-level", log_level, "--json", *options),
        ]
        self._process: Process | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def process(self) -> Process:
        assert self._process is not None, "it was started"
        return self._process

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.alive

    def launch(self) -> None:
        """Starts, and does not wait for it."""
        command = [sys.executable, "-m", "holdfast.cli", "start", str(self.folder)]
        self._process = Process(
            [*self._within, *command, *self._options], self.log, environment=self._environment,
            talks=True,
        )  # fmt: skip

    def wait_until_up(self) -> None:
        """Returns when it serves, and all partitions have an owner as far as it knows."""
        self.process.line(START_SECONDS_MAX)

    def kill(self) -> None:
        """kill -9."""
        self.process.stop(signal.SIGKILL)

    def stop(self) -> None:
        """Asks it to stop in order: it hands everything over."""
        if self.runs:
            self.process.stop()

    def ask(self, path: str, body: Any = None) -> Any:
        """The answer to a request: GET, or POST with a body."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers)
        with urllib.request.urlopen(request, timeout=ASK_SECONDS_MAX) as answer:
            return json.loads(answer.read() or b"null")

    def cpu_seconds(self) -> float:
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def memory_bytes(self) -> int:
        return psutil.Process(self.process.pid).memory_full_info().uss


class OurCluster:
    """An etcd and members, started together; a context manager."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str] = NAMES,
        options: Sequence[str] = (),
        *,
        is_etcd_durable: bool = True,
        log_level: str = "warning",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.etcd = EtcdServer(durable=is_etcd_durable)
        self._folder, self._names, self._options = folder, names, options
        self._log_level, self._environment = log_level, environment
        self.members: dict[str, OurMember] = {}

    def __enter__(self) -> Self:
        try:
            self._start_server()
            for name in self._names:
                self.members[name] = self.member(name)
                self.members[name].launch()
            for member in self.members.values():
                member.wait_until_up()
            self.wait_until_healthy()
        except BaseException:
            self._end()
            raise
        return self

    def member(self, name: str) -> OurMember:
        return OurMember(
            name, self._folder, self.etcd.url, self._options, log_level=self._log_level,
            environment=self._environment,
        )  # fmt: skip

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        for member in self.members.values():
            if member.runs:
                member.process.resume()
                member.kill()
        self._stop_server()

    def _start_server(self) -> None:
        """What the members are members of."""
        self.etcd.start()

    def _stop_server(self) -> None:
        self.etcd.stop()

    @property
    def urls(self) -> list[str]:
        return [member.url for member in self.members.values()]

    def cpu_seconds(self) -> float:
        """The processor time that all members have taken so far."""
        return sum(member.cpu_seconds() for member in self.members.values())

    def restart(self, name: str) -> None:
        """Starts a member again, and waits until it serves."""
        self.members[name].launch()
        self.members[name].wait_until_up()

    def status(self, by: str | None = None) -> Any:
        """How the cluster is, as a member sees it, or the first that answers."""
        names = [by] if by is not None else [name for name in self.members if self.runs(name)]
        for name in names:
            try:
                return self.members[name].ask("/v2/cluster")
            except OSError:
                if name == names[-1]:
                    raise
        raise AssertionError("no member runs")

    def runs(self, name: str) -> bool:
        return self.members[name].runs

    def owners(self, by: str | None = None) -> dict[int, str]:
        return {each["partitionId"]: each["owner"] for each in self.status(by)["partitions"]}

    def wait_until(
        self, condition: Callable[[Any], object], seconds_max: float = SETTLE_SECONDS_MAX
    ) -> Any:
        """The status, once it is as it should be for all members that run."""
        deadline = time.monotonic() + seconds_max
        while True:
            found: Any = None
            try:
                found = [self.status(name) for name in self.members if self.runs(name)]
                if all(condition(each) for each in found):
                    return found[0]
            except (OSError, urllib.error.URLError) as error:
                found = error
            assert time.monotonic() < deadline, f"the cluster does not get there: {found}"
            time.sleep(LOOK_SECONDS)

    def wait_until_healthy(self, lag_max: int = LAG_MAX) -> Any:
        """The status, once all members run and have all of all logs, as all of them see it."""
        return self.wait_until(lambda status: self._is_healthy(status, lag_max))

    def wait_until_caught_up(self) -> Any:
        """The same, where members may be draining."""
        states = ("UP", "DRAINING")
        return self.wait_until(lambda status: self._is_healthy(status, LAG_MAX, states))

    def _is_healthy(self, status: Any, lag_max: int, states: Sequence[str] = ("UP",)) -> bool:
        up = sum(each["state"] in states for each in status["members"])
        return up == len(self.members) and all(
            each["state"] == "HEALTHY"
            and len(each["replicas"]) == min(up, status["replicationFactor"])
            and all((replica["lag"] or 0) <= lag_max for replica in each["replicas"])
            for each in status["partitions"]
        )


def path_of_code() -> dict[str, str]:
    """The environment in which a process finds the same code as this one."""
    return {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
