# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false, reportImplicitRelativeImport=false
"""Runs Celery's no-ops until all are acknowledged: worker.py PORT COUNT THREADS."""

import itertools
import os
import sys
import threading
import time

from redis import Redis
from tasks_app import made


def main(port: int, count: int, threads: int) -> None:
    redis = Redis(host="127.0.0.1", port=port)
    redis.flushall()
    app = made(port)
    ran = itertools.count(1)
    all_ran = threading.Event()

    @app.task(name="noop")
    def noop() -> None:
        if next(ran) == count:
            all_ran.set()

    def watch() -> None:
        all_ran.wait()
        while redis.llen("celery") or redis.hlen("unacked"):
            time.sleep(0.001)
        print("done", flush=True)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    worker = app.Worker(
        pool="threads", concurrency=threads, loglevel="ERROR", quiet=True,
        without_gossip=True, without_mingle=True, without_heartbeat=True,
    )  # fmt: skip

    def ready(**_: object) -> None:
        print("ready", flush=True)

    from celery.signals import worker_ready

    worker_ready.connect(ready, weak=False)
    worker.start()


main(*map(int, sys.argv[1:4]))
