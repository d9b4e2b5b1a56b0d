"""The demo of a cluster: what it counts as lost, doubled or out of order; and all of it, once."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.demo.cluster_load import Acknowledged
from holdfast.cli.demo.cluster_story import silence_end
from holdfast.cli.demo.cluster_verdict import MemberLog, judge

TAKEN = [Acknowledged("order-1", "11", 1, 0.0), Acknowledged("order-2", "12", 2, 0.1)]
WHOLE = {"order-1": ["11"], "order-2": ["12"]}


def test_what_every_member_has_once_in_one_order_is_good() -> None:
    assert judge(2, TAKEN, [MemberLog(WHOLE, "x")] * 3, [], 1.0).is_good


@pytest.mark.parametrize(
    ("log", "fault"),
    [
        (MemberLog({"order-1": ["11"]}, "x"), "lost"),
        (MemberLog(WHOLE | {"order-2": ["13"]}, "x"), "lost"),
        (MemberLog(WHOLE | {"order-1": ["11", "14"]}, "x"), "doubled"),
        (MemberLog(WHOLE, "y"), "orders"),
    ],
)
def test_a_member_that_lacks_doubles_or_orders_otherwise_is_seen(
    log: MemberLog, fault: str
) -> None:
    verdict = judge(2, TAKEN, [MemberLog(WHOLE, "x"), log], [], 1.0)
    assert not verdict.is_good
    assert getattr(verdict, fault) == (2 if fault == "orders" else 1)


def test_answers_that_were_on_their_way_do_not_end_the_silence() -> None:
    assert silence_end([0.9, 1.0, 1.01, 1.02, 1.4, 1.41], at=1.005) == 1.4


@pytest.mark.soak
def test_the_demo_kills_members_and_loses_nothing(tmp_path: Path) -> None:
    picture = tmp_path / "gaps.png"
    command = [sys.executable, "-m", "holdfast.cli", "cluster", "demo", "--json"]
    done = subprocess.run(
        [*command, "--kills", "2", "--picture", str(picture)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert (found["lost"], found["doubled"], found["orders"]) == (0, 0, 1)
    assert len({each["member"] for each in found["kills"]}) == 2
    assert picture.stat().st_size > 10_000
