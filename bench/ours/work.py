"""Does so many jobs of one of our apps; prints `ready`, then when the last was reported done."""

import sys
import time
from importlib import import_module

CONCURRENCY = 1  # a no-op never waits: more threads would only fight for the interpreter
PREFETCH = 2_000


def main() -> None:
    count, app = int(sys.argv[1]), import_module(f"bench.ours.{sys.argv[2]}").app
    worker = app.worker(concurrency=CONCURRENCY, prefetch=PREFETCH)
    worker.start()
    print("ready", flush=True)
    while worker.completed < count:
        time.sleep(0.002)
    print(time.time(), flush=True)
    worker.stop()
    app.close()


main()
