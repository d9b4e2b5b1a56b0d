"""A leader by a leased key in etcd, as etcd's own library elects one: its `etcdctl lock`.

Three processes want the key. The holder keeps its lease alive. When it is killed, the key goes with
its lease, and the next process sees that and takes it.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from bench.peers.etcd import EtcdServer, binary
from bench.peers.process import Process

CANDIDATES = 3
TTL_SECONDS = 2
ELECTED_SECONDS_MAX = 30.0
ASKED_SECONDS = 0.5  # after which a process has asked for the key


class LeaseElection:
    """Candidates for one key; a context manager."""

    def __init__(self, etcd: EtcdServer, folder: Path) -> None:
        self._etcd, self._folder = etcd, folder
        self._stack = ExitStack()
        self._waiting: list[Process] = []

    def __enter__(self) -> "LeaseElection":
        self._leader = self._candidate()
        self._leader.line(ELECTED_SECONDS_MAX)
        for _ in range(CANDIDATES - 1):
            self._wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _candidate(self) -> Process:
        command: Sequence[str] = (
            binary(self._etcd.version, "etcdctl"), f"--endpoints={self._etcd.endpoint}", "lock",
            f"--ttl={TTL_SECONDS}", "leader",
        )  # fmt: skip
        process = Process(
            command, self._folder / "lock.log", environment={"ETCDCTL_API": "3"}, talks=True
        )
        self._stack.callback(process.kill)
        return process

    def _wait(self) -> None:
        """One more that waits, behind all others."""
        self._waiting.append(self._candidate())
        time.sleep(ASKED_SECONDS)

    def seconds_without_leader(self) -> float:
        """Kills the one that leads; until the next one does."""
        self._leader.kill()
        killed = time.monotonic()
        self._leader = self._waiting.pop(0)  # they wait in the order in which they asked
        self._leader.line(ELECTED_SECONDS_MAX)
        seconds = time.monotonic() - killed
        self._wait()
        return seconds
