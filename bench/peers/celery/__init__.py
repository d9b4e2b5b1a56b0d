"""Celery on Redis with appendfsync always."""

from bench.peers.redis_queue import RedisQueue


class Celery(RedisQueue):
    """Tasks are acknowledged when they have run; threads submit side by side and share fsyncs."""

    name = "celery"
    requirements = ("celery[redis]==5.5.3", "hiredis==3.2.1")
    submitter_threads = 8
    worker_threads = 8
