"""Where the tokens of a version are: its active elements, counted."""

from collections import Counter
from itertools import islice

import msgspec

from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.processes.state import ElementInstance
from holdfast.engine.reader import Reader
from holdfast.engine.state import EngineState
from holdfast.limits import ELEMENTS_COUNTED_MAX
from holdfast.model.definition import ElementKind


class CountedElements(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some elements by their ids, and behind which key to go on; 0 if there are no more."""

    tokens: dict[str, int]  # without those that an incident stops
    incidents: dict[str, int]
    looked_at: int
    next_after: int = 0


class CountElements(Query[CountedElements | None], frozen=True):
    """Active elements of a version behind a key; None if the asker may not see its instances."""

    definition: int
    after: int


def count_elements(reader: Reader, query: CountElements) -> CountedElements | None:
    """A scope is where the tokens inside it are, and is not counted itself."""
    state, processes = reader.state, reader.state.processes
    stored = processes.definitions.get(query.definition)
    if stored is None or not reader.may_read_instance(stored.process_id):
        return None
    plan = processes.plans[query.definition]
    tokens: Counter[str] = Counter()
    incidents: Counter[str] = Counter()
    key = looked_at = 0
    for key, row in islice(processes.elements.scan(start=query.after + 1), ELEMENTS_COUNTED_MAX):
        looked_at += 1
        instance = processes.instances.get(row.instance)
        assert instance is not None, f"element instance {key} is of no instance"
        if instance.definition != query.definition:
            continue
        node = plan.nodes[row.node]
        if row.incident or _is_job_stuck(state, row, node.kind):
            incidents[node.id] += 1
        elif not row.tokens:
            tokens[node.id] += 1
    is_more = looked_at == ELEMENTS_COUNTED_MAX
    return CountedElements(dict(tokens), dict(incidents), looked_at, key if is_more else 0)


def _is_job_stuck(state: EngineState, row: ElementInstance, kind: ElementKind) -> bool:
    is_call = kind == ElementKind.CALL and row.item >= 0
    job = state.jobs.jobs.get(row.work) if row.work and not is_call else None
    return job is not None and bool(job.incident_key)


QUERIES = questions(count_elements)
