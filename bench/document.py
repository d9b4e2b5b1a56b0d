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
ours, over several rounds (mostly five) on a machine with two cores. The table shows the median
ratio, and in parentheses the smallest and the largest of the rounds. The last column has the two
medians for context: they depend on the machine, the ratio much less.
[bench/](../bench/README.md) explains how each figure is measured.

Notes on the figures:

- The journal is measured with two workloads. The first is the best of several that were tried:
  large appends, three in flight for each partition, segments of 256 MiB, and a log that is
  truncated during the run. The second is plain: small appends, one in flight for each partition.
  The first one reaches 0.88 of a disk that takes 2.6 GiB/s and 0.77 to 0.85 of one that takes 4.5:
  there, the memory that is copied and its checksum cost as much as the disk. Commits of 2 to 8 MiB
  make no difference, and neither does a thread that gets the interpreter's lock sooner.
  The plain one reaches 0.56 to 0.67 with entries of 1 KB and 0.45 to 0.53 with 256 B, depending on
  the disk: with a busy one, whose syncs took 4 ms, both were above 0.95. With a disk that does
  nothing, an append of 64 entries of 256 B takes 8.3 µs of our own work: 2 µs for the lengths, 1.5
  for checksum and copy, and the rest for one future, one header and one place in the log each.
  What made it better: less work of our own for an append, and commits up to 2 MiB that the loop
  writes itself. What did not: to let a thread write one half of a turn's appends while the loop
  joins the other half; to begin the write of the first half early (6% of a commit of 1 MiB,
  nothing at 256 KiB); O_DIRECT, whose writes took as long; a durable mark in shared memory (3% at
  256 KiB, nothing at 1 MiB); five function calls less (1%).
- The latency of single tasks depends on the disk, too. It was measured with syncs of 0.08 to
  0.14 ms. With syncs of 2 ms the ratios were 1.25 and 0.54. Of 170 µs to the acknowledgement the
  write and its sync take 95 to 105, and our own part 72: 48 before the write and 24 after it. Of
  these, 18 are the price of a cold cache, because the thread sleeps during a sync. For a ratio of
  1.5 our own part would have to be about 50. What made it shorter: the caller's thread runs the
  idle loop, the commit begins where a task is submitted, fewer calls (400 of Python's functions for
  a submission, 520 before; 1,500 from submit to result, 2,000 before), a caller that waits for a
  result runs what its worker reports, and no count of rows after each step. In the last round: the
  thread begins the write-out, does what need not be durable, and stays awake until the device has
  written (11 to 17 µs); no task of asyncio for a submission, and one look at the clock (6 µs).
  What did not: segments filled in smaller pieces (3 µs, but large writes took 18% longer), a
  metric that is counted behind the answer, signals held back in another way, a sync by the
  kernel's threads (milliseconds on a busy machine), O_DIRECT.
- The rates of tasks and two-step processes vary with the hour, because the machine's neighbours do:
  in several runs the no-op tasks reached 2.6 to 3.6 times the best peer, the processes 44 to 69
  times DBOS and 10 to 14 times Restate, and the time from submit to result was 0.167 to 0.255 of
  Restate's. By processor time a process costs us 1/80 to 1/100 of what it costs DBOS, and about
  1/20 of what it costs Restate.
- Restate's server uses both cores, while one process of ours uses one. It is busy for 87% of the
  time, with 33 to 42 µs a process at different hours. It waits for syncs for 4% and for a core for
  3%. 15 times Restate's rate would take 7% less time. The time has no large part left: no function
  takes 5% of it. What did not help: larger and smaller submissions, more of them in flight, a run
  three times as long, several requests for jobs at once, no garbage collection, large pages, other
  settings of the allocator, a write to the log beside the loop. An interpreter that was compiled
  with profiles ran a bare loop 1.57 times as fast and processes no faster: memory sets the pace.
  What did: changes that can be undone in one flat list (5 to 10%).
- Our no-op tasks keep no result, because the peers keep none. Peers share two cores with other
  programs: pgqueuer did between 8,000 and 27,000 tasks/s at different times. The processor time of
  a task is the steadier comparison.
- Two-step processes: each peer has two worker processes and ours has one, which favours the peers.
  Our submitter keeps at most 2,000 processes in flight: with 4,500 a node does 0.86 times as many.
  Both sides keep results. A node of two processes (`--processes 2`) does 1.0 to 1.2 times as many
  as a node of one, because its worker and its client share the two cores with it. It does 1.2 to
  1.3 times as many as before bulk work was divided among its processes and before a worker sent
  several reports at once. Its processor time for a process is 1.05 to 1.2 times that of one
  process.
