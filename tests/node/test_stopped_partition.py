"""A partition that has stopped is seen from outside: in health, metrics and answers."""

import asyncio
from pathlib import Path

import pytest

from holdfast.config import Config
from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.partition import DISPATCH
from holdfast.errors import Unavailable
from holdfast.node import LocalNode
from holdfast.records import Record, ValueType, partition_of

CREATE = Command(ValueType.JOB, JobIntent.CREATE, 0, NewJob("mail", b"1"))


def test_health_and_metrics_name_a_partition_that_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = DISPATCH.appliers[ValueType.JOB, JobIntent.CREATED]

    def broken(state: object, record: Record) -> None:
        if partition_of(record.key) == 2:
            raise ZeroDivisionError("a bug of this version")
        created(state, record)

    async def story() -> None:
        node = await LocalNode.open(tmp_path / "data", Config(partitions=3))
        for partition in (1, 2, 3):
            await node.runner.submit(partition, [CREATE])
        node.runner.write_state = lambda: None  # so that the log has to be read
        await node.close()
        with monkeypatch.context() as patch:
            patch.setitem(DISPATCH.appliers, (ValueType.JOB, JobIntent.CREATED), broken)
            node = await LocalNode.open(tmp_path / "data", Config(partitions=3))
        health = node.health()
        assert health.status == "DEGRADED"
        assert "Partition 2 has stopped: ZeroDivisionError: a bug" in health.damage[0]
        text = node.metrics.exposition().decode()
        found = [line[-3:] for line in text.splitlines() if line.startswith("holdfast_partition_o")]
        assert found == ["1.0", "0.0", "1.0"]
        with pytest.raises(Unavailable, match="a bug of this version"):
            node.runner.submit(2, [CREATE])
        await node.runner.submit(1, [CREATE])
        await node.upkeep.take_snapshot()
        await node.close()
        node = await LocalNode.open(tmp_path / "data", Config(partitions=3))
        await node.runner.submit(2, [CREATE])
        assert not node.runner.stopped
        await node.close()

    asyncio.run(story())
