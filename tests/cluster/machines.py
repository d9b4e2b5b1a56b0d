"""An event loop that is several machines: each can be paused, and ends with all it has begun.

Whatever runs belongs to the machine in whose context it was begun. What arrives over the network
runs on the machine that receives it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from contextvars import Context, ContextVar, copy_context
from typing import Any
from zlib import crc32

from holdfast.testing import VirtualClock
from holdfast.testing.loop import VirtualLoop
from holdfast.testing.network import Receive, SimulatedNetwork

TURNS_MAX = 20_000  # of the loop, at one moment

whose: ContextVar[str] = ContextVar("whose", default="")


class BusyLoopError(AssertionError):
    """Somebody works all the time and gets nowhere."""


class _Ready(deque[Any]):
    """What is about to run, but for machines that stand still."""

    def __init__(self, machines: "Machines") -> None:
        super().__init__()
        self._machines = machines

    def append(self, handle: Any) -> None:
        machines = self._machines
        if machines.held or machines.ended:
            machine = handle._context.get(whose, "")
            if machine in machines.ended:
                return
            if machine in machines.held:
                machines.held[machine].append(handle)
                return
        super().append(handle)


class Machines(VirtualLoop):
    """A virtual loop that knows on which machine everything runs."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.held: dict[str, list[Any]] = {}  # what waits on machines that are paused
        self.ended: set[str] = set()
        self.turns = 0
        self._turns_passed = 0  # when time has passed last
        self._machine_tasks: dict[str, dict[asyncio.Task[Any], None]] = {}  # as begun
        self._ready = _Ready(self)
        self.set_task_factory(self._make_task)  # pyright: ignore

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coro: Any, context: Context | None = None
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, context=context)
        machine = whose.get() if context is None else context.get(whose, "")
        tasks = self._machine_tasks.setdefault(machine, {})
        tasks[task] = None
        task.add_done_callback(lambda done: tasks.pop(done, None))
        return task

    def pass_time(self, seconds: float | None) -> None:
        self.turns += 1
        if seconds is None or seconds > 0:
            self._turns_passed = self.turns
        elif self.turns - self._turns_passed > TURNS_MAX:
            self._turns_passed = self.turns
            raise BusyLoopError(f"the loop has turned {TURNS_MAX} times, but no time has passed")
        super().pass_time(seconds)

    @contextlib.contextmanager
    def on(self, machine: str) -> Iterator[None]:
        """What is begun inside runs on a machine."""
        token = whose.set(machine)
        try:
            yield
        finally:
            whose.reset(token)

    def pause(self, machine: str) -> None:
        """Nothing runs on the machine, while time goes on: as after SIGSTOP."""
        self.held.setdefault(machine, [])

    def resume(self, machine: str) -> None:
        """It runs again, with all that was due meanwhile."""
        self._ready.extend(self.held.pop(machine, ()))

    async def end(self, machine: str) -> None:
        """Everything ends that runs on the machine; nothing of it runs later."""
        self.resume(machine)
        while tasks := list(self._machine_tasks.pop(machine, ())):
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.ended.add(machine)

    def end_all(self) -> None:
        """Whatever is left ends; what does not end at once is forgotten."""
        self.ended.clear()
        for machine in list(self.held):
            self.resume(machine)
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            task.cancel()
        self.run_for(0)


class MachinesNetwork(SimulatedNetwork):
    """What is sent is on the way without its sender; `crc` is of every byte, and of when."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.crc = 0
        self._outside = copy_context()

    def attach(self, name: str, receive: Receive) -> None:
        context = copy_context()

        def received(sender: str, message: Any) -> None:
            context.copy().run(receive, sender, message)

        super().attach(name, received)

    def send(self, sender: str, target: str, message: Any) -> None:
        now = asyncio.get_running_loop().time()
        self.crc = crc32(repr((now, sender, target, message)).encode(), self.crc)
        self._outside.copy().run(super().send, sender, target, message)
