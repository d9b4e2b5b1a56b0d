"""What partitions owe one another, and what is due, survives any number of moves."""

import asyncio
from collections import Counter
from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest
from fellows import Fellows

from holdfast import Process
from holdfast.engine.batch.selector import ItemPage
from holdfast.engine.batch.values import (
    BatchOperation,
    BatchOperationIntent,
    BatchOperationType,
)
from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.jobs.values import JobIntent, NewJob
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.runner import TOPIC
from holdfast.engine.messages.values import MessageIntent
from holdfast.engine.partition import DISPATCH
from holdfast.engine.processes.values import InstanceIntent
from holdfast.errors import Code, HoldfastError
from holdfast.gateway.access.asking import requesting
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import ActivationRequest, JobCompletion, JobFailure, NewTask
from holdfast.journal import Append
from holdfast.journal.memory import Fate, MemoryJournal
from holdfast.model.bpmn import write_bpmn
from holdfast.records import Record, RecordKind, ValueType, partition_for, partition_of
from holdfast.testing import run

V = ValueType
PARTITIONS = 4
ORDERS = 30
LETTERS = 30
MOVES = 200
SUBMIT = Command(V.JOB, JobIntent.CREATE, 0, NewJob("mail", b"1"))
PASSING = {Code.UNAVAILABLE, Code.UNKNOWN, Code.MOVED, Code.RESOURCE_EXHAUSTED}
ORDER = (
    Process("order")
    .pause("rest", timedelta(seconds=2))
    .wait("paid", message="payment", key="n")
    .task("ship")
)
# What must have happened as often as without a move. How often a job was leased is another matter.
COUNTED = {
    (V.PROCESS_INSTANCE, InstanceIntent.CREATED), (V.PROCESS_INSTANCE, InstanceIntent.COMPLETED),
    (V.JOB, JobIntent.CREATED), (V.JOB, JobIntent.COMPLETED), (V.JOB, JobIntent.FAILED),
    (V.MESSAGE, MessageIntent.PUBLISHED), (V.INCIDENT, IncidentIntent.CREATED),
    (V.INCIDENT, IncidentIntent.RESOLVED), (V.BATCH_OPERATION, BatchOperationIntent.CREATED),
    (V.BATCH_OPERATION, BatchOperationIntent.COMPLETED),
}  # fmt: skip


class Letters:
    """Selects the tasks that wait for a person, in small pages."""

    def __init__(self) -> None:
        self.keys: list[int] = []

    async def page(
        self, key: int, operation: BatchOperation, partition: int, cursor: str, limit: int
    ) -> ItemPage:
        await asyncio.sleep(0.01)
        found = [each for each in self.keys if partition_of(each) == partition]
        at = int(cursor or 0)
        end = at + min(3, limit)
        return ItemPage(tuple(found[at:end]), (), str(end) if end < len(found) else None)


