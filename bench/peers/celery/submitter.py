# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false, reportImplicitRelativeImport=false
# pyright: reportFunctionMemberAccess=false
"""Submits no-ops to Celery from a few threads: submitter.py PORT COUNT THREADS."""

import sys
from concurrent.futures import ThreadPoolExecutor

from tasks_app import made


def main(port: int, count: int, threads: int) -> None:
    app = made(port)

    @app.task(name="noop")
    def noop() -> None:
        """The worker's half of this task runs; here it is only named."""

    def submit(thread: int) -> None:
        for _ in range(thread, count, threads):
            noop.apply_async()

    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=3)
    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(submit, range(threads)))
    print("submitted", flush=True)


main(*map(int, sys.argv[1:4]))
