"""Redis Streams with appendfsync always: a consumer group for each reader."""

from pathlib import Path

from bench.peers.install import python_environment
from bench.peers.process import race
from bench.peers.redis import Redis

REQUIREMENTS = ("redis==8.1.0", "hiredis==3.5.0")
HERE = Path(__file__).parent


class RedisStreams:
    """Entries are added in pipelines and read and acknowledged in batches, which suits it best."""

    name = "Redis Streams"

    def __init__(self) -> None:
        self._redis = Redis()
        self._python = ""

    def start(self) -> None:
        self._python = str(python_environment("redis-streams", REQUIREMENTS))
        self._redis.start()

    def deliveries_per_second(self, count: int, readers: int, size_bytes: int) -> float:
        """From the first message until the last reader has acknowledged the last."""
        folder = self._redis.folder
        assert folder is not None, "start() comes first"
        seconds = race(
            self._script("submitter", count, size_bytes), self._script("readers", count, readers),
            folder, self._redis.pid,
        ).seconds  # fmt: skip
        return count * readers / seconds

    def stop(self) -> None:
        self._redis.stop()

    def _script(self, name: str, *arguments: object) -> list[str]:
        return [self._python, str(HERE / f"{name}.py"), *map(str, (self._redis.port, *arguments))]