- With a deep backlog every task is written to the store and read again. With a shallow one it never
  gets there. So what makes short-lived tasks cheaper lowers this ratio, and so does a quick
  machine: it was 0.71 to 0.85 in several runs. Measured beside the former code, jobs that share
  rows of the queue cost a node 15% less with a deep backlog and 11% less with a shallow one. What
  also helped: rows that are read with one call each instead of three, written without code of ours
  for each, and found by one walk over neighbours. A task of the backlog still takes 4 µs more:
  half of it to encode, write and delete the row of the job, half to find, read and decode it. On a
  machine that does a shallow task in 13.5 µs, client included, a ratio of 0.9 leaves 1.5 µs.
- The micro-batch of one task takes about 14 ms of our own work, half of it for the commits of
  Delta. The rest is Spark's, as in its own source. The files of several tables are written at once.
- Replay is compared with a fixed number, so it depends on the machine more than other figures. It
  was 0.94 at a load of 14, and 1.4 to 1.5 by processor time alone.
- The worker's protocol is HTTP with JSON. In the benchmark of tasks a worker sends 42 requests for
  20,000 tasks. A request costs about 570 µs of processor time on both sides, 1.2 µs a task; JSON
  costs 0.71 µs a task, msgpack 0.50. Frames of msgpack on one connection would save at most 1.4 of
  27 µs. A worker asks for jobs about 90 times for 100,000 tasks, and 82 times for 20,000 two-step
  processes: to do that in the request that completes the last ones would save half a microsecond a
  task and 2 µs a process, 2 to 3%. In the node both are one step already: the worker that waits
  gets the next jobs in the append that completes the last ones.
- Selection is a Spark job whose Python tasks read the files with Arrow. An empty job of that kind
  takes about half of the time. Spark's own scan was 3.0 to 3.5 times as slow as DuckDB after 20
  selections and 2.3 times after 60: until then Java's compiler took 40% of the processor time.
  For that scan, fewer and larger splits, no pushdown of filters, no adaptive execution, larger
  direct results, other thresholds of the compiler and other garbage collectors made no difference.
- Distribution is measured in one node, where partitions that answer in the same round share one
  ACKNOWLEDGE: four records in total. If each partition answers separately, there are two records
  for each target and two more. Unreachable partitions are simulated by dropping everything that is
  sent to them. The benchmark reports that a partition is reachable again by the call behind
  `holdfast distributions resume`.
- The idle node is measured over five seconds with a resolution of 10 ms: one tick is 0.2%.
- Batch operations: our items and commands are real, while pgqueuer's jobs do nothing. Canceling an
  instance also ends its element and its job, which is several times the work of retrying a task.
  Figures that need millions of items are measured once, not over five rounds. An operation runs
  at its reduced rate for about a second after its creation, which matters only for small ones.
- Content: our subscribers and our publisher run in one process over a log on disk. Each peer has a
  server and a process with all readers, so the peers use both cores. The peers' readers acknowledge
  messages and drop them. In the first two figures ours do the same: they validate a package, commit
  its offset and store nothing. Redis syncs before it answers; Debian's NATS server cannot. The cost
  of publishing is measured with registered subscribers that read on other machines. The 2 GB file,
  the tree of 100,000 files, the kills and the malicious packages are tests in `tests/content`.
- Clusters: etcd, three members, the clients and the peers share two cores and one disk. Members are
  killed six times for each figure. The bare replication loop has no readable log, no fencing and no
  recovery. We set most goals for cuts ourselves; no peer has them. Preparing a cut of 4,096 logs
  takes longer than writing it, and is not part of the figure for the write.
- Kafka: a no-op task is four records of 90 bytes each. Under this load a partition appends 1,100 to
  1,400 of them at once, so that 1,000 tasks are about three appends. A task takes 38 µs of
  processor time: the node 24, the worker 6, the client 4 and the broker 5. The bare producer and
  its broker take 14 for the same bytes. So even if nobody ever waited, two cores would do 53,000
  tasks a second, 0.36 of what the bare producer can reach on them. On its own disk the node takes
  18, and about 28 with worker and client: with a log that costs nothing at all, half of the bare
  producer's rate would just be reached.
- Kafka beside a bare producer and a node on its own disk, one task at a time and the rows were
  measured at a load of 3 to 9. In two runs at a higher load the node reached 0.28 and 0.18 of the
  bare producer. The rows from the broker reached 0.97 in another run. The others are
  of an earlier, quieter run, with smaller spreads: at that load the processor time of an entry in
  batches of 256 was 0.72 and 0.88 instead of 1.56.
- The picture omits members, cores, content and clusters. Comparing the same code with itself gave
  1.00 for batches of 16, 1.06 for single commands and 1.07 for two processes.

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

The processor time of one unit in microseconds, in total and for each part. A busy machine affects
it much less than the rate. The server of a peer is its own server or its database. For our figures
the table also shows the comparison with `bench/recorded.json`: see
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
