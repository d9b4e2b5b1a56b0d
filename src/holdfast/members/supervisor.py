"""Starts the members of a node, starts those again that end, and stops all of them together."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import NoReturn

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from holdfast.limits import (
    MEMBER_RESTART_MS_MAX,
    MEMBER_RESTART_MS_MIN,
    MEMBER_SETTLED_MS,
    MEMBER_STOP_MS_MAX,
)
from holdfast.logs import log


class MemberEnded(Exception):
    """A member ended, though nobody asked it to."""

    def __init__(self, member: int, status: int) -> None:
        super().__init__(f"process {member} of the node ended with status {status}")
        self.member = member
        self.status = status


class Supervisor:
    """Keeps one process for each member.

    A member is told how to begin by a line to its standard input, which stays open: when it ends,
    so has the supervisor, and the member stops. It says that it is up by a line to its standard
    output. One that ends is started again after a pause that doubles; the others go on.
    """

    def __init__(self, command: Callable[[int], Sequence[str]], members: int, begin: bytes) -> None:
        self._command = command
        self._members = range(1, members + 1)
        self._begin = begin + b"\n"
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._up: dict[int, asyncio.Future[bytes]] = {}
        self._keeping: list[asyncio.Task[NoReturn]] = []
        self._is_stopping = False

    async def start(self) -> list[bytes]:
        """Starts all members; what each said when it was up. MemberEnded if one cannot start."""
        loop = asyncio.get_running_loop()
        self._up = {each: loop.create_future() for each in self._members}
        self._keeping = [loop.create_task(self._keep(each)) for each in self._members]
        return await asyncio.gather(*self._up.values())

    async def stop(self) -> None:
        """Asks all to stop in order, and waits for them; one that hangs is killed."""
        self._is_stopping = True
        for task in self._keeping:
            task.cancel()
        await asyncio.gather(*self._keeping, return_exceptions=True)
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await asyncio.gather(*(_ended(each) for each in self._processes.values()))

    def pids(self) -> dict[int, int]:
        """Of the processes that run now, by member."""
        return {
            each: process.pid
            for each, process in self._processes.items()
            if process.returncode is None
        }

    async def _keep(self, member: int) -> NoReturn:
        while True:  # one that has run for a while begins with a short pause again
            attempts = AsyncRetrying(
                retry=retry_if_exception_type(MemberEnded),
                wait=wait_exponential(
                    MEMBER_RESTART_MS_MIN / 1_000, max=MEMBER_RESTART_MS_MAX / 1_000
                ),
                before_sleep=_say,
            )
            await attempts(self._run, member)

    async def _run(self, member: int) -> None:
        """Runs a member until it ends; MemberEnded unless it had run for a while."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        process = await asyncio.create_subprocess_exec(
            *self._command(member),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._processes[member] = process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(self._begin)
        line = await process.stdout.readline()
        up = self._up[member]
        if line and not up.done():
            up.set_result(line)
        status = await process.wait()
        ended = MemberEnded(member, status)
        if not up.done():
            up.set_exception(ended)
        if (loop.time() - began) * 1_000 < MEMBER_SETTLED_MS:
            raise ended
        log.error("member is started again", reason=str(ended), in_seconds=0)


def _say(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome is not None else None
    seconds = state.next_action.sleep if state.next_action is not None else 0
    log.error("member is started again", reason=str(error), in_seconds=seconds)


async def _ended(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(MEMBER_STOP_MS_MAX / 1_000):
            await process.wait()
    except TimeoutError:
        log.error("member did not stop in time and is killed", pid=process.pid)
        process.kill()
        await process.wait()
