"""Batch operations as people have them: a node, the pipeline beside it, and the command line."""

from collections import Counter

import pytest
from batch_console import (
    begun,
    ended,
    outcomes,
    pipeline_beside,
    shown,
    start,
    typed,
    until,
)
from served_node import ServedNode

from holdfast.engine.processes.values import InstanceIntent
from holdfast.model.dsl import Process
from holdfast.pipeline.select.snapshot import FOLDER
from holdfast.records import ValueType

ORDERS, OTHERS = 300, 60
WHERE = ("--where", '{"processId":"order"}')


def canceled(node: ServedNode) -> list[int]:
    return [each.key for each in node.events(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCELED)]


@pytest.mark.soak
@pytest.mark.timeout(400)
@pytest.mark.xdist_group("spark-processes")
def test_a_pipeline_that_is_killed_while_it_selects_costs_nothing(node: ServedNode) -> None:
    node.deploy(Process("order").task("charge"))
    node.deploy(Process("other").task("charge"))
    orders, others = start(node, "order", ORDERS), start(node, "other", OTHERS)
    selections = node.folder / "tables" / FOLDER
    with pipeline_beside(node.folder) as pipeline:  # which is starting: requests wait for it
        code, receipt = typed(node, "cancel", *WHERE, "--dry-run")
        assert code == 0 and receipt["preview"]["items"] == ORDERS
        assert len(receipt["preview"]["sample"]) == 20
        assert {int(key) for key in receipt["preview"]["sample"]} <= orders
        assert canceled(node) == []

        key = begun(node, "cancel", *WHERE, "--throttle", "150")
        folder = selections / f"batch-{key}"
        until(folder.is_dir, "the selection is under way")
        pipeline.kill()
        assert not (folder / "manifest.json").exists(), "it was killed too late"
        late = start(node, "order", 40)  # they match, and come too late
        assert shown(node, key)["operationsTotalCount"] == 0

    with pipeline_beside(node.folder):
        view = ended(node, key)
        assert outcomes(view) == ("COMPLETED", ORDERS, 0, 0, 0)
        assert Counter(canceled(node)) == Counter(orders), "each once, and no other"
        assert not (late | others) & set(canceled(node))

        def states() -> list[str]:
            page = typed(node, "items", key, "--limit", "1000")[1]
            assert {int(each["itemKey"]) for each in page["items"]} <= orders
            return [each["state"] for each in page["items"]]

        until(lambda: states() == ["COMPLETED"] * ORDERS, "the tables tell the same")
        assert list(selections.iterdir()) == [], "nothing is left"
