"""Rows of Spark become work, each once, however often Spark sends them."""

import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest
from served_node import ServedNode

from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.processes.values import InstanceIntent
from holdfast.errors import Internal, InvalidArgument, NotFound, Unavailable
from holdfast.gateway.tasks.shapes import NewTask, TaskQuery, TaskReceipt
from holdfast.model.dsl import Process
from holdfast.pipeline import sink
from holdfast.pipeline.sink import SinkWritten, send_rows
from holdfast.pipeline.sink_rows import plan_of
from holdfast.pipeline.source import HoldfastSource
from holdfast.records import ValueType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def send(
    url: str, options: dict[str, str], columns: dict[str, list[Any]], patience_s: float = 10
) -> SinkWritten:
    """What an executor does, without Spark."""
    kinds = {
        name: "string" if isinstance(values[0], str) else "bigint"
        for name, values in columns.items()
    }
    batch = pa.RecordBatch.from_pydict(columns)
    halves = [batch.slice(0, batch.num_rows // 2), batch.slice(batch.num_rows // 2)]
    return send_rows(url, plan_of(options, kinds), patience_s, 3, iter(halves))


def keys(count: int) -> list[str]:
    return [f"k{n:05}" for n in range(count)]


# --- what one executor sends ------------------------------------------------------------------


def test_tasks_are_created_once_however_often_they_are_sent(node: ServedNode) -> None:
    columns = {"key": keys(3_500), "n": list(range(3_500))}
    assert send(node.url, {"type": "mail"}, columns) == SinkWritten(3_500, 3_500)
    assert send(node.url, {"type": "mail"}, columns) == SinkWritten(3_500, 0)
    assert node.keys_of_created_tasks() == keys(3_500)


def test_large_rows_go_in_smaller_requests(node: ServedNode) -> None:
    columns = {"key": keys(30), "text": ["x" * 1_000_000] * 30}
    assert send(node.url, {"type": "mail"}, columns) == SinkWritten(30, 30)


def test_instances_are_started_once(node: ServedNode) -> None:
    node.deploy(Process("order").task("charge"))
    options, columns = (
        {"what": "process", "processId": "order"},
        {"key": keys(50), "total": [7] * 50},
    )
    assert send(node.url, options, columns) == SinkWritten(50, 50)
    assert send(node.url, options, columns) == SinkWritten(50, 0)
    assert len(node.events(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATED)) == 50


def test_messages_are_published_once_while_they_are_kept(node: ServedNode) -> None:
    options = {"what": "message", "name": "paid"}
    columns = {"messageId": keys(200), "correlationKey": keys(200), "total": [7] * 200}
    assert send(node.url, options, columns) == SinkWritten(200, 200)
    assert send(node.url, options, columns) == SinkWritten(200, 0)
    published = node.events(ValueType.MESSAGE, MessageIntent.PUBLISHED)
    assert sorted(record.value.message_id for record in published) == keys(200)


def test_an_error_of_the_node_names_the_row(node: ServedNode) -> None:
    columns = {"key": keys(2_000), "priority": [0] * 1_700 + [10**9] + [0] * 299}
    with pytest.raises(
        InvalidArgument, match=r"at most 1000000 .*priority; this is row 1700"
    ) as raised:
        send(node.url, {"type": "mail"}, columns)
    assert "of partition 3, with the key 'k01700'" in raised.value.message
    assert raised.value.fields["field"] == "tasks[0].priority"
    with pytest.raises(NotFound, match="row 0 of partition 3, with the key 'k00000'"):
        send(node.url, {"what": "process", "processId": "nothing"}, {"key": keys(3)})
    with pytest.raises(InvalidArgument, match="row 1 of partition 3"):
        columns = {"messageId": ["a", "b" * 300]}
        send(node.url, {"what": "message", "name": "paid"}, columns)


def test_a_node_that_is_away_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    started: list[ServedNode] = []
    request = sink._Sender._request

    async def request_then_start(self: Any, rows: list[Any]) -> int:
        """The first request finds nobody; then the node comes up."""
        try:
            return await request(self, rows)
        except Unavailable:
            if not started:
                started.append(ServedNode(tmp_path / "node", port=port))
            raise

    monkeypatch.setattr(sink._Sender, "_request", request_then_start)
    written = send(f"http://127.0.0.1:{port}", {"type": "mail"}, {"key": keys(10)})
    assert written == SinkWritten(10, 10)
    [node] = started
    node.close()


def test_a_node_that_stays_away_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Unavailable, match=url):
        send(url, {"type": "mail"}, {"key": keys(10)}, patience_s=0)


# --- with Spark -------------------------------------------------------------------------------


class ForgetfulApi:
    """Does what it is asked, and then loses some of its answers."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.tasks = self
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def submit(self, tasks: Sequence[NewTask]) -> list[TaskReceipt]:
        receipts = await self._api.tasks.submit(tasks)
        if self.lost < 2:
            self.lost += 1
            raise Internal("Expected to answer, but the answer was lost")
        return receipts


def failing_once(folder: Path) -> Any:
    """Rows as they come, but the first run of the first partition fails at its end."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 0 and not (folder / "failed").exists():
            (folder / "failed").touch()
            raise RuntimeError("the executor broke")

    return run


def write(frame: "DataFrame", url: str, **options: str) -> None:
    frame.write.format("holdfast").mode("append").options(**options).save(url)


def test_nothing_is_lost_or_doubled_when_spark_runs_its_tasks_again(
    spark: "SparkSession", tmp_path: Path
) -> None:
    forgetful: list[ForgetfulApi] = []

    def wrap(api: Any) -> ForgetfulApi:
        forgetful.append(ForgetfulApi(api))
        return forgetful[0]

    node = ServedNode(tmp_path / "node", wrap=wrap)
    frame = spark.range(0, 5_000, 1, 4).selectExpr("format_string('k%05d', id) AS key", "id AS n")
    frame = frame.mapInArrow(failing_once(tmp_path), "key string, n bigint")
    write(frame, node.url, type="mail")
    assert forgetful[0].lost == 2
    assert (tmp_path / "failed").exists()
    assert node.keys_of_created_tasks() == keys(5_000)
    [task] = node.portal.call(node.api.tasks.page(TaskQuery("mail", limit=1))).items
    payload = node.portal.call(node.api.tasks.get(task.task_key)).payload
    assert set(msgspec.json.decode(bytes(payload))) == {"n"}  # type: ignore[arg-type]
    node.close()


def test_a_stream_of_one_node_becomes_work_of_another(
    spark: "SparkSession", node: ServedNode, tmp_path: Path
) -> None:
    other = ServedNode(tmp_path / "other")
    node.submit(50)
    options = {"type": "copy", "keyColumn": "order"}
    orders = [str(record.key) for record in node.events(ValueType.JOB, JobIntent.CREATED)]
    send(other.url, options, {"order": orders[:20]})  # as if it had been cut off in the middle
    stream = spark.readStream.format("holdfast").option("intent", "CREATED").load(node.url)
    stream = stream.selectExpr("cast(key AS string) AS order", "intent")
    writer = stream.writeStream.format("holdfast").option("path", other.url).options(**options)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    assert other.keys_of_created_tasks() == sorted(orders)
    assert len(orders) == 50
    other.close()


def test_spark_tells_which_row_is_wrong(spark: "SparkSession", node: ServedNode) -> None:
    frame = spark.range(0, 10, 1, 1).selectExpr("'k' || id AS key", "id * 300000 AS priority")
    with pytest.raises(Exception, match="row 4 of partition 0, with the key 'k4'"):
        write(frame, node.url, type="mail")


@pytest.mark.parametrize(
    ("options", "overwrite", "message"),
    [
        (
            {"path": "./data"},
            False,
            "Expected the URL of a node .* but found './data': a folder has",
        ),
        ({"path": "http://h"}, True, "Expected mode append, but found overwrite"),
        ({"path": "http://h", "patienceMs": "x"}, False, "patienceMs of 0 or more, but found 'x'"),
        ({"path": "http://h"}, False, "Expected a column key, but found n"),
        ({}, False, "Expected the folder or the URL of a node as path"),
    ],
)
@pytest.mark.parametrize("kind", ["writer", "streamWriter"])
def test_what_cannot_be_written_is_refused_before_it_begins(
    options: dict[str, str], overwrite: bool, message: str, kind: str
) -> None:
    from pyspark.sql.types import LongType, StructField, StructType

    source = HoldfastSource({"type": "mail"} | options)
    with pytest.raises(InvalidArgument, match=message):
        getattr(source, kind)(StructType([StructField("n", LongType())]), overwrite)
