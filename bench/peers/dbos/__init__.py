"""DBOS on PostgreSQL with fsync and synchronous commit.

What was chosen, and why, on two cores:

- A `DBOSClient` enqueues, in a process of its own. `enqueue_in_transaction` is its only bulk
  submit, so many workflows share a commit; small batches, so that the workers begin at once.
- Workers dequeue from a queue that has no global limit: DBOS then claims whole batches with
  `SKIP LOCKED`. The limit for a worker is several times its threads, so that no thread waits
  for the next poll, and small enough that one worker does not claim what the others could run.
- A worker is bound by its interpreter lock (some 9 ms of Python and SQLAlchemy an instance), so
  there is one for each core. More threads or processes than these only fight for the cores.
- Plain functions: asynchronous steps cost more, as DBOS hands their SQL to threads all the same.
- A connection for each thread, without the ping before each use that the pool does by default.
- Not chosen: starting workflows in the worker's own process (`DBOS.start_workflow`). It moves
  the inserts to the process that is the bottleneck already.

All is kept as DBOS does by default: the inputs, both steps' outputs and the result.
"""

import signal
import time
from pathlib import Path

from bench.costs import Meter, Sample
from bench.peers.install import python_environment
from bench.peers.postgres import Postgres
from bench.peers.process import READY_SECONDS_MAX, Process

REQUIREMENTS = ("dbos==3.3.0", "psycopg[binary]==3.3.8", "SQLAlchemy==2.1.8")
HERE = Path(__file__).parent
SECONDS_MAX = 300


class DbosTwoStep:
    """Two-step workflows: one submitter, a worker for each of two cores, and the database."""

    name = "DBOS"
    workers = 2
    threads = 8
    poll_ms = 200  # a poll is a few statements: more often would cost more than it brings
    batch_size = 50

    def __init__(self) -> None:
        self._postgres = Postgres()
        self._python = ""

    def start(self) -> None:
        self._python = str(python_environment("dbos", REQUIREMENTS))
        self._postgres.start()

    def two_step_processes_per_second(self, count: int) -> Sample:
        """From the first submit until PostgreSQL holds the outcome of the last; then verified."""
        processes: list[Process] = []
        dsn = self._postgres.dsn
        try:
            self._script("prepare", dsn).finish(READY_SECONDS_MAX)
            for number in range(self.workers):
                worker = self._script("worker", dsn, number, self.threads, self.poll_ms)
                processes.append(worker)
                worker.expect("ready", READY_SECONDS_MAX)
            submitter = self._script("submitter", dsn, count, self.batch_size)
            processes.append(submitter)
            submitter.expect("ready", READY_SECONDS_MAX)
            parts = {
                "server": [self._postgres.pid],
                "worker": [each.pid for each in processes[: self.workers]],
                "client": [submitter.pid],
            }
            with Meter(parts) as meter:
                begun = time.perf_counter()
                submitter.say("go")
                submitter.expect("done", SECONDS_MAX)
                seconds = time.perf_counter() - begun
            submitter.expect("verified", SECONDS_MAX)
            return meter.sample(count / seconds, count)
        finally:
            for process in processes:
                process.stop(signal.SIGKILL)

    def stop(self) -> None:
        self._postgres.stop()

    def _script(self, name: str, *arguments: object) -> Process:
        folder = self._postgres.folder
        assert folder is not None, "start() comes first"
        command = [self._python, str(HERE / f"{name}.py"), *map(str, arguments)]
        return Process(command, folder / f"{name}.log", talks=True)
