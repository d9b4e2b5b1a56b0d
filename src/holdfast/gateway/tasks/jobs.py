"""Jobs for workers: hand them out as soon as there are some, take back what became of them."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.clock import Clock
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.jobs.values import (
    ActivatedJob as EngineJob,
)
from holdfast.engine.jobs.values import (
    Activation,
    Completion,
    Extension,
    Failure,
    JobBatchIntent,
    JobIntent,
    JobList,
    JobsAvailable,
    Retry,
    ThrowError,
)
from holdfast.engine.jobs.values import (
    JobOrigin as EngineOrigin,
)
from holdfast.engine.kernel import Command, Reply, Required, Submission
from holdfast.errors import Code, HoldfastError, InvalidArgument, Moved, Unavailable
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked, claims_now
from holdfast.gateway.tasks.api import JobApi
from holdfast.gateway.tasks.askers import Askers
from holdfast.gateway.tasks.available import Available
from holdfast.gateway.tasks.defaults import DefaultsOfTasks
from holdfast.gateway.tasks.shapes import (
    ActivatedJob,
    ActivationRequest,
    Answer,
    HeldJob,
    JobCompletion,
    JobError,
    JobFailure,
    JobOrigin,
)
from holdfast.limits import (
    ERROR_CHARS_MAX,
    JOBS_PER_ACTIVATION_MAX,
    JOBS_PER_REPORT_MAX,
    LEASE_MS_MAX,
    PAYLOAD_BYTES_MAX,
    REQUEST_BYTES_MAX,
    RETRIES_MAX,
    SPAN_MS_MAX,
    WAIT_MS_MAX,
)
from holdfast.logs import log
from holdfast.metrics import WorkerGauges
from holdfast.records import ValueType, partition_of
from holdfast.records.keys import NO_KEY

_JOB, _JOB_BATCH, _COMPLETE = ValueType.JOB, ValueType.JOB_BATCH, JobIntent.COMPLETE


class _Parked:
    """A worker that waits for jobs."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        # The claims are those of the waiting caller, not of the request that brings the jobs.
        self.command = Command(
            _JOB_BATCH, JobBatchIntent.ACTIVATE, NO_KEY, activation, claims_now()
        )
        self.ticket: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()


