"""Transactions from a program: blocks, handles, aborts, and the job that is completed with them."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import WAIT, wait_until

import holdfast
from holdfast import (
    Config,
    Holdfast,
    InvalidArgument,
    InvalidState,
    Process,
    TransactionAborted,
    Unavailable,
    Unknown,
    current_job,
)
from holdfast.gateway.tasks.shapes import ActivationRequest, TaskQuery
from holdfast.gateway.transactions.shapes import TransactionQuery
from holdfast.limits import TRANSACTION_BYTES_MAX, TRANSACTION_OPERATIONS_MAX
from holdfast.records import partition_for

PARTITIONS = 5


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Holdfast]:
    config = Config(partitions=PARTITIONS)
    with Holdfast.open(tmp_path / "data", workers=2, config=config) as opened:
        yield opened


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Holdfast]:
    config = Config(partitions=PARTITIONS)
    with Holdfast.open(tmp_path / "idle", workers=0, config=config) as opened:
        yield opened


def tasks(app: Holdfast, type_: str) -> list[Any]:
    return app.portal.call(app.api.tasks.page(TaskQuery(type_))).items


def test_everything_in_the_block_is_done_when_it_ends(app: Holdfast) -> None:
    @app.task
    def double(x: int) -> int:
        return 2 * x

    app.deploy(Process("order").task("double").end())
    with app.transaction() as t:
        handles = [t.submit(double, n, key=f"k{n}") for n in range(6)]
        bound = t.submit(double.bind(21))
        instance = t.start("order", {"x": 4}, key="o-1")
        message = t.publish("paid", "o-1", {"total": 3}, ttl=60, message_id="m-1")
        assert not handles[0].key and not instance.key and not message.key
        with pytest.raises(InvalidState, match="not committed"):
            handles[0].result(timeout=1)
    assert [each.result(timeout=WAIT) for each in handles] == [0, 2, 4, 6, 8, 10]
    assert bound.result(timeout=WAIT) == 42
    assert instance.key and message.key and t.key
    with pytest.raises(InvalidState, match="its block has ended"):
        t.submit(double, 1)


def test_an_exception_in_the_block_sends_nothing(idle: Holdfast) -> None:
    @idle.task
    def work(x: int) -> None: ...

    with pytest.raises(ZeroDivisionError), idle.transaction() as t:
        t.submit(work, 1)
        raise ZeroDivisionError
    with idle.transaction():
        pass  # an empty one is nothing
    assert tasks(idle, "work") == []


def test_an_abort_names_each_refused_operation_and_leaves_nothing(idle: Holdfast) -> None:
    @idle.task
    def work(x: int) -> None: ...

    known = [work.submit(0, key=each) for each in ("a", "b")]
    with pytest.raises(TransactionAborted) as caught, idle.transaction() as t:
        for n, key in enumerate(["c", "a", "d", "b", "e"]):
            t.submit(work, n, key=key)
        new = t.start("nobody")
    error = caught.value
    told = {each["operation"]: each["code"] for each in error.refused}
    assert told.items() <= {1: "ALREADY_EXISTS", 3: "ALREADY_EXISTS", 5: "NOT_FOUND"}.items()
    assert told, "at least those of the partition that refused first"
    assert "Nothing of transaction" in error.message
    assert error.code == "ABORTED"
    assert not new.key
    assert {each.task_key for each in tasks(idle, "work")} == {each.key for each in known}


def test_every_reason_of_the_other_partitions_is_told(idle: Holdfast) -> None:
    """The partition of most operations is the home, which has nothing to refuse here."""

    @idle.task
    def work(x: int) -> None: ...

    known = [work.submit(0, key=each) for each in ("a", "b", "c")]
    theirs = {partition_for(each, PARTITIONS) for each in ("a", "b", "c")}
    assert len(theirs) > 1, "they are on several partitions"
    home = next(f"h{n}" for n in range(99) if partition_for(f"h{n}", PARTITIONS) not in theirs)
    with pytest.raises(TransactionAborted) as caught, idle.transaction() as t:
        for _ in range(10):
            t.publish("m", home)
        for key in ("a", "b", "c"):
            t.submit(work, 1, key=key)
    assert {each["operation"] for each in caught.value.refused} == {10, 11, 12}
    assert {each["key"] for each in caught.value.refused} == {each.key for each in known}
    assert "operation 10 (submit of 'work'): ALREADY_EXISTS" in caught.value.message


def test_an_async_program_has_async_blocks(app: Holdfast) -> None:
    @app.task
    async def double(x: int) -> int:
        return 2 * x

    async def program() -> list[int]:
        async with app.transaction() as t:
            handles = [t.submit(double, n, key=f"k{n}") for n in range(4)]
        with pytest.raises(TransactionAborted):
            async with app.transaction() as t:
                t.start("nobody")
        return [await each.result_async(timeout=WAIT) for each in handles]

    assert asyncio.run(program()) == [0, 2, 4, 6]


# --- the job that is completed with new work ----------------------------------------------------


@pytest.mark.parametrize("is_async", [False, True], ids=["threads", "loop"])
def test_a_running_job_is_completed_together_with_new_work(app: Holdfast, is_async: bool) -> None:
    calls: list[int] = []

    @app.task
    def ship(order: int) -> str:
        return f"shipped {order}"

    def pay_now(order: int) -> str:
        calls.append(order)
        with app.transaction() as t:
            t.submit(ship, order, key=f"ship-{order}")
            t.publish("paid", str(order))
            t.complete(result="paid")
        return "this counts for nothing"

    async def pay_soon(order: int) -> str:
        calls.append(order)
        async with app.transaction() as t:
            t.submit(ship, order, key=f"ship-{order}")
            t.complete(result="paid")
        raise ValueError("this, too")

    pay = app.task(name="pay")(pay_soon if is_async else pay_now)
    handles = [pay.submit(order) for order in range(8)]
    assert [each.result(timeout=WAIT) for each in handles] == ["paid"] * 8
    shipped = [ship.submit(order, key=f"ship-{order}") for order in range(8)]
    assert not any(each.created for each in shipped), "they were submitted with the transaction"
    assert [each.result(timeout=WAIT) for each in shipped] == [f"shipped {n}" for n in range(8)]
    assert sorted(calls) == list(range(8)), "none was done twice"
    worker: Any = app._worker
    wait_until(lambda: worker.completed >= 16)
    assert worker.lost == 0, "nothing was reported that is over already"


def test_a_job_of_a_process_goes_on_with_its_variables(app: Holdfast) -> None:
    @app.task
    def note(text: str) -> None: ...

    @app.task
    def charge(total: int) -> None:
        with app.transaction() as t:
            t.submit(note, f"charged {total}", key=f"note-{total}")
            t.complete(result={"charged": total})

    app.deploy(Process("order").task("charge").end())
    assert app.start("order", {"total": 7}).result(timeout=WAIT) == {"total": 7, "charged": 7}
    assert not note.submit("x", key="note-7").created


def test_an_abort_fails_the_attempt_and_the_next_one_succeeds(app: Holdfast) -> None:
    attempts: list[int] = []

    @app.task
    def ship(order: int) -> None: ...

    @app.task(retries=1, backoff=holdfast.RetryBackoff(base_ms=1, cap_ms=1))
    def pay(order: int) -> str:
        attempts.append(current_job().attempt)
        with app.transaction() as t:
            t.complete(result="done")
            t.submit(ship, order, key="taken" if len(attempts) == 1 else "free")
        return ""

    ship.submit(0, key="taken")
    assert pay.submit(1).result(timeout=WAIT) == "done"
    assert attempts == [1, 2]


# --- once, and within limits --------------------------------------------------------------------


def test_a_client_without_an_answer_asks_again_and_it_is_done_once(
    idle: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    @idle.task
    def work(x: int) -> None: ...

    api: Any = idle.api.transactions
    inner, commit = api._inner, api._inner.commit
    lost = iter([Unknown("lost"), Unknown("lost"), None, None])

    async def unsteady(request: Any) -> Any:
        result = await commit(request)
        if (error := next(lost, None)) is not None:
            raise error
        return result

    monkeypatch.setattr(inner, "commit", unsteady)
    api.__dict__.pop("commit", None)
    with idle.transaction() as t:
        handles = [t.submit(work, n, key=f"k{n}") for n in range(4)]
        handles.append(t.submit(work, 9))
    assert len(tasks(idle, "work")) == 5
    assert {each.key for each in handles} == {each.task_key for each in tasks(idle, "work")}


def test_who_has_no_patience_hears_at_once_that_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Holdfast.open(tmp_path / "data", workers=0, patience=0) as app:

        @app.task
        def work(x: int) -> None: ...

        calls: list[Any] = []

        async def away(request: Any) -> Any:
            calls.append(request)
            raise Unavailable("away")

        api: Any = app.api.transactions
        monkeypatch.setattr(api._inner, "commit", away)
        with pytest.raises(Unavailable, match="away"), app.transaction() as t:
            t.submit(work, 1)
        assert len(calls) == 1


def test_the_same_id_is_the_same_transaction(idle: Holdfast) -> None:
    @idle.task
    def work(x: int) -> None: ...

    def once() -> tuple[str, list[str]]:
        with idle.transaction(id="order-7") as t:
            handles = [t.submit(work, n, key=f"k{n}") for n in range(3)]
            handles.append(t.submit(work, 9))
        return t.key, [each.key for each in handles]

    assert once() == once()
    assert len(tasks(idle, "work")) == 4


@pytest.mark.parametrize(
    ("fill", "what"),
    [
        (lambda t, work: [t.submit(work, 0) for _ in range(TRANSACTION_OPERATIONS_MAX + 1)],
         "number of operations"),
        (lambda t, work: [t.submit(work, "x" * (TRANSACTION_BYTES_MAX // 2)) for _ in range(3)],
         "bytes in one transaction"),
        (lambda t, work: t.submit(work, 0, key=""), "Operation 0: Expected a key"),
    ],
    ids=["operations", "bytes", "key"],
)  # fmt: skip
def test_limits_are_refused_by_name(
    idle: Holdfast, fill: Callable[[Any, Any], None], what: str
) -> None:
    @idle.task
    def work(x: Any) -> None: ...

    with pytest.raises(InvalidArgument, match=what), idle.transaction() as t:
        fill(t, work)
    assert tasks(idle, "work") == []


def test_what_is_done_is_not_listed_and_is_shown_for_a_while(idle: Holdfast) -> None:
    @idle.task
    def work(x: int) -> None: ...

    with idle.transaction() as t:
        for n in range(6):
            t.submit(work, n, key=f"k{n}")

    def listed() -> list[Any]:
        return idle.portal.call(idle.api.transactions.page(TransactionQuery())).items

    wait_until(lambda: not listed())
    view = idle.portal.call(idle.api.transactions.get(t.key))
    assert view.state == "COMMITTED" and len(view.partitions) > 1 and not view.missing


def test_a_leased_job_can_be_completed_from_anywhere(idle: Holdfast) -> None:
    @idle.task
    def work(x: int) -> str: ...

    handles = [work.submit(n, key=f"k{n}") for n in range(6)]
    jobs: list[Any] = []
    while len(jobs) < 6:
        request = ActivationRequest(["work"], "me", 10, 60_000, 1_000)
        jobs += idle.portal.call(idle.api.jobs.activate(request))
    assert len({int(each.job_key) >> 51 for each in jobs}) > 1
    with idle.transaction() as t:
        for job in jobs:
            t.complete(job, f"done {job.job_key}")
    assert [each.result(timeout=WAIT) for each in handles] == [f"done {e.key}" for e in handles]


WRONG: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("submit", "task", ("mail",), {}),
    ("submit", "task", (print,), {}),
    ("submit", "key", ("TASK", 1), {"key": 5}),
    ("submit", "delay", ("TASK", 1), {"delay": "5"}),
    ("submit", "delay", ("TASK", 1), {"delay": True}),
    ("submit", "due", ("TASK", 1), {"due": 1_700_000_000}),
    ("submit", "priority", ("TASK", 1), {"priority": "high"}),
    ("start", "process_id", (5,), {}),
    ("start", "variables", ("order", [1]), {}),
    ("start", "version", ("order",), {"version": "2"}),
    ("start", "key", ("order",), {"key": 7}),
    ("start", "keep_result", ("order",), {"keep_result": "1h"}),
    ("publish", "name", (None,), {}),
    ("publish", "key", ("paid", 1.5), {}),
    ("publish", "variables", ("paid", "o", "x"), {}),
    ("publish", "ttl", ("paid",), {"ttl": "60"}),
    ("publish", "message_id", ("paid",), {"message_id": 3}),
    ("complete", "job", ("99999999",), {}),
    ("complete", "job", (99999999,), {}),
]


@pytest.mark.parametrize(("method", "argument", "args", "rest"), WRONG)
def test_an_argument_of_a_wrong_type_is_named(
    idle: Holdfast, method: str, argument: str, args: tuple[Any, ...], rest: dict[str, Any]
) -> None:
    @idle.task
    def double(x: int) -> int:
        return 2 * x

    args = tuple(double if each == "TASK" else each for each in args)
    with idle.transaction() as t:
        with pytest.raises(InvalidArgument, match=f"Expected {argument} to be") as caught:
            getattr(t, method)(*args, **rest)
        assert caught.value.fields["field"] == argument
    assert t.key == "", "nothing was gathered"


@pytest.mark.parametrize("wrong", [{"id": 5}, {"timeout": "30"}, {"timeout": None}])
def test_a_transaction_itself_is_asked_for_with_the_right_types(
    idle: Holdfast, wrong: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument, match=f"Expected {next(iter(wrong))} to be"):
        idle.transaction(**wrong)
