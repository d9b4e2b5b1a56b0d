"""Starts so many two-step processes in bulk; prints when the first was about to be started."""

import sys
import time

from bench.ours.process_app import TWO_STEP, app

INSTANCES_PER_SUBMIT = 1_000


def main() -> None:
    count = int(sys.argv[1])
    app.deploy(TWO_STEP)  # the connection is there before the clock starts
    print(time.time(), flush=True)
    for start in range(0, count, INSTANCES_PER_SUBMIT):
        end = min(start + INSTANCES_PER_SUBMIT, count)
        app.start_many("two-step", [{"number": n} for n in range(start, end)])
    app.close()


main()
