"""Workers: threads, processes and async functions; stopping, losing the node, and coming back."""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import WAIT, wait_until

from holdfast import (
    Holdfast,
    HoldfastError,
    InvalidArgument,
    Moved,
    TaskFailed,
    Unavailable,
    Unknown,
)
from holdfast.gateway.tasks.shapes import ActivationRequest


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Holdfast]:
    with Holdfast.open(tmp_path / "data", workers=0) as opened:
        yield opened


# --- modes ------------------------------------------------------------------------------------


def test_threads_run_as_many_functions_at_a_time_as_they_should(app: Holdfast) -> None:
    together = threading.Barrier(3)

    @app.task
    def meet(number: int) -> str:
        together.wait(WAIT)
        return threading.current_thread().name

    handles = app.submit_many([meet.bind(number) for number in range(6)])
    worker = app.worker(concurrency=3).start()
    assert len({handle.result(timeout=WAIT) for handle in handles}) == 3
    worker.stop()
    assert (worker.completed, worker.failed, worker.lost) == (6, 0, 0)


def test_async_functions_run_together_on_a_loop_of_their_own(app: Holdfast) -> None:
    inside: list[int] = []
    everybody = asyncio.Event()

    @app.task
    async def meet(number: int) -> int:
        inside.append(number)
        if len(inside) == 5:
            everybody.set()
        await everybody.wait()
        return threading.get_ident()

    @app.task
    def plain() -> int:
        return threading.get_ident()

    handles = app.submit_many([meet.bind(number) for number in range(5)])
    thread = plain.submit()
    worker = app.worker(concurrency=5).start()
    loops = {handle.result(timeout=WAIT) for handle in handles}
    assert len(loops) == 1
    assert loops != {thread.result(timeout=WAIT)}
    worker.stop()


def test_child_processes_run_functions_and_bring_back_results_and_errors(
    process_tasks: Any, tmp_path: Path
) -> None:
    worker = process_tasks.app.worker(concurrency=2, mode="processes").start()
    handles = [process_tasks.process_of.submit(number) for number in range(6)]
    results = [handle.result(timeout=WAIT) for handle in handles]
    assert [number for number, _ in results] == list(range(6))
    assert os.getpid() not in {process for _, process in results}
    with pytest.raises(TaskFailed, match="LookupError: from the child"):
        process_tasks.broken.submit().result(timeout=WAIT)
    killed = process_tasks.dies_once.submit(str(tmp_path / "marker"))
    assert killed.result(timeout=WAIT) == "lived", "a killed child costs an attempt, not the worker"
    worker.stop()


def test_a_worker_needs_tasks_and_a_mode_that_exists(app: Holdfast) -> None:
    with pytest.raises(InvalidArgument, match="Expected a worker to have tasks"):
        app.worker()
    app.task(name="t")(lambda: None)
    with pytest.raises(InvalidArgument, match="concurrency"):
        app.worker(concurrency=0)
    with pytest.raises(ValueError, match="fibres"):
        app.worker(mode="fibres")


def test_a_worker_takes_only_the_tasks_it_was_told_to(app: Holdfast) -> None:
    mine = app.task(name="mine")(lambda: "mine")
    other = app.task(name="other")(lambda: "other")
    left = other.submit()
    worker = app.worker(tasks=["mine"]).start()
    assert mine.submit().result(timeout=WAIT) == "mine"
    assert left.view().state == "WAITING"
    worker.stop()


# --- stopping ---------------------------------------------------------------------------------


def test_a_graceful_stop_finishes_what_runs_and_gives_back_the_rest(app: Holdfast) -> None:
    begun, go_on = threading.Event(), threading.Event()

    @app.task
    def slow(number: int) -> int:
        begun.set()
        assert go_on.wait(WAIT)
        return number

    handles = app.submit_many([slow.bind(number) for number in range(5)])
    worker = app.worker(concurrency=1, prefetch=4, lease=3600).start()
    assert begun.wait(WAIT)
    wait_until(lambda: all(handle.view().state == "ACTIVE" for handle in handles))
    stopping = threading.Thread(target=worker.stop)
    stopping.start()
    waiting = handles[1:]
    wait_until(lambda: all(handle.view().state == "WAITING" for handle in waiting))
    assert handles[0].view().state == "ACTIVE"
    go_on.set()
    stopping.join(WAIT)
    assert handles[0].view().state == "COMPLETED"
    request = ActivationRequest(["slow"], jobs_max=10)
    others = app.portal.call(app.api.jobs.activate(request))
    assert {job.job_key for job in others} == {handle.key for handle in waiting}
    assert {job.attempt for job in others} == {1}, "giving back costs nothing"


