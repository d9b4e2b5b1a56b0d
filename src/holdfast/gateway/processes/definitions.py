"""Definitions: deploy them everywhere, list them, show them."""

import hashlib
from collections import Counter
from collections.abc import Sequence

import msgspec

from holdfast.clock import Clock
from holdfast.engine.kernel import Command
from holdfast.engine.kernel.others import others
from holdfast.engine.processes.counting import CountElements
from holdfast.engine.processes.deployments import DEPLOYING_PARTITION, start_timers
from holdfast.engine.processes.queries import FindSource, ListDefinitions, ListedDefinition
from holdfast.engine.processes.values import Deployment, ProcessIntent
from holdfast.errors import Code, InvalidArgument, NotFound
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.distribution.service import DistributionService
from holdfast.gateway.processes.api import ProcessApi
from holdfast.gateway.processes.shapes import (
    ElementCount,
    ElementCounts,
    IgnoredPart,
    ProcessDefinition,
    ProcessDefinitionQuery,
    ProcessSource,
    Resource,
)
from holdfast.limits import (
    DEFINITION_BYTES_MAX,
    DEPLOYMENT_WAIT_MS,
    ELEMENTS_LOOKED_MAX,
    RESOURCES_PER_DEPLOYMENT_MAX,
    SOURCE_BYTES_MAX,
)
from holdfast.model.definition import (
    Binding,
    Definition,
    content_of,
    decode_definition,
    encode_definition,
)
from holdfast.records import ValueType
from holdfast.records.keys import NO_KEY

PROCESS = ValueType.PROCESS


class ProcessService(ProcessApi):
    """What can be asked about definitions."""

    def __init__(self, asked: Asked, distributions: DistributionService, clock: Clock) -> None:
        self._asked = asked
        self._clock = clock
        self._distributions = distributions

    async def deploy(self, resources: Sequence[Resource]) -> list[ProcessDefinition]:
        """Every process in the files, on every partition when it returns; nothing if one is wrong.

        The deploying partition gives versions and keys and distributes them. A partition that does
        not take them in time is not waited for: the answer says so, and it has them later.
        """
        checks.within(len(resources), 1, RESOURCES_PER_DEPLOYMENT_MAX, "number of resources")
        now_ms = self._clock.now_ms()
        read = [each for resource in resources for each in _deployments(resource, now_ms)]
        new = [deployment for deployment, _ in read]
        places, bound = _bound(new)
        commands = [Command(PROCESS, ProcessIntent.DEPLOY, NO_KEY, each) for each in bound]
        size_bytes = sum(len(each.body) + len(each.source) for each in new)
        answers = await self._asked.submit(DEPLOYING_PARTITION, commands, size_bytes)
        replies = [answers[place] for place in places]
        for reply in replies:
            if reply.rejection is not None and reply.rejection.code != Code.ALREADY_EXISTS:
                error = reply.error()
                assert error is not None
                raise error
        keys = tuple(reply.key for reply in replies)
        await self._distributions.finished(keys, DEPLOYMENT_WAIT_MS)
        found = await self._asked.ask(DEPLOYING_PARTITION, ListDefinitions(keys=keys))
        views = {each.definition.key: _view(each) for each in found}
        return [
            msgspec.structs.replace(
                views[reply.key], created=reply.rejection is None, ignored=ignored
            )
            for reply, (_, ignored) in zip(replies, read, strict=True)
        ]

    async def find(self, query: ProcessDefinitionQuery) -> list[ProcessDefinition]:
        asked = ListDefinitions(query.process_id, query.latest)
        found = [_view(each) for each in await self._asked.ask(DEPLOYING_PARTITION, asked)]
        return sorted(found, key=lambda each: (each.process_id, each.version))

    async def source(self, definition_key: str) -> ProcessSource:
        """The definition as BPMN: the file it came from."""
        key = checks.key_from(definition_key, self._asked.count, "process definition")
        source = await self._asked.ask(DEPLOYING_PARTITION, FindSource(key))
        if source is None:
            raise NotFound(f"There is no process definition with key {key}")
        return ProcessSource(definition_key, source.decode())

    async def elements(self, definition_key: str) -> ElementCounts:
        """Partition by partition, until all or enough were looked at."""
        key = checks.key_from(definition_key, self._asked.count, "process definition")
        tokens: Counter[str] = Counter()
        incidents: Counter[str] = Counter()
        looked_at, partition, after = 0, 1, 0
        while partition <= self._asked.count and looked_at < ELEMENTS_LOOKED_MAX:
            await others()  # a partition that is here answers without a turn for anybody else
            found = await self._asked.ask(partition, CountElements(key, after))
            if found is not None:
                tokens.update(found.tokens)
                incidents.update(found.incidents)
                looked_at += found.looked_at
            elif partition == DEPLOYING_PARTITION:  # others may not have it yet
                raise NotFound(f"There is no process definition with key {key}")
            after = found.next_after if found is not None else 0
            partition += not after
        items = [
            ElementCount(each, tokens[each], incidents[each])
            for each in sorted({*tokens, *incidents})
        ]
        return ElementCounts(items, looked_at, partition > self._asked.count)


