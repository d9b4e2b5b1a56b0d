"""Transactions: have them done, wait for their decision, see those that are stuck."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from holdfast.clock import Clock
from holdfast.config import Config
from holdfast.engine.jobs.values import Completion
from holdfast.engine.kernel import Command
from holdfast.engine.transactions.queries import (
    FindDecision,
    FindTransaction,
    FoundTransaction,
    ListTransactions,
)
from holdfast.engine.transactions.values import (
    KINDS,
    NewTransaction,
    RefusedOperation,
    TransactionAnswer,
    TransactionDecided,
    TransactionIntent,
    TransactionOperation,
    TransactionState,
)
from holdfast.errors import InvalidArgument, Moved, NotFound, Unavailable, Unknown
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked, requesting
from holdfast.gateway.processes.instances import instance_of
from holdfast.gateway.processes.messages import message_of
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.new_jobs import new_job
from holdfast.gateway.tasks.shapes import JobCompletion
from holdfast.gateway.transactions.api import TransactionApi
from holdfast.gateway.transactions.placing import Planned, home_of, planned
from holdfast.gateway.transactions.shapes import (
    RefusedStep,
    TransactionPage,
    TransactionPart,
    TransactionQuery,
    TransactionRequest,
    TransactionResult,
    TransactionStep,
    TransactionView,
)
from holdfast.gateway.walk import walk
from holdfast.limits import (
    PAGE_ITEMS_MAX,
    PAYLOAD_BYTES_MAX,
    TRANSACTION_BYTES_MAX,
    TRANSACTION_MS_MAX,
    TRANSACTION_OPERATIONS_MAX,
    TRANSACTION_PARTITIONS_MAX,
)
from holdfast.partitions import EffectTopic
from holdfast.records import ValueType, partition_of
from holdfast.records.keys import NO_KEY

_TRANSACTION = ValueType.TRANSACTION
_GRACE_MS = 10_000  # beyond its timeout: then the caller is told that the outcome is unknown
_LOOK_S = 0.2  # between two questions to a partition that is away
_encode = msgspec.msgpack.Encoder().encode


class TransactionService(TransactionApi):
    """What can be asked about transactions."""

    def __init__(
        self, asked: Asked, config: Config, clock: Clock, defaults: DefaultsOfTasks
    ) -> None:
        self._asked = asked
        self._config = config
        self._clock = clock
        self._defaults = defaults

    # --- having one done ----------------------------------------------------------------------

    async def commit(self, request: TransactionRequest) -> TransactionResult:
        """What may be done anywhere is done at the home: where all of it is, one append does it."""
        steps = request.operations
        checks.within(len(steps), 1, TRANSACTION_OPERATIONS_MAX, "number of operations")
        checks.within(request.timeout_ms, 1, TRANSACTION_MS_MAX, "timeoutMs")
        with _known_as(request.id):
            operations = await self._planned(steps)
            home = self._home(request, operations)
            placed = tuple([_operation(each, home) for each in operations])
            size_bytes = sum(len(each.value) for each in placed)
            checks.within(size_bytes, 0, TRANSACTION_BYTES_MAX, "bytes in one transaction")
            count = len({each.partition for each in placed})
            checks.within(count, 1, TRANSACTION_PARTITIONS_MAX, "partitions in one transaction")
            new = NewTransaction(placed, request.timeout_ms)
            command = Command(_TRANSACTION, TransactionIntent.BEGIN, NO_KEY, new)
            (reply,) = await self._asked.submit(home, [command], size_bytes)
        if error := reply.error():
            raise error
        answer: TransactionAnswer = reply.value
        if answer.state == TransactionState.OPEN:
            answer = await self._decided(reply.key, request.timeout_ms + _GRACE_MS)
        return TransactionResult(
            str(reply.key), answer.state, list(map(str, answer.keys)),
            list(map(_refused, answer.refused)),
        )  # fmt: skip

    async def _planned(self, steps: Sequence[TransactionStep]) -> list[Planned]:
        """The operations as the engine has them, each checked as if it was alone."""
        await self._defaults.learn({step.submit.type for step in steps if step.submit is not None})
        return [self._plan(at, step) for at, step in enumerate(steps)]

    def _plan(self, at: int, step: TransactionStep) -> Planned:
        said = [each for each in msgspec.structs.astuple(step) if each is not None]
        if len(said) != 1:
            raise InvalidArgument(
                "Expected an operation to be one of submit, complete, start and publish, but"
                f" operation {at} is {len(said)} of them",
                field=f"operations[{at}]",
            )
        count = self._asked.count
        try:
            if step.submit is not None:
                now_ms, config = self._clock.now_ms(), self._config
                return planned(new_job(step.submit, now_ms, config, self._defaults.of), count)
            if step.start is not None:
                return planned(instance_of(step.start, self._config), count)
            if step.publish is not None:
                return planned(message_of(step.publish), count)
            assert step.complete is not None
            return self._completion(step.complete)
        except (InvalidArgument, NotFound) as error:
            fields = {"field": f"operations[{at}]", **error.fields}
            raise type(error)(f"Operation {at}: {error.message}", **fields) from error

    def _completion(self, job: JobCompletion) -> Planned:
        result, count = bytes(job.result), self._asked.count
        checks.within(len(result), 0, PAYLOAD_BYTES_MAX, "bytes of a result")
        key = checks.key_from(job.job_key, count, "job")
        done = Completion(checks.key_from(job.lease, count, "lease"), result)
        return planned(done, count, key)

    def _home(self, request: TransactionRequest, operations: list[Planned]) -> int:
        if request.home_job is not None:
            return partition_of(checks.key_from(request.home_job, self._asked.count, "job"))
        return home_of(operations, self._asked.anywhere())

    async def _decided(self, key: int, wait_ms: int) -> TransactionAnswer:
        """The decision, which is durable; it is told as soon as it is, or asked for again."""
        news = asyncio.Event()
        stop = self._asked.follow(
            EffectTopic(TransactionDecided, key, partition_of(key)), lambda _: news.set()
        )
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while True:
                    news.clear()
                    try:
                        found = await self._asked.ask(partition_of(key), FindDecision(key))
                    except (Unavailable, Moved, Unknown):
                        await asyncio.sleep(_LOOK_S)
                        continue
                    if found is None:
                        raise NotFound(f"Transaction {key} was decided and is forgotten", key=key)
                    if found.state != TransactionState.OPEN:
                        return found
                    await news.wait()
        except TimeoutError as error:
            raise Unknown(
                f"Transaction {key} was begun, but partition {partition_of(key)} did not say what"
                " became of it; send the same request with the same id",
                key=str(key),
            ) from error
        finally:
            stop()

    # --- looking ------------------------------------------------------------------------------

    async def page(self, query: TransactionQuery) -> TransactionPage:
        limit = checks.within(query.limit, 1, PAGE_ITEMS_MAX, "limit")
        start = checks.key_after(query.after, self._asked.count, "transaction")
        found, last = await walk(
            self._asked, start, limit, lambda after, left: ListTransactions(after, left)
        )
        return TransactionPage([_view(each) for each in found], str(last) if last else None)

    async def get(self, transaction_key: str) -> TransactionView:
        key = checks.key_from(transaction_key, self._asked.count, "transaction")
        found = await self._asked.ask(partition_of(key), FindTransaction(key))
        if found is None:
            raise NotFound(
                f"Expected a transaction with key {key}, but it is unknown or done and forgotten",
                key=transaction_key,
            )
        return _view(found)


def _known_as(id_: str | None) -> AbstractContextManager[None]:
    if id_ is None:
        return nullcontext()
    return requesting(f"transaction/{checks.name(id_, 'id')}")


def _operation(each: Planned, home: int) -> TransactionOperation:
    value_type, intent = each.kind
    return TransactionOperation(
        each.partition or home, int(value_type), int(intent), each.key, _encode(each.value)
    )


def _refused(each: RefusedOperation) -> RefusedStep:
    return RefusedStep(
        each.operation, each.code.value, each.reason, str(each.key) if each.key else None
    )


def _view(found: FoundTransaction) -> TransactionView:
    begun = checks.moment(found.begun_ms)
    assert begun is not None
    return TransactionView(
        str(found.key), partition_of(found.key), found.state, begun,
        checks.moment(found.decided_ms), found.timeout_ms or None, list(found.partitions),
        list(found.missing),
        [
            TransactionPart(
                KINDS[each.value_type, each.intent], each.partition,
                str(each.key) if each.key else None,
            )
            for each in found.operations
        ],
        list(map(_refused, found.refused)), list(map(_refused, found.failed)),
    )  # fmt: skip
