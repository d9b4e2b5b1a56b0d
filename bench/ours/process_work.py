"""Does so many jobs of processes; prints `ready`, then when the last was reported completed."""

import sys
import time

from bench.ours.process_app import app

CONCURRENCY = 1  # a no-op never waits: more threads would only fight for the interpreter
PREFETCH = 2_000


def main() -> None:
    count = int(sys.argv[1])
    worker = app.worker(concurrency=CONCURRENCY, prefetch=PREFETCH)
    worker.start()
    print("ready", flush=True)
    while worker.completed < count:
        time.sleep(0.002)
    print(time.time(), flush=True)
    worker.stop()
    app.close()


main()