def _view(found: ListedDefinition) -> ProcessDefinition:
    definition = found.definition
    deployed = checks.moment(definition.deployed_ms)
    assert deployed is not None
    return ProcessDefinition(
        str(definition.key), definition.process_id, definition.version, definition.name, deployed,
        distributed=found.is_distributed,
    )  # fmt: skip


def _deployments(resource: Resource, now_ms: int) -> list[tuple[Deployment, list[IgnoredPart]]]:
    """The processes of a file, each with what it asks for and does not get."""
    from holdfast.model.bpmn import read_processes  # an XML parser, needed here only

    source = resource.content.encode()
    checks.name(resource.name, "resource name")
    checks.within(len(source), 1, SOURCE_BYTES_MAX, f"bytes of {resource.name}")
    try:
        found = read_processes(source)
        for each in found:  # what its partition would refuse, before any of them is deployed
            start_timers(each.definition, 1, now_ms)
    except InvalidArgument as error:  # several files come together: which one is it
        fields = error.fields | {"resource": resource.name}
        raise type(error)(f"{resource.name}: {error.message}", **fields) from error
    return [
        (_deployment(each.definition, source), [IgnoredPart(*part) for part in each.ignored])
        for each in found
    ]


def _deployment(definition: Definition, source: bytes) -> Deployment:
    body = encode_definition(definition)
    checks.within(len(body), 1, DEFINITION_BYTES_MAX, f"bytes of process {definition.id!r}")
    digest = hashlib.sha256(content_of(definition)).digest()
    return Deployment(definition.id, body, digest, source=source)


def _bound(new: Sequence[Deployment]) -> tuple[list[int], list[Deployment]]:
    """The deployments in the order in which they are made, and the place there of each.

    A process that calls what is deployed together with it is another version if any of that is,
    so the digests of all are part of its own. It comes behind what it may call.
    """
    callers = [_calls_together(each) for each in new]
    if not any(callers):
        return list(range(len(new))), list(new)
    whole = hashlib.sha256()
    for process_id, digest in sorted((each.process_id, each.digest) for each in new):
        whole.update(process_id.encode() + b"\0" + digest)
    digests = [
        hashlib.sha256(each.digest + whole.digest()).digest() if calls else each.digest
        for each, calls in zip(new, callers, strict=True)
    ]
    together = tuple((each.process_id, digest) for each, digest in zip(new, digests, strict=True))
    order = sorted(range(len(new)), key=lambda index: callers[index])
    made = [
        msgspec.structs.replace(
            new[index], digest=digests[index], together=together if callers[index] else ()
        )
        for index in order
    ]
    return [order.index(index) for index in range(len(new))], made


def _calls_together(new: Deployment) -> bool:
    elements = decode_definition(new.body).elements
    return any(each.binding is Binding.DEPLOYMENT for each in elements)
