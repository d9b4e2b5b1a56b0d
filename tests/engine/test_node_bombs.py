"""A real node under a bad model: it answers others, the bomb can be canceled, SIGTERM ends it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from bombs import BOMBS, Bomb

from holdfast import Holdfast, InvalidArgument, NotFound

PROBE_MS_MAX = 250  # the 99th of 100 answers
RSS_MB_MAX = 256
SHORT = (
    "tokens double", "a process that calls itself twice", "no time, and doubling",
    "items of items",
)  # fmt: skip

Clock = Callable[[], float]


class Node:
    """A process with a node."""

    def __init__(self, folder: Path) -> None:
        command = [
            sys.executable, "-m", "holdfast.cli", "start", str(folder), "--port", "0", "--json",
            "--partitions", "1",
        ]  # fmt: skip
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self.process.stdout is not None
        self.url = json.loads(self.process.stdout.readline())["url"]

    def rss_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = [each for each in status.splitlines() if each.startswith("VmRSS")]
        return int(line.split()[1]) / 1024

    def cpu_seconds(self) -> float:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0


@contextmanager
def probes(url: str, clock: Clock = time.monotonic) -> Iterator[list[float]]:
    """Submits tasks all the while; gives how long each took by a clock, in milliseconds."""
    took: list[float] = []
    done = threading.Event()

    def ask() -> None:
        connection = http.client.HTTPConnection(url.partition("//")[2], timeout=30)
        while not done.wait(0.005):
            began = clock()
            headers = {"Content-Type": "application/json"}
            connection.request("POST", "/v2/tasks", '{"type": "probe"}', headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status < 300
            took.append((clock() - began) * 1_000)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield took
    finally:
        done.set()
        thread.join()


def blow_up(folder: Path, bomb: Bomb, seconds: float, *, is_alone: bool) -> None:
    node = Node(folder)
    # Beside others what a probe waits for is the node's own work, not its share of the machine.
    clock = time.monotonic if is_alone else node.cpu_seconds
    try:
        with Holdfast.connect(node.url) as app:
            try:
                app.deploy(*reversed(bomb.definitions))
            except InvalidArgument:
                return  # refused: it never runs
            before = node.rss_mb()
            with probes(node.url, clock) as took:
                instance = app.start(bomb.definitions[0].id)
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    time.sleep(0.1)
                    assert node.rss_mb() - before < RSS_MB_MAX
                with suppress(NotFound):  # it has ended
                    instance.cancel()
            took.sort()
            assert took and took[int(len(took) * 0.99)] <= PROBE_MS_MAX
        node.stop()
        again = Node(folder)  # what was put off, or is being ended, goes on
        try:
            with probes(again.url) as took:
                time.sleep(0.5)
            assert took
        finally:
            again.stop()
    finally:
        node.process.kill()


@pytest.mark.parametrize("name", SHORT)
def test_a_node_answers_others_while_a_bomb_goes_off(tmp_path: Path, name: str) -> None:
    (bomb,) = [each for each in BOMBS if each.name == name]
    blow_up(tmp_path, bomb, 1, is_alone=False)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.name)
def test_a_node_answers_others_while_each_bomb_goes_off(tmp_path: Path, bomb: Bomb) -> None:
    blow_up(tmp_path, bomb, 15, is_alone=True)
