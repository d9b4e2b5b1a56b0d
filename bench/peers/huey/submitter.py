# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Submits no-ops to huey from a few threads: submitter.py PORT COUNT THREADS."""

import sys
from concurrent.futures import ThreadPoolExecutor

from huey import RedisHuey


def main(port: int, count: int, threads: int) -> None:
    huey = RedisHuey("bench", host="127.0.0.1", port=port)

    @huey.task()
    def noop() -> None:
        """The worker's half of this task runs; here it is only named."""

    def submit(thread: int) -> None:
        for _ in range(thread, count, threads):
            noop()

    huey.storage.conn.ping()
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(submit, range(threads)))
    print("submitted", flush=True)


main(*map(int, sys.argv[1:4]))
