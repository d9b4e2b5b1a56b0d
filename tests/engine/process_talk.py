"""What tests say to a partition about processes, in one line each."""

import hashlib
import json
from typing import Any

from partition_driver import Driver, Open
from process_checks import check_end, check_invariants

from holdfast.engine.incidents.values import Incident, IncidentIntent, Resolution
from holdfast.engine.jobs.values import (
    ActivatedJob,
    Activation,
    Completion,
    Failure,
    JobBatchIntent,
    JobEnded,
    JobIntent,
    Outcome,
    Retry,
    ThrowError,
)
from holdfast.engine.kernel import Command, Reply, Step
from holdfast.engine.messages.values import MessageIntent, NewMessage
from holdfast.engine.partition import open_partition
from holdfast.engine.processes.values import (
    Activate,
    Deployment,
    InstanceIntent,
    InstanceRef,
    Migration,
    Modification,
    NewInstance,
    NewVariables,
    ProcessIntent,
)
from holdfast.model.definition import Definition, encode_definition
from holdfast.model.dsl import Process
from holdfast.records import ValueType

LEASE_MS = 3_600_000
KEEP_MS = 0
INSTANCE = ValueType.PROCESS_INSTANCE


def deployment(process: Process | Definition) -> Deployment:
    """What a client asks for when it deploys a process."""
    definition = process.definition() if isinstance(process, Process) else process
    body = encode_definition(definition)
    return Deployment(definition.id, body, hashlib.sha256(body).digest())


def packed(variables: dict[str, Any] | None) -> bytes:
    return json.dumps(variables or {}).encode()


