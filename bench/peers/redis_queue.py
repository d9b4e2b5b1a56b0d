"""What the task queues on Redis have in common: a submitter and a worker race for no-op tasks."""

import inspect
from pathlib import Path

from bench.costs import Sample
from bench.peers.install import python_environment
from bench.peers.process import race
from bench.peers.redis import Redis


class RedisQueue:
    """A queue over a Redis that syncs every write; its scripts are in the folder of its class."""

    name: str
    requirements: tuple[str, ...]
    submitter_threads: int
    worker_threads: int

    def __init__(self) -> None:
        self._redis = Redis()
        self._python = ""

    def start(self) -> None:
        self._python = str(python_environment(self.name, self.requirements))
        self._redis.start()

    def no_op_tasks_per_second(self, count: int) -> Sample:
        folder = self._redis.folder
        assert folder is not None, "start() comes first"
        return race(
            self._script("submitter", count, self.submitter_threads),
            self._script("worker", count, self.worker_threads),
            folder,
            self._redis.pid,
        ).sample(count)

    def stop(self) -> None:
        self._redis.stop()

    def _script(self, name: str, *arguments: object) -> list[str]:
        script = Path(inspect.getfile(type(self))).parent / f"{name}.py"
        return [self._python, str(script), *map(str, (self._redis.port, *arguments))]