class JobService(JobApi):
    """What workers can ask for and report."""

    def __init__(self, asked: Asked, clock: Clock, defaults: DefaultsOfTasks) -> None:
        self._asked = asked
        self._defaults = defaults
        self._clock = clock
        self._available = Available(asked, self._serve)
        self._askers = Askers(clock.monotonic)
        self._parked: dict[str, deque[_Parked]] = {}
        asked.serve(self)

    # --- handing out --------------------------------------------------------------------------

    async def activate(self, request: ActivationRequest) -> list[ActivatedJob]:
        """Leases waiting jobs; without any, waits until there are some or the time is over."""
        activation = _activation(request)
        # Said at once: a worker that waits for what it may not have would wait in silence.
        await self._asked.check(
            Required(ResourceType.TASK, (Permission.WORK,), activation.types),
        )
        if request.options:
            await self._defaults.define(activation.types, request.options)
        await self._available.follow(activation.types)
        now = self._clock.monotonic()
        self._askers.asks(activation.worker, activation.types, now)
        deadline = now + request.wait_ms / 1000
        while True:
            known = self._available.next(activation.types)
            if known is not None:
                command = Command(_JOB_BATCH, JobBatchIntent.ACTIVATE, NO_KEY, activation)
                jobs = await self._activated(known[0], known[1], command)
                if not jobs:
                    self._available.none(*known)
            else:
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    return []
                jobs = await self._wait(activation, left)
            if jobs:
                return _job_shapes(jobs, self._clock.now_ms())

    async def _activated(self, type_: str, partition: int, command: Command) -> list[EngineJob]:
        """The jobs that a partition gives; one that is away for now keeps none of the others'."""
        try:
            return await self._jobs_of(self._asked.activate(partition, command))
        except (Moved, Unavailable) as error:
            if error.fields.get("partition") != partition:
                raise
            self._available.look_again(type_)  # its next owner still has these jobs
            return []

    async def _wait(self, activation: Activation, seconds: float) -> list[EngineJob]:
        parked = _Parked(activation)
        for type_ in activation.types:
            self._parked.setdefault(type_, deque()).append(parked)
        try:
            async with asyncio.timeout(seconds):
                return await self._jobs_of(parked.ticket)
        except TimeoutError:
            return []
        finally:
            self._unpark(parked)
            self._askers.asks(activation.worker, activation.types, self._clock.monotonic())

    async def _jobs_of(self, ticket: "asyncio.Future[list[Reply]]") -> list[EngineJob]:
        """The jobs that a ticket brings. They are released if the caller gives up waiting."""
        try:
            (reply,) = ticket.result() if ticket.done() else await asyncio.shield(ticket)
        except asyncio.CancelledError:
            if not ticket.cancelled():
                ticket.add_done_callback(self._give_back)
            raise
        if reply.rejection is None:
            return reply.value
        if reply.rejection.code == Code.NOT_FOUND:
            return []
        error = reply.error()
        assert error is not None
        raise error

    def _give_back(self, ticket: "asyncio.Future[list[Reply]]") -> None:
        if ticket.cancelled() or ticket.exception() is not None:
            return
        for reply in ticket.result():
            leases: dict[int, list[int]] = {}
            for job in reply.value or ():
                leases.setdefault(job.lease, []).append(job.key)
            for lease, keys in leases.items():
                self._release_soon(lease, keys)

    def _release_soon(self, lease: int, keys: list[int]) -> None:
        """Nobody waits for the answer: a lease that is not released runs out."""
        try:
            ticket = self._asked.submit(partition_of(lease), [_release(lease, keys)])
        except HoldfastError as error:
            log.debug("jobs not released", lease=lease, why=error.message)
        else:
            ticket.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _unpark(self, parked: _Parked) -> None:
        for type_ in parked.activation.types:
            waiting = self._parked.get(type_)
            if waiting and parked in waiting:
                waiting.remove(parked)
                if not waiting:
                    del self._parked[type_]

    def workers(self) -> WorkerGauges:
        """Workers that asked here lately, and requests that wait now, by type."""
        waiting = {
            parked.activation.worker: parked.activation.types
            for line in self._parked.values()
            for parked in line
        }
        idle = {type_: len(line) for type_, line in self._parked.items()}
        known = self._askers.by_type(waiting.items())
        return WorkerGauges(known, {type_: idle.get(type_, 0) for type_ in known})

    def wants(self, type_: str) -> bool:
        """Whether a worker waits here for jobs of a type."""
        return type_ in self._parked

    def next(self, type_: str) -> Submission | None:
        """The command of the one that waits longest, which waits no longer."""
        parked = self._parked[type_][0]
        self._unpark(parked)
        return None if parked.ticket.done() else Submission([parked.command], parked.ticket)

    def _serve(self, effect: JobsAvailable) -> None:
        """Jobs of a type are there; a worker that came in between is served now."""
        waiting = self._parked.get(effect.type)
        if waiting:
            parked = waiting[0]
            self._unpark(parked)
            try:
                ticket = self._asked.activate(effect.partition, parked.command)
            except HoldfastError as error:  # overload, or the node is closing: the worker is told
                if not parked.ticket.done():
                    parked.ticket.set_exception(error)
                return
            ticket.add_done_callback(lambda done: _pass_on(done, parked.ticket))

    # --- taking back --------------------------------------------------------------------------

    async def complete(self, jobs: Sequence[JobCompletion]) -> list[Answer]:
        commands: list[Command] = []
        size_bytes = 0
        for job in jobs:
            result = bytes(job.result)
            size_bytes += len(result)
            if len(result) > PAYLOAD_BYTES_MAX:
                checks.within(len(result), 0, PAYLOAD_BYTES_MAX, "bytes of a result")
            done = Completion(self._lease(job.lease), result)
            commands.append(Command(_JOB, _COMPLETE, self._job(job.job_key), done))
        return await self._report(commands, size_bytes)

    async def fail(self, jobs: Sequence[JobFailure]) -> list[Answer]:
        for job in jobs:
            if job.retry_after_ms is not None:
                checks.within(job.retry_after_ms, 0, SPAN_MS_MAX, "retryAfterMs")
            if job.retries is not None:
                checks.within(job.retries, 0, RETRIES_MAX, "retries")
        return await self._report(
            [
                Command(
                    _JOB, JobIntent.FAIL, self._job(job.job_key),
                    Failure(
                        self._lease(job.lease), checks.shortened(job.error), bool(job.final),
                        job.retry_after_ms, job.retries,
                    ),
                )
                for job in jobs
            ],
            sum(min(len(job.error), ERROR_CHARS_MAX) for job in jobs),
        )  # fmt: skip

    async def throw(self, jobs: Sequence[JobError]) -> list[Answer]:
        """Errors that the processes of the jobs know."""
        commands: list[Command] = []
        for job in jobs:
            variables = bytes(job.variables)
            checks.within(len(variables), 0, PAYLOAD_BYTES_MAX, "bytes of variables")
            error = ThrowError(
                self._lease(job.lease), checks.name(job.code, "error code"),
                checks.shortened(job.message), variables,
            )  # fmt: skip
            commands.append(Command(_JOB, JobIntent.THROW_ERROR, self._job(job.job_key), error))
        return await self._report(commands, sum(len(bytes(job.variables)) for job in jobs))

    async def update_retries(self, job_key: str, retries: int) -> None:
        value = Retry(checks.within(retries, 0, RETRIES_MAX, "retries"))
        command = Command(_JOB, JobIntent.UPDATE_RETRIES, self._job(job_key), value)
        (reply,) = await self._asked.submit(partition_of(command.key), [command])
        if error := reply.error():
            raise error

    async def release(self, jobs: Sequence[HeldJob]) -> list[Answer]:
        """Jobs of one lease go back together; each answer is that of its lease."""
        leases: dict[int, list[int]] = {}
        for job in jobs:
            leases.setdefault(self._lease(job.lease), []).append(self._job(job.job_key))
        answers = await self._report([_release(lease, keys) for lease, keys in leases.items()])
        by_lease = {answer.key: answer for answer in answers}
        return [msgspec.structs.replace(by_lease[job.lease], key=job.job_key) for job in jobs]

    async def extend(self, leases: Sequence[str], lease_ms: int) -> list[Answer]:
        span = checks.within(lease_ms, 1, LEASE_MS_MAX, "leaseMs")
        return await self._report(
            [
                Command(_JOB_BATCH, JobBatchIntent.EXTEND, self._lease(lease), Extension(span))
                for lease in leases
            ]
        )

    async def _report(self, commands: list[Command], size_bytes: int = 0) -> list[Answer]:
        """Submits commands about what exists, each to the partition of its key."""
        checks.within(len(commands), 1, JOBS_PER_REPORT_MAX, "number of items")
        checks.within(size_bytes, 0, REQUEST_BYTES_MAX, "bytes in one request")
        groups: dict[int, list[Command]] = {}
        for command in commands:
            partition = partition_of(command.key)
            group = groups.get(partition)
            if group is None:
                groups[partition] = [command]
            else:
                group.append(command)
        tickets = self._asked.submit_all(groups, size_bytes)
        if len(tickets) == 1:
            return list(map(_answer, commands, await tickets[0]))
        outcomes = await asyncio.gather(*tickets, return_exceptions=True)
        failed = [each for each in outcomes if isinstance(each, BaseException)]
        if len(failed) == len(outcomes):
            raise failed[0]
        answers: dict[int, Answer] = {}
        for group, outcome in zip(groups.values(), outcomes, strict=True):
            if isinstance(outcome, HoldfastError):  # one partition is away: the others have theirs
                answers |= {id(each): _refused(each, outcome) for each in group}
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                for command, reply in zip(group, outcome, strict=True):
                    answers[id(command)] = _answer(command, reply)
        return [answers[id(command)] for command in commands]

    def _job(self, text: str) -> int:
        return checks.key_from(text, self._asked.count, "job")

    def _lease(self, text: str) -> int:
        return checks.recent_key_from(text, self._asked.count, "lease")


