"""Migration: a running instance goes over to another version, of its process or of another one.

Checked as a whole, then done.
"""

from functools import partial
from typing import NamedTuple

import msgspec

from holdfast.engine.incidents.values import IncidentIntent
from holdfast.engine.kernel import Turn
from holdfast.engine.messages import queue, subscribing
from holdfast.engine.processes import ops, waits
from holdfast.engine.processes.instances import take_up
from holdfast.engine.processes.modify import active_elements
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import Node, ProcessPlan
from holdfast.engine.processes.stuck import Stuck
from holdfast.engine.processes.values import InstanceIntent, Migration
from holdfast.engine.processes.walk import INCIDENT, Walk
from holdfast.engine.state import EngineState
from holdfast.errors import Code, InvalidArgument
from holdfast.model.definition import ElementKind
from holdfast.records import Record


class _Change(NamedTuple):
    """What migration does to one element instance."""

    key: int
    source: Node
    target: Node
    kept: list[tuple[Node, Node]]  # events that it waits for and goes on waiting for
    closed: list[Node]
    opened: list[waits.Wait]


class _Tokens(NamedTuple):
    """Tokens that wait before a join, and by which of the other join's ways they came."""

    scope: int
    source: Node
    target: Node
    counts: tuple[int, ...]


def migrate(turn: Turn[EngineState], command: Record) -> None:
    """The instance follows another definition, or the command is rejected with the reason."""
    processes = turn.state.processes
    instance = processes.instances.get(command.key)
    wanted: Migration = command.value
    if instance is None:
        reason = f"There is no process instance with key {command.key}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    if instance.phase == Phase.TERMINATING:
        reason = f"Expected instance {command.key} to run, but it is being ended"
        return turn.reject(command, Code.INVALID_STATE, reason)
    if processes.definitions.get(wanted.definition) is None:
        reason = f"There is no definition with key {wanted.definition}"
        return turn.reject(command, Code.NOT_FOUND, reason)
    walk = take_up(turn, command.key)
    target = processes.plans[wanted.definition]
    holder = turn.state.messages.locked_by(target.process_id, instance.lock)
    if instance.lock and holder not in (None, command.key):
        reason = (
            f"Expected to lock correlation key {instance.lock!r} for process"
            f" {target.process_id!r}, for a message with that key started instance {command.key},"
            f" but instance {holder} holds the lock: end that one first"
        )
        return turn.reject(command, Code.INVALID_STATE, reason)
    try:
        mapping = _mapping(walk.plan, target, wanted)
        changes = [_change(walk, key, node, mapping) for key, node in active_elements(walk).items()]
        tokens = _tokens(walk, target, mapping, [change.key for change in changes])
    except InvalidArgument as error:
        return turn.reject(command, error.code, error.message)
    except Stuck as stuck:
        return turn.reject(command, Code.INVALID_ARGUMENT, stuck.message)
    _do(walk, target, changes, tokens)


def _do(walk: Walk, target: ProcessPlan, changes: list[_Change], tokens: list[_Tokens]) -> None:
    walk.intent = InstanceIntent.MIGRATED
    for change in changes:
        waits.end(walk, change.key, change.closed)
    # Joins may change places: all tokens leave before the first arrive.
    for each in tokens:
        walk.do(ops.TokensGone(each.scope, each.source.index))
    source_id = walk.plan.process_id
    is_another = target.process_id != source_id
    walk.do(ops.Rebased(target.key))
    walk.follow_plan(target)
    if is_another and walk.row.lock:
        walk.behind.append(lambda: queue.release(walk.turn, source_id, walk.row.lock))
    for each in _merged(tokens):
        op = ops.TokensRemapped(each.scope, each.source.index, each.target.index, each.counts)
        walk.do(op)
    for change in changes:
        walk.do(ops.Remapped(change.key, change.target.index))
        # Two events may change places: all leave first.
        moved = [
            (source, to, walk.processes.waits.get((change.key, source.index)))
            for source, to in change.kept
        ]
        for source, to, wait in moved:
            if wait is not None:
                walk.do(ops.WaitRemapped(change.key, source.index, to.index, wait))
                if is_another and to.timer is None:
                    subscribing.migrate(walk, wait, to)
        _migrate_incidents(walk, change)
        waits.begin(walk, change.key, change.opened)
    for each in _merged(tokens):
        _arrive(walk, each)
    walk.touched |= {walk.key, *(change.key for change in changes)}  # ways may be gone
    walk.run()
    walk.finish()


