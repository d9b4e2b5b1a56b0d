"""huey on Redis with appendfsync always."""

from bench.peers.redis_queue import RedisQueue


class Huey(RedisQueue):
    """It has no bulk enqueue, so threads submit side by side and share Redis's fsyncs.

    A task is gone from Redis when it is fetched, not when it is done: less than ours promises.
    """

    name = "huey"
    requirements = ("huey==3.5.4", "redis==8.1.0", "hiredis==3.5.0")
    submitter_threads = 4
    worker_threads = 4
