"""Starts so many two-step processes in bulk; prints when the first was about to be started."""

import sys
import time
from collections import deque

from bench.ours.process_app import TWO_STEP, app
from holdfast import ProcessHandle

INSTANCES_PER_SUBMIT = 500
# So many are on their way at once; the peers' submitters wait for theirs as well. With 8 of them
# 4,500 processes are in flight, which do not fit the cache: each costs the node a sixth more.
SUBMITS_AHEAD = 3


def main() -> None:
    count = int(sys.argv[1])
    app.deploy(TWO_STEP)  # the connection is there before the clock starts
    print(time.time(), flush=True)
    ahead: deque[ProcessHandle] = deque()
    for start in range(0, count, INSTANCES_PER_SUBMIT):
        end = min(start + INSTANCES_PER_SUBMIT, count)
        handles = app.start_many("two-step", [{"number": n} for n in range(start, end)])
        ahead.append(handles[-1])
        if len(ahead) > SUBMITS_AHEAD:
            ahead.popleft().result()
    app.close()


main()
