"""Submits and works as fast as it can and says what was acknowledged, until it is killed."""

import itertools
import os
import sys
import threading

from holdfast import Config, Holdfast
from holdfast.limits import SEGMENT_BYTES_MIN

SUBMITTERS = 3


def say(line: str) -> None:
    """In one write, so that a line is there or is not."""
    os.write(1, line.encode() + b"\n")


def main(folder: str, round_: str) -> None:
    config = Config(partitions=2, segment_bytes=SEGMENT_BYTES_MIN, snapshot_interval_ms=200)
    app = Holdfast.open(folder, workers=0, config=config)

    @app.task
    def double(number: int) -> int:
        return number * 2

    app.worker(concurrency=2, lease=1.0).start()  # the next process need not wait for long

    def submit(submitter: int) -> None:
        for number in itertools.count():
            key = f"{round_}-{submitter}-{number}" if number % 2 else None
            handle = double.submit(number, key=key)
            say(f"submitted {handle.key} {number}")
            if number % 4 == 0:
                handle.result(timeout=60)
                say(f"completed {handle.key} {number}")
            if number % 10 == 0:
                for many in app.submit_many([double.bind(n) for n in range(20)]):
                    say(f"submitted {many.key} 0")

    threads = [threading.Thread(target=submit, args=(each,)) for each in range(SUBMITTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
