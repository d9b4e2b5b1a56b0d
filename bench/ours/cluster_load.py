"""A client of a cluster in a process of its own: submits without a pause, and notes every answer.

Each partition gets a keyed task at a fixed pace, whatever became of the ones before; a task that is
not acknowledged is sent again under the same key through the next member, until it is. What was
acknowledged is written to a file, a line each: JSON of `Submitted` or `Completed`.
"""

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import msgspec

from bench.ours.cluster import path_of_code
from bench.peers.process import Process
from holdfast.client.remote import RemoteApi
from holdfast.errors import HoldfastError
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, NewTask
from holdfast.records.keys import partition_for

TYPE = "load"
UNANSWERED_MAX = 400  # of a partition at once: some seconds of them
AGAIN_SECONDS = 0.02  # before an unanswered task is sent through the next member
LAST_SECONDS_MAX = 30.0  # for what is unanswered when the load is to end
JOBS_MAX = 100
WAIT_MS = 500


class Submitted(msgspec.Struct, tag=True):
    """A task that was acknowledged; times are those of this machine's monotonic clock."""

    key: str
    task_key: str
    partition: int
    number: int  # what its payload says
    sent_s: float  # for the first time
    acknowledged_s: float
    attempts: int


class Completed(msgspec.Struct, tag=True):
    """A job whose completion was acknowledged."""

    task_key: str
    number: int  # what its result says
    acknowledged_s: float


class Plan(msgspec.Struct):
    """What the load is."""

    urls: list[str]  # of the members that it goes through
    partitions: list[int]  # that get something
    partition_count: int
    every_ms: float  # a task for each partition
    worker: bool  # whether it also does the work
    name: str = "load"  # keys begin with it


class Load:
    """Runs in the process of its own."""

    def __init__(self, plan: Plan, file: TextIO) -> None:
        self._plan, self._file = plan, file
        self._members = [RemoteApi(url) for url in plan.urls]
        self._numbers = 0
        self._sending: dict[int, set[asyncio.Task[None]]] = {
            each: set() for each in plan.partitions
        }
        self._is_over = asyncio.Event()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._is_over.set)
        working = [loop.create_task(self._work(each)) for each in range(2)]
        with contextlib.suppress(asyncio.CancelledError):
            if not self._plan.worker:
                for each in working:
                    each.cancel()
            print("ready", flush=True)
            await self._submit()
        unanswered = [each for tasks in self._sending.values() for each in tasks]
        if unanswered:
            await asyncio.wait(unanswered, timeout=LAST_SECONDS_MAX)
        print(sum(not each.done() for each in unanswered), flush=True)
        for task in (*unanswered, *working):
            task.cancel()
        await asyncio.gather(*unanswered, *working, return_exceptions=True)
        for api in self._members:
            await api.close()

    async def _submit(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while not self._is_over.is_set():
            for partition, sending in self._sending.items():
                if len(sending) < UNANSWERED_MAX:
                    task = loop.create_task(self._send(partition, self._number(partition)))
                    sending.add(task)
                    task.add_done_callback(sending.discard)
            due = max(due + self._plan.every_ms / 1_000, loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._is_over.wait()

    def _number(self, partition: int) -> int:
        """The next one whose key belongs to a partition."""
        while True:
            self._numbers += 1
            if partition_for(self._key(self._numbers), self._plan.partition_count) == partition:
                return self._numbers

    def _key(self, number: int) -> str:
        return f"{self._plan.name}-{number}"

    async def _send(self, partition: int, number: int) -> None:
        key, sent, attempts = self._key(number), time.monotonic(), 0
        task = NewTask(TYPE, msgspec.Raw(b'{"n":%d}' % number), key=key)
        while True:
            api = self._members[(number + attempts) % len(self._members)]
            attempts += 1
            try:
                (receipt,) = await api.tasks.submit([task])
            except HoldfastError:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            self._note(
                Submitted(
                    key, receipt.task_key, partition, number, sent, time.monotonic(), attempts
                )
            )
            return

    async def _work(self, first: int) -> None:
        """Leases and completes jobs through one member after the other."""
        turn = first
        while True:
            api = self._members[turn % len(self._members)]
            turn += 1
            try:
                jobs = await api.jobs.activate(
                    ActivationRequest([TYPE], f"worker-{first}", JOBS_MAX, 5_000, WAIT_MS)
                )
                done = [JobCompletion(each.job_key, each.lease, each.payload) for each in jobs]
                answers = await api.jobs.complete(done) if done else []
            except HoldfastError:
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            for job, answer in zip(jobs, answers, strict=True):
                if answer.code is None:
                    number = msgspec.json.decode(job.payload)["n"]
                    self._note(Completed(job.job_key, number, time.monotonic()))

    def _note(self, what: Submitted | Completed) -> None:
        self._file.write(msgspec.json.encode(what).decode() + "\n")


class RunningLoad:
    """The process, from outside."""

    def __init__(self, process: Process, file: Path) -> None:
        self._process, self._file = process, file
        self.unanswered = 0  # known at its end

    def end(self) -> None:
        """Waits until all is answered."""
        if self._process.alive:
            self._process.send(signal.SIGTERM)
            self.unanswered = int(self._process.line(2 * LAST_SECONDS_MAX))
            self._process.finish(LAST_SECONDS_MAX)

    def noted(self) -> list[Submitted | Completed]:
        """What was acknowledged, once it has ended."""
        decoder = msgspec.json.Decoder(Submitted | Completed)
        return decoder.decode_lines(self._file.read_bytes())

    def submitted(self) -> list[Submitted]:
        return [each for each in self.noted() if isinstance(each, Submitted)]


@contextmanager
def running_load(folder: Path, plan: Plan) -> Iterator[RunningLoad]:
    """Load, from now until the end of the block."""
    file = folder / f"{plan.name}.jsonl"
    command = [sys.executable, "-m", "bench.ours.cluster_load", msgspec.json.encode(plan).decode()]
    process = Process(
        [*command, str(file)], folder / f"{plan.name}.log", environment=path_of_code(), talks=True
    )
    try:
        process.expect("ready", 30)
        load = RunningLoad(process, file)
        yield load
        load.end()
    finally:
        process.stop(signal.SIGKILL)


def commits_after(submitted: Iterable[Submitted], moment_s: float, partitions: set[int]) -> float:
    """Seconds from a moment until each of these partitions has committed what was sent later."""
    first: dict[int, float] = {}
    for each in submitted:
        if each.sent_s >= moment_s and each.partition in partitions:
            first[each.partition] = min(
                each.acknowledged_s, first.get(each.partition, each.acknowledged_s)
            )
    assert first.keys() == partitions, f"nothing was committed in {partitions - first.keys()}"
    return max(first.values()) - moment_s


def main() -> None:
    plan = msgspec.json.decode(sys.argv[1], type=Plan)

    async def run(file: TextIO) -> None:
        await Load(plan, file).run()

    with Path(sys.argv[2]).open("w") as file:
        asyncio.run(run(file))


if __name__ == "__main__":
    main()