class Story:
    """Work on all partitions, from whichever member, while they move or do not."""

    def __init__(self, seed: int, *, moving: bool) -> None:
        self.random = Random(seed)
        self.is_moving = moving
        self.moves = 0
        self.letters = Letters()
        journal = MemoryJournal(
            clock=asyncio.get_running_loop().clock,  # type: ignore[attr-defined]
            fate=self._fate,
        )
        self.fellows = Fellows(("a", "b"), PARTITIONS, journal=journal, selector=self.letters)

    def _fate(self, append: Append) -> Fate:
        if not self.is_moving or self.random.random() > 0.03:
            return Fate.SLOW if self.random.random() < 0.3 else Fate.DURABLE
        return self.random.choice((Fate.KEPT, Fate.LATE, Fate.LOST))

    async def ask(self, request: str, ask: Any) -> Any:
        """Asks any member until there is an answer."""
        while True:
            gateway = self.random.choice(list(self.fellows.nodes.values())).gateway
            try:
                async with asyncio.timeout(5):
                    if request:
                        with requesting(request):
                            return await ask(gateway)
                    return await ask(gateway)
            except TimeoutError:
                pass
            except HoldfastError as error:
                if error.code == Code.ALREADY_EXISTS:  # it was done the last time
                    return None
                if error.code not in PASSING:
                    raise
            await asyncio.sleep(self.random.uniform(0.005, 0.05))

    # --- what is done -------------------------------------------------------------------------

    async def order(self, number: int) -> None:
        await asyncio.sleep(self.random.uniform(0, 3))
        variables = msgspec.Raw(b'{"n":"%d"}' % number)
        new = NewProcessInstance("order", variables=variables)
        await self.ask(f"start-{number}", lambda gateway: gateway.instances.start([new]))
        await asyncio.sleep(self.random.uniform(0, 5))
        paid = NewMessage("payment", str(number), message_id=f"m-{number}", ttl_ms=3_600_000)
        await self.ask("", lambda gateway: gateway.messages.publish(paid))

    async def ship(self) -> None:
        request = ActivationRequest(["ship", "send"], "worker", 5, 3_000, 200)
        while True:
            for job in await self.ask("", lambda gateway: gateway.jobs.activate(request)):
                is_letter = job.type == "send" and int(job.job_key) not in self.letters.keys
                if is_letter:
                    failure = JobFailure(job.job_key, job.lease, "no stamp")
                    await self.ask("", lambda g, one=failure: g.jobs.fail([one]))
                else:
                    done = JobCompletion(job.job_key, job.lease, msgspec.Raw(b"{}"))
                    await self.ask("", lambda g, one=done: g.jobs.complete([one]))

    async def write(self) -> None:
        """Letters that nobody can send, until a batch operation tries all of them again."""
        for number in range(LETTERS):
            new = NewTask("send", retries=0, key=f"letter-{number}")
            await self.ask("", lambda gateway, new=new: gateway.tasks.submit([new]))
        while len(await self.keys(V.INCIDENT, IncidentIntent.CREATED)) < LETTERS:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        records = await self.records()
        self.letters.keys = [
            each.key
            for each in records
            if (each.kind, each.value_type) == (RecordKind.EVENT, V.JOB)
            and each.intent == JobIntent.CREATED
            and each.value.type == "send"
        ]
        operation = BatchOperation(BatchOperationType.RETRY_TASK, b'{"type":"send"}')
        command = Command(
            V.BATCH_OPERATION, BatchOperationIntent.CREATE, 0, operation, request_id="all"
        )
        await self.ask("", lambda _: self.fellows.owner(2).partitions.submit(2, [command]))

    async def move(self) -> None:
        while self.is_moving and self.moves < MOVES:
            await asyncio.sleep(self.random.uniform(0, 0.1))
            partition = self.random.randrange(1, PARTITIONS + 1)
            await self.place(partition, self.random.choice("ab"), self.random.random() < 0.5)
            self.moves += 1

    async def place(self, partition: int, to: str, drains: bool) -> None:
        nodes = self.fellows.nodes
        for name, node in nodes.items():
            if (drains or name == to) and node.runner.epoch(partition) is not None:
                try:
                    async with asyncio.timeout(1):
                        await node.runner.close_partition(partition)
                except (HoldfastError, TimeoutError):
                    pass
        while True:
            try:
                if nodes[to].runner.epoch(partition) is None:
                    await nodes[to].runner.open(partition)
                break
            except HoldfastError:
                await asyncio.sleep(0.01)
        for node in nodes.values():  # as a node that learns of a placement does
            node.runtime.post.reached([partition])

    # --- what came of it ----------------------------------------------------------------------

    async def records(self) -> list[Record]:
        found: list[Record] = []
        for partition in range(1, PARTITIONS + 1):
            entries = await self.fellows.journal.read(TOPIC, partition, 0, 2**30)
            some = DISPATCH.codec.decode_many([entry.payload for entry in entries])
            assert [each.position for each in some] == list(range(len(some)))
            found += some
        return found

    async def keys(self, value_type: ValueType, intent: Any) -> set[int]:
        return {
            each.key
            for each in await self.records()
            if each.kind is RecordKind.EVENT
            and (each.value_type, each.intent) == (value_type, intent)
        }

    async def is_done(self) -> bool:
        counted = await self.counts()
        return (
            counted[V.PROCESS_INSTANCE, InstanceIntent.COMPLETED] >= ORDERS
            and counted[V.JOB, JobIntent.COMPLETED] >= ORDERS + LETTERS
            and counted[V.BATCH_OPERATION, BatchOperationIntent.COMPLETED] >= 1
        )

    async def counts(self) -> Counter[Any]:
        return Counter(
            (each.value_type, each.intent)
            for each in await self.records()
            if each.kind is RecordKind.EVENT and (each.value_type, each.intent) in COUNTED
        )

    async def play(self) -> Counter[Any]:
        fellows = await self.fellows.start()
        for partition in range(1, PARTITIONS + 1):
            await self.place(partition, "ab"[partition % 2], True)
        resource = Resource("order.bpmn", write_bpmn(ORDER.definition()).decode())
        await self.ask("", lambda gateway: gateway.processes.deploy([resource]))
        loop = asyncio.get_running_loop()
        doing = [loop.create_task(self.order(each)) for each in range(ORDERS)]
        doing += [loop.create_task(self.write()), loop.create_task(self.move())]
        workers = [loop.create_task(self.ship()) for _ in range(2)]
        async with asyncio.timeout(600):
            await asyncio.gather(*doing)
            self.is_moving = False
            ended = loop.time()
            while not await self.is_done():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert loop.time() - ended < 60, "what was lost on the way is sent again at once"
        await asyncio.sleep(30)  # nothing more may come
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self.check_states()
        counted = await self.counts()
        await fellows.close()
        return counted

    async def check_states(self) -> None:
        for partition in range(1, PARTITIONS + 1):
            fresh = await self.fellows.replayed(partition)
            live = self.fellows.owner(partition).partitions._runner.processor(partition)
            assert live.state.dump() == fresh.state.dump(), partition