def _migrate_incidents(walk: Walk, change: _Change) -> None:
    """What stops the element names it, and its process, as they are called from now on."""
    turn, element = walk.turn, walk.element(change.key)
    job = turn.state.jobs.jobs.get(element.work) if element.work else None
    for key in (element.incident, job.incident_key if job else 0):
        incident = turn.state.incidents.open.get(key) if key else None
        if incident is None:
            continue
        now = msgspec.structs.replace(
            incident, element_id=change.target.id, process_id=walk.plan.process_id
        )
        if now != incident:
            walk.behind.append(partial(turn.event, INCIDENT, IncidentIntent.MIGRATED, key, now))


def _merged(tokens: list[_Tokens]) -> list[_Tokens]:
    """The tokens of joins that become one join, together."""
    found: dict[tuple[int, int], _Tokens] = {}
    for each in tokens:
        place = each.scope, each.target.index
        if place in found:
            both = zip(found[place].counts, each.counts, strict=True)
            each = each._replace(counts=tuple(map(sum, both)))
        found[place] = each
    return list(found.values())


def _arrive(walk: Walk, tokens: _Tokens) -> None:
    """The gateway may have fewer ways in than before: what waits for nothing more goes on."""
    node, scope = tokens.target, tokens.scope
    if not node.joins:
        walk.do(ops.TokensGone(scope, node.index))
        walk.todo.extend([(node, scope, 0)] * sum(tokens.counts))
    elif node.kind == ElementKind.PARALLEL:
        for _ in range(min(tokens.counts)):
            walk.enter(node, scope, 0)


def _mapping(source: ProcessPlan, target: ProcessPlan, wanted: Migration) -> dict[int, Node]:
    """Which element becomes which."""
    found: dict[int, Node] = {}
    for source_id, target_id in wanted.elements:
        before, after = source.by_id.get(source_id), target.by_id.get(target_id)
        if before is None or after is None:
            plan, missing = (source, source_id) if before is None else (target, target_id)
            raise InvalidArgument(
                f"Expected an element of process {plan.process_id!r} version {plan.version}, but it"
                f" has no {missing!r}",
                element=missing,
            )
        if before.index in found:
            raise InvalidArgument(
                f"Expected one instruction for {source_id!r}, but there are several",
                element=source_id,
            )
        if before.kind != after.kind:
            raise InvalidArgument(
                f"Expected {source_id!r} and {target_id!r} to be of one kind, but they are"
                f" {before.kind.name} and {after.kind.name}",
                element=source_id,
            )
        found[before.index] = after
    return found


def _change(walk: Walk, key: int, source: Node, mapping: dict[int, Node]) -> _Change:
    target = mapping.get(source.index)
    element = walk.element(key)
    if target is None:
        raise InvalidArgument(
            f"There is no instruction for {source.id!r}, which is active",
            element=source.id,
        )
    if element.phase == Phase.TERMINATING:
        raise InvalidArgument(
            f"Expected {source.id!r} to be active, but it is being ended", element=source.id
        )
    wanted_scope = mapping.get(source.scope.index) if source.scope is not None else None
    if target.scope is not wanted_scope:
        raise InvalidArgument(
            f"Expected {target.id!r} to be in the same scope as {source.id!r}, but it is not",
            element=source.id,
        )
    before, after = source.loop, target.loop
    if (before is None) != (after is None) or (
        before and after and before.sequential != after.sequential
    ):
        raise InvalidArgument(
            f"Expected {source.id!r} and {target.id!r} to be repeated alike, but they are not",
            element=source.id,
        )
    return _events(walk, key, source, target, mapping)


