"""Our own side of the distribution benchmark: a node in this process, and links that can be cut."""

import asyncio
import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.config import Config
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.deployments import DEPLOYING_PARTITION
from holdfast.engine.processes.values import Deployment, ProcessIntent
from holdfast.journal.local import LocalJournal
from holdfast.limits import READ_BYTES_MAX
from holdfast.model.definition import encode_definition
from holdfast.model.dsl import Process
from holdfast.node import LocalNode
from holdfast.records import Record, ValueType
from holdfast.records.keys import NO_KEY

DEADLINE_SECONDS = 120.0


class OurDistribution:
    """A node with so many partitions; every deployment is distributed to all of them."""

    def __init__(self, node: LocalNode, loop: asyncio.AbstractEventLoop) -> None:
        self._node = node
        self._loop = loop
        self._deployed = 0
        self._dark: set[int] = set()
        submit = node.runner.submit

        def submit_unless_dark(
            partition: int, commands: Sequence[Command], size_bytes: int = 0
        ) -> "asyncio.Future[list[Reply]]":
            if partition in self._dark:  # it is lost on the way: nobody hears of it
                return loop.create_future()
            return submit(partition, commands, size_bytes)

        node.runner.submit = submit_unless_dark  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def partitions(self) -> int:
        return len(self._node.runner.processors)

    def distribute(self, count: int) -> float:
        """Seconds until so many deployments, asked for at once, are on every partition."""
        return self._loop.run_until_complete(self._distribute(count))

    async def _distribute(self, count: int) -> float:
        started = time.perf_counter()
        self._deploy(count)
        await self._drained()
        return time.perf_counter() - started

    def _deploy(self, count: int) -> None:
        commands: list[Command] = []
        for _ in range(count):
            self._deployed += 1
            body = encode_definition(Process(f"p{self._deployed}").task("work").definition())
            value = Deployment(f"p{self._deployed}", body, hashlib.sha256(body).digest())
            commands.append(Command(ValueType.PROCESS, ProcessIntent.DEPLOY, NO_KEY, value))
        self._node.runner.submit(DEPLOYING_PARTITION, commands)

    async def _drained(self, *targets: int) -> None:
        """Waits until nothing is pending, or nothing at these partitions."""
        state = self._node.runner.processors[DEPLOYING_PARTITION].view.distributions
        deadline = time.perf_counter() + DEADLINE_SECONDS
        await self._node.runner.settled()
        await asyncio.sleep(0.001)
        while any(state.line(each).pending for each in targets) if targets else state.count():
            if time.perf_counter() > deadline:
                raise TimeoutError("expected everything to be distributed by now, but it is not")
            await asyncio.sleep(0.001)

    def records_per_target(self) -> float:
        """How many records of distribution the origin writes for one, by partition it goes to."""
        before = self._next_position()
        self.distribute(1)
        journal, found = self._node.journal, 0
        assert isinstance(journal, LocalJournal)
        for entry in journal.read_now(TOPIC, DEPLOYING_PARTITION, before, READ_BYTES_MAX):
            record: Record = DISPATCH.codec.decode(entry.payload)
            found += record.value_type == ValueType.DISTRIBUTION
        return found / (self.partitions - 1)

    def _next_position(self) -> int:
        return self._node.journal.bounds(TOPIC, DEPLOYING_PARTITION).next

    def go_dark(self, count: int, seconds: float) -> None:
        """All but the origin are dark for so long, while deployments go out to them."""

        async def wait() -> None:
            self._dark = set(range(2, self.partitions + 1))
            self._deploy(count)
            await asyncio.sleep(seconds)

        self._loop.run_until_complete(wait())

    def come_back(self) -> float:
        """Seconds until one of the dark partitions has all that it missed."""

        async def return_() -> float:
            partition = self._dark.pop()
            started = time.perf_counter()
            await self._node.gateway.distributions.resume(partition)
            await self._drained(partition)
            return time.perf_counter() - started

        return self._loop.run_until_complete(return_())


@contextmanager
def our_distribution(folder: Path, partitions: int) -> Iterator[OurDistribution]:
    loop = asyncio.new_event_loop()
    config = Config(partitions=partitions, log_level="error")
    node = loop.run_until_complete(LocalNode.open(folder, config))
    try:
        yield OurDistribution(node, loop)
    finally:
        loop.run_until_complete(node.close())
        loop.close()
