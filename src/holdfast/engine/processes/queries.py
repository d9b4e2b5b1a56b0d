"""What can be asked of the definitions and instances of a partition."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from holdfast.engine.jobs.values import Outcome
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.showing import FoundElement, element_of, elements_of
from holdfast.engine.processes.state import Instance, StoredDefinition, json_object
from holdfast.engine.reader import Reader
from holdfast.engine.state import EngineState
from holdfast.limits import QUERY_ROWS_MAX
from holdfast.model.definition import decode_definition

_NOBODY = (1 << 63, 0)  # behind every key, no incidents


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


# --- definitions ------------------------------------------------------------------------------


class FoundDefinition(_Answer, frozen=True):
    """A version of a process. It never changes."""

    key: int
    process_id: str
    version: int
    name: str
    deployed_ms: int
    version_tag: str = ""
    element_names: dict[str, str] = {}  # by the id of the element, where it has a name


class FindDefinition(Query[FoundDefinition | None], frozen=True):
    """A version by its key."""

    key: int
    is_for_reader: bool = False  # only if the asker may see it


def find_definition(reader: Reader, query: FindDefinition) -> FoundDefinition | None:
    stored = reader.state.processes.definitions.get(query.key)
    if stored is None or (
        query.is_for_reader and not reader.may_read_definition(stored.process_id)
    ):
        return None
    return _definition(query.key, stored)


def _definition(key: int, stored: StoredDefinition) -> FoundDefinition:
    body = decode_definition(stored.body)
    return FoundDefinition(
        key, stored.process_id, stored.version, body.name, stored.deployed_ms, body.version_tag,
        {each.id: each.name for each in body.elements if each.name},
    )  # fmt: skip


class ListedDefinition(_Answer, frozen=True):
    """A version, and whether all partitions have it."""

    definition: FoundDefinition
    is_distributed: bool


class ListDefinitions(Query[list[ListedDefinition]], frozen=True):
    """Versions that the asker may see."""

    process_id: str | None = None
    is_latest: bool = False
    keys: tuple[int, ...] | None = None  # these, for any asker


def list_definitions(reader: Reader, query: ListDefinitions) -> list[ListedDefinition]:
    processes = reader.state.processes
    if query.keys is not None:
        rows = zip(query.keys, processes.definitions.get_many(list(query.keys)), strict=True)
        return [_listed(reader, key, stored) for key, stored in rows if stored is not None]
    return [
        _listed(reader, key, stored)
        for key, stored in processes.definitions.scan()
        if query.process_id in (None, stored.process_id)
        and (not query.is_latest or processes.latest.get(stored.process_id) == key)
        and reader.may_read_definition(stored.process_id)
    ]


def _listed(reader: Reader, key: int, stored: StoredDefinition) -> ListedDefinition:
    is_distributed = reader.state.distributions.active.get(key) is None
    return ListedDefinition(_definition(key, stored), is_distributed)


class FindSource(Query[bytes | None], frozen=True):
    """The file that a version came from."""

    key: int


def find_source(reader: Reader, query: FindSource) -> bytes | None:
    stored = reader.state.processes.definitions.get(query.key)
    if stored is None or not reader.may_read_definition(stored.process_id):
        return None
    return stored.source


class FindVersion(Query[FoundDefinition | None], frozen=True):
    """A version by its number; the latest with 0."""

    process_id: str
    version: int = 0


def find_version(reader: Reader, query: FindVersion) -> FoundDefinition | None:
    processes = reader.state.processes
    key = processes.definition_of(query.process_id, query.version)
    stored = processes.definitions.get(key) if key is not None else None
    return None if key is None or stored is None else _definition(key, stored)


class ListLatest(Query[list[int]], frozen=True):
    """The keys of the latest version of every process."""


def list_latest(reader: Reader, query: ListLatest) -> list[int]:
    return [key for _, key in reader.state.processes.latest.scan()]


# --- instances --------------------------------------------------------------------------------


class FoundInstance(_Answer, frozen=True):
    """A process instance that runs, or how it ended."""

    key: int
    process_id: str
    version: int = 0
    definition: int = 0
    parent: int = 0  # the element that called it
    parent_instance: int = 0
    created_ms: int = 0
    is_ending: bool = False
    variables: bytes = b"{}"
    elements: list[FoundElement] = []
    has_more_elements: bool = False
    incidents: int = 0
    outcome: Outcome | None = None


class FindInstance(Query[FoundInstance | None], frozen=True):
    """An instance that runs or whose outcome is kept, if the asker may see it."""

    key: int
    is_whole: bool = True  # with its variables and elements


def find_instance(reader: Reader, query: FindInstance) -> FoundInstance | None:
    state, key = reader.state, query.key
    row = state.processes.instances.get(key)
    if row is not None:
        return _running(reader, key, row, query.is_whole) if _may_read(reader, row) else None
    outcome = state.jobs.outcome(key)
    if (
        outcome is None
        or not reader.may_be_of_instance(outcome)
        or not reader.may_read_outcome(outcome)
    ):
        reader.check_promised(key)
        return None
    # Outcomes of an earlier release do not name the version.
    stored = state.processes.definitions.get(outcome.definition) if outcome.definition else None
    return FoundInstance(
        key, outcome.type, stored.version if stored else 0, outcome.definition if stored else 0,
        created_ms=outcome.created_ms, outcome=outcome,
    )  # fmt: skip


def _may_read(reader: Reader, row: Instance) -> bool:
    stored = reader.state.processes.definitions.get(row.definition)
    assert stored is not None, "an instance runs whose definition is not there"
    return reader.may_read_instance(stored.process_id)


def _running(reader: Reader, key: int, row: Instance, is_whole: bool) -> FoundInstance:
    processes = reader.state.processes
    plan = processes.plans[row.definition]
    found = FoundInstance(
        key, plan.process_id, plan.version, row.definition, row.parent,
        (processes.instance_of(row.parent) or 0) if row.parent else 0,
        row.created_ms, row.phase == Phase.TERMINATING,
    )  # fmt: skip
    if not is_whole:
        return found
    elements = elements_of(reader.state, plan, key)
    return msgspec.structs.replace(
        found,
        variables=json_object(processes.variables.get(key) or {}),
        elements=elements.found,
        has_more_elements=elements.has_more,
        incidents=elements.incidents,
    )


class InstanceRows(_Answer, frozen=True):
    """Some instances, and behind which key to go on; 0 if there are no more."""

    items: list[FoundInstance]
    next_after: int = 0


class ListInstances(Query[InstanceRows], frozen=True):
    """Running instances behind a key, in the order of their keys; a bounded look."""

    after: int
    limit: int
    process_id: str | None = None
    version: int | None = None
    with_incidents: bool = False
    is_ending: bool | None = None


def list_instances(reader: Reader, query: ListInstances) -> InstanceRows:
    state = reader.state
    running = _with_incidents if query.with_incidents else _all_running
    items: list[FoundInstance] = []
    key = looked_at = 0
    for key, row, incidents in islice(running(state, query.after + 1), QUERY_ROWS_MAX):
        looked_at += 1
        stored = state.processes.definitions.get(row.definition)
        assert stored is not None, "an instance runs whose definition is not there"
        if (
            query.process_id not in (None, stored.process_id)
            or query.version not in (None, stored.version)
            or query.is_ending not in (None, row.phase == Phase.TERMINATING)
            or not reader.may_read_instance(stored.process_id)
        ):
            continue
        found = _running(reader, key, row, is_whole=False)
        items.append(msgspec.structs.replace(found, incidents=incidents))
        if len(items) == query.limit:
            return InstanceRows(items, key)
    return InstanceRows(items, key if looked_at == QUERY_ROWS_MAX else 0)


def _all_running(state: EngineState, start: int) -> Iterator[tuple[int, Instance, int]]:
    """Running instances from a key on, in order, and how many incidents each has."""
    stopped = state.incidents.by_instance(start)
    at, incidents = next(stopped, _NOBODY)
    for key, row in state.processes.instances.scan(start=start):
        while at < key:
            at, incidents = next(stopped, _NOBODY)
        yield key, row, incidents if at == key else 0


def _with_incidents(state: EngineState, start: int) -> Iterator[tuple[int, Instance, int]]:
    """Those that have some."""
    for key, incidents in state.incidents.by_instance(start):
        row = state.processes.instances.get(key)
        assert row is not None, f"process instance {key} has incidents and is not in the state"
        yield key, row, incidents


class HasIncident(Query[bool], frozen=True):
    """Whether an open incident stops an instance."""

    instance_key: int


def has_incident(reader: Reader, query: HasIncident) -> bool:
    return reader.state.incidents.stops(query.instance_key)


class FindInstancesOf(Query[list[int]], frozen=True):
    """The instances that keys of elements or instances belong to; 0 where none runs."""

    keys: tuple[int, ...]


def find_instances_of(reader: Reader, query: FindInstancesOf) -> list[int]:
    return [reader.state.processes.instance_of(key) or 0 for key in query.keys]


class FindRoots(Query[list[int]], frozen=True):
    """The instances that no other has called, above some that run; 0 where one does not run."""

    keys: tuple[int, ...]


def find_roots(reader: Reader, query: FindRoots) -> list[int]:
    return [_root(reader, key) for key in query.keys]


def _root(reader: Reader, key: int) -> int:
    processes = reader.state.processes
    while (row := processes.instances.get(key)) is not None:
        if row.root:
            return row.root
        caller = processes.instance_of(row.parent) if row.parent else key
        if caller is None or caller == key:
            return caller or 0
        key = caller  # it was called by an earlier release, which did not note the root
    return 0


class FoundElementInstance(_Answer, frozen=True):
    """An element of a running instance."""

    element: FoundElement
    instance: int
    definition: int
    process_id: str


class FindElement(Query[FoundElementInstance | None], frozen=True):
    """An active element by its key, if the asker may see its instance."""

    key: int


def find_element(reader: Reader, query: FindElement) -> FoundElementInstance | None:
    processes = reader.state.processes
    row = processes.elements.get(query.key)
    instance = processes.instances.get(row.instance) if row is not None else None
    if row is None or instance is None or not _may_read(reader, instance):
        return None
    plan = processes.plans[instance.definition]
    found = element_of(reader.state, plan, query.key, row)
    return FoundElementInstance(found, row.instance, instance.definition, plan.process_id)


class FoundVariables(_Answer, frozen=True):
    """The variables of a scope, in JSON, and the instance that it belongs to."""

    instance: int
    variables: dict[str, bytes]


class FindVariables(Query[FoundVariables | None], frozen=True):
    """The variables of an active scope; None if there is none."""

    scope: int


def find_variables(reader: Reader, query: FindVariables) -> FoundVariables | None:
    processes = reader.state.processes
    key = processes.instance_of(query.scope)
    row = processes.instances.get(key) if key is not None else None
    if key is None or row is None:
        return None
    seen = processes.variables.get(query.scope) or {} if _may_read(reader, row) else {}
    return FoundVariables(key, seen)


class FindWaitingInstances(Query[list[int]], frozen=True):
    """The instances of subscriptions, by their keys; 0 where none runs that may be seen."""

    subscriptions: tuple[int, ...]


def find_waiting_instances(reader: Reader, query: FindWaitingInstances) -> list[int]:
    processes = reader.state.processes
    found: list[int] = []
    for key in query.subscriptions:
        subscription = processes.subscriptions.get(key)
        element = processes.elements.get(subscription.element) if subscription else None
        instance = processes.instances.get(element.instance) if element else None
        may_read = instance is not None and _may_read(reader, instance)
        found.append(element.instance if element is not None and may_read else 0)
    return found


QUERIES = questions(
    find_definition, list_definitions, find_source, find_version, list_latest, find_instance,
    list_instances, has_incident, find_instances_of, find_roots, find_element, find_variables,
    find_waiting_instances,
)  # fmt: skip
