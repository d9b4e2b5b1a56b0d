"""Members of a cluster as processes of this machine, with a real etcd."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAIT_S = 20.0


class MemberProcess:
    """`holdfast start --cluster` over a folder."""

    def __init__(self, etcd: str, name: str, folder: Path) -> None:
        self.name = name
        self.url = ""
        self.folder = folder / name
        self.log = folder / f"{name}.log"
        self._etcd = etcd
        self._process: subprocess.Popen[bytes] | None = None

    def launch(self) -> None:
        """Starts, and does not wait for it."""
        command = [
            sys.executable, "-m", "holdfast.cli", "start", str(self.folder), "--cluster",
            self._etcd, "--member", self.name, "--port", "0", "--json", "--log-level", "info",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)

    def wait_until_up(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.log.read_text()
        self.url = json.loads(line)["url"]

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Asks it to stop in order; its exit code."""
        return self._end(signal.SIGTERM)

    def ended(self) -> int:
        """Waits until it has ended by itself; its exit code."""
        assert self._process is not None
        return self._process.wait(WAIT_S)

    def _end(self, number: int) -> int:
        process = self._process
        assert process is not None
        if process.poll() is None:
            os.kill(process.pid, number)
        return process.wait(WAIT_S)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request; problems are raised as they come."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            content = answer.read()
        return json.loads(content) if content else None


class Cluster:
    """Three members and their etcd."""

    def __init__(self, etcd: str, folder: Path, names: str = "abc") -> None:
        self.members = {name: MemberProcess(etcd, name, folder) for name in names}

    def __enter__(self) -> "Cluster":
        for member in self.members.values():
            member.launch()
        for member in self.members.values():
            member.wait_until_up()
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members.values():
            if member.runs:
                member.kill()

    def status(self, by: str) -> Any:
        return self.members[by].ask("GET", "/v2/cluster")

    def owners(self, by: str) -> dict[int, str]:
        return {each["partitionId"]: each["owner"] for each in self.status(by)["partitions"]}

    def tasks(self, by: str) -> set[str]:
        """The keys of all tasks; an error if one comes twice."""
        found: list[str] = []
        after = None
        while True:
            page = self.members[by].ask(
                "POST", "/v2/tasks/search", {"limit": 1000, **({"after": after} if after else {})}
            )
            found += [each["taskKey"] for each in page["items"]]
            after = page.get("after")
            if after is None:
                assert len(found) == len(set(found))
                return set(found)

    def wait_until(self, by: str, condition: Callable[[Any], object]) -> Any:
        """The status of the cluster, once it is as it should be."""
        deadline = time.monotonic() + WAIT_S
        while True:
            status = self.status(by)
            if condition(status):
                return status
            assert time.monotonic() < deadline, status
            time.sleep(0.05)

    def healthy(self, by: str) -> Any:
        """Waits until all partitions are on all members, and none moves any more."""
        return self.wait_until(
            by,
            lambda status: all(
                each["state"] == "HEALTHY"
                and len(each["replicas"]) == len(self.members)
                and not any(replica["lag"] for replica in each["replicas"])
                for each in status["partitions"]
            ),
        )
