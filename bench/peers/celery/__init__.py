"""Celery on Redis with appendfsync always."""

from pathlib import Path

from bench.peers.install import python_environment
from bench.peers.process import race
from bench.peers.redis import Redis

REQUIREMENTS = ("celery[redis]==5.5.3", "hiredis==3.2.1")
HERE = Path(__file__).parent


class Celery:
    """Tasks are acknowledged when they have run; threads submit side by side and share fsyncs."""

    name = "celery"
    submitter_threads = 8
    worker_threads = 8

    def __init__(self) -> None:
        self._redis = Redis()
        self._python = ""

    def start(self) -> None:
        self._python = str(python_environment(self.name, REQUIREMENTS))
        self._redis.start()

    def no_op_tasks_per_second(self, count: int) -> float:
        folder = self._redis.folder
        assert folder is not None, "start() comes first"
        seconds = race(
            self._script("submitter", count, self.submitter_threads),
            self._script("worker", count, self.worker_threads),
            folder,
        )
        return count / seconds

    def stop(self) -> None:
        self._redis.stop()

    def _script(self, name: str, *arguments: object) -> list[str]:
        return [self._python, str(HERE / f"{name}.py"), *map(str, (self._redis.port, *arguments))]
