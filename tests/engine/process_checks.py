"""What has to hold in a partition with processes, whatever has happened to it."""

from collections import Counter
from typing import Any

from count_checks import check_counts

from holdfast.engine.due.dates import DueKind
from holdfast.engine.families import Tag
from holdfast.engine.processes import state as process_state
from holdfast.engine.processes.ops import QUEUED, Phase
from holdfast.model.definition import ElementKind

# What may be there when no instance is: definitions with what starts them, kept outcomes and
# idempotency keys with the buckets that end them, kept messages with what was taken of them, and
# how far the parcels and the queues of distributions have come. Due dates are looked at by their
# kind.
STAYS = {
    Tag.DEFINITIONS, Tag.PROCESS_VERSIONS, Tag.PROCESS_LATEST, Tag.START_TIMERS,
    Tag.START_MESSAGES, Tag.JOB_OUTCOMES, Tag.JOB_IDEMPOTENCY, Tag.JOB_BUCKETS, Tag.MESSAGES,
    Tag.MESSAGE_NAMES, Tag.MESSAGE_IDS, Tag.MESSAGE_TAKEN, Tag.LINES, Tag.RECEIVED,
    Tag.QUEUES_RECEIVED,
}  # fmt: skip
DUE_STAYS = {DueKind.BUCKET, DueKind.START_TIMER, DueKind.MESSAGE}

_TAG_AT, _DUE_KIND_AT = 2, 11  # behind the partition; behind that, the tag and eight bytes of time


def check_end(dump: list[tuple[bytes, bytes]]) -> None:
    """No instance is there: nothing is left of any."""
    left = Counter(Tag(raw[_TAG_AT]).name for raw, _ in dump if not _stays(raw))
    assert not left, f"left behind: {dict(left)}"


def _stays(raw: bytes) -> bool:
    if raw[_TAG_AT] == Tag.DUE:
        return raw[_DUE_KIND_AT] in DUE_STAYS
    return raw[_TAG_AT] in STAYS


def check_invariants(view: Any) -> None:
    """Every row fits to every other."""
    _check_elements(view)
    _check_tokens(view)
    _check_waits(view)
    _check_work(view)
    _check_due(view)
    _check_trees(view)
    _check_loops(view)
    check_counts(view)


def _check_elements(view: Any) -> None:
    processes = view.processes
    elements, instances = dict(processes.elements.scan()), dict(processes.instances.scan())
    for key, element in elements.items():
        assert element.instance in instances, f"{key}: its instance is gone"
        assert element.scope in instances or element.scope in elements, f"{key}: its scope is gone"
        node = _plan(view, element.instance).nodes[element.node]
        if element.scope in elements and element.item <= 0:
            outer = _plan(view, element.instance).nodes[elements[element.scope].node]
            assert node.scope is outer, f"{node.id} is in {outer.id}"
    rows = {(element.scope, key) for key, element in elements.items()}
    assert {row for row, _ in processes.children.scan()} == rows
    scopes = {key for key, element in elements.items() if element.local} | set(instances)
    assert {row for row, _ in processes.variables.scan()} == scopes, "variables without a scope"


def _check_tokens(view: Any) -> None:
    """A scope has as many tokens as it has children and tokens that wait before its joins."""
    processes = view.processes
    there: Counter[int] = Counter()
    for _, element in processes.elements.scan():
        there[element.scope] += 1
    for (scope, index), tokens in processes.tokens.scan():
        there[scope] += sum(tokens)
        instance = processes.instance_of(scope)
        assert instance is not None, f"tokens wait in scope {scope}, which is gone"
        node = _plan(view, instance).nodes[index]
        assert node.joins and len(tokens) <= node.incoming, f"tokens wait before {node.id}"
        if node.kind == ElementKind.PARALLEL:
            complete = len(tokens) == node.incoming and all(tokens)
            assert not complete, f"{node.id} has all its tokens and has not joined"
    counted = [*processes.instances.scan(), *processes.elements.scan()]
    for key, row in counted:
        if row.phase != Phase.TERMINATING:  # that one is being emptied
            assert row.tokens == there[key], f"{key}: {row.tokens} tokens, {there[key]} are there"
    for key, row in processes.instances.scan():
        assert row.tokens or row.phase == Phase.TERMINATING, f"instance {key} has no token"


def _check_waits(view: Any) -> None:
    processes = view.processes
    timers, subscriptions = dict(processes.timers.scan()), dict(processes.subscriptions.scan())
    waits = dict(processes.waits.scan())
    by_wait = {key: (row.element, row.node) for key, row in (timers | subscriptions).items()}
    assert {key: row for row, key in waits.items()} == by_wait
    for element, index in waits:
        row = processes.elements.get(element)
        assert row is not None, f"a wait of element {element}, which is gone"
        node = _plan(view, row.instance).nodes[row.node]
        event = _plan(view, row.instance).nodes[index]
        assert event in node.events, f"{node.id} waits for {event.id}, which is none of its events"
        assert row.phase != Phase.ENTERING, f"{node.id} has not begun and waits already"
    for key, row in processes.elements.scan():
        node = _plan(view, row.instance).nodes[row.node]
        if row.phase == Phase.ACTIVE and row.item <= 0 and not _is_ending(view, row):
            for event in node.events:
                # What happened and does not interrupt is spent; a loop's items wait for its own.
                spent = event.timer is not None and not event.element.interrupting
                if not spent and not (event is node and row.item < 0):
                    assert (key, event.index) in waits, f"{node.id} does not wait for {event.id}"
    if view.partitions == 1:
        there = dict(view.messages.subscriptions.scan())
        assert set(there) == set(subscriptions), "a subscription that only one side knows"
        for key, row in there.items():
            assert not row.offered, f"subscription {key} has an offer without an answer"


