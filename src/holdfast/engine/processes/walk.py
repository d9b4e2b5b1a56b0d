"""A walk: what one command lets happen in an instance, until every token waits again.

Each change is applied to the state as it is decided and noted; at the end all of them become one
event. What belongs to other domains (jobs, incidents, other instances) is written behind it.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from holdfast.engine.incidents.values import Incident, IncidentIntent
from holdfast.engine.jobs.commands import add_job_with_key
from holdfast.engine.jobs.values import NewJob
from holdfast.engine.kernel import Turn
from holdfast.engine.processes import bounds, ops, tree
from holdfast.engine.processes.events import APPLY, Place
from holdfast.engine.processes.ops import Op, Phase
from holdfast.engine.processes.plan import Node, ProcessPlan, Way
from holdfast.engine.processes.state import ElementInstance, Instance
from holdfast.engine.processes.stuck import Stuck, braked, check_size, name_of, typed_of, value_of
from holdfast.engine.processes.values import Advance, InstanceIntent
from holdfast.engine.processes.variables import Layer, Seen, places
from holdfast.engine.state import EngineState
from holdfast.limits import (
    EVENT_BYTES_MAX,
    LOOP_MOVES_MAX,
    MOVE_BYTES,
    SCOPE_TOKENS_LOOK,
    SMALL_VARIABLES_BYTES,
    WALK_LOOK_MOVES,
    WALK_MOVES_MAX,
)
from holdfast.model.definition import ElementKind
from holdfast.model.feel import Expression, FeelError
from holdfast.records import ValueType

INSTANCE, INCIDENT = ValueType.PROCESS_INSTANCE, ValueType.INCIDENT

NEXT_ITEM = -1  # in the place of a way: the next item of a sequential activity begins
BY_HAND = -2  # in the place of a way: put there by a person, does not wait at a join

Enter = Callable[["Walk", Node, int, int], None]
"""What an element does with a token: (walk, node, scope, the element's key or 0)."""


class Behaviours(NamedTuple):
    """What the kinds of elements do."""

    enter: dict[ElementKind, Enter]
    scope_done: Callable[["Walk", int], None]  # the last token of a scope ended
    next_item: Callable[["Walk", Node, int], None]  # of a sequential multi-instance activity
    settle: Callable[["Walk"], bool]  # every token waits: does one wait in vain?
    pass_through: Callable[["Walk", Node, int], None]  # a join that does not wait


class Walk:
    """The pen for one instance during one command."""

    # What few walks change stands here: it costs the others nothing.
    spent = 0  # moves that were made before this walk, since the last wait
    calls = 0
    is_queued = False  # something was put off
    is_proceeding = False  # this is what was put off
    _began = -1.0
    _event_bytes = 0
    _moves_look = WALK_LOOK_MOVES  # from then on it is looked whether it is enough

    def __init__(
        self,
        turn: Turn[EngineState],
        key: int,
        row: Instance,
        plan: ProcessPlan,
        behaviours: Behaviours,
    ) -> None:
        self.turn = turn
        self.row = row  # the instance as it was before this walk
        self.state = turn.state
        self.processes = turn.state.processes
        self.key = key
        self.plan = plan
        self.intent = InstanceIntent.ADVANCED
        self.ops: list[Op] = []
        self.behind: list[Callable[[], None]] = []  # records that come behind the instance's own
        self.jobs: list[tuple[int, NewJob]] = []  # those first
        self.todo: deque[tuple[Node, int, int]] = deque()  # tokens: (where to, scope, by which way)
        self.moves = 0
        self.ended = False
        self.touched: set[int] = set()  # scopes in which something moved, for inclusive joins
        self._place = Place(key, plan.key, turn.now_ms)
        self._behaviours = behaviours
        self._tokens: dict[int, int] = {}  # scope -> tokens now
        self._tokens_before: dict[int, int] = {}

    # --- noting -------------------------------------------------------------------------------

    def do(self, op: Op) -> None:
        """Notes a change and applies it."""
        self.ops.append(op)
        APPLY[type(op)](self.state, self._place, op)

    def count(self, scope: int, difference: int) -> int:
        """Changes the number of tokens in a scope; returns it."""
        tokens = self._tokens.get(scope)
        if tokens is None:
            tokens = self._tokens_before[scope] = self.stored_tokens(scope)
        tokens = self._tokens[scope] = tokens + difference
        self.touched.add(scope)
        assert tokens >= 0, "a scope has less than no token"
        if difference > 0 and tokens > (SCOPE_TOKENS_LOOK if scope == self.key else 1):
            self._moves_look = 0
        return tokens

    def tokens_of(self, scope: int) -> int | None:
        """How many tokens a scope has now, if this walk has changed their number."""
        return self._tokens.get(scope)

    def stored_tokens(self, scope: int) -> int:
        return self.row.tokens if scope == self.key else self.element(scope).tokens

    def forget_scope(self, scope: int) -> None:
        """The scope is gone, and so are its tokens."""
        self._tokens.pop(scope, None)

    def drop_moving(self, scope: int) -> None:
        """The scope is being ended over several steps: what was on its way in it stops here."""
        kept = deque[tuple[Node, int, int]]()
        for each in self.todo:
            if not self._is_within(each[1], scope):
                kept.append(each)
            elif each[2] != NEXT_ITEM:
                self.count(each[1], -1)
        self.todo = kept

    def _is_within(self, key: int, scope: int) -> bool:
        while key != scope and key != self.key:
            key = self.element(key).scope
        return key == scope

    def drop_tokens(self, scope: int) -> None:
        """Nothing of the scope goes on: tokens on their way are taken out of it."""
        self.count(scope, -self.count(scope, 0))
        if self.todo:
            self.todo = deque(each for each in self.todo if each[1] != scope)

    def finish(self) -> None:
        """Writes the event of this walk, and what comes behind it."""
        for scope, tokens in self._tokens.items():
            if tokens != self._tokens_before[scope]:
                self.do(ops.Counted(scope, tokens))
        self._tokens.clear()
        if self.is_queued or self.is_proceeding:
            tree.pace(self)
        self.flush()
        self.turn.moves += self.moves
        for job, new in self.jobs:
            add_job_with_key(self.turn, job, new)
        for write in self.behind:
            write()

    def flush(self) -> None:
        """The changes so far become an event."""
        turn = self.turn
        step = Advance(self.plan.key, tuple(self.ops), turn.last_key())
        turn.recorded(INSTANCE, self.intent, self.key, step)
        self.ops = []
        self._event_bytes = 0

    def weigh(self, size_bytes: int) -> None:
        """Before a change with so much content: what is before it may have to be an event."""
        if self._event_bytes and self._event_bytes + size_bytes > EVENT_BYTES_MAX:
            self.flush()
            self.intent = InstanceIntent.ADVANCED  # whatever it was, the first part says so
        self._event_bytes += size_bytes
        self.moves += size_bytes // MOVE_BYTES

    def in_another(self, key: int, row: Instance) -> "Walk":
        """A walk in another instance, in the same turn."""
        return Walk(self.turn, key, row, self.processes.plans[row.definition], self._behaviours)

    def follow_plan(self, plan: ProcessPlan) -> None:
        """The instance goes over to another definition."""
        self.plan = plan
        self._place = Place(self.key, plan.key, self.turn.now_ms)

    # --- moving tokens ------------------------------------------------------------------------

    def run(self) -> None:
        """Moves tokens until all of them wait."""
        while True:
            while self.todo:
                node, scope, by = self.todo.popleft()
                if by == NEXT_ITEM:
                    self._next_item(node, scope)
                    continue
                if by == BY_HAND and node.joins:
                    self._behaviours.pass_through(self, node, scope)
                    continue
                if node.joins:
                    self.do(ops.Arrived(scope, node.index, by))
                self.enter(node, scope, 0)
            # A join that settles may end its token, or be stuck: another one may settle then.
            settled = self.plan.inclusive and not self.ended and self._behaviours.settle(self)
            if not self.todo and not settled:
                return

    def enter(self, node: Node, scope: int, key: int) -> None:
        """A token comes to an element; `key` if the element has an instance already."""
        self.moves += 1
        if self.moves > self._moves_look and not node.joins and self._stays(node, scope, key):
            return
        try:
            if self.turn.is_braked and not node.joins:
                raise braked()
            self._behaviours.enter[node.kind](self, node, scope, key)
        except (Stuck, FeelError) as problem:
            self.stick(node, scope, key, Stuck.of(problem, node), Phase.ENTERING)

    def _next_item(self, node: Node, body: int) -> None:
        self.moves += 1
        if self.moves > self._moves_look and self._stays(node, body, body):
            return
        self._behaviours.next_item(self, node, body)

    def stays(self, node: Node, scope: int) -> bool:
        """Like coming to an element: whether the token stays in front of it."""
        self.moves += 1
        return self.moves > self._moves_look and self._stays(node, scope, 0)

    def _stays(self, node: Node, scope: int, key: int) -> bool:
        """Whether a token stays in front of an element, for this step or until a person looks."""
        if why := bounds.excess(self, node, scope):
            phase = Phase.ENTERING if key != scope else Phase.ACTIVE
            self.stick(node, scope, key, Stuck.beyond(why), phase)
            return True
        if self.is_enough():
            self.defer(node, scope, key)
            return True
        self._moves_look = self.moves + WALK_LOOK_MOVES
        return False

    def is_enough(self) -> bool:
        """Whether the walk was long enough for one step."""
        if self.moves > WALK_MOVES_MAX:
            return True
        now = self.turn.elapsed()
        self._began = now if self._began < 0 else self._began
        return now - self._began > self.turn.share_seconds

    def take_time(self, moves: int) -> None:
        """Something takes as long as so many moves, and is none."""
        self.moves += moves
        self.spent -= moves

    def carry(self, moves: int) -> None:
        """The walk goes on from one that made so many moves, without a wait between them."""
        self.spent = moves
        if moves > LOOP_MOVES_MAX:
            self._moves_look = 0

    def defer(self, node: Node, scope: int, key: int) -> None:
        """Enough for one step: others come first, then the token goes on from here."""
        if not key:
            key = self.turn.new_key()
            item = -1 if node.loop else 0
            self.do(ops.Activated(key, node.index, scope, Phase.ENTERING, 0, item))
        tree.queue(self, key)

    def put_off(self, key: int, due_ms: int, moves: int = 0) -> None:
        """An element or the instance goes on at a time, and no longer at another."""
        rows = self.processes.instances if key == self.key else self.processes.elements
        row = rows.get(key)
        assert row is not None, f"{key} is not there"
        if row.due_ms:
            self.do(ops.Resumed(key, row.due_ms))
        self.do(ops.Deferred(key, due_ms, moves))

    def follow(self, way: Way, scope: int) -> None:
        self.todo.append((way.target, scope, way.place))

    def leave(self, node: Node, scope: int) -> None:
        """The token of an element goes on by all its ways; with none it ends."""
        self.touched.add(scope)
        ways = node.ways
        if not ways:
            self.consume(scope)
            return
        if len(ways) > 1:
            self.count(scope, len(ways) - 1)
        for way in ways:
            self.todo.append((way.target, scope, way.place))

    def consume(self, scope: int) -> None:
        """A token ends; with the last one its scope is done."""
        if not self.count(scope, -1):
            self._behaviours.scope_done(self, scope)

    def passed(self, node: Node, scope: int, key: int) -> None:
        """The token was here and goes on."""
        if key:
            self.completed(key, self.element(key))
        else:
            self.ops.append(ops.Passed(self.turn.new_key(), node.index, scope))  # it only tells

    def completed(self, key: int, element: ElementInstance) -> None:
        """An element instance did what it is for."""
        if element.due_ms:
            self.do(ops.Resumed(key, element.due_ms))
        self.do(ops.Completed(key, element.node, element.scope, element.local))

    def terminated(self, key: int, element: ElementInstance) -> None:
        """An element instance was ended before that."""
        if element.due_ms:
            self.do(ops.Resumed(key, element.due_ms))
        if element.incident:
            tree.release(self, key, grant=False)
        self.do(ops.Terminated(key, element.node, element.scope, element.local))

    def is_ending(self, element: ElementInstance) -> bool:
        """Whether the element, or a scope around it, is being ended: nothing goes on in it."""
        return element.phase is Phase.TERMINATING or self.is_scope_ending(element)

    def is_scope_ending(self, element: ElementInstance) -> bool:
        """Whether a scope around the element is being ended, whatever becomes of it alone."""
        while element.scope != self.key:
            element = self.element(element.scope)
            if element.phase is Phase.TERMINATING:
                return True
        return self.row.phase is Phase.TERMINATING

    # --- variables ----------------------------------------------------------------------------

    def layers(self, scope: int) -> list[Layer]:
        return self.processes.layers(scope, self.key)

    def seen(self, scope: int, known: dict[str, Any] | None = None) -> Seen:
        return Seen(self.layers(scope), known)

    def value(self, expression: Expression, seen: Seen, what: str) -> Any:
        """The value of an expression; Stuck where it has none at all."""
        return value_of(self.turn, expression, seen, what)

    def typed(self, expression: Expression, seen: Seen, kind: type, what: str) -> Any:
        """The value of an expression that must be of a kind."""
        return typed_of(self.turn, expression, seen, kind, what)

    def text(self, text: str | Expression, seen: Seen, what: str) -> str:
        """A name: as it is, or the value of an expression, which records have to carry."""
        return text if isinstance(text, str) else name_of(self.turn, text, seen, what)

    def propagate(self, scope: int, values: dict[str, bytes]) -> None:
        """New values go to the innermost scope that knows the name, else to the outermost."""
        if not values:
            return
        if scope == self.key:
            self.set_variables(scope, values)
            return
        check_size(values)  # all of them, before the first scope has its part
        for target, part in places(self.layers(scope), values).items():
            self.set_variables(target, part)

    def set_variables(self, scope: int, values: dict[str, bytes]) -> None:
        if (size := check_size(values)) > SMALL_VARIABLES_BYTES:
            self.weigh(size)
        self.do(ops.VariablesSet(scope, values))

    # --- incidents ----------------------------------------------------------------------------

    def stick(self, node: Node, scope: int, key: int, stuck: Stuck, phase: Phase) -> int:
        """The token stays where it is, and a person is called; returns the element's key."""
        turn = self.turn
        work = 0
        if not key:
            key = turn.new_key()
            item = -1 if node.loop else 0
            self.do(ops.Activated(key, node.index, scope, phase, 0, item))
        elif (element := self.processes.elements.get(key)) is not None:
            work = element.work
        if stuck.holds:
            tree.hold(self, node, key, stuck, phase)
            return key
        incident = turn.new_key()
        self.do(ops.Changed(key, phase, incident, work=work))
        value = Incident(
            0, "", stuck.reason, stuck.message, turn.now_ms, key, self.key, node.id,
            self.plan.process_id,
        )  # fmt: skip
        self.behind.append(lambda: turn.event(INCIDENT, IncidentIntent.CREATED, incident, value))
        return key

    def element(self, key: int) -> ElementInstance:
        element = self.processes.elements.get(key)
        assert element is not None, f"element instance {key} is not there"
        return element