async def waiting_for_its_message(story: Story) -> int:
    """An instance whose subscription is to be on another partition, which nobody has."""
    await story.fellows.start()
    for partition in range(1, PARTITIONS + 1):
        await story.place(partition, "a", True)
    resource = Resource("order.bpmn", write_bpmn(ORDER.definition()).decode())
    gateway = story.fellows.nodes["a"].gateway
    await gateway.processes.deploy([resource])
    for number in range(100):
        new = NewProcessInstance("order", variables=msgspec.Raw(b'{"n":"%d"}' % number))
        [started] = await gateway.instances.start([new])
        receiver = partition_for(str(number), PARTITIONS)
        if receiver != partition_of(int(started.process_instance_key)):
            await story.fellows.nodes["a"].runner.close_partition(receiver)
            await asyncio.sleep(3)  # the timer has fired, and the parcel was sent in vain
            return receiver
    raise AssertionError("all are where their messages go")


def test_a_parcel_is_sent_again_as_soon_as_its_receiver_has_an_owner() -> None:
    async def story() -> None:
        told = Story(1, moving=False)
        receiver = await waiting_for_its_message(told)
        before = told.fellows.journal.bounds(TOPIC, receiver).next
        await told.place(receiver, "b", False)
        await asyncio.sleep(0.1)  # the pause before it would be sent by itself is ten seconds
        entries = await told.fellows.journal.read(TOPIC, receiver, before, 2**20)
        records = DISPATCH.codec.decode_many([each.payload for each in entries])
        received = [each for each in records if each.value_type == V.PARCEL]
        assert received, "and not in its time"
        await told.fellows.close()

    run(story())


def test_what_a_sender_owes_is_sent_when_another_member_opens_it() -> None:
    async def story() -> None:
        told = Story(1, moving=False)
        receiver = await waiting_for_its_message(told)
        senders = [each for each in range(1, PARTITIONS + 1) if each != receiver]
        for sender in senders:
            await told.fellows.nodes["a"].runner.close_partition(sender)
        before = told.fellows.journal.bounds(TOPIC, receiver).next
        await told.fellows.nodes["b"].runner.open(receiver)
        for sender in senders:
            await told.fellows.nodes["b"].runner.open(sender)
        await asyncio.sleep(0.1)
        assert told.fellows.journal.bounds(TOPIC, receiver).next > before
        await told.fellows.close()

    run(story())


def test_the_numbers_of_a_partition_that_is_closed_are_none() -> None:
    async def story() -> None:
        fellows = await Fellows(("a", "b"), 1).start()
        a = fellows.nodes["a"]
        await a.runner.open(1)
        await a.gateway.tasks.submit([NewTask("send")])
        await fellows.nodes["b"].runner.open(1)
        answers = [a.runner.submit(1, [SUBMIT]) for _ in range(3)]
        await asyncio.gather(*answers, return_exceptions=True)
        numbers = a.metrics.partition(1)
        assert (numbers.open, numbers.in_flight, numbers.lag) == (0, 0, 0)
        gauges = a.metrics.distribution.gauges()
        assert gauges.active == {}, "it is counted where it is open"
        await fellows.close()

    run(story())


def test_a_batch_goes_on_while_one_partition_hears_nothing_of_its_log() -> None:
    """Without a quorum an append has no outcome; the others have theirs."""

    async def story() -> None:
        told = Story(1, moving=False)
        fellows = await told.fellows.start()
        for partition in range(1, PARTITIONS + 1):
            await told.place(partition, "a", True)
        journal: Any = fellows.nodes["a"].journal
        append_many, stuck = fellows.journal.append_many, []

        def is_stuck(append: Append) -> bool:
            """From the first items on that the partition does."""
            if append.partition == 3 and not stuck:
                records = DISPATCH.codec.decode_many(list(append.entries))
                if any(each.value_type == V.BATCH_OPERATION_EXECUTION for each in records):
                    stuck.append(append)
            return append.partition == 3 and bool(stuck)

        async def without_quorum(appends: Any) -> Any:
            outcomes = (
                []
                if all(map(is_stuck, appends))
                else await append_many([each for each in appends if not is_stuck(each)])
            )
            found, loop = iter(outcomes), asyncio.get_running_loop()
            return [loop.create_future() if is_stuck(e) else next(found) for e in appends]

        journal.append_many = without_quorum
        working = asyncio.ensure_future(told.ship())
        await told.write()
        await asyncio.sleep(20)
        others = {each for each in told.letters.keys if partition_of(each) != 3}
        assert stuck and others <= await told.keys(V.JOB, JobIntent.RETRIED)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    run(story())


def play(seed: int, *, moving: bool) -> Counter[Any]:
    async def whole() -> Counter[Any]:
        story = Story(seed, moving=moving)
        counted = await story.play()
        assert story.moves == (MOVES if moving else 0)
        return counted

    return run(whole())


def check(seed: int) -> None:
    still = play(seed, moving=False)
    assert still[V.PROCESS_INSTANCE, InstanceIntent.CREATED] == ORDERS
    assert still[V.INCIDENT, IncidentIntent.RESOLVED] == LETTERS
    assert play(seed, moving=True) == still, f"seed {seed}"


def test_parcels_batches_and_timers_are_as_without_two_hundred_moves() -> None:
    check(1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 40))
def test_parcels_batches_and_timers_survive_many_orders_of_moves(seed: int) -> None:
    check(seed)