def _check_work(view: Any) -> None:
    """Jobs, called instances and incidents know their elements, and are known by these."""
    processes, jobs = view.processes, dict(view.jobs.jobs.scan())
    for key, job in jobs.items():
        if job.submitted.element_key:
            element = processes.elements.get(job.submitted.element_key)
            assert element is not None and element.work == key, f"job {key} has no element"
    for key, instance in processes.instances.scan():
        if instance.parent and instance.phase != Phase.TERMINATING:
            element = processes.elements.get(instance.parent)
            assert element is not None and element.work == key, f"instance {key} has no caller"
    for key, element in processes.elements.scan():
        node = _plan(view, element.instance).nodes[element.node]
        if element.phase == Phase.ACTIVE and element.item >= 0 and not _is_ending(view, element):
            if node.kind == ElementKind.JOB:
                assert element.work in jobs, f"{node.id} waits for a job that is gone"
            if node.kind == ElementKind.CALL:
                called = processes.instances.get(element.work)
                assert called is not None, f"{node.id} waits for an instance that is gone"
        if element.incident:
            incident = view.incidents.open.get(element.incident)
            assert incident is not None and incident.element_key == key
        if element.phase in (Phase.ENTERING, Phase.LEAVING) and not _is_ending(view, element):
            # What is put off goes on at its time, or when its tree of calls does.
            assert element.incident or element.due_ms, f"{node.id} stands still for no reason"
    index = [row for row, _ in view.incidents._of_instances.scan()]
    assert index == sorted((row.instance_key, key) for key, row in view.incidents.open.scan())
    for key, incident in view.incidents.open.scan():
        if incident.job_key:
            assert view.jobs.jobs.get(incident.job_key).incident_key == key
        else:
            assert processes.elements.get(incident.element_key).incident == key


def _check_due(view: Any) -> None:
    processes = view.processes
    due = {row for row, _ in view.due._rows.scan()}
    wanted = {(row.due_ms, DueKind.TIMER, key) for key, row in processes.timers.scan()}
    for rows in (processes.instances, processes.elements):
        wanted |= {
            (row.due_ms, DueKind.CONTINUE, key) for key, row in rows.scan() if row.due_ms > QUEUED
        }
    wanted |= {
        (row.tree.due_ms, DueKind.TREE, key)
        for key, row in processes.instances.scan()
        if row.tree is not None and row.tree.due_ms
    }
    wanted |= {
        (timer.due_ms, DueKind.START_TIMER, key)
        for (key, _), timer in processes.start_timers.scan()
    }
    wanted |= {
        (row.deadline_ms, DueKind.MESSAGE, key) for key, row in view.messages.messages.scan()
    }
    kinds = (
        DueKind.TIMER, DueKind.CONTINUE, DueKind.TREE, DueKind.START_TIMER, DueKind.MESSAGE,
    )  # fmt: skip
    assert {row for row in due if row[1] in kinds} == wanted


def _check_trees(view: Any) -> None:
    """What trees of calls have put off goes on or is held, and what they count is there."""
    processes = view.processes
    instances = dict(processes.instances.scan())
    queued = {row for row, _ in processes.deferred.scan()}
    assert queued == {
        (instances[row.instance].root or row.instance, key)
        for key, row in processes.elements.scan()
        if row.due_ms == QUEUED
    }
    called: Counter[int] = Counter(row.root for row in instances.values() if row.root)
    items: Counter[int] = Counter()
    for body, loop in processes.loops.scan():
        instance = processes.elements.get(body).instance
        items[instances[instance].root or instance] += loop.counted
    for key, row in instances.items():
        tree = row.tree or process_state.Tree()
        assert row.tree is None or not row.root, f"{key} is no root and has a tree"
        assert tree.called == called[key], f"{key}: {tree.called} called, {called[key]} are there"
        assert tree.items == items[key], f"{key}: {tree.items} items, {items[key]} are there"
        is_more = any(root == key for root, _ in queued)
        assert not is_more or tree.due_ms or tree.held, f"the queue of {key} stands still"
        if tree.held:
            element = processes.elements.get(tree.held)
            is_ending = element.phase is Phase.TERMINATING  # which releases its tree at the end
            assert element.incident and (element.due_ms == QUEUED or is_ending), (
                f"{key} is held by nothing"
            )


def _check_loops(view: Any) -> None:
    processes = view.processes
    loops = dict(processes.loops.scan())
    for (body, number), _ in [*processes.loop_items.scan(), *processes.loop_results.scan()]:
        assert body in loops and number <= loops[body].total // process_state.LOOP_CHUNK_ITEMS
    for body, loop in loops.items():
        element = processes.elements.get(body)
        assert element is not None and element.item == -1
        assert loop.done <= loop.taken <= loop.total
        if element.phase == Phase.ACTIVE and not _is_ending(view, element):
            assert element.tokens or element.due_ms, f"body {body} waits for nothing"


def _is_ending(view: Any, row: Any) -> bool:
    """Whether the element is ended, with its scope, in this step or a later one."""
    while row is not None and row.phase != Phase.TERMINATING:
        outer = getattr(row, "scope", 0)  # an instance has none
        row = view.processes.elements.get(outer) or view.processes.instances.get(outer)
    return row is not None


def _plan(view: Any, instance: int) -> Any:
    return view.processes.plans[view.processes.instances.get(instance).definition]
