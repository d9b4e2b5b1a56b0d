"""Submits so many no-op tasks in bulk; prints when the first was about to be submitted."""

import sys
import time

from bench.ours.app import app, nothing

TASKS_PER_SUBMIT = 1_000


def main() -> None:
    count = int(sys.argv[1])
    app.portal.call(app.api.node.topology())  # the connection is there before the clock starts
    print(time.time(), flush=True)
    for start in range(0, count, TASKS_PER_SUBMIT):
        app.submit_many(
            [nothing.bind(n) for n in range(start, min(start + TASKS_PER_SUBMIT, count))]
        )
    app.close()


main()
