"""A worker: takes jobs from a node, has them run, and reports what became of them."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from holdfast.client.attempt import Done
from holdfast.client.execution import Executor, Loop, Processes, Threads
from holdfast.client.portal import Portal
from holdfast.client.reporting import PASSING, Reporter, until_answered
from holdfast.client.task import Task
from holdfast.errors import HoldfastError, InvalidArgument
from holdfast.gateway.api import Api
from holdfast.gateway.tasks.shapes import ActivatedJob, ActivationRequest, HeldJob
from holdfast.limits import JOBS_PER_ACTIVATION_MAX, JOBS_PER_REPORT_MAX
from holdfast.logs import log

_POLL_MS = 20_000  # one long poll; a worker that waits costs one request in this time
_AHEAD_SECONDS = 0.1  # without a setting, a worker fetches about as much as it does in this time
_AHEAD_MAX = 1_000
_STOP_SECONDS = 30.0  # how long a graceful stop waits for functions that are running


class WorkerMode(StrEnum):
    """Where plain functions run; coroutine functions always run on an event loop."""

    THREADS = "threads"
    PROCESSES = "processes"


class _Held(msgspec.Struct, frozen=True, gc=False):
    """A job in the worker's hands, and since when by the loop's clock."""

    job: ActivatedJob
    since: float


class Worker:
    """Runs the jobs of some tasks, `concurrency` at a time.

    It holds at most `concurrency + prefetch` jobs; without a setting it fetches ahead as much as it
    has lately done in a tenth of a second, so that short jobs flow and long ones stay where others
    can take them. Its leases run on while it lives. When it is stopped it takes no more, finishes
    what is running and gives back what it has not begun.
    """

    def __init__(
        self,
        portal: Portal,
        api: Api,
        tasks: Mapping[str, Task[..., Any]],
        *,
        concurrency: int = 4,
        mode: WorkerMode = WorkerMode.THREADS,
        prefetch: int | None = None,
        lease_ms: int = 30_000,
        name: str | None = None,
    ) -> None:
        if not tasks:
            raise InvalidArgument("Expected a worker to have tasks, but none are defined")
        if concurrency < 1:
            raise InvalidArgument(f"Expected a concurrency of 1 or more, but found {concurrency}")
        self.name = f"{socket.gethostname()}-{os.getpid()}" if name is None else name
        self._portal = portal
        self._api = api
        self._tasks = dict(tasks)
        self._lease_ms = lease_ms
        self._prefetch = prefetch
        self._rate = 0.0  # jobs a second, lately
        self._reported_at = 0.0  # the last time, by the loop's clock
        self._concurrency = concurrency
        self._mode = mode
        self._held: dict[str, _Held] = {}
        self._begun: set[str] = set()
        self._told_options: set[str] = set()  # types whose options the node knows
        self._reporter = Reporter(portal, api, self._tasks, self._reported, self._has_ended)
        self._stopping = threading.Event()
        self._room = asyncio.Event()
        self._executors: dict[bool, Executor] = {}
        self._end = asyncio.Event()
        self._fetching: asyncio.Task[None] | None = None
        self._is_asking = False  # a request for jobs is under way, which can be withdrawn
        self._is_withdrawn = False
        self._returning: set[asyncio.Future[None]] = set()
        self._running: Any = None

    @property
    def completed(self) -> int:
        """Jobs whose end the node has recorded."""
        return self._reporter.completed

    @property
    def failed(self) -> int:
        """Attempts that failed, and whose failure the node has recorded."""
        return self._reporter.failed

    @property
    def lost(self) -> int:
        """Reports that came too late: the lease had ended."""
        return self._reporter.lost

    # --- life ---------------------------------------------------------------------------------

    def start(self) -> "Worker":
        """Starts to work in the background."""
        self._running = self._portal.start(self._run())
        return self

    def run(self) -> None:
        """Works until another thread calls `stop`."""
        self.start()
        self._running.result()

    async def run_async(self) -> None:
        """Like `run`, for an event loop. A worker whose caller is cancelled stops gracefully."""
        self.start()
        try:
            await asyncio.shield(asyncio.wrap_future(self._running))
        except asyncio.CancelledError:
            await self.stop_async()
            raise

    def stop(self) -> None:
        """Stops gracefully: takes no more jobs, finishes running ones, returns the rest."""
        self._stopping.set()
        with contextlib.suppress(RuntimeError):  # the loop is gone already
            self._portal.loop.call_soon_threadsafe(self._wake)
        if self._running is not None:
            self._running.result()

    async def stop_async(self) -> None:
        """Like `stop`, for an event loop."""
        await asyncio.to_thread(self.stop)

    def _wake(self) -> None:
        self._end.set()
        self._room.set()
        self._reporter.wake()

    async def _run(self) -> None:
        self._reported_at = asyncio.get_running_loop().time()
        self._fetching = fetching = asyncio.create_task(self._fetch())
        reporting = asyncio.create_task(self._reporter.run())
        beating = asyncio.create_task(self._extend_leases())
        try:
            stopped = asyncio.create_task(self._end.wait())
            await asyncio.wait([fetching, reporting, stopped], return_when="FIRST_COMPLETED")
            stopped.cancel()
            fetching.cancel()
            # a node that is away when the worker is told to stop is no error of the worker's
            is_told = self._stopping.is_set()
            away = PASSING if is_told else ()
            with contextlib.suppress(asyncio.CancelledError, *away):
                await fetching
            await self._give_back()
            await self._finish_running()
            await reporting
        finally:
            for task in (fetching, reporting, beating):
                task.cancel()
            for executor in self._executors.values():
                executor.close()

    # --- taking jobs --------------------------------------------------------------------------

    def add(self, task: Task[..., Any]) -> None:
        """Adds a task whose jobs this worker takes."""
        self._tasks[task.name] = task
        self._portal.loop.call_soon_threadsafe(self._ask_again)

    def _ask_again(self) -> None:
        """The request that is waiting does not know of the newest task: it is made anew."""
        if self._is_asking and self._fetching is not None and not self._is_withdrawn:
            self._is_withdrawn = True
            self._fetching.cancel()

    async def _fetch(self) -> None:
        while not self._stopping.is_set():
            hold_max = self._hold_max()
            room = hold_max - len(self._held)
            # Asking for few jobs at a time would make many small leases: wait until half of them
            # are gone.
            if room < max(1, hold_max // 2):
                self._room.clear()
                await self._room.wait()
                continue
            jobs = await self._ask(room)
            now = asyncio.get_running_loop().time()
            for job in jobs:
                self._held[job.job_key] = _Held(job, now)
                self._executor(self._tasks[job.type].is_async).run(job)

    async def _ask(self, room: int) -> list[ActivatedJob]:
        wanted = {name: task.arguments.names for name, task in self._tasks.items()}
        told = self._told_options
        options = {name: t.options.told() for name, t in self._tasks.items() if name not in told}
        request = ActivationRequest(
            list(self._tasks), self.name, room, self._lease_ms, 0 if options else _POLL_MS, wanted,
            options,
        )  # fmt: skip
        self._is_asking = True
        try:
            jobs = await until_answered(lambda: self._api.jobs.activate(request), self._has_ended)
            told.update(options)
            return jobs
        except InvalidArgument as error:
            if not options:
                raise
            # a node of an older version: it does without
            log.warning("options of tasks refused", tasks=list(options), error=str(error))
            told.update(options)
            return []
        except asyncio.CancelledError:
            if self._end_withdrawal():
                return []
            raise
        finally:
            self._is_asking = False
            self._end_withdrawal()

    def _end_withdrawal(self) -> bool:
        """Takes back the cancellation of a withdrawn request; False if that is not the only one."""
        if not self._is_withdrawn:
            return False
        self._is_withdrawn = False
        fetching = asyncio.current_task()
        return fetching is not None and not fetching.uncancel()

    def _executor(self, asynchronous: bool) -> Executor:
        """Where functions of a kind are run; made when the first one comes."""
        executor = self._executors.get(asynchronous)
        if executor is None:
            plain = Threads if self._mode is WorkerMode.THREADS else Processes
            make = Loop if asynchronous else plain
            executor = make(self._concurrency, self._tasks, self._report, self._begin)
            self._executors[asynchronous] = executor
        return executor

    def _hold_max(self) -> int:
        """How many jobs to hold at most."""
        ahead = self._prefetch
        if ahead is None:
            ahead = max(self._concurrency, min(int(self._rate * _AHEAD_SECONDS), _AHEAD_MAX))
        return min(self._concurrency + ahead, JOBS_PER_ACTIVATION_MAX)

    def _begin(self, job: ActivatedJob) -> bool:
        """Called by an executor when a job's turn has come; False if it is not to be run here."""
        held = self._held.get(job.job_key)
        if self._stopping.is_set() or held is None:
            return False
        if not job.extendable:
            waited_ms = (self._portal.loop.time() - held.since) * 1000
            if waited_ms > job.lease_ms / 2:
                # Its time-out began when it was fetched: it goes back for a whole one.
                self._portal.loop.call_soon_threadsafe(self._return_late, job)
                return False
        self._begun.add(job.job_key)
        return True

    def _return_late(self, job: ActivatedJob) -> None:
        if self._held.pop(job.job_key, None) is not None:
            returning = asyncio.ensure_future(self._release([job]))
            self._returning.add(returning)
            returning.add_done_callback(self._returning.discard)
            self._room.set()

    async def _extend_leases(self) -> None:
        """The worker lives, so its leases run on; those with a timeout of their own do not."""
        while True:
            await asyncio.sleep(self._lease_ms / 3000)
            leases = sorted({held.job.lease for held in self._held.values() if held.job.extendable})
            for start in range(0, len(leases), JOBS_PER_REPORT_MAX):
                with contextlib.suppress(HoldfastError):  # the next beat tries again
                    await self._api.jobs.extend(
                        leases[start : start + JOBS_PER_REPORT_MAX], self._lease_ms
                    )

    # --- reporting ----------------------------------------------------------------------------

    def _report(self, done: Done) -> None:
        """Called by an executor, from any thread."""
        # A thread that has nothing else to do tells the node itself, if that is embedded.
        self._reporter.add(done, here=len(self._held) <= len(self._begun))

    def _reported(self, done: list[Done]) -> None:
        for item in done:
            self._held.pop(item.job.job_key, None)
            self._begun.discard(item.job.job_key)
        now = asyncio.get_running_loop().time()
        self._rate += 0.3 * (len(done) / max(now - self._reported_at, 1e-6) - self._rate)
        self._reported_at = now
        self._room.set()

    # --- stopping -----------------------------------------------------------------------------

    async def _give_back(self) -> None:
        """Returns the jobs that have not begun; others can have them at once."""
        idle = [held.job for key, held in self._held.items() if key not in self._begun]
        for job in idle:
            self._held.pop(job.job_key, None)
        await self._release(idle)

    async def _release(self, jobs: list[ActivatedJob]) -> None:
        for start in range(0, len(jobs), JOBS_PER_REPORT_MAX):
            some = jobs[start : start + JOBS_PER_REPORT_MAX]
            with contextlib.suppress(HoldfastError):  # else their leases run out
                await self._api.jobs.release([HeldJob(job.job_key, job.lease) for job in some])

    def _has_ended(self) -> bool:
        """Whether it is stopped and runs nothing more."""
        return self._stopping.is_set() and not self._begun

    async def _finish_running(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                while self._begun:
                    self._room.clear()
                    await self._room.wait()
        self._begun.clear()
        self._reporter.wake()
