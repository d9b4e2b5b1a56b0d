# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Runs huey's no-ops until all are completed: worker.py PORT COUNT THREADS."""

import itertools
import logging
import sys
import threading

from huey import RedisHuey, signals


def main(port: int, count: int, threads: int) -> None:
    logging.disable(logging.WARNING)
    huey = RedisHuey("bench", host="127.0.0.1", port=port)
    huey.storage.conn.flushall()
    completed = itertools.count(1)
    all_completed = threading.Event()

    @huey.task()
    def noop() -> None:
        """Does nothing."""

    @huey.signal(signals.SIGNAL_COMPLETE)
    def on_complete(_signal: str, _task: object) -> None:
        if next(completed) == count:
            all_completed.set()

    consumer = huey.create_consumer(workers=threads, periodic=False, worker_type="thread")
    consumer.start()
    print("ready", flush=True)
    all_completed.wait()
    print("done", flush=True)
    consumer.stop(graceful=True)


main(*map(int, sys.argv[1:4]))
