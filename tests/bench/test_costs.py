"""What a unit costs: the processor time of whole process trees, and the check against a record."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.costs import Meter, Sample, tree_cpu_seconds
from tests.bench.test_harness import Silent

from bench import __main__, harness, instructions, recorded, table

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"


def child(program: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_a_part_is_a_process_with_all_that_it_has_started_and_waited_for():
    grandchild = BURN.format(seconds=0.2)
    program = (
        "import subprocess, sys\nsys.stdin.readline()\n"  # it begins when it is measured
        f"subprocess.run([sys.executable, '-c', {grandchild!r}], stdin=subprocess.DEVNULL)\n"
        "print('done', flush=True)\nsys.stdin.readline()"
    )
    parent = child(program)
    assert parent.stdout is not None and parent.stdin is not None
    with Meter({"node": [parent.pid], "nobody": []}) as meter:
        print("begin", file=parent.stdin, flush=True)
        parent.stdout.readline()
    parent.communicate("over\n")
    assert 0.18 < meter.seconds["node"] < 2
    assert "nobody" not in meter.seconds
    cost = meter.sample(5.0, 1_000).cpu_us["node"]
    assert cost == pytest.approx(meter.seconds["node"] * 1_000)


def test_a_part_that_has_ended_counts_as_long_as_nobody_has_waited_for_it():
    burning = child(BURN.format(seconds=0.1))
    with Meter({"client": [burning.pid]}) as meter:
        deadline = time.monotonic() + 20
        while Path(f"/proc/{burning.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < deadline
    burning.wait()
    assert 0.05 < meter.seconds["client"] < 2
    assert tree_cpu_seconds(burning.pid) == 0


def test_perf_is_read_and_what_it_cannot_count_is_none():
    told = "125483,,instructions:u,1203450,100.00,,\n"
    assert instructions.count_of(told, "instructions:u") == 125_483
    assert (
        instructions.count_of("<not supported>,,instructions:u,0,100.00,,", "instructions:u")
        is None
    )
    assert instructions.count_of("", "instructions:u") is None


@pytest.mark.skipif(
    shutil.which("perf") is None or instructions.missing("task-clock") is not None,
    reason="perf does not count here",
)
def test_perf_counts_in_a_process_that_runs_already():
    burning = child(BURN.format(seconds=60))
    counting = instructions.Counting([burning.pid], "task-clock")  # in ms, on every machine
    counting.begin()
    before, deadline = tree_cpu_seconds(burning.pid), time.monotonic() + 60
    while (passed := tree_cpu_seconds(burning.pid) - before) < 0.5:
        assert time.monotonic() < deadline
    counted = counting.end()
    burning.kill()
    burning.communicate()
    assert counted is not None and 0 < counted < 1_000 * (passed + 1)


def costing(*all_us: float) -> Callable[[], Sample]:
    each = iter(all_us)
    return lambda: Sample(1_000.0, {"node": next(each), "worker": 1.0})


def measured(ours: Callable[[], Sample], peers: dict[str, Callable[[], Sample]], rounds: int):
    figure = harness.Figure(
        "rate", "peer", ">= 1", "tasks/s", ours, peers, warm_up=False, cost_of="task"
    )
    return harness.measure("x", figure, rounds, Silent())


def test_costs_are_medians_by_part_and_the_ratio_is_to_the_cheapest_peer_of_each_round():
    row = measured(costing(9, 19, 11), {"a": costing(4, 3, 9), "b": costing(9, 1, 5)}, 3).row()
    assert row["ratio"] == 1
    cost = row["cost"]
    assert cost["ours"] == {"node": 11, "worker": 1, "all": 12}
    assert cost["peers"]["a"] == {"node": 4, "worker": 1, "all": 5}
    assert cost["ratio"] == 2  # of 10/5, 20/2, 12/6
    assert cost["recorded"]["word"] == recorded.NEW
    lines = "\n".join(table.cost_lines(row))
    assert "processor time of a task: 12.00 (node 11.00, worker 1.00) µs" in lines


def test_alone_there_is_a_cost_and_no_ratio():
    figure = harness.Figure(
        "rate", "peer", ">= 1", "tasks/s", costing(9, 9), costing(), cost_of="task", warm_up=False
    )
    row = harness.measure("x", figure, 2, Silent(), alone=True).row()
    assert (row["ratio"], row["met"], row["skipped"]) == (None, None, harness.ALONE)
    assert row["cost"]["ours"]["all"] == 10 and row["cost"]["ratio"] is None


@pytest.mark.parametrize(
    ("yardsticks", "word"),
    [
        ((1.0, 1.01, 1.0), recorded.SAME),
        ((1.09, 1.09, 1.1), recorded.SAME),
        ((1.12, 1.12, 1.13), recorded.SLOWER),
        ((0.88, 0.88, 0.87), recorded.QUICKER),
        ((1.0, 1.3, 1.6), recorded.NOISY),  # rounds of the same code are 1.27 apart
        ((1.2,), recorded.NOISY),  # one round says nothing of the machine
    ],
)
def test_a_cost_beyond_the_tolerance_is_slower_unless_the_null_run_is_as_far(
    yardsticks: tuple[float, ...], word: str
):
    compared = recorded.compare(yardsticks, 1.0)
    assert compared.word == word
    assert __main__.is_slower({"cost": {"recorded": compared.row()}}) is (word == recorded.SLOWER)


def test_what_is_recorded_stays_until_it_is_recorded_anew(tmp_path: Path):
    path = tmp_path / "recorded.json"
    assert recorded.load(path) == {}
    recorded.save({"tasks · a": 1.5, "tasks · b": 2.0}, path)
    recorded.save({"tasks · b": 3.0}, path)
    assert recorded.load(path) == {"tasks · a": 1.5, "tasks · b": 3.0}


def test_the_yardstick_takes_processor_time():
    assert 1_000 < recorded.yardstick_us() < 10_000_000
