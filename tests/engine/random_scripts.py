"""Random stories of processes: what workers, messages, time and people do to them.

Every choice is made of the seed and of what the state shows, so that the same story can be told
again: without an interruption, or with a partition that is started anew after each step.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import msgspec
from process_checks import check_end, check_invariants
from process_talk import LEASE_MS, Talk, deployment, packed
from random_definitions import CODES, MESSAGES, TYPES, Author

from holdfast.engine.incidents.values import IncidentIntent, Resolution
from holdfast.engine.jobs.values import (
    Activation,
    Completion,
    Failure,
    JobBatchIntent,
    JobIntent,
    Retry,
    ThrowError,
)
from holdfast.engine.kernel import Command, Step, Submission
from holdfast.engine.messages.values import MessageIntent, NewMessage
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.values import (
    Activate,
    InstanceIntent,
    InstanceRef,
    Migration,
    Modification,
    NewInstance,
    NewVariables,
    ProcessIntent,
)
from holdfast.records import RecordKind, ValueType

ACTIONS = 40
STEPS_AT_ONCE = 10  # a token that goes in circles never waits: others come between
ELEMENTS_MAX = 150  # tokens that multiply in circles: such an instance is canceled
INSTANCES_MAX = 12
CIRCLES_MAX = 3
TWIN = "twin"  # another process of the same shape, that instances are migrated to

# What is much for one step: lowered, so that small stories are cut in pieces too.
LIMITS: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = (
    (("holdfast.engine.kernel.processor.STEP_COMMANDS_MAX",), (1, 2, 5, 4_096)),
    (("holdfast.engine.kernel.processor.STEP_MOVES_MAX",), (1, 10, 1_000)),
    (("holdfast.engine.processes.walk.WALK_MOVES_MAX",), (2, 5, 10, 30)),
    (
        (
            "holdfast.engine.processes.walk.WALK_LOOK_MOVES",
            "holdfast.engine.processes.walk.Walk._moves_look",
        ),
        (0, 1, 8),
    ),
    (
        (
            "holdfast.engine.processes.walk.LOOP_MOVES_MAX",
            "holdfast.engine.processes.bounds.LOOP_MOVES_MAX",
        ),
        (20, 200, 100_000),
    ),
    (("holdfast.engine.processes.bounds.SCOPE_TOKENS_MAX",), (2, 10, 10_000)),
    (("holdfast.engine.processes.bounds.INSTANCE_TOKENS_MAX",), (4, 1_000_000)),
    (("holdfast.engine.processes.bounds.INSTANCE_ITEMS_MAX",), (3, 1_000_000)),
    (("holdfast.engine.processes.bounds.TREE_INSTANCES_MAX",), (1, 1_000_000)),
    (("holdfast.engine.processes.bounds.TREE_RECURSIONS_MAX",), (0, 10_000)),
    (
        (
            "holdfast.engine.processes.activities.CALLS_EAGER",
            "holdfast.engine.processes.ending.CALLS_EAGER",
        ),
        (0, 1, 8),
    ),
    (("holdfast.engine.processes.activities.CALL_EAGER_MOVES",), (0, 1_000)),
    (("holdfast.engine.processes.walk.EVENT_BYTES_MAX",), (10, 3_000_000)),
    (
        (
            "holdfast.engine.processes.walk.MOVE_BYTES",
            "holdfast.engine.processes.straight.MOVE_BYTES",
        ),
        (2, 1_000),
    ),
    (
        (
            "holdfast.engine.processes.walk.SMALL_VARIABLES_BYTES",
            "holdfast.engine.processes.straight.SMALL_VARIABLES_BYTES",
        ),
        (0, 256),
    ),
    (("holdfast.engine.processes.bounds.CALL_DEPTH_MAX",), (1, 100)),
    (("holdfast.engine.processes.tree.SCOPE_TOKENS_MAX",), (2, 10_000)),
    (("holdfast.engine.processes.loops.LOOP_BITE_ITEMS",), (1, 2, 16)),
    (("holdfast.engine.processes.ending.WALK_ENDINGS_MAX",), (1, 2, 5, 1_000)),
    (("holdfast.engine.processes.loops.LOOP_EAGER_ITEMS",), (1, 4_096)),
    (
        (
            "holdfast.engine.processes.state.LOOP_CHUNK_ITEMS",
            "holdfast.engine.processes.events.LOOP_CHUNK_ITEMS",
            "holdfast.engine.processes.loops.LOOP_CHUNK_ITEMS",
        ),
        (1, 2, 256),
    ),
)


@contextmanager
def limits(random: Random) -> Iterator[None]:
    """Random limits, for as long as one story is told."""
    patches = []
    for names, values in LIMITS:
        value = random.choice(values)
        patches += [patch(name, value) for name in names]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


class Story(Talk):
    """One story, told by a seed."""

    def __init__(self, seed: int, *, restarting: bool = False) -> None:
        super().__init__()
        self.random = Random(seed)
        self.chance = Random(seed)  # of restarts: they must not change the story
        self.restarting = restarting
        self.author = Author(self.random, calls=("q", "q", "q", "nobody"))
        self.process = self.author.process("p")
        self.told: list[str] = []
        self.circles = 0  # how often something was still going on

    def append(self, step: Step) -> None:
        super().append(step)
        if self.chance.random() < 0.3:
            self.write_state()
        if self.restarting:
            self.restart(with_store=self.chance.random() < 0.95)

    # --- telling ------------------------------------------------------------------------------

    def tell(self) -> None:
        with limits(self.random):
            self.say(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(self.process))
            called = Author(self.random).process("q")
            self.say(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(called))
            for _ in range(ACTIONS):
                self.act()
            self.finish()

    def say(self, value_type: ValueType, intent: Any, key: int, value: Any) -> None:
        self.told.append(f"{intent.name} {key} {value!r:.300}")
        self.step([Submission([Command(value_type, intent, key, value)])])
        self.look()
        if self.random.random() < 0.7:
            self.go_on(STEPS_AT_ONCE)

    def go_on(self, steps: int) -> None:
        for _ in range(steps):
            idle = not (self.processor.has_leftover or self._is_due())
            if idle or len(list(self.view.processes.elements.scan())) > 2 * ELEMENTS_MAX:
                return
            self.step()
            self.look()
        self.circles += 1

    def look(self) -> None:
        assert not self.bugs, self.bugs
        if not self.processor.has_leftover:
            check_invariants(self.view)

    def finish(self) -> None:
        """Everybody goes home: nothing is left of any instance."""
        for _ in range(100):
            keys = [key for key, row in self.view.processes.instances.scan() if not row.parent]
            if not keys and not self.processor.has_leftover:
                break
            for key in keys:
                row = self.view.processes.instances.get(key)
                if row is None or row.phase == Phase.TERMINATING:
                    continue  # it ended meanwhile, or is about to
                self.say(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCEL, key, InstanceRef())
            for _ in range(300):
                self.step()
                self.look()
                if not (self.processor.has_leftover or self._is_due()):
                    break
        assert not self.instances(), "an instance cannot be canceled"
        check_end(self.dump())
        assert self.replayed().state.dump() == self.dump()

    # --- what can happen ----------------------------------------------------------------------

    def act(self) -> None:
        processes = self.view.processes
        instances = [key for key, _ in processes.instances.scan()]
        elements = dict(processes.elements.scan())
        if len(elements) > ELEMENTS_MAX or len(instances) > INSTANCES_MAX:
            self.cancel_one(instances)
            return
        if self.circles > CIRCLES_MAX:
            self.circles = 0
            for key in instances:
                self.cancel_one([key])
            return
        weights = {
            self.start_one: 3 if len(instances) < 4 else 0,
            self.work_some: 10,
            self.publish_one: 4,
            self.wait_a_while: 5,
            self.set_some: 2 if instances else 0,
            self.resolve_one: 6 if list(self.view.incidents.open.scan()) else 0,
            self.cancel_one: 0.7 if instances else 0,
            self.modify_one: 2 if instances else 0,
            self.migrate_one: 2 if instances else 0,
            self.deploy_one: 0.7,
        }
        ((act, _),) = self.random.choices(list(weights.items()), list(weights.values()))
        act(instances)

    def start_one(self, instances: list[int]) -> None:
        new = NewInstance("p", variables=packed(self.variables_for_start()))
        self.say(ValueType.PROCESS_INSTANCE, InstanceIntent.CREATE, 0, new)

    def variables_for_start(self) -> dict[str, Any]:
        items = [self.random.randrange(4) for _ in range(self.random.randrange(5))]
        return {**self.small(), "k": self.random.choice(["k1", "k2", 7]), "items": items}

    def small(self) -> dict[str, Any]:
        return {name: self.random.randrange(4) for name in ("a", "b") if self.random.random() < 0.8}

    def work_some(self, instances: list[int]) -> None:
        value = Activation(TYPES, "worker", self.random.randint(1, 4), LEASE_MS)
        self.say(ValueType.JOB_BATCH, JobBatchIntent.ACTIVATE, 0, value)
        for key, lease in list(self.view.jobs.active.scan()):
            match self.random.choices(["done", "failed", "thrown", "held"], [6, 1, 1, 2])[0]:
                case "done":
                    results = (b"{}", packed(self.small()), packed(self.small()), b"5")
                    value = Completion(lease, self.random.choice(results))
                    self.say(ValueType.JOB, JobIntent.COMPLETE, key, value)
                case "failed":
                    failure = Failure(lease, "boom", final=True)  # pauses are the jobs' own story
                    self.say(ValueType.JOB, JobIntent.FAIL, key, failure)
                case "thrown":
                    code = self.random.choice((*CODES, "G"))
                    value = ThrowError(lease, code, "", packed(self.small()))
                    self.say(ValueType.JOB, JobIntent.THROW_ERROR, key, value)
                case _ if self.random.random() < 0.2:
                    self.say(ValueType.JOB, JobIntent.UPDATE_RETRIES, key, Retry(2))

    def publish_one(self, instances: list[int]) -> None:
        value = NewMessage(
            self.random.choice(MESSAGES), self.random.choice(["k1", "k2", "7"]),
            packed(self.small()), self.random.choice(["", "", "id"]),
            self.random.choice([0, 20_000, 60_000]),
        )  # fmt: skip
        self.say(ValueType.MESSAGE, MessageIntent.PUBLISH, 0, value)

    def wait_a_while(self, instances: list[int]) -> None:
        self.now_ms += self.random.choice([1, 5_000, 10_000, 30_000])
        self.told.append(f"it is {self.now_ms}")
        self.go_on(STEPS_AT_ONCE)

    def set_some(self, instances: list[int]) -> None:
        keys = instances + [key for key, _ in self.view.processes.elements.scan()]
        value = NewVariables(packed(self.small()), self.random.random() < 0.5)
        key = self.random.choice(keys)
        self.say(ValueType.PROCESS_INSTANCE, InstanceIntent.SET_VARIABLES, key, value)

    def resolve_one(self, instances: list[int]) -> None:
        key = self.random.choice([key for key, _ in self.view.incidents.open.scan()])
        self.say(ValueType.INCIDENT, IncidentIntent.RESOLVE, key, Resolution(1))

    def cancel_one(self, instances: list[int]) -> None:
        key = self.random.choice(instances)
        self.say(ValueType.PROCESS_INSTANCE, InstanceIntent.CANCEL, key, InstanceRef())

    def modify_one(self, instances: list[int]) -> None:
        key = self.random.choice(instances)
        ids = list(self.plan_of(key).by_id)
        active = [each for each, row in self.view.processes.elements.scan() if row.instance == key]
        names = [self.plan_of(key).nodes[self._node(each)].id for each in active] or ids
        activate = [Activate(self.random.choice(ids))] if self.random.random() < 0.6 else []
        if active and self.random.random() < 0.2:
            ancestor = self.random.choice([key, *active])
            activate.append(Activate(self.random.choice(ids), ancestor, packed(self.small())))
        terminate = [self.random.choice(active)] if active and self.random.random() < 0.4 else []
        gone = [self.random.choice(names)] if self.random.random() < 0.2 else []
        moved = []
        if self.random.random() < 0.3:
            moved = [(self.random.choice(names), self.random.choice(ids))]
        value = Modification(tuple(activate), tuple(terminate), tuple(gone), tuple(moved))
        self.refuse_or_do(InstanceIntent.MODIFY, key, value)

    def _node(self, element: int) -> int:
        return self.view.processes.elements.get(element).node

    def migrate_one(self, instances: list[int]) -> None:
        key = self.random.choice(instances)
        plan = self.plan_of(key)
        known = [each for id_ in ("p", TWIN) for each in self.view.processes.versions_of(id_)]
        target = self.view.processes.plans[self.random.choice(known)]
        pairs = []
        for id_ in plan.by_id:
            to = next((each for each in (id_, f"{id_}n", id_[:-1]) if each in target.by_id), None)
            if self.random.random() < 0.03:
                to = self.random.choice(list(target.by_id))
            if to is not None and self.random.random() < 0.97:
                pairs.append((id_, to))
        self.refuse_or_do(InstanceIntent.MIGRATE, key, Migration(target.key, tuple(pairs)))

    def refuse_or_do(self, intent: InstanceIntent, key: int, value: Any) -> None:
        """A refused change changes nothing."""
        quiet = not (self.processor.has_leftover or self._is_due())
        before, written = self.dump() if quiet else None, len(self.log)
        self.say(ValueType.PROCESS_INSTANCE, intent, key, value)
        kinds = [record.kind for record in self.records()[written:]]
        if before is not None and kinds == [RecordKind.COMMAND, RecordKind.REJECTION]:
            assert self.dump() == before, "a rejected command changed the state"

    def deploy_one(self, instances: list[int]) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.process = self.author.changed(self.process)
        deployed = self.process
        if self.random.random() < 0.4:
            deployed = msgspec.structs.replace(deployed, id=TWIN)
        self.say(ValueType.PROCESS, ProcessIntent.DEPLOY, 0, deployment(deployed))
