"""Work of all kinds for a simulated cluster, by clients and workers that ask any member."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any, TypeVar

import msgspec
from tests.cluster.simulated import SimulatedCluster
from tests.journal.cluster.checking import Violation

from holdfast.client.process import resource_of
from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import BatchOperation, BatchOperationIntent, BatchOperationType
from holdfast.engine.kernel import Command
from holdfast.errors import Code, HoldfastError, NotFound
from holdfast.gateway.access.asking import requesting
from holdfast.gateway.distribution.shapes import DistributionQuery
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.service import Gateway
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, JobFailure, NewTask
from holdfast.gateway.transactions.shapes import (
    TransactionQuery,
    TransactionRequest,
    TransactionResult,
    TransactionStep,
)
from holdfast.model.dsl import Process
from holdfast.records import ValueType, partition_of

T = TypeVar("T")

PASSING = frozenset(
    {Code.UNAVAILABLE, Code.UNKNOWN, Code.MOVED, Code.RESOURCE_EXHAUSTED, Code.DEADLINE_EXCEEDED}
)
ORDER = Process("order").task("pack").task("send").wait("paid", message="paid", key="id").end()
PARKED = Process("parked").wait("never", message="never", key="id").end()
INSISTENCE = 16  # requests, 10 ms apart
BACK_S = 0.1  # a member that was alone for a tick has connected again
LOST_ANSWERS = 0.1  # the share of answers that do not reach the client, which asks again
PATIENCE_S = 10.0  # of a client, with one member
UNANSWERED_S = 60.0  # once everything works again, every request is answered within it


class SelectedItems:
    """Items that clients have chosen, as the tables of each member would give them."""

    def __init__(self) -> None:
        self.items: dict[tuple[int, int], list[int]] = {}  # by number of the batch and partition

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        number = msgspec.json.decode(operation.filter)["number"]
        return ItemPage(tuple(self.items.get((number, partition), ())))


class Load:
    """Asks for work and does it; remembers all that it was told."""

    def __init__(self, cluster: SimulatedCluster, dice: Random) -> None:
        self.cluster = cluster
        self.dice = dice
        self.items = SelectedItems()
        self.keyed: set[str] = set()  # idempotency keys of tasks that somebody was told of
        self.named: set[str] = set()  # payloads of tasks that somebody was told of
        self.tasks: set[str] = set()
        self.instances: set[str] = set()
        self.paid: set[str] = set()
        self.parked: set[str] = set()  # instances that batches cancel
        self.completed: set[str] = set()
        self.transactions: dict[str, tuple[list[str], TransactionResult]] = {}
        self.batches: set[str] = set()
        self.is_over = False
        self.failure: BaseException | None = None
        self.answers = 0
        self._numbers = 0
        self._since: dict[int, tuple[float, str]] = {}  # requests that are not answered

    # --- asking -------------------------------------------------------------------------------

    async def persist(self, what: str, ask: Callable[[Gateway], Awaitable[T]]) -> T:
        """Asks members, with one id, until one answers, as a client does.

        An answer that is lost on its way is no answer: what was done is not done again.
        """
        while True:
            await asyncio.sleep(self.dice.uniform(0, 0.02))
            if names := sorted(self.cluster.members):
                try:
                    answer = await self.once(self.dice.choice(names), what, ask)
                    if self.dice.random() >= LOST_ANSWERS:
                        return answer
                except HoldfastError as error:
                    if error.code not in PASSING:
                        raise
                except TimeoutError:
                    pass
            await asyncio.sleep(self.dice.uniform(0.02, 0.2))

    async def once(self, name: str, what: str, ask: Callable[[Gateway], Awaitable[T]]) -> T:
        self._numbers += 1
        number = self._numbers
        self._since[number] = (asyncio.get_running_loop().time(), f"{what} at {name}")
        try:
            with requesting(what):
                async with asyncio.timeout(PATIENCE_S):
                    answer = await self.cluster.ask(name, ask)
            self.answers += 1
            return answer
        finally:
            del self._since[number]

    def check_answered(self, healed_at: float) -> None:
        """No request waits for long once everything works."""
        now = asyncio.get_running_loop().time()
        for since, what in self._since.values():
            if now - max(since, healed_at) > UNANSWERED_S:
                raise Violation(f"{what!r} was asked at {since:.3f} and is not answered")

    # --- clients ------------------------------------------------------------------------------

    async def deploy(self) -> None:
        for process in (ORDER, PARKED):
            resource = resource_of(process)
            await self.persist(
                f"deploy {process.id}", lambda each, it=resource: each.processes.deploy([it])
            )

    async def client(self, name: str) -> None:
        """One thing after the other, while the simulation goes on."""
        number = 0
        while not self.is_over:
            number += 1
            dice = self.dice.random()
            kinds = (
                (0.45, self._task), (0.7, self._order), (0.85, self._transaction),
                (0.92, self._batch), (1.0, self._version),
            )  # fmt: skip
            kind = next(each for share, each in kinds if dice < share)
            await kind(f"{name}-{number}")
            await asyncio.sleep(self.dice.uniform(0, 0.3))

    async def _task(self, name: str) -> None:
        key = name if self.dice.random() < 0.5 else None  # else the request's id tells it apart
        new = NewTask("mail", _json(name), key=key, retries=1_000)
        (receipt,) = await self.persist(f"task {name}", lambda each: each.tasks.submit([new]))
        self.tasks.add(receipt.task_key)
        self.named.add(name)
        if key is not None:
            self.keyed.add(key)
        await self._find(receipt.task_key)

    async def insist(self, name: str, after: float = BACK_S) -> None:
        """Tasks for one member, one after the other at once, while it may be an owner no more."""
        await asyncio.sleep(after)
        await asyncio.gather(*(self._insist(name, 0.01 * each) for each in range(INSISTENCE)))

    async def _insist(self, name: str, after: float) -> None:
        await asyncio.sleep(after)
        new = NewTask("mail", retries=1_000)
        try:
            (receipt,) = await self.once(
                name, f"insist {self._numbers}", lambda each: each.tasks.submit([new])
            )
            self.tasks.add(receipt.task_key)
        except HoldfastError as error:
            if error.code not in PASSING:
                raise
        except TimeoutError:
            pass

    async def _find(self, key: str) -> None:
        try:
            await self.persist("look", lambda each: each.tasks.get(key))
        except NotFound as error:
            raise Violation(f"task {key} was acknowledged, but is not found") from error

    async def _order(self, name: str) -> None:
        new = NewProcessInstance("order", variables=_json({"id": name}))
        (started,) = await self.persist(f"start {name}", lambda each: each.instances.start([new]))
        self.instances.add(started.process_instance_key)
        message = NewMessage("paid", name, ttl_ms=3_600_000)
        await self.persist(f"pay {name}", lambda each: each.messages.publish(message))
        self.paid.add(name)

    async def _transaction(self, name: str) -> None:
        keys = [f"{name}/{each}" for each in range(self.dice.randint(2, 4))]
        steps = [TransactionStep(submit=NewTask("mail", key=each, retries=1_000)) for each in keys]
        request = TransactionRequest(steps, name, timeout_ms=5_000)
        result = await self.persist(f"tx {name}", lambda each: each.transactions.commit(request))
        self.transactions[name] = (keys, result)
        self.tasks |= set(result.keys)

    async def _batch(self, name: str) -> None:
        """Starts instances that wait for ever, and has all of them canceled at once."""
        new = [NewProcessInstance("parked", variables=_json({"id": name})) for _ in range(4)]
        started = await self.persist(f"park {name}", lambda each: each.instances.start(new))
        number = len(self.items.items) + 1
        for each in started:
            key = int(each.process_instance_key)
            self.items.items.setdefault((number, partition_of(key)), []).append(key)
        self.parked |= {each.process_instance_key for each in started}
        chosen = msgspec.json.encode({"number": number})
        operation = BatchOperation(BatchOperationType.CANCEL_PROCESS_INSTANCE, chosen)
        command = Command(ValueType.BATCH_OPERATION, BatchOperationIntent.CREATE, 0, operation)

        async def create(gateway: Gateway) -> Any:
            asked = gateway._asked
            (reply,) = await asked.submit(asked.anywhere(), [command])
            if error := reply.error():
                raise error
            return reply

        self.batches.add(str((await self.persist(f"batch {name}", create)).key))

    async def _version(self, name: str) -> None:
        """A new version of a process goes to all partitions."""
        process = Process(f"other-{name}").task("pack").end()
        resource = resource_of(process)
        await self.persist(f"deploy {name}", lambda each: each.processes.deploy([resource]))

    # --- workers ------------------------------------------------------------------------------

    async def work(self, worker: str) -> None:
        """Does jobs, fails with some, and forgets others, whose leases run out."""
        request = ActivationRequest(["pack", "send", "mail"], wait_ms=200, lease_ms=2_000)
        number = 0
        while not self.is_over or not self.is_done():
            number += 1
            try:
                name = self.dice.choice(sorted(self.cluster.members) or ["nobody"])
                jobs = await self.once(
                    name, f"{worker} {number}", lambda each: each.jobs.activate(request)
                )
                for job in jobs:
                    await self._do(name, job)
            except HoldfastError as error:
                if error.code not in PASSING:
                    raise
            except TimeoutError:
                pass
            await asyncio.sleep(self.dice.uniform(0.01, 0.05))

    async def _do(self, name: str, job: Any) -> None:
        dice = 0.5 if self.is_over else self.dice.random()
        if dice < 0.1:
            return
        if dice < 0.2:
            failure = JobFailure(job.job_key, job.lease, "no luck", retry_after_ms=100, retries=3)
            await self.once(
                name, f"fail {job.job_key} {job.lease}", lambda each: each.jobs.fail([failure])
            )
            return
        done = JobCompletion(job.job_key, job.lease)
        (answer,) = await self.once(
            name, f"complete {job.job_key} {job.lease}", lambda each: each.jobs.complete([done])
        )
        if answer.code is None:
            self.completed.add(job.job_key)

    def is_done(self) -> bool:
        return self._ended >= self.tasks | self.instances | self.parked

    # --- the end ------------------------------------------------------------------------------

    _ended: frozenset[str] = frozenset()

    def look_at(self, ended: frozenset[str]) -> None:
        """What the logs say has ended."""
        self._ended = ended

    async def nothing_pending(self) -> bool:
        """Whether no distribution and no transaction is under way."""
        distributions = await self.persist(
            "look", lambda each: each.distributions.page(DistributionQuery())
        )
        transactions = await self.persist(
            "look", lambda each: each.transactions.page(TransactionQuery())
        )
        return not distributions.items and not transactions.items


def _json(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
