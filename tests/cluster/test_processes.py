"""Three processes and a real etcd: work goes on when a member is killed, drained or removed."""

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.cluster.processes import Cluster, MemberProcess
from tests.etcd_server import etcd_server

from holdfast import Holdfast
from holdfast.cli.main import run as run_command


class Load:
    """Submits tasks as a program does that knows all members, and measures what it waits."""

    def __init__(self, name: str, members: Iterable[MemberProcess]) -> None:
        self._app = Holdfast.connect(",".join(each.url for each in members))
        self._task = self._app.task(name="mail")(lambda number: None)
        self._name = name
        self.keys: dict[str, str] = {}  # of the tasks that were acknowledged
        self.gaps: list[float] = []
        self._stop = False
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> "Load":
        self._running = self._pool.submit(self._run)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._running.result()  # every request was answered
        self._app.close()

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop:
            number = len(self.gaps)
            # Every other task has a key. Those without are told apart by the request's id alone.
            key = f"{self._name} {number}" if number % 2 else None
            handle = self._task.submit(number, key=key)
            self.keys[key or f"{number}"] = handle.key
            now = time.monotonic()
            self.gaps.append(now - last)
            last = now


def order_of(member: MemberProcess, last: int) -> list[dict[str, Any]]:
    """The order of all entries up to a cut, as a member derives it; its ids have no gaps."""
    found: list[dict[str, Any]] = []
    cut = 1
    while cut <= last:
        page = member.ask("POST", "/v2/cluster/order", {"cut": cut})
        found += [each for each in page["items"] if each["cut"] <= last]
        cut = page["nextCut"]
    following = 0
    for each in found:
        assert each["sequenceId"] == following
        following += each["entries"]
    return found


def test_work_goes_on_when_a_member_is_killed_comes_back_drains_and_is_removed(
    tmp_path: Path,
) -> None:
    with etcd_server() as etcd, Cluster(etcd.url, tmp_path) as cluster:
        cluster.healthy("a")
        victim = cluster.owners("a")[1]
        first, second = (each for name, each in cluster.members.items() if name != victim)
        killed = cluster.members[victim]
        with Load("one", [killed, first, second]) as one, Load("other", [second, first]) as other:
            time.sleep(0.5)
            killed.kill()
            time.sleep(1.0)
            assert victim not in cluster.owners(first.name).values()
            assert max(one.gaps + other.gaps) < 2.0  # 0.1 s where the machine has nothing else
            problems = cluster.status(first.name)["problems"]
            assert any(f"Member {victim} is down" in each for each in problems), problems
            health = first.ask("GET", "/v2/health")
            assert health["status"] == "DEGRADED"

            killed.launch()
            killed.wait_until_up()
            cluster.healthy(first.name)
            # The command returns when the member owns nothing any more.
            assert run_command(["cluster", "drain", victim, "--url", first.url]) == 0
            assert victim not in cluster.owners(first.name).values()
            assert killed.stop() == 0
        acknowledged = {*one.keys.values(), *other.keys.values()}
        assert len(acknowledged) == len(one.gaps) + len(other.gaps)
        assert cluster.tasks(first.name) == acknowledged  # each is there, and none twice

        moment = first.ask("POST", "/v2/cluster/cuts/positions", {})
        order = order_of(first, moment["number"])
        assert order == order_of(second, moment["number"])
        assert sum(each["entries"] for each in order) == moment["entries"]

        assert run_command(["cluster", "remove", victim, "--url", first.url]) == 0
        status = cluster.wait_until(
            first.name,
            lambda found: all(len(each["replicas"]) == 2 for each in found["partitions"]),
        )
        assert [each["member"] for each in status["members"]] == sorted(
            cluster.members.keys() - {victim}
        )
        killed.launch()
        assert killed.ended() != 0
        assert "removed" in killed.log.read_text()
        brokers = second.ask("GET", "/v2/topology")["brokers"]
        roles = sorted(
            (row["partitionId"], row["role"]) for each in brokers for row in each["partitions"]
        )
        assert roles == [(each, role) for each in range(1, 5) for role in ("follower", "leader")]
