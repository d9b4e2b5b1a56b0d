"""A node of several processes, as a user starts it: real processes, real sockets, real kills."""

import time
from pathlib import Path

from holdfast import Holdfast
from holdfast.cli.journal.files import open_reader, partitions_of, read_records
from holdfast.records import RecordKind, ValueType
from known_metrics import check_exported

from .node_process import DEADLINE_SECONDS, Node, started


def test_one_address_and_all_partitions(tmp_path: Path) -> None:
    """Work goes to the partitions of all members, and each of them knows all of it."""
    with started(tmp_path / "data", "--processes", "2", "--partitions", "4") as node:
        assert node.started["processes"] == 2 and node.started["partitions"] == 4
        node.until("UP")
        with Holdfast.connect(node.url) as app:

            @app.task
            def add(a: int, b: int) -> int:
                return a + b

            handles = [add.submit(each, 1) for each in range(40)]
            worker = app.worker().start()
            assert [each.result(timeout=60) for each in handles] == list(range(1, 41))
            worker.stop()
        topology = node.json("/v2/topology")
        assert [each["partitionId"] for each in topology["partitions"]] == [1, 2, 3, 4]
        assert [len(each["partitions"]) for each in topology["brokers"]] == [2, 2]
        exposition = node.get("/metrics")
        check_exported(exposition)
        numbers = exposition.decode().splitlines()
        appended = {
            line.split('"')[1]: float(line.split()[-1])
            for line in numbers
            if line.startswith("holdfast_appended_records_total{")
        }
        assert sorted(appended) == ["1", "2", "3", "4"], "one exposition for all members"
        done = 'holdfast_job_attempts_total{outcome="completed",type="add"} 40.0'
        assert done in numbers, "what members count is added up"
        waiting = [line for line in numbers if line.startswith("holdfast_jobs_waiting{")]
        places = [line.split('"')[1] for line in waiting]
        assert len(places) == len(set(places)), "each partition has one member"
        code, err = node.end()
        assert (code, err) == (0, "")
    reader = open_reader(tmp_path / "data")
    created = [
        record
        for _, record in read_records(reader, partitions_of(reader, None), 0)
        if record.kind is RecordKind.EVENT and record.value_type == ValueType.JOB
    ]
    assert len(created) >= 80, "the logs of all members are read as one"


def _runs(pid: int) -> bool:
    """A zombie does not: the process that adopts orphans may leave them for seconds."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_members_end_with_their_supervisor(tmp_path: Path) -> None:
    with started(tmp_path / "data", "--processes", "2") as node:
        members = node.members()
        assert sorted(members) == [1, 2]
        node.process.kill()
        node.process.wait()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while any(map(_runs, members.values())):
            assert time.monotonic() < deadline, "a member outlives its supervisor"
            time.sleep(0.02)


def test_another_division_is_refused_with_a_way(tmp_path: Path) -> None:
    with started(tmp_path / "data", "--processes", "2") as node:
        assert node.end()[0] == 0
    for arguments, words in (
        (("--processes", "3"), "holdfast partitions rebalance"),
        (("--partitions", "5"), "made with 4"),
    ):
        refused = Node(tmp_path / "data", *arguments)
        code, err = refused.process.wait(), refused.process.stderr.read()  # type: ignore[union-attr]
        assert code in (2, 5) and words in err and "Traceback" not in err