class Talk(Driver):
    """A partition that one can talk to about processes."""

    def __init__(self, open_: Open = open_partition) -> None:
        super().__init__(open_)
        self.bugs: list[str] = []

    def append(self, step: Step) -> None:
        super().append(step)
        self.bugs += step.bugs

    def ask(self, value_type: ValueType, intent: Any, key: int, value: Any) -> Reply:
        """One command; whatever it put off for the next step goes on too."""
        reply = self.do(Command(value_type, intent, key, value))
        self.settle()
        return reply

    def settle(self) -> None:
        """Does what is due now and what is left over."""
        while self.processor.has_leftover or self._is_due():
            self.step()

    def _is_due(self) -> bool:
        due_ms = self.processor.next_due_ms()
        return due_ms is not None and due_ms <= self.now_ms

    def pass_time(self, seconds: float) -> None:
        self.advance(round(seconds * 1_000))
        self.settle()

    # --- processes ----------------------------------------------------------------------------

    def deploy(self, process: Process | Definition) -> int:
        reply = self.ask(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(process))
        assert reply.rejection is None, reply.rejection
        return reply.key

    def start(self, process_id: str = "p", **variables: Any) -> int:
        new = NewInstance(process_id, variables=packed(variables), keep_ms=KEEP_MS)
        reply = self.ask(INSTANCE, InstanceIntent.CREATE, 0, new)
        assert reply.rejection is None, reply.rejection
        return reply.key

    def run(self, process: Process | Definition, **variables: Any) -> int:
        """Deploys a process and starts it."""
        definition = process.definition() if isinstance(process, Process) else process
        self.deploy(definition)
        return self.start(definition.id, **variables)

    def cancel(self, key: int) -> Reply:
        return self.ask(INSTANCE, InstanceIntent.CANCEL, key, InstanceRef())

    def set(self, key: int, *, local: bool = False, **variables: Any) -> Reply:
        value = NewVariables(packed(variables), local)
        return self.ask(INSTANCE, InstanceIntent.SET_VARIABLES, key, value)

    def modify(
        self,
        key: int,
        *activate: str | Activate,
        terminate: tuple[int, ...] = (),
        terminate_ids: tuple[str, ...] = (),
        move: tuple[tuple[str, str], ...] = (),
        **variables: Any,
    ) -> Reply:
        entries = tuple(Activate(each) if isinstance(each, str) else each for each in activate)
        value = Modification(entries, terminate, terminate_ids, move, packed(variables))
        return self.ask(INSTANCE, InstanceIntent.MODIFY, key, value)

    def migrate(self, key: int, definition: int, **elements: str) -> Reply:
        """Every element of the same id goes along, unless it is named with another or with ''."""
        source = self.plan_of(key)
        target = self.view.processes.plans[definition]
        same = {
            id_: id_
            for id_, node in source.by_id.items()
            if id_ in target.by_id and target.by_id[id_].kind == node.kind
        }
        mapping = {**same, **{id_.replace("__", "-"): to for id_, to in elements.items()}}
        value = Migration(definition, tuple((id_, to) for id_, to in mapping.items() if to))
        return self.ask(INSTANCE, InstanceIntent.MIGRATE, key, value)

    # --- jobs ---------------------------------------------------------------------------------

    def take(self, type_: str) -> ActivatedJob:
        """The next job of a type, leased."""
        jobs = self.take_all(type_, 1)
        assert jobs, f"there is no job of type {type_!r}"
        return jobs[0]

    def take_all(self, type_: str, limit: int = 10_000) -> list[ActivatedJob]:
        value = Activation((type_,), "worker", limit, LEASE_MS)
        return self.ask(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value).value or []

    def complete(self, job: ActivatedJob, result: Any = None) -> Reply:
        value = Completion(job.lease, json.dumps(result).encode())
        return self.ask(ValueType.JOB, JobIntent.COMPLETE, job.key, value)

    def fail(self, job: ActivatedJob, *, final: bool = True) -> Reply:
        return self.ask(ValueType.JOB, JobIntent.FAIL, job.key, Failure(job.lease, "boom", final))

    def throw(self, job: ActivatedJob, code: str, **variables: Any) -> Reply:
        value = ThrowError(job.lease, code, "said", packed(variables))
        return self.ask(ValueType.JOB, JobIntent.THROW_ERROR, job.key, value)

    def retries(self, key: int, retries: int) -> Reply:
        return self.ask(ValueType.JOB, JobIntent.UPDATE_RETRIES, key, Retry(retries))

    def work(self, type_: str, result: Any = None) -> dict[str, Any]:
        """A worker does the next job of a type; gives the variables that it was told."""
        job = self.take(type_)
        reply = self.complete(job, result)
        assert reply.rejection is None, reply.rejection
        return json.loads(job.payload)

    # --- messages and incidents ---------------------------------------------------------------

    def publish(
        self, name: str, key: str = "k", *, ttl: float = 0, message_id: str = "", **variables: Any
    ) -> Reply:
        value = NewMessage(name, key, packed(variables), message_id, round(ttl * 1_000))
        return self.ask(ValueType.MESSAGE, MessageIntent.PUBLISH, 0, value)

    def incidents(self) -> dict[int, Incident]:
        return dict(self.view.incidents.open.scan())

    def incident(self) -> Incident:
        """The only one."""
        (incident,) = self.incidents().values()
        return incident

    def resolve(self, key: int | None = None, retries: int = 1) -> Reply:
        """Resolves an incident; the only one, if none is named."""
        if key is None:
            (key,) = self.incidents()
        return self.ask(ValueType.INCIDENT, IncidentIntent.RESOLVE, key, Resolution(retries))

    # --- what can be seen ---------------------------------------------------------------------

    def plan_of(self, key: int) -> Any:
        processes = self.view.processes
        return processes.plans[processes.instances.get(key).definition]

    def instances(self, process_id: str | None = None) -> list[int]:
        found = [key for key, _ in self.view.processes.instances.scan()]
        return [key for key in found if process_id in (None, self.plan_of(key).process_id)]

    def elements(self, key: int) -> dict[int, str]:
        """Every active element of an instance: `sub/task`, `task#2` for an item, `task*` around."""
        processes, found = self.view.processes, {}
        plan = self.plan_of(key)

        def visit(scope: int, prefix: str) -> None:
            for child, element in processes.all_children(scope):
                mark = "*" if element.item < 0 else f"#{element.item}" if element.item else ""
                name = f"{prefix}{plan.nodes[element.node].id}{mark}"
                found[child] = name
                visit(child, f"{name}/")

        visit(key, "")
        return found

    def active(self, key: int) -> list[str]:
        return sorted(self.elements(key).values())

    def element(self, key: int, name: str) -> int:
        (found,) = [each for each, called in self.elements(key).items() if called == name]
        return found

    def variables(self, key: int) -> dict[str, Any]:
        rows = self.view.processes.variables.get(key) or {}
        return {name: json.loads(raw) for name, raw in rows.items()}

    def runs(self, key: int) -> bool:
        return self.view.processes.instances.get(key) is not None

    def outcome(self, key: int) -> Outcome:
        """How an instance ended."""
        (found,) = [
            effect.outcome
            for effect in self.effects
            if isinstance(effect, JobEnded) and effect.key == key
        ]
        return found

    def result(self, key: int) -> dict[str, Any]:
        """The variables that a completed instance ended with."""
        outcome = self.outcome(key)
        assert outcome.state == "COMPLETED", outcome
        return json.loads(outcome.result)

    # --- what has to hold ---------------------------------------------------------------------

    def check(self) -> None:
        """What holds after everything that can happen to a partition."""
        assert not self.bugs, self.bugs
        check_invariants(self.view)
        assert self.replayed().state.dump() == self.dump(), "replay is not what happened"
        if not self.instances():
            check_end(self.dump())
