"""A program of a group: `sharing.py URL NAME FILE`, until its input ends.

It writes a line when work on a partition begins and when it ends, with the machine's time.
"""

import json
import sys
import time
from pathlib import Path

from holdfast import Holdfast, Owned

GROUP = "shared"
TOKENS = [f"p{number}" for number in range(12)]


def main(url: str, name: str, file: Path) -> None:
    with file.open("a", buffering=1) as out:

        def tell(what: str, owned: Owned) -> None:
            line = {
                "what": what, "member": name, "token": owned.token, "epoch": owned.epoch,
                "offset": owned.offset, "at": time.monotonic(),
            }  # fmt: skip
            out.write(json.dumps(line) + "\n")

        def run(owned: Owned) -> None:
            tell("begin", owned)
            offset = owned.offset or 0
            while not owned.wait(0.05):
                offset += 1
                owned.commit(offset)
            tell("end", owned)

        with (
            Holdfast.connect(url) as app,
            app.group(GROUP, partitions=TOKENS, run=run, member=name, session=1.5),
        ):
            sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
