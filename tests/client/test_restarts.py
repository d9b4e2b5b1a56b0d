"""A node is killed or stopped and started again: its clients and workers notice nothing."""

import signal
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shell import Shell
from waiting import WAIT, wait_until

from holdfast import Config, Holdfast, Process
from holdfast.client.portal import Portal
from holdfast.gateway.http import HttpServer
from holdfast.gateway.tasks.shapes import TaskQuery
from holdfast.node import LocalNode

PAUSE_S = 0.05  # between two calls of a thread: enough calls, and few enough to count


class Crowd:
    """Threads that each make one kind of call over and over."""

    def __init__(self, calls: dict[str, Callable[[], Any]]) -> None:
        self.done = dict.fromkeys(calls, 0)
        self.errors: list[str] = []
        self._calls = calls
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(name,)) for name in calls]
        for thread in self._threads:
            thread.start()

    def _run(self, name: str) -> None:
        while not self._ended.wait(PAUSE_S):
            try:
                self._calls[name]()
            except Exception as error:
                self.errors.append(f"{name}: {error!r}")
                return
            self.done[name] += 1

    def wait_for_more(self) -> None:
        """Returns when each has been done twice more, or one has failed."""
        wanted = {name: done + 2 for name, done in self.done.items()}
        wait_until(lambda: self.errors or all(self.done[each] >= wanted[each] for each in wanted))

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(WAIT)


class Killed:
    """A node in a process of its own, which is killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._shell = Shell(folder)
        self._node = self._shell.start_node("--partitions", "2")
        self.url = self._shell.url

    def restart(self) -> None:
        self._node.end(signal.SIGKILL)
        port = self.url.rpartition(":")[2]
        self._node = self._shell.begin("start", "data", "--port", port)

    def close(self) -> None:
        self._shell.close()


class Stopped:
    """A node that closes as it does for SIGTERM, and opens again; in this process, to be quick."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._portal = Portal("node")
        self._open(0)
        self.url = self._server.url

    def _open(self, port: int) -> None:
        self._node = self._portal.call(LocalNode.open(self._folder, Config(partitions=2)))
        self._server = HttpServer(self._node.gateway, port=port)
        self._portal.call(self._server.start())

    def restart(self) -> None:
        self._end()
        self._open(int(self.url.rpartition(":")[2]))

    def _end(self) -> None:
        self._portal.call(self._server.close())
        self._portal.call(self._node.close())

    def close(self) -> None:
        self._end()
        self._portal.close()


@pytest.mark.parametrize("kind", [Killed, Stopped])
def test_clients_and_workers_ride_out_a_restart_of_the_node(tmp_path: Path, kind: Any) -> None:
    node = kind(tmp_path)
    try:
        with Holdfast.connect(node.url, patience=WAIT) as app:
            ride_out(app, node.restart)
    finally:
        node.close()


def ride_out(app: Holdfast, restart: Callable[[], None]) -> None:
    release, runs, numbers = threading.Event(), count(), count()

    @app.task
    def parcel(number: int) -> None: ...

    @app.task
    def double(number: int) -> int:
        return 2 * number

    @app.task
    def slow() -> str:
        next(runs)
        release.wait(WAIT)
        return "done"

    def get_result() -> None:
        number = next(numbers)
        assert double.submit(number).result(timeout=WAIT) == 2 * number

    process = Process("order").wait("paid", message="payment", key="number")
    workers = [
        app.worker(tasks=["slow"]).start(),
        # a job whose lease was written when the node was killed waits until the lease ends
        app.worker(tasks=["double"], lease=1.0).start(),
    ]
    in_hand = slow.submit()
    wait_until(lambda: in_hand.view().state == "ACTIVE")
    crowd = Crowd(
        {
            "submit": lambda: parcel.submit(next(numbers)),
            "submit_many": lambda: app.submit_many([parcel.bind(next(numbers))] * 5),
            "result": get_result,
            "view": in_hand.view,
            "publish": lambda: app.publish("payment", next(numbers), ttl=60),
            "deploy": lambda: app.deploy(process),
        }
    )
    crowd.wait_for_more()
    restart()
    crowd.wait_for_more()
    crowd.end()
    release.set()
    assert crowd.errors == []
    assert in_hand.result(timeout=WAIT) == "done"
    assert next(runs) == 1, "the work in hand was done again"
    for worker in workers:
        worker.stop()
    assert tasks_of(app, "parcel") == crowd.done["submit"] + 5 * crowd.done["submit_many"]


def tasks_of(app: Holdfast, type_: str) -> int:
    found, after = 0, None
    while True:
        query = TaskQuery(type_, after=after, limit=1000)
        page = app.portal.call(app.api.tasks.page(query))
        found += len(page.items)
        if not page.items or page.after is None:
            return found
        after = page.after
