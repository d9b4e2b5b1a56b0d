"""Runs the benchmark of batch operations with very few items: tiny_batch.py FOLDER.

In a process of its own, because its Spark ends with it. Prints what was measured of ours, and of
what stands against it if that is not another system.
"""

import json
import sys
from pathlib import Path

from bench.batch import Sizes, figures
from bench.ours import batches
from bench.ours.batches import our_batches

SIZES = Sizes(
    rows=80_000, many=6_000, most=8_000, few=1_000, beside=1_000, slow=90_000, stopped=12_000,
    live=20, rounds=1,
)  # fmt: skip


batches.QUIET_SECONDS = 0.5  # for one that runs beside other tests, how long it took is no figure


def main(folder: Path) -> None:
    found: dict[str, tuple[float, float | None]] = {}
    with our_batches(folder, SIZES.tasks(), SIZES.instances(), SIZES.rows) as ours:
        for figure in figures(ours, SIZES):
            (name, peer), *_ = figure.peers.items()
            is_other = name.startswith("pgqueuer")
            found[figure.name] = (figure.ours(), None if is_other else peer())
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