def _activation(request: ActivationRequest) -> Activation:
    checks.within(request.wait_ms, 0, WAIT_MS_MAX, "waitMs")
    if not request.types:
        raise InvalidArgument("Expected at least one type of jobs, but found none", field="types")
    return Activation(
        tuple(checks.name(type_, "type") for type_ in request.types),
        checks.name(request.worker, "worker"),
        checks.within(request.jobs_max, 1, JOBS_PER_ACTIVATION_MAX, "jobsMax"),
        checks.within(request.lease_ms, 1, LEASE_MS_MAX, "leaseMs"),
        {type_: tuple(names) for type_, names in request.variables.items()},
    )


def _release(lease: int, keys: Iterable[int]) -> Command:
    return Command(_JOB_BATCH, JobBatchIntent.RELEASE, lease, JobList(tuple(keys)))


def _refused(command: Command, error: HoldfastError) -> Answer:
    return Answer(str(command.key), error.code.value, error.message)


def _answer(command: Command, reply: Reply) -> Answer:
    if reply.rejection is None:
        return Answer(str(command.key))
    return Answer(str(command.key), reply.rejection.code.value, reply.rejection.reason)


def _job_shapes(jobs: list[EngineJob], now_ms: int) -> list[ActivatedJob]:
    leases = {job.lease: str(job.lease) for job in jobs}
    raw = msgspec.Raw
    return [
        ActivatedJob(
            str(job.key), job.type, raw(job.payload), leases[job.lease],
            max(job.deadline_ms - now_ms, 0), job.attempt, job.retries, not job.fixed,
            None if job.origin is None else _origin(job.origin), job.priority, job.headers,
        )
        for job in jobs
    ]  # fmt: skip


def _origin(origin: EngineOrigin) -> JobOrigin:
    return JobOrigin(
        origin.process_id, origin.version, str(origin.instance_key), origin.element_id,
        str(origin.element_key), origin.headers, str(origin.definition_key),
        str(origin.root_key),
    )  # fmt: skip


def _pass_on(done: "asyncio.Future[list[Reply]]", to: "asyncio.Future[list[Reply]]") -> None:
    """What one ticket brought goes to another."""
    error = None if done.cancelled() else done.exception()
    if to.done() or done.cancelled():
        return  # the worker has stopped waiting: nobody wants to know
    if error is not None:
        to.set_exception(error)
    else:
        to.set_result(done.result())
