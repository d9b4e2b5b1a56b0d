"""A batch operation as people have it: a node, the pipeline beside it, and the command line."""

import io
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from served_node import ServedNode

from holdfast.cli.main import run
from holdfast.engine.processes.values import InstanceIntent
from holdfast.gateway.process_shapes import NewProcessInstance
from holdfast.model.dsl import Process
from holdfast.pipeline.tables.progress import load_progress
from holdfast.records import ValueType

ORDERS, OTHERS = 300, 60


@contextmanager
def pipeline_beside(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "holdfast.cli", "pipeline", "run", str(folder), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 150
        while load_progress(folder / "tables").batch < 0:
            assert process.poll() is None and time.monotonic() < deadline, "no tables"
            time.sleep(0.1)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def typed(node: ServedNode, *arguments: str) -> tuple[int, Any]:
    """A command and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(["batch", *arguments, "--url", node.url, "--json"])
    assert out.getvalue(), err.getvalue()
    return code, json.loads(out.getvalue())


def start(node: ServedNode, process: str, count: int) -> set[int]:
    keys: set[int] = set()
    for at in range(0, count, 20):
        new = [NewProcessInstance(process)] * min(20, count - at)
        receipts = node.portal.call(node.api.start(new))
        keys |= {int(each.process_instance_key) for each in receipts}
    return keys


def canceled(node: ServedNode) -> list[int]:
    return [each.key for each in node.events(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCELED)]


@pytest.mark.timeout(400)
@pytest.mark.xdist_group("spark")
def test_what_a_filter_chooses_is_canceled_and_nothing_else(node: ServedNode) -> None:
    node.deploy(Process("order").task("charge"))
    node.deploy(Process("other").task("charge"))
    orders, others = start(node, "order", ORDERS), start(node, "other", OTHERS)
    where = ("--where", '{"processId":"order"}')
    with pipeline_beside(node.folder):
        code, receipt = typed(node, "cancel", *where, "--dry-run")
        assert code == 0 and receipt["preview"]["items"] == ORDERS
        assert len(receipt["preview"]["sample"]) == 20
        assert {int(key) for key in receipt["preview"]["sample"]} <= orders
        assert canceled(node) == []

        code, receipt = typed(node, "cancel", *where, "--throttle", "150", "--no-wait")
        key = receipt["batchOperationKey"]
        deadline = time.monotonic() + 60
        while not (view := typed(node, "show", key)[1])["isSelected"]:
            assert time.monotonic() < deadline, view
            time.sleep(0.1)
        late = start(node, "order", 40)  # they match, and come too late
        assert view["operationsTotalCount"] == ORDERS
        while (view := typed(node, "show", key)[1])["endDate"] is None:
            assert time.monotonic() < deadline, view
            time.sleep(0.1)
        assert view["state"] == "COMPLETED"
        assert view["operationsCompletedCount"] == view["operationsTotalCount"] == ORDERS
        assert Counter(canceled(node)) == Counter(orders), "each once, and no other"
        assert not (late | others) & set(canceled(node))

        while len(items := typed(node, "items", key, "--limit", "1000")[1]["items"]) < ORDERS:
            assert time.monotonic() < deadline, "the tables do not get there"
        assert {int(each["itemKey"]) for each in items} == orders
        while {each["state"] for each in items} != {"COMPLETED"}:
            assert time.monotonic() < deadline, items[0]
            items = typed(node, "items", key, "--limit", "1000")[1]["items"]
        assert list((node.folder / "tables" / "_selections").iterdir()) == [], "nothing is left"
