"""A real etcd is restored from an old snapshot, and repaired by the command."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.peers.etcd import EtcdServer
from tests.cluster.processes import WAIT_S, Cluster, MemberProcess
from tests.etcd_server import etcd_server

from holdfast import Holdfast
from holdfast.cli.main import run as run_command

pytestmark = pytest.mark.xdist_group("etcd")
NAMES = "abc"


def submit(member: MemberProcess, *keys: str) -> dict[str, str]:
    """The keys of tasks by their names."""
    with Holdfast.connect(member.url, patience=WAIT_S) as app:
        task = app.task(name="mail")(lambda: None)
        return {key: task.bind().submit(key=key).key for key in keys}


class Repairs:
    """The command, and what it prints."""

    def __init__(self, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
        self._cluster = cluster
        self._capsys = capsys

    def run(self, *options: str) -> Any:
        self._capsys.readouterr()
        url = self._cluster.members["a"].url
        code = run_command(["cluster", "repair", "--url", url, "--json", *options])
        printed = self._capsys.readouterr()
        assert code == 0, printed.err
        return json.loads(printed.out)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def roll_back(etcd: EtcdServer, cluster: Cluster, snapshot: Path) -> dict[str, str]:
    """etcd lacks everything that happened after a snapshot; the tasks that were acknowledged."""
    cluster.healthy("a")
    tasks = submit(cluster.members["a"], *(f"before {each}" for each in range(8)))
    etcd.ctl("snapshot", "save", str(snapshot))
    for name in "bc":  # new epochs and cuts
        cluster.members[name].kill()
        tasks |= submit(cluster.members["a"], *(f"without {name} {each}" for each in range(8)))
        cluster.members[name].launch()
        cluster.members[name].wait_until_up()
        cluster.healthy("a")
    tasks |= submit(cluster.members["b"], "last")
    etcd.restore(snapshot)
    wait_for(lambda: all(cluster.status(name)["etcd"] == "ROLLED_BACK" for name in NAMES))
    return tasks


@pytest.mark.soak
def test_an_etcd_that_was_restored_from_an_old_snapshot_is_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with etcd_server() as etcd, Cluster(etcd.url, tmp_path) as cluster:
        repairs = Repairs(cluster, capsys)
        tasks = roll_back(etcd, cluster, tmp_path / "snapshot.db")
        problems = " ".join(cluster.status("a")["problems"])
        assert "rolled back" in problems
        told = repairs.run()
        assert (told["isDone"], told["problems"]) == (False, [])
        assert any(each.startswith("partition") for each in told["changes"]), told
        tasks |= submit(cluster.members["a"], "while it is rolled back")
        done = repairs.run("--yes")
        assert done["isDone"], done
        assert repairs.run()["changes"] == []
        for name in NAMES:
            cluster.members[name].stop()
            cluster.members[name].launch()
            cluster.members[name].wait_until_up()
        cluster.healthy("a")
        for name in NAMES:
            assert cluster.status(name)["etcd"] == "AVAILABLE"
            assert submit(cluster.members[name], *tasks) == tasks, "each is there, and none twice"
        assert cluster.tasks("a") == set(tasks.values())
        number = cluster.status("a")["cut"]
        submit(cluster.members["c"], "after the repair")
        wait_for(lambda: cluster.status("b")["cut"] > number)
