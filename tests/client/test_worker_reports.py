"""What a worker reports, how many requests at once, and what it does if a part was not taken."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.client.attempt import Done
from holdfast.client.reporting import Reporter
from holdfast.errors import InvalidArgument
from holdfast.gateway.tasks.shapes import ActivatedJob, Answer, JobCompletion, JobFailure

LARGE = 100
"""As many jobs make a large request."""


class Node:
    """Answers a request when it is told to."""

    def __init__(self) -> None:
        self.jobs = self
        self.open: list[tuple[list[str], asyncio.Future[None]]] = []

    async def complete(self, items: list[Any]) -> list[Answer]:
        answer = asyncio.get_running_loop().create_future()
        self.open.append(([each.job_key for each in items], answer))
        await answer
        return [Answer(each.job_key) for each in items]

    async def fail(self, items: list[JobFailure]) -> list[Answer]:
        return await self.complete(items)

    async def asked(self, count: int) -> None:
        """Waits until so many requests are unanswered, and no other one follows."""
        async with asyncio.timeout(10):
            while len(self.open) < count:  # noqa: ASYNC110 - a condition with a deadline
                await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(self.open) == count

    def sizes(self) -> list[int]:
        return [len(keys) for keys, _ in self.open]

    def answer(self, place: int, error: Exception | None = None) -> None:
        _, answer = self.open.pop(place)
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)


class Worker:
    """A reporter, its node, and what it has reported."""

    def __init__(self) -> None:
        self.node: Any = Node()
        self.reported: list[str] = []
        self.has_ended = False
        self._made = 0
        portal: Any = self  # its loop is the one that runs the test
        self.reporter = Reporter(portal, self.node, {}, self._took, lambda: self.has_ended)

    def nudge(self, callback: Callable[[], None], *, here: bool) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def _took(self, done: list[Done]) -> None:
        self.reported += [each.job.job_key for each in done]

    def add(self, count: int, **more: Any) -> list[str]:
        """Jobs that are done; completed, if nothing else is said."""
        keys = [str(self._made + each) for each in range(count)]
        self._made += count
        for key in keys:
            job = ActivatedJob(key, "mail", msgspec.Raw(b"{}"), "1", 1_000, 1, 3, True)
            self.reporter.add(Done(job, **(more or {"result": b"1"})), here=False)
        return keys

    def end(self) -> None:
        self.has_ended = True
        self.reporter.wake()


def play(story: Callable[[Worker, "asyncio.Task[None]"], Awaitable[None]]) -> None:
    async def whole() -> None:
        worker = Worker()
        running = asyncio.create_task(worker.reporter.run())
        async with asyncio.timeout(10):
            await story(worker, running)
        assert running.done()

    asyncio.run(whole())


def test_large_requests_are_sent_beside_each_other_and_small_ones_wait() -> None:
    async def story(worker: Worker, running: "asyncio.Task[None]") -> None:
        for sent in (1, 2, 3):
            worker.add(LARGE)
            await worker.node.asked(sent)
        worker.add(LARGE + 1)
        await worker.node.asked(3)  # three are the most
        worker.node.answer(2)
        await worker.node.asked(3)
        assert worker.node.sizes() == [LARGE, LARGE, LARGE + 1]
        worker.node.answer(0)
        worker.add(LARGE - 1)
        await worker.node.asked(2)  # a small one waits for those under way
        worker.node.answer(1)
        await worker.node.asked(1)
        worker.node.answer(0)
        await worker.node.asked(1)
        assert worker.node.sizes() == [LARGE - 1]
        worker.add(5)
        await worker.node.asked(1)  # and others for it
        worker.node.answer(0)
        await worker.node.asked(1)
        worker.node.answer(0)
        worker.end()
        await running
        assert worker.reporter.completed == len(worker.reported) == 5 * LARGE + 5
        assert len(set(worker.reported)) == 5 * LARGE + 5

    play(story)


def test_requests_that_are_answered_in_another_order_are_all_counted() -> None:
    async def story(worker: Worker, running: "asyncio.Task[None]") -> None:
        for sent in (1, 2):
            worker.add(LARGE)
            await worker.node.asked(sent)
        worker.add(LARGE, error="broken")
        await worker.node.asked(3)
        worker.node.answer(1)
        await worker.node.asked(2)
        assert worker.reporter.completed == LARGE
        worker.node.answer(1)
        worker.node.answer(0)
        await worker.node.asked(0)
        worker.end()
        await running
        assert (worker.reporter.completed, worker.reporter.failed) == (2 * LARGE, LARGE)

    play(story)


def test_a_worker_that_ends_waits_for_requests_under_way() -> None:
    async def story(worker: Worker, running: "asyncio.Task[None]") -> None:
        keys = worker.add(LARGE)
        await worker.node.asked(1)
        keys += worker.add(3)
        worker.end()
        await worker.node.asked(1)
        assert not running.done()
        worker.node.answer(0)
        await worker.node.asked(1)
        assert not running.done()
        keys += worker.add(LARGE)
        worker.node.answer(0)
        await worker.node.asked(1)
        assert not running.done()
        worker.node.answer(0)
        await running
        assert worker.reported == keys

    play(story)


@pytest.mark.parametrize("count", [1, LARGE])
def test_a_request_that_is_refused_ends_the_worker_with_its_error(count: int) -> None:
    async def story(worker: Worker, running: "asyncio.Task[None]") -> None:
        worker.add(count)
        await worker.node.asked(1)
        worker.node.answer(0, InvalidArgument("no"))
        with pytest.raises(InvalidArgument, match="no"):
            await running
        assert (worker.reported, worker.reporter.completed) == ([], 0)

    play(story)


def test_only_what_was_not_taken_is_reported_again() -> None:
    """Jobs of a partition that is away are told again; those that were refused are lost."""
    heard: list[list[str]] = []

    async def report(items: list[JobCompletion]) -> list[Answer]:
        heard.append([each.job_key for each in items])
        if len(heard) == 1:
            codes: dict[str, str | None] = {"1": None, "2": "UNAVAILABLE", "3": "NOT_FOUND"}
        elif len(heard) == 2:
            codes = {"2": "MOVED"}
        else:
            codes = {"2": None}
        return [Answer(each.job_key, codes[each.job_key], "words") for each in items]

    async def story(worker: Any) -> int:
        jobs = [JobCompletion(key, "9") for key in ("1", "2", "3")]
        return await worker._reporter._tell(report, jobs)

    with Holdfast.connect("http://127.0.0.1:1") as app:

        @app.task
        def nothing() -> None: ...

        worker = app.worker()
        assert asyncio.run(story(worker)) == 2
        assert worker.lost == 1
    assert heard == [["1", "2", "3"], ["2"], ["2"]]
