"""An embedded app, as the README shows it: a folder, tasks, handles, results."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import holdfast
from holdfast import (
    DeadlineExceeded,
    GiveUpError,
    Holdfast,
    InvalidArgument,
    NotFound,
    RetryBackoff,
    RetryLaterError,
    TaskFailed,
    Unavailable,
)

WAIT = 30  # seconds until a test gives up; none of them takes that long

FAST = RetryBackoff(base_ms=1, cap_ms=1)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Holdfast]:
    with Holdfast.open(tmp_path / "data") as opened:
        yield opened


def test_the_example_of_the_readme_works(tmp_path: Path) -> None:
    app = Holdfast.open(tmp_path / "data")

    @app.task(retries=5, backoff="exponential")
    def send_invoice(order: int, total: float) -> str:
        return f"invoice for order {order} over {total:.2f}"

    handle = send_invoice.submit(42, 99.5, key="invoice-42")
    assert handle.result(timeout=WAIT) == "invoice for order 42 over 99.50"
    again = send_invoice.submit(42, 99.5, key="invoice-42")
    assert again.key == handle.key
    assert (handle.created, again.created) == (True, False)
    assert send_invoice(1, 2.0) == "invoice for order 1 over 2.00", "it is still a function"
    app.close()


def test_tasks_and_results_outlive_the_process(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "data") as app:

        @app.task
        def add(left: int, right: int) -> int:
            return left + right

        done = add.submit(1, 2)
        assert done.result(timeout=WAIT) == 3
        later = add.submit(3, 4, delay=3600)
    with Holdfast.open(tmp_path / "data") as app:
        assert app.handle(done.key).result(timeout=WAIT) == 3
        assert app.handle(later.key).view().state == "SCHEDULED"


def test_a_failing_task_is_retried_until_it_works(app: Holdfast) -> None:
    attempts: list[int] = []

    @app.task(retries=3, backoff=FAST)
    def flaky() -> int:
        attempts.append(1)
        if len(attempts) < 3:
            raise OSError("not yet")
        return len(attempts)

    assert flaky.submit().result(timeout=WAIT) == 3


def test_a_task_that_used_up_its_retries_is_an_incident_that_can_be_retried(app: Holdfast) -> None:
    mended = threading.Event()

    @app.task(retries=1, backoff=FAST)
    def broken() -> str:
        if not mended.is_set():
            raise ValueError("broken")
        return "mended"

    handle = broken.submit()
    with pytest.raises(TaskFailed, match="ValueError: broken") as caught:
        handle.result(timeout=WAIT)
    assert caught.value.fields["state"] == "INCIDENT"
    (incident,) = app.incidents("broken")
    assert incident.task_key == handle.key
    mended.set()
    app.retry_incident(incident.incident_key)
    assert handle.result(timeout=WAIT) == "mended"
    assert app.incidents() == []


def test_a_discarded_incident_ends_the_task(app: Holdfast) -> None:
    @app.task(retries=0)
    def broken() -> None:
        raise ValueError("broken")

    handle = broken.submit()
    with pytest.raises(TaskFailed):
        handle.result(timeout=WAIT)
    app.discard_incident(app.incidents()[0].incident_key)
    assert handle.view().state == "DISCARDED"


def test_a_task_says_for_itself_when_to_come_back_and_when_to_give_up(app: Holdfast) -> None:
    attempts: list[str] = []

    @app.task(retries=5, backoff=RetryBackoff(base_ms=3_600_000))
    def patient() -> None:
        attempts.append("patient")
        if len(attempts) == 1:
            raise RetryLaterError(0.001)
        raise GiveUpError("no use")

    with pytest.raises(TaskFailed, match="no use"):
        patient.submit().result(timeout=WAIT)
    assert len(attempts) == 2


def test_a_canceled_task_does_not_run(app: Holdfast) -> None:
    ran: list[int] = []

    @app.task
    def late() -> None:
        ran.append(1)

    handle = late.submit(delay=timedelta(hours=1))
    handle.cancel()
    with pytest.raises(TaskFailed, match="was canceled"):
        handle.result(timeout=WAIT)
    with pytest.raises(NotFound):
        handle.cancel()
    assert ran == []


def test_a_result_that_does_not_come_in_time_is_a_deadline(app: Holdfast) -> None:
    @app.task
    def late() -> None: ...

    handle = late.submit(due=datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(DeadlineExceeded, match="SCHEDULED"):
        handle.result(timeout=0.01)


def test_a_result_that_is_too_large_fails_the_task_and_nothing_else(app: Holdfast) -> None:
    @app.task(retries=3)
    def chatty(letters: int) -> str:
        return "x" * letters

    with pytest.raises(TaskFailed, match="Expected a result of at most"):
        chatty.submit(5_000_000).result(timeout=WAIT)
    assert chatty.submit(3).result(timeout=WAIT) == "xxx"


def test_tasks_that_are_defined_while_a_worker_waits_are_done_by_it(app: Holdfast) -> None:
    first = app.task(name="first")(lambda number: number)
    assert first.submit(0).result(WAIT) == 0
    worker = app._worker
    assert worker is not None
    for several in (1, 3, 2):  # at once: the question of the worker is withdrawn while it is
        names = [f"task-{several}-{number}" for number in range(several)]
        tasks = [app.task(name=name)(lambda number: number + 1) for name in names]
        assert [task.submit(n).result(WAIT) for n, task in enumerate(tasks)] == [
            n + 1 for n in range(several)
        ]
        assert first.submit(several).result(WAIT) == several
    assert app._worker is worker and worker.lost == 0


def test_a_closed_app_says_so(tmp_path: Path) -> None:
    app = Holdfast.open(tmp_path / "data")

    @app.task
    def nothing() -> None: ...

    app.close()
    app.close()
    with pytest.raises(Unavailable, match="closed"):
        nothing.submit()


def test_a_folder_is_opened_once(tmp_path: Path) -> None:
    with Holdfast.open(tmp_path / "data"), pytest.raises(Unavailable):
        Holdfast.open(tmp_path / "data")
    Holdfast.open(tmp_path / "data").close()


# --- many at once -----------------------------------------------------------------------------


def test_many_are_submitted_together_and_answered_in_their_order(app: Holdfast) -> None:
    @app.task
    def square(number: int) -> int:
        return number * number

    handles = app.submit_many(square.bind(number) for number in range(500))
    assert [handle.result(timeout=WAIT) for handle in handles] == [n * n for n in range(500)]


def test_many_with_keys_are_each_the_task_of_their_key(app: Holdfast) -> None:
    @app.task
    def square(number: int) -> int:
        return number * number

    keys = [f"square-{number}" for number in range(20)]
    first = app.submit_many([square.bind(number) for number in range(20)], keys=keys)
    second = app.submit_many([square.bind(number) for number in range(20)], keys=keys)
    assert [handle.key for handle in first] == [handle.key for handle in second]
    assert not any(handle.created for handle in second)


def test_one_bad_task_among_many_keeps_all_of_them_out(app: Holdfast) -> None:
    @app.task
    def nothing(number: int) -> None: ...

    with pytest.raises(InvalidArgument, match="a key of 1 to"):
        app.submit_many([nothing.bind(1), nothing.bind(2)], keys=["one", ""])
    with pytest.raises(InvalidArgument, match="Expected 2 keys"):
        app.submit_many([nothing.bind(1), nothing.bind(2)], keys=["one"])
    topology = app.portal.call(app.api.node.topology())
    assert sum(partition.next_position for partition in topology.partitions) == 0


# --- async ------------------------------------------------------------------------------------


def test_the_async_methods_do_the_same_on_another_loop(app: Holdfast) -> None:
    @app.task
    async def shout(word: str) -> str:
        await asyncio.sleep(0)
        return word.upper()

    async def story() -> list[str]:
        one = await shout.submit_async("one", key="one")
        again = await shout.submit_async("one", key="one")
        assert again.key == one.key
        many = await app.submit_many_async([shout.bind("two"), shout.bind("three")])
        return [await handle.result_async(timeout=WAIT) for handle in (one, *many)]

    assert asyncio.run(story()) == ["ONE", "TWO", "THREE"]


# --- the names --------------------------------------------------------------------------------


def test_the_public_names_are_these_and_no_others() -> None:
    assert set(holdfast.__all__) == {
        "AlreadyExists", "BackoffKind", "BoundTask", "BusinessError", "ValueCodec", "Config",
        "CoroutineTask",
        "DataLoss", "DeadlineExceeded", "Forbidden", "FunctionTask", "GiveUpError", "Handle",
        "Holdfast", "HoldfastError",
        "Internal", "InvalidArgument", "InvalidState", "Moved", "NotFound", "Process",
        "ProcessHandle", "ResourceExhausted", "RetryBackoff", "RetryLaterError", "Task",
        "TaskFailed", "Unauthorized", "Unavailable", "Unknown", "Worker", "WorkerMode",
        "__version__", "current_job",
        # what calls return and hooks get
        "IncidentView", "InstanceDetails", "JobDetails", "NewProcessInstance", "NewTask", "Package",
        "ProcessDefinition", "ScheduleView", "TaskDetails",
        # transactions
        "MessageHandle", "Transaction", "TransactionAborted",
        # content
        "Admission", "ContentPublisher", "ContentQueue", "ContentSubscriber", "SubscriberCondition",
        # groups that share partitions
        "NewPartition", "Owned", "PartitionGroup",
        # the words of processes
        "after", "error", "every", "message", "on_message", "otherwise", "over", "path", "timeout",
        "when",
    }  # fmt: skip
    assert all(getattr(holdfast, name) is not None for name in holdfast.__all__)


def test_to_close_an_app_ends_its_workers_and_to_stop_them_again_does_nothing(
    tmp_path: Path,
) -> None:
    app = Holdfast.open(tmp_path, workers=0)
    begun, ended = threading.Event(), threading.Event()

    @app.task
    def slow() -> None:
        begun.set()
        ended.set()

    worker = app.worker(concurrency=1).start()
    idle = app.worker()
    slow.submit()
    assert begun.wait(10)
    app.close()
    assert ended.is_set()
    for each in (worker, idle):
        stopping = threading.Thread(target=each.stop, daemon=True)
        stopping.start()
        stopping.join(10)
        assert not stopping.is_alive()
