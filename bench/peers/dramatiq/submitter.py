# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportFunctionMemberAccess=false
"""Submits no-ops to dramatiq from a few threads: submitter.py PORT COUNT THREADS."""

import sys
from concurrent.futures import ThreadPoolExecutor

import dramatiq
from dramatiq.brokers.redis import RedisBroker


def main(port: int, count: int, threads: int) -> None:
    broker = RedisBroker(host="127.0.0.1", port=port, middleware=[])
    dramatiq.set_broker(broker)

    @dramatiq.actor
    def noop() -> None:
        """The worker's half of this actor runs; here it is only named."""

    def submit(thread: int) -> None:
        for _ in range(thread, count, threads):
            noop.send()

    broker.client.ping()
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(submit, range(threads)))
    print("submitted", flush=True)


main(*map(int, sys.argv[1:4]))
