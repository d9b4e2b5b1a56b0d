"""Where a worker runs functions: in threads, in child processes, or on an event loop of their own.

An executor takes jobs and gives each back with a result or an error; it knows nothing of leases and
nodes.
"""

import asyncio
import importlib
import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from queue import SimpleQueue
from typing import Any, Protocol

import msgspec

from holdfast.client.attempt import BusinessError, Done, log_failure
from holdfast.client.detached import children_detached
from holdfast.client.middleware import OwnLoop, drive, on_this_loop
from holdfast.client.portal import Portal
from holdfast.client.running import failed, returned, run_function
from holdfast.client.task import Task
from holdfast.gateway.tasks.shapes import ActivatedJob
from holdfast.logs import LogSettings, command_settings, configure, join_program

Tasks = Mapping[str, Task[..., Any]]
Report = Callable[[Done], None]
Started = Callable[[ActivatedJob], bool]
"""Says whether a job whose turn has come is to be run."""


class Executor(Protocol):
    """Runs jobs; `report` may be called from any thread."""

    def run(self, job: ActivatedJob) -> None: ...

    def close(self) -> None:
        """No more jobs come; running ones are finished by then or abandoned."""
        ...


_encode_job = msgspec.json.Encoder().encode


class Threads:
    """Runs functions in threads of this process."""

    def __init__(self, count: int, tasks: Tasks, report: Report, started: Started) -> None:
        self._tasks = tasks
        self._queue: SimpleQueue[ActivatedJob | None] = SimpleQueue()
        self._report = report
        self._started = started
        self._threads = [
            threading.Thread(target=self._work, name=f"holdfast-worker-{n}", daemon=True)
            for n in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, job: ActivatedJob) -> None:
        self._queue.put(job)

    def _work(self) -> None:
        queue, tasks, own_loop = self._queue, self._tasks, OwnLoop()
        report, started = self._report, self._started
        while (job := queue.get()) is not None:
            if not started(job):
                continue
            task = tasks[job.type]
            hooks = task.app.hooks
            if hooks is not None:
                report(drive(partial(hooks.run, task, job), own_loop.run))
                continue
            try:
                done = returned(task, job, run_function(task, job))
            except BaseException as error:
                done = failed(job, error)
                log_failure(task, done, error)
            report(done)
        own_loop.close()

    def close(self) -> None:
        for _ in self._threads:
            self._queue.put(None)


class Loop:
    """Runs coroutine functions, so many at a time, on an event loop of their own."""

    def __init__(self, count: int, tasks: Tasks, report: Report, started: Started) -> None:
        self._portal = Portal("holdfast-worker-loop")
        self._tasks = tasks
        self._report = report
        self._started = started
        self._places = asyncio.Semaphore(count)

    def run(self, job: ActivatedJob) -> None:
        self._portal.start(self._work(self._tasks[job.type], job))

    async def _work(self, task: Task[..., Any], job: ActivatedJob) -> None:
        async with self._places:
            if not self._started(job):
                return
            hooks = task.app.hooks
            if hooks is not None:
                self._report(await hooks.run(task, job, on_this_loop))
                return
            try:
                done = returned(task, job, await run_function(task, job))
            except BaseException as error:
                done = failed(job, error)
                log_failure(task, done, error)
            self._report(done)

    def close(self) -> None:
        self._portal.close()


class Processes:
    """Runs functions in child processes, which import the user's module for themselves."""

    def __init__(self, count: int, tasks: Tasks, report: Report, started: Started) -> None:
        self._count = count
        self._tasks = tasks
        self._report = report
        self._started = started
        self._waiting: deque[ActivatedJob] = deque()
        self._busy = 0
        self._lock = threading.Lock()
        self._pool = self._new_pool()

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(
            self._count, context, initializer=_begin_child, initargs=(command_settings(),)
        )

    def run(self, job: ActivatedJob) -> None:
        self._waiting.append(job)
        self._begin_next()

    def _begin_next(self) -> None:
        """Hands over as many jobs as there are children: the others can still be given back."""
        begun: list[ActivatedJob] = []
        with self._lock:
            while self._waiting and self._busy < self._count:
                job = self._waiting.popleft()
                if self._started(job):
                    self._busy += 1
                    begun.append(job)
        for job in begun:  # without the lock: a job may be finished before this returns
            self._hand_over(self._tasks[job.type], job)

    def _hand_over(self, task: Task[..., Any], job: ActivatedJob) -> None:
        module = _importable(task.function)
        call = (_in_child, module, task.function.__qualname__, _encode_job(job))
        with children_detached():
            try:
                future = self._pool.submit(*call)
            except BrokenProcessPool:  # a child was killed: its jobs failed, here is a new pool
                self._pool = self._new_pool()
                future = self._pool.submit(*call)
        future.add_done_callback(lambda done: self._finished(task, job, done))

    def _finished(
        self, task: Task[..., Any], job: ActivatedJob, future: "Future[_Outcome]"
    ) -> None:
        with self._lock:
            self._busy -= 1
        error = future.exception()
        done = Done(job, *future.result()) if error is None else failed(job, error)
        if done.error is not None or done.thrown is not None:
            log_failure(task, done, error)
        self._report(done)
        self._begin_next()

    def close(self) -> None:
        """Lets the children go; idle ones end at once, and are waited for.

        Python's own end of a pool races with that of the program, and prints a traceback then.
        """
        self._waiting.clear()
        self._pool.shutdown(wait=self._busy == 0, cancel_futures=True)


def _importable(function: Callable[..., Any]) -> str:
    """The name under which a child process finds the function's module."""
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        return spec.name if spec else "__mp_main__"
    return module


_logs: LogSettings | None = None  # how a child is to log, until it does


def _begin_child(logs: LogSettings | None) -> None:
    """A child ends with its worker, even when that one is killed."""
    global _logs
    _logs = logs
    worker = multiprocessing.parent_process()
    assert worker is not None, "a pool's child has a parent"

    def end_with_worker() -> None:
        worker.join()
        os._exit(1)

    threading.Thread(target=end_with_worker, name="holdfast-parent", daemon=True).start()


_Outcome = tuple[bytes | None, str | None, bool, int | None, BusinessError | None, bool, bool]
"""The fields of a `Done` behind its job."""

_own_loop = OwnLoop()  # of a child
_decode_job = msgspec.json.Decoder(ActivatedJob).decode


def _in_child(module: str, name: str, encoded: bytes) -> _Outcome:
    """Runs one job in a child process; errors come back as text, as not every one travels."""
    job = _decode_job(encoded)
    try:
        task: Any = importlib.import_module(module)
        _begin_logs()
        for part in name.split("."):
            task = getattr(task, part)
        hooks = task.app.hooks
        if hooks is not None:
            done = drive(partial(hooks.run, task, job, is_logged=False), _own_loop.run)
        else:
            done = returned(task, job, run_function(task, job))
    except BaseException as error:
        done = failed(job, error)
    return (
        done.result, done.error, done.final, done.retry_after_ms, done.thrown, done.is_over,
        done.is_expected,
    )  # fmt: skip


def _begin_logs() -> None:
    """A child of `holdfast worker` logs as that does, unless the user's module says otherwise."""
    global _logs
    if _logs is not None:
        configure(json=_logs.json, level=_logs.level)
        join_program()
        _logs = None