def test_leases_run_on_while_the_worker_lives(app: Holdfast) -> None:
    attempts: list[int] = []
    go_on = threading.Event()

    @app.task
    def long() -> str:
        attempts.append(1)
        assert go_on.wait(WAIT)
        return "done"

    handle = long.submit()
    worker = app.worker(concurrency=2, lease=0.3).start()
    wait_until(lambda: bool(attempts))
    extended = b'holdfast_processed_commands_total{partition="'

    def processed() -> float:
        lines = app.portal.call(app.api.node.metrics()).splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(extended))

    before = processed()
    wait_until(lambda: processed() >= before + 6)  # two lease times of extensions
    go_on.set()
    assert handle.result(timeout=WAIT) == "done"
    assert len(attempts) == 1
    worker.stop()


def test_a_timeout_bounds_one_attempt(app: Holdfast) -> None:
    attempts: list[int] = []
    late = threading.Event()

    @app.task(timeout=0.05)
    def hangs_once() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            assert late.wait(WAIT)
        return len(attempts)

    handle = hangs_once.submit()
    worker = app.worker(concurrency=2).start()
    assert handle.result(timeout=WAIT) == 2
    late.set()
    wait_until(lambda: worker.lost == 1)
    worker.stop()
    assert handle.result(timeout=WAIT) == 2, "what came too late counts for nothing"


# --- losing the node --------------------------------------------------------------------------


class Shaky:
    """An api that is away every so often, when it is asked about jobs."""

    def __init__(self, api: Any, kind: type[HoldfastError]) -> None:
        self._kind = kind
        self._api = api
        self.jobs = self
        self.refused = 0
        self._asked = 0

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._api.jobs, name):
            return getattr(self._api, name)
        method = getattr(self._api.jobs, name)
        if name not in ("activate", "complete", "fail"):
            return method

        async def sometimes(*args: Any) -> Any:
            self._asked += 1
            if self._asked % 3 != 0:
                self.refused += 1
                raise self._kind("The node is restarting")
            return await method(*args)

        return sometimes


@pytest.mark.parametrize("kind", [Unavailable, Moved, Unknown])
def test_a_worker_outlives_a_node_that_is_away_for_a_while(
    app: Holdfast, kind: type[HoldfastError]
) -> None:
    @app.task(retries=0)
    def add(left: int, right: int) -> int:
        return left + right

    shaky = Shaky(app.api, kind)
    handles = app.submit_many([add.bind(number, 1) for number in range(20)])
    app.api = shaky
    worker = app.worker(concurrency=2, prefetch=3).start()
    app.api = shaky._api
    assert [handle.result(timeout=WAIT) for handle in handles] == list(range(1, 21))
    worker.stop()
    assert shaky.refused > 3
    assert worker.completed == 20


class Recording:
    """An API that notes what a worker asks for."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.jobs = self
        self.asked: list[ActivationRequest] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api.jobs if hasattr(self._api.jobs, name) else self._api, name)

    async def activate(self, request: ActivationRequest) -> Any:
        self.asked.append(request)
        return await self._api.jobs.activate(request)


def test_a_worker_tells_its_options_once_and_then_waits_for_work(app: Holdfast) -> None:
    @app.task(retries=7)
    def add(left: int, right: int) -> int:
        return left + right

    recording = Recording(app.api)
    app.api = recording
    worker = app.worker().start()
    app.api = recording._api
    wait_until(lambda: len(recording.asked) > 1)
    assert add.submit(1, 2).result(timeout=WAIT) == 3
    worker.stop()
    first, *others = recording.asked
    assert (list(first.options), first.wait_ms) == (["add"], 0)
    assert others and all(not each.options and each.wait_ms for each in others)