def _events(walk: Walk, key: int, source: Node, target: Node, mapping: dict[int, Node]) -> _Change:
    """What becomes of the events that an element waits for."""
    element = walk.element(key)
    kept: list[tuple[Node, Node]] = []
    closed: list[Node] = []
    for event in source.events:
        if walk.processes.waits.get((key, event.index)) is None:
            continue
        to = target if event is source else mapping.get(event.index)
        if to is None:
            closed.append(event)
            continue
        alike = (to.timer is None) == (event.timer is None) and (
            to.element.interrupting == event.element.interrupting
        )
        if to not in target.events or not alike:
            raise InvalidArgument(
                f"Expected {to.id!r} to be an event of {target.id!r} like {event.id!r} of"
                f" {source.id!r}, but it is not",
                element=event.id,
            )
        if any(to is other for _, other in kept):
            raise InvalidArgument(
                f"Expected one event of {source.id!r} to become {to.id!r}, but several would",
                element=event.id,
            )
        kept.append((event, to))
    if element.phase != Phase.ACTIVE or element.item > 0:
        # It does not wait for new events: it has not begun, is done, or its body does.
        return _Change(key, source, target, kept, closed, [])
    taken = {to.index for _, to in kept}
    spent = {mapping[event.index].index for event in source.events if event.index in mapping}
    new = [
        event for event in target.events if event is not target and event.index not in taken | spent
    ]
    opened = waits.prepare(walk, new, walk.seen(key))
    return _Change(key, source, target, kept, closed, opened)


def _tokens(
    walk: Walk, to: ProcessPlan, mapping: dict[int, Node], scopes: list[int]
) -> list[_Tokens]:
    """Tokens that wait in front of joins go along with these."""
    found: list[_Tokens] = []
    for scope in [walk.key, *scopes]:
        for (_, index), tokens in walk.processes.tokens.scan((scope,)):
            source = walk.plan.nodes[index]
            target = mapping.get(index)
            if target is None:
                raise InvalidArgument(
                    f"Expected an instruction for {source.id!r}, before which a token waits,"
                    " but there is none",
                    element=source.id,
                )
            wanted_scope = mapping.get(source.scope.index) if source.scope is not None else None
            if target.scope is not wanted_scope:
                raise InvalidArgument(
                    f"Expected {target.id!r} to be in the same scope as {source.id!r}, but it is"
                    " not",
                    element=source.id,
                )
            places = _places(walk.plan, source, to, target, mapping)
            moved = [0] * target.incoming
            for place, count in enumerate(tokens):
                if count and places.get(place) is None:
                    raise InvalidArgument(
                        f"Expected a way into {target.id!r} for the token that waits before"
                        f" {source.id!r}, but there is none",
                        element=source.id,
                    )
                if count:
                    moved[places[place]] += count
            found.append(_Tokens(scope, source, target, tuple(moved)))
    return found


def _places(
    plan: ProcessPlan, source: Node, to: ProcessPlan, target: Node, mapping: dict[int, Node]
) -> dict[int, int]:
    """By which way into the target a token came, for each way into the source."""
    ways = [(node, way) for node in to.nodes for way in node.ways if way.target is target]
    into = {way.id: way.place for _, way in ways}
    by_source = {node.index: way.place for node, way in ways}
    found: dict[int, int] = {}
    for node in plan.nodes:
        for way in node.ways:
            if way.target is not source:
                continue
            if way.id in into:
                found[way.place] = into[way.id]
            elif node.index in mapping and mapping[node.index].index in by_source:
                found[way.place] = by_source[mapping[node.index].index]
    return found
