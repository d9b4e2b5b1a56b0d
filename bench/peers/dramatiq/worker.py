# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportFunctionMemberAccess=false
"""Runs dramatiq's no-ops until all are acknowledged: worker.py PORT COUNT THREADS."""

import itertools
import sys
import threading
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware import Retries

IDLE_MS = 5  # how long an idle consumer sleeps at most before it looks again


def main(port: int, count: int, threads: int) -> None:
    broker = RedisBroker(host="127.0.0.1", port=port, middleware=[Retries()])
    broker.client.flushall()
    dramatiq.set_broker(broker)
    ran = itertools.count(1)
    all_ran = threading.Event()

    @dramatiq.actor
    def noop() -> None:
        if next(ran) == count:
            all_ran.set()

    worker = dramatiq.Worker(broker, worker_threads=threads, worker_timeout=IDLE_MS)
    worker.start()
    print("ready", flush=True)
    all_ran.wait()
    while broker.do_qsize(noop.queue_name):  # counts what is queued and what is not acknowledged
        time.sleep(0.001)
    print("done", flush=True)
    worker.stop()


main(*map(int, sys.argv[1:4]))
