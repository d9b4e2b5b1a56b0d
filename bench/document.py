"""Publishes the figures of build/bench.json: `python -m bench.document`.

They go to bench/figures.json, docs/benchmarks.md and its picture.
"""

import shutil
import sys
from typing import Any

from bench import store
from bench.places import BUILD, ROOT
from bench.plot import draw
from bench.table import against_recorded, parts

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "pictures" / "bench.svg"
# More than these would make the picture taller than a screen.
PICTURED = ("backlog", "batch", "journal", "pipeline", "processes", "replay", "selection", "tasks")
HEAD = """# Benchmarks

*Written by `python -m bench.document` from `bench/figures.json`: each benchmark's latest run.*

Each figure is a ratio of ours to a limit or a peer that was measured in the same run, in turn with
ours, over five rounds on a machine with two cores. The ratio is the median, behind it the smallest
and the largest of the rounds. What is beside it are the two medians, as context: they change with
the machine, the ratio much less. How each is measured is said in [bench/](../bench/README.md).

What to know when reading them:

- The journal is measured in two shapes. Large appends with three in flight a partition, segments of
  256 MiB and a log that is cut behind itself is the best of several shapes that were tried. Small
  appends with one in flight a partition is the plain one, and about half as good.
- Our no-op tasks keep no result, as the peers keep none. With results kept for a minute the ratio
  was not better: 1.8 and 1.6 in two runs.
- Runs differ: the no-op tasks had 1.81, 1.59, 1.80 and 1.69 in four runs, the deep backlog 0.86,
  0.79 and 0.78 in three, while the code changed a little between them. The table has the last.
- Two-step processes: the peers have two worker processes each and ours one, which favours them; our
  submitter keeps at most 4,500 processes on their way, and results are kept, as theirs are. Another
  full run gave 30.6 against DBOS and 5.06 against Restate.
- The journal and the deep backlog were last run before processes were added to the engine. The log
  is replayed about a tenth slower since: the code before had 0.95 in the same hour as 0.86 with it.
- The worker's protocol is HTTP with JSON. In the benchmark of tasks a worker sends 42 requests for
  20,000 tasks. A request costs about 570 µs of processor time on both sides, 1.2 µs a task; JSON
  costs 0.71 µs a task, msgpack 0.50. Frames of msgpack on one connection would save at most 1.4 of
  32 µs.
- Distribution is measured in one node, where partitions that answer in the same round share one
  ACKNOWLEDGE: four records in all. Where each answers by itself it is two by target and two more.
  The dark partitions are dark because what is sent to them is dropped; that one can be reached
  again is told by the call behind `holdfast distributions resume`.
- The idle node is measured over five seconds with a clock of 10 ms: 0.2% is one tick of it.
- Batch operations: items are real and so are their commands, while pgqueuer's jobs do nothing. To
  cancel an instance is to end its element and its job too, several times the work of retrying a
  task. What needs millions of items is measured once, not over five rounds. For about a second
  after it was created an operation goes slower, as beside live commands: few items feel that.
- Content: our subscribers and publisher are tasks of one process over a log on disk, the peers
  have a server and a process with all readers, which use both cores. The peers' readers
  acknowledge messages and drop them; in the first two figures ours do the same: they check a
  package, commit its offset and keep nothing. Redis syncs before it answers; Debian's NATS server
  cannot. What it costs to publish is measured with subscribers that are known and read elsewhere.
  The 2 GB file, the tree of 100,000 files, the kills and the hostile packages are tests: see
  `tests/content`.
- Clusters: etcd, three members, the clients and the peers share two cores and one disk. Members are
  killed six times for each figure. The bare replication loop has no log that can be read, no
  fencing and no recovery. Most goals of cuts come from us, not from a peer; preparing a cut of
  4,096 logs takes longer than writing it, and is not in the figure of the write.
- Members and cores were measured after the others, and are not in the picture, as content and
  clusters are not.
  The same code twice had 1.00 for batches of 16, 1.06 for lone commands, 1.07 for two processes.
- Parcels after a kill were measured while other programs kept the machine busy, at a load of 12 to
  17. In that run the partition committed again after 488 ms (median) and 652 ms (largest).

![Each figure against its goal](pictures/bench.svg)

| benchmark | figure | against | ratio | goal | | ours / peer |
|---|---|---|---|---|---|---|
"""


def number(value: float) -> str:
    """Short, with three digits that say something."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def row(figure: dict[str, object]) -> str:
    ratio, spread = figure.get("ratio"), figure.get("spread")
    if not isinstance(ratio, float) or not isinstance(spread, list):
        return (
            f"| {figure['name']} | {figure['figure']} | {figure['against']} | skipped |"
            f" {figure['goal']} | | {figure.get('skipped', '')} |"
        )
    measured = f"{number(ratio)} ({number(spread[0])} to {number(spread[1])})"
    ours, peer = figure["ours"], figure["peer"]
    assert isinstance(ours, float | int) and isinstance(peer, float | int)
    return (
        f"| {figure['name']} | {figure['figure']} | {figure['against']} | {measured} |"
        f" {figure['goal']} | {'met' if figure['met'] else '**not met**'} |"
        f" {number(ours)} / {number(peer)} {figure['unit']} |"
    )


COSTS = """
## Processor time

What a unit cost, in microseconds of processor time, of all processes together and of each part: a
busy machine changes this much less than how many there are a second. The server of a peer is its
database or its own. Beside it, what `bench/recorded.json` has of ours: see
[bench/](../bench/README.md#what-a-unit-costs).

| benchmark | figure | | processor time | instructions |
|---|---|---|---|---|
"""


def cost_rows(figure: dict[str, Any]) -> list[str]:
    """What a unit cost ours and each peer; none where it was not measured."""
    cost = figure.get("cost")
    if not cost:
        return []
    counted = cost["instructions"]
    rows: list[str] = []
    for label, costs in {"ours": cost["ours"], **cost["peers"]}.items():
        told = counted if isinstance(counted, str) else parts(counted.get(label, {}))
        beside = f"; {against_recorded(cost['recorded'])}" if label == "ours" else ""
        rows.append(
            f"| {figure['name']} | {figure['figure']} | {label} |"
            f" {parts(costs)} µs/{cost['of']}{beside} | {told} |"
        )
    return rows


def page(figures: list[store.Row]) -> str:
    """The text of docs/benchmarks.md."""
    costs = [line for figure in figures for line in cost_rows(figure)]
    table = HEAD + "\n".join(map(row, figures)) + "\n"
    return table + (COSTS + "\n".join(costs) + "\n" if costs else "")


def main() -> None:
    figures = store.earlier_rows()
    if not figures:
        sys.exit("no figures yet: run make bench")
    ordered = sorted(figures, key=lambda figure: str(figure["name"]))
    store.save(ordered, store.PUBLISHED)
    PAGE.write_text(page(ordered))
    _, vector = draw([each for each in ordered if each["name"] in PICTURED], BUILD / "document")
    shutil.copyfile(vector, PICTURE)
    print(f"{PAGE.relative_to(ROOT)}: written")


if __name__ == "__main__":
    main()
