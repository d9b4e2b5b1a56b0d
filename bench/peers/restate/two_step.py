"""Two-step durable handlers in Restate's Python SDK.

What was chosen, and why, on two cores:

- A service's handler with two `ctx.run` steps. A keyed workflow does the same and was as fast.
- granian with HTTP/2, so that a handler's stream stays open in both directions between its steps.
  It was about 1.6 times as fast as hypercorn, and as the request-response mode of HTTP/1.1.
- Two granian processes, one for each core: one was slower in most runs.
- Many invocations at once share the log's fsyncs: 800 in flight were faster than 50 and 200,
  mostly faster than 400, and 1,600 brought no more.
- Each is a request that is answered with the result, so one exchange submits, waits and
  verifies; a `send` would have to ask for each result afterwards.
- The server is as it comes: fsynced log, 24 partitions (1 and 4 were not reliably faster), and
  completed invocations retained.
"""

import signal
import time
from pathlib import Path

from bench.costs import Meter, Sample
from bench.peers.install import python_environment
from bench.peers.process import READY_SECONDS_MAX, Process, answers, free_port
from bench.peers.restate.server import RestateServer

REQUIREMENTS = ("restate-sdk==1.2.0", "granian==2.8.7", "uvloop==0.23.0")
HERE = Path(__file__).parent
SECONDS_MAX = 300


class RestateTwoStep:
    """A single-node server, granian with the service, and a submitter in a process of its own."""

    name = "Restate"
    workers = 2
    concurrency = 800
    warm_up = 1_000

    def __init__(self) -> None:
        self._server = RestateServer()
        self._service: Process | None = None
        self._python = Path()

    def start(self) -> None:
        self._python = python_environment("restate-python", REQUIREMENTS)
        self._server.start()
        assert self._server.folder is not None
        port = free_port()
        granian = [str(self._python.parent / "granian"), "--interface", "asgi", "--http", "2"]
        options = ["--loop", "uvloop", "--workers", str(self.workers), "--no-ws"]
        place = ["--host", "127.0.0.1", "--port", str(port), "two_step_service:app"]
        self._service = Process(
            [*granian, *options, *place],
            self._server.folder / "service.log",
            environment={"PYTHONPATH": str(HERE)},
        )
        self._service.wait_until(lambda: answers(port))
        self._server.register(port, "/TwoStep/run", "0")
        # The first seconds after a start are slow: each partition has yet to open its part.
        self.two_step_processes_per_second(self.warm_up)

    def two_step_processes_per_second(self, count: int) -> Sample:
        """From the first submit until the last result has come back; each is verified."""
        folder = self._server.folder
        assert folder is not None, "start() comes first"
        arguments = (self._server.ingress_port, count, self.concurrency)
        submitter = Process(
            [str(self._python), str(HERE / "two_step_submitter.py"), *map(str, arguments)],
            folder / "submitter.log",
            talks=True,
        )
        try:
            submitter.expect("ready", READY_SECONDS_MAX)
            assert self._service is not None, "start() comes first"
            parts = {
                "server": [self._server.pid],
                "worker": [self._service.pid],
                "client": [submitter.pid],
            }
            with Meter(parts) as meter:
                begun = time.perf_counter()
                submitter.say("go")
                submitter.expect("done", SECONDS_MAX)
                seconds = time.perf_counter() - begun
            return meter.sample(count / seconds, count)
        finally:
            submitter.stop(signal.SIGKILL)

    def stop(self) -> None:
        if self._service is not None:
            self._service.stop()
            self._service = None
        self._server.stop()
