"""The processes of a partition: definitions, and the instances that run on it."""

from collections.abc import Callable, Iterator

import msgspec

from holdfast.engine.families import Tag
from holdfast.engine.jobs.values import JobOrigin
from holdfast.engine.processes.ops import Phase
from holdfast.engine.processes.plan import ProcessPlan, compile_plan
from holdfast.engine.processes.values import StartTimer
from holdfast.model.definition import decode_definition
from holdfast.state import EMPTY, Family, PartitionState
from holdfast.state.keys import TEXT, TEXT_U32_U64, U64, U64_U64

LOOP_CHUNK_ITEMS = 256  # items of a multi-instance activity that are stored and begun together


class _Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all rows have in common: an array on disk, extended at its end."""


class StoredDefinition(_Row, frozen=True):
    """A version of a process."""

    process_id: str
    version: int
    digest: bytes
    body: bytes
    deployed_ms: int
    source: bytes = b""
    bound: tuple[tuple[str, int], ...] = ()  # versions of processes that it was deployed with


class Tree(_Row, frozen=True):
    """A tree of calls: what it has put off, and how much it has of what is bounded."""

    due_ms: int = 0  # when it goes on with what was put off
    moves: int = 0  # made without a wait
    held: int = 0  # the element whose incident holds it
    granted: int = 0  # how often a person has granted it another budget
    called: int = 0  # instances that were called in it and have not ended
    items: int = 0  # begun by its loops that have not ended


class Instance(_Row, frozen=True):
    """A process instance, which is also the outermost scope."""

    definition: int
    tokens: int = 0
    phase: Phase = Phase.ACTIVE
    parent: int = 0  # the element of the calling instance
    depth: int = 0
    keep_ms: int = 0
    created_ms: int = 0
    lock: str = ""
    due_ms: int = 0  # when it goes on with what was too much for one step
    then: int = -1
    root: int = 0  # of its tree of calls; 0: itself
    tree: Tree | None = None  # of a root; None: it has put off nothing and called nobody
    headers: dict[str, str] | None = None  # for its jobs


class ElementInstance(_Row, frozen=True):
    """An element that has a token, or a scope that has several."""

    instance: int
    node: int
    scope: int
    phase: Phase = Phase.ACTIVE
    work: int = 0  # the job that it waits for, or the instance that it called
    item: int = 0
    incident: int = 0
    tokens: int = 0
    then: int = -1
    local: bool = False  # whether it has variables of its own
    created_ms: int = 0
    due_ms: int = 0  # when it goes on with what was too much for one step
    moves: int = 0  # made without a wait when it was put off


class Timer(_Row, frozen=True):
    """A time that an element waits for."""

    element: int
    node: int
    due_ms: int
    left: int
    cycle: str
    moves: int = 0  # made without a wait when it was set, if it is none either


class Subscription(_Row, frozen=True):
    """A message that an element waits for, as its own partition sees it."""

    element: int
    node: int
    name: str
    correlation: str
    interrupting: bool = True


class LoopProgress(_Row, frozen=True):
    """How far a multi-instance activity is."""

    total: int
    taken: int = 0  # items up to here have their instances
    done: int = 0
    counted: int = 0  # those of them that are counted in the tree of calls


class StartMessage(_Row, frozen=True):
    """A start event that waits for a message, of the latest version of its process."""

    process_id: str
    definition: int
    node: int


_NO_TREE = Tree()


class _Plans(dict[int, ProcessPlan]):
    """The plans of definitions, each compiled when it is first asked for."""

    def __init__(self, definitions: Family[int, StoredDefinition]) -> None:
        super().__init__()
        self._definitions = definitions

    def __missing__(self, definition: int) -> ProcessPlan:
        stored = self._definitions.get(definition)
        assert stored is not None, f"definition {definition} is not in the state"
        plan = compile_plan(definition, stored.version, decode_definition(stored.body))
        self[definition] = plan
        return plan


class Processes:
    """Everything a partition knows about processes."""

    def __init__(self, state: PartitionState) -> None:
        self.definitions = state.family(Tag.DEFINITIONS, U64, StoredDefinition)
        self.versions = state.family(Tag.PROCESS_VERSIONS, TEXT_U32_U64, bytes)
        self.latest = state.family(Tag.PROCESS_LATEST, TEXT, int)  # process id -> definition
        self.start_timers = state.family(Tag.START_TIMERS, U64_U64, StartTimer)
        self.start_messages = state.family(Tag.START_MESSAGES, TEXT, tuple[StartMessage, ...])
        self.instances = state.family(Tag.INSTANCES, U64, Instance)
        self.elements = state.family(Tag.ELEMENTS, U64, ElementInstance)
        self.children = state.family(Tag.CHILDREN, U64_U64, bytes)  # (scope, element)
        self.variables = state.family(Tag.VARIABLES, U64, dict[str, bytes])
        self.tokens = state.family(Tag.TOKENS, U64_U64, tuple[int, ...])  # (scope, node) -> by flow
        self.timers = state.family(Tag.TIMERS, U64, Timer)
        self.waits = state.family(Tag.WAITS, U64_U64, int)  # (element, node) -> timer, subscription
        self.subscriptions = state.family(Tag.SUBSCRIPTIONS, U64, Subscription)
        self.loops = state.family(Tag.LOOPS, U64, LoopProgress)
        self.loop_items = state.family(Tag.LOOP_ITEMS, U64_U64, bytes)  # (body, chunk) -> JSON
        self.loop_results = state.family(Tag.LOOP_RESULTS, U64_U64, tuple[bytes, ...])
        self._version_tags = state.family(Tag.VERSION_TAGS, TEXT, int)  # process id, tag -> latest
        self.deferred = state.family(Tag.DEFERRED, U64_U64, bytes)  # (root, element or instance)
        self.plans = _Plans(self.definitions)  # definition -> what its instances follow
        state.when_undone(self.plans.clear)

    # --- definitions --------------------------------------------------------------------------

    def definition_of(self, process_id: str, version: int) -> int | None:
        """The key of a version; of the latest with version 0."""
        if not version:
            return self.latest.get(process_id)
        rows = self.versions.first_keys((process_id, version), None, 1)
        return rows[0][2] if rows else None

    def bound_to(self, caller: int, process_id: str) -> int | None:
        """The key of the version that was deployed together with a calling one."""
        stored = self.definitions.get(caller)
        version = dict(stored.bound).get(process_id) if stored is not None else None
        return self.definition_of(process_id, version) if version else None

    def tagged(self, process_id: str, tag: str) -> int | None:
        """The key of the latest version that has a tag."""
        return self._version_tags.get(f"{process_id}\x01{tag}")

    def tag(self, process_id: str, tag: str, definition: int) -> None:
        self._version_tags.put(f"{process_id}\x01{tag}", definition)

    def versions_of(self, process_id: str) -> list[int]:
        """The keys of all versions, oldest first."""
        return [row[0][2] for row in self.versions.scan((process_id,))]

    # --- instances ----------------------------------------------------------------------------

    def children_of(self, scope: int, limit: int) -> list[int]:
        """Up to `limit` element instances of a scope, oldest first."""
        return [row[1] for row in self.children.first_keys((scope,), None, limit)]

    def fetch(self, keys: list[int]) -> list[int]:
        """Has the rows of instances at hand, and of the elements in them; the jobs of those.

        What few looks into the store find; the rest is found when it is asked for.
        """
        self.instances.get_many(keys)
        children = [key for _, key in self.children.fetch_within(keys)]
        elements = self.elements.get_many(children)
        return [each.work for each in elements if each is not None and each.work]

    def all_children(self, scope: int) -> Iterator[tuple[int, ElementInstance]]:
        """Every element instance of a scope, oldest first."""
        for (_, key), _ in self.children.scan((scope,)):
            element = self.elements.get(key)
            assert element is not None, f"element instance {key} has no row"
            yield key, element

    def instance_of(self, key: int) -> int | None:
        """The instance that a key belongs to: its own, or that of an element."""
        if self.instances.get(key) is not None:
            return key
        element = self.elements.get(key)
        return None if element is None else element.instance

    def layers(self, key: int, instance: int) -> list[tuple[int, dict[str, bytes]]]:
        """The scopes that have variables, from the inside out, with them."""
        found: list[tuple[int, dict[str, bytes]]] = []
        while key != instance:
            element = self.elements.get(key)
            assert element is not None, f"element instance {key} is not there"
            if element.local:
                found.append((key, self.variables.get(key) or {}))
            key = element.scope
        found.append((instance, self.variables.get(instance) or {}))
        return found

    def visible(self, key: int, instance: int) -> dict[str, bytes]:
        """The variables that are seen from a scope, in JSON."""
        layers = self.layers(key, instance)
        if len(layers) == 1:
            return layers[0][1]
        seen: dict[str, bytes] = {}
        for _, values in reversed(layers):
            seen.update(values)
        return seen

    def work_of(
        self, element: int, instance: int, wanted: tuple[str, ...] | None
    ) -> tuple[bytes, JobOrigin, dict[str, str] | None]:
        """What a worker gets for the job of an element: variables in JSON, for whom, headers."""
        row, root = self.elements.get(element), self.instances.get(instance)
        assert row is not None and root is not None, "a job is there whose element is not"
        if row.local or row.scope != instance:
            values = self.visible(element if row.local else row.scope, instance)
        else:
            values = self.variables.get(instance) or {}
        if wanted is None:
            payload = json_object(values)
        else:
            some = [_quoted(name) + b":" + values[name] for name in wanted if name in values]
            payload = b"{" + b",".join(some) + b"}"
        return payload, self._origin(element, row, root), root.headers

    def origin(self, element: int) -> JobOrigin | None:
        """What a worker is told about the element that it works for."""
        row = self.elements.get(element)
        instance = self.instances.get(row.instance) if row else None
        if row is None or instance is None:
            return None
        return self._origin(element, row, instance)

    def _origin(self, element: int, row: ElementInstance, instance: Instance) -> JobOrigin:
        plan = self.plans[instance.definition]
        node = plan.nodes[row.node]
        root = self.root_of(row.instance, instance) if instance.parent else row.instance
        return JobOrigin(
            plan.process_id, plan.version, row.instance, node.id, element, node.headers,
            instance.definition, root,
        )  # fmt: skip

    # --- trees of calls -----------------------------------------------------------------------

    def root_of(self, key: int, instance: Instance) -> int:
        """The instance at the root of the calls that led to one; itself if nobody called it."""
        while instance.parent and not instance.root:  # called before rows named their root
            caller = self.elements.get(instance.parent)
            above = self.instances.get(caller.instance) if caller is not None else None
            if caller is None or above is None:
                break
            key, instance = caller.instance, above
        return instance.root or key

    def tree(self, root: int) -> Tree | None:
        """What is known of a tree of calls; None if its root has ended."""
        row = self.instances.get(root)
        return None if row is None else row.tree or _NO_TREE

    def next_deferred(self, root: int) -> int | None:
        """The element or instance of a tree that goes on next."""
        rows = self.deferred.first_keys((root,), None, 1)
        return rows[0][1] if rows else None

    # --- what appliers change -----------------------------------------------------------------

    def change_tree(self, root: int, change: Callable[[Tree], Tree]) -> None:
        """Changes what is known of a tree, unless its root has ended."""
        row = self.instances.get(root)
        if row is not None:
            tree = change(row.tree or _NO_TREE)
            kept = None if tree == _NO_TREE else tree
            self.instances.put(root, msgspec.structs.replace(row, tree=kept))

    def set_variables(self, scope: int, values: dict[str, bytes]) -> None:
        """Changes some of the variables of a scope that has some of its own."""
        known = self.variables.get(scope) or {}
        self.variables.put(scope, {**known, **values})

    def activate(self, key: int, element: ElementInstance) -> None:
        self.elements.insert(key, element)
        self.children.insert((element.scope, key), EMPTY)

    def remove(self, key: int, scope: int, local: bool) -> None:
        self.elements.delete(key)
        self.children.delete((scope, key))
        if local:
            self.variables.delete(key)


def json_object(values: dict[str, bytes]) -> bytes:
    """Variables in JSON as one JSON object."""
    return b"{" + b",".join([_quoted(name) + b":" + raw for name, raw in values.items()]) + b"}"


_quoted = msgspec.json.Encoder().encode
