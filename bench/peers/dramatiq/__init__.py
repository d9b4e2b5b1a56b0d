"""dramatiq on Redis with appendfsync always."""

from bench.peers.redis_queue import RedisQueue


class Dramatiq(RedisQueue):
    """It has no bulk enqueue, so threads submit side by side and share Redis's fsyncs."""

    name = "dramatiq"
    requirements = ("dramatiq[redis]==2.2.1", "redis==8.1.0", "hiredis==3.5.0")
    submitter_threads = 8
    worker_threads = 16
