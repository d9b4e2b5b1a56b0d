"""Three processes and a real etcd: work goes on when a member is killed, drained or removed."""

import threading
import time
import urllib.error
from pathlib import Path

from tests.cluster.processes import Cluster, MemberProcess
from tests.etcd_server import etcd_server


class Load:
    """Submits keyed tasks to a member, again and again, and asks again where it is not answered."""

    def __init__(self, member: MemberProcess) -> None:
        self.member = member
        self.keys: dict[str, str] = {}  # of the tasks that were acknowledged
        self.gaps: list[float] = []
        self.failures: list[str] = []
        self._stop = False
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join()

    def _run(self) -> None:
        number, last = 0, time.monotonic()
        while not self._stop:
            key = f"{self.member.name} {number}"
            try:
                receipt = self.member.ask("POST", "/v2/tasks", {"type": "mail", "key": key})
                self.keys[key] = receipt["taskKey"]
                number += 1
            except urllib.error.HTTPError as error:
                self.failures.append(error.read().decode())
            now = time.monotonic()
            self.gaps.append(now - last)
            last = now


def test_work_goes_on_when_a_member_is_killed_comes_back_drains_and_is_removed(
    tmp_path: Path,
) -> None:
    with etcd_server() as etcd, Cluster(etcd.url, tmp_path) as cluster:
        cluster.healthy("a")
        victim = cluster.owners("a")[1]
        first, second = (each for name, each in cluster.members.items() if name != victim)
        with Load(first) as one, Load(second) as other:
            time.sleep(0.5)
            cluster.members[victim].kill()
            time.sleep(1.5)
            assert victim not in cluster.owners(first.name).values()
            # Only what was on its way to the killed member is not known, once for each connection.
            assert all('"UNKNOWN"' in each for each in one.failures + other.failures)
            assert len(one.failures + other.failures) <= 2
            assert max(one.gaps + other.gaps) < 1.0
            problems = cluster.status(first.name)["problems"]
            assert any(f"Member {victim} is away" in each for each in problems)
            health = first.ask("GET", "/v2/health")
            assert health["status"] == "DEGRADED"

            cluster.members[victim].launch()
            cluster.members[victim].wait_until_up()
            cluster.healthy(first.name)
            failed = len(one.failures + other.failures)
            first.ask("POST", f"/v2/cluster/members/{victim}/drain", {})
            cluster.wait_until(
                first.name,
                lambda found: all(each["owner"] != victim for each in found["partitions"]),
            )
            assert len(one.failures + other.failures) == failed  # no request without an answer
        assert cluster.members[victim].stop() == 0

        acknowledged = one.keys | other.keys
        again = first.ask(
            "POST", "/v2/tasks/batch", {"tasks": [{"type": "mail", "key": k} for k in acknowledged]}
        )
        receipts = again["tasks"]
        assert [each["taskKey"] for each in receipts] == list(acknowledged.values())
        assert not any(each["created"] for each in receipts)

        first.ask("POST", f"/v2/cluster/members/{victim}/remove", {})
        status = cluster.wait_until(
            first.name,
            lambda found: all(len(each["replicas"]) == 2 for each in found["partitions"]),
        )
        assert [each["member"] for each in status["members"]] == sorted(
            cluster.members.keys() - {victim}
        )
        cluster.members[victim].launch()
        assert cluster.members[victim].ended() != 0
        assert "removed" in cluster.members[victim].log.read_text()
        brokers = second.ask("GET", "/v2/topology")["brokers"]
        roles = sorted(
            (row["partitionId"], row["role"]) for each in brokers for row in each["partitions"]
        )
        assert roles == [(each, role) for each in range(1, 5) for role in ("follower", "leader")]
