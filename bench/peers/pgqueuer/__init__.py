"""pgqueuer on PostgreSQL with fsync and synchronous commit."""

from pathlib import Path

from bench.costs import Sample
from bench.peers.install import python_environment
from bench.peers.postgres import Postgres
from bench.peers.process import Process, race

REQUIREMENTS = ("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0")
HERE = Path(__file__).parent
SECONDS_MAX = 300
TASKS_PER_SECOND_MIN = 1_000  # fewer than it ever had: who waits for very many waits longer


class Pgqueuer:
    """Bulk enqueue, a pooled asyncpg driver and large batches: its fast settings."""

    name = "pgqueuer"
    batch_size = 500
    pool_size = 10
    enqueue_size = 5_000

    def __init__(self) -> None:
        self._postgres = Postgres()
        self._python = ""

    def start(self) -> None:
        self._python = str(python_environment(self.name, REQUIREMENTS))
        self._postgres.start()

    def no_op_tasks_per_second(self, count: int) -> Sample:
        folder = self._postgres.folder
        assert folder is not None, "start() comes first"
        dsn = self._postgres.dsn
        prepare = Process([self._python, str(HERE / "prepare.py"), dsn], folder / "prepare.log")
        prepare.finish(60)
        return race(
            self._script("submitter", dsn, count, self.enqueue_size),
            self._script("worker", dsn, count, self.batch_size, self.pool_size),
            folder,
            self._postgres.pid,
            max(SECONDS_MAX, count / TASKS_PER_SECOND_MIN),
        ).sample(count)

    def stop(self) -> None:
        self._postgres.stop()

    def _script(self, name: str, *arguments: object) -> list[str]:
        return [self._python, str(HERE / f"{name}.py"), *map(str, arguments)]
