"""What can be asked of a partition about what ended recently."""

import msgspec

from holdfast.engine.ended.look import look, record_at
from holdfast.engine.ended.values import EndedKind, EndedThing, KeptEnded
from holdfast.engine.incidents.values import Incident
from holdfast.engine.jobs.values import Completion, Ending, NewJob, ThrowError
from holdfast.engine.kernel.query import Query, questions
from holdfast.engine.processes import ops
from holdfast.engine.processes.values import Advance
from holdfast.engine.reader import Reader

_replace = msgspec.structs.replace


class _Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What all answers have in common."""


class EndedRows(_Answer, frozen=True):
    """Some things that ended, the last one first."""

    items: list[EndedThing]
    has_more: bool
    since_ms: int  # all that ended since then is known; 0: all that ever ended is


class ListEnded(Query[EndedRows], frozen=True):
    """What ended recently, the last one first."""

    kind: EndedKind
    limit: int
    kept: KeptEnded
    before: tuple[int, int] | None = None  # the time and the key of the last one of a page
    state: str | None = None
    type: str | None = None  # of tasks, and of the jobs of incidents
    process_id: str | None = None
    version: int | None = None
    instance_key: int | None = None


async def list_ended(reader: Reader, query: ListEnded) -> EndedRows:
    ended = await look(reader, query.kept)
    found: list[EndedThing] = []
    for each in reversed(ended.things[query.kind].values()):
        if query.before is not None and _place(each) >= query.before:
            continue
        if len(found) > query.limit and each.ended_ms < found[-1].ended_ms:
            break  # those of one moment are sorted below
        if query.state in (None, each.state):
            thing = _completed(reader, query.kind, each)
            if _is_wanted(query, thing) and _may_read(reader, query.kind, thing):
                found.append(thing)
    found.sort(key=_place, reverse=True)
    items = found[: query.limit]
    since_ms = ended.since_ms(query.kind) if query.kept.things_max else reader.now_ms
    return EndedRows(items, len(found) > len(items), since_ms)


def _place(thing: EndedThing) -> tuple[int, int]:
    return thing.ended_ms, thing.key


def _is_wanted(query: ListEnded, thing: EndedThing) -> bool:
    return (
        query.type in (None, thing.type)
        and query.process_id in (None, thing.process_id)
        and query.version in (None, thing.version)
        and query.instance_key in (None, thing.instance_key)
    )


def _completed(reader: Reader, kind: EndedKind, thing: EndedThing) -> EndedThing:
    """With what the state knows and the end of the log does not."""
    if kind is EndedKind.INCIDENT:
        return thing
    if kind is EndedKind.TASK:
        if not thing.type and (outcome := reader.state.jobs.outcome(thing.key)) is not None:
            thing = _replace(thing, type=outcome.type)
        if not thing.instance_key:
            return thing
        return _replace(thing, process_id=_process_of(reader, thing.instance_key))
    stored = reader.state.processes.definitions.get(thing.definition)
    if stored is not None:
        thing = _replace(thing, process_id=stored.process_id, version=stored.version)
    if not thing.created_ms and (outcome := reader.state.jobs.outcome(thing.key)) is not None:
        thing = _replace(thing, created_ms=outcome.created_ms)
    return thing


def _process_of(reader: Reader, instance_key: int) -> str:
    """The process of an instance that runs or ended recently."""
    processes = reader.state.processes
    running = processes.instances.get(instance_key)
    over = reader.state.ended.things[EndedKind.INSTANCE].get(instance_key)
    definition = running.definition if running is not None else over.definition if over else 0
    stored = processes.definitions.get(definition) if definition else None
    return "" if stored is None else stored.process_id


def _may_read(reader: Reader, kind: EndedKind, thing: EndedThing) -> bool:
    if kind is EndedKind.INCIDENT:
        return thing.incident is not None and reader.may_read_incident(thing.incident)
    if kind is EndedKind.TASK and reader.may_read_task(thing.type):
        return True
    if kind is EndedKind.TASK and not thing.process_id:
        return False
    return reader.may_read_instance(thing.process_id)


class FoundEnded(_Answer, frozen=True):
    """Something that ended, with what its records on the log tell."""

    thing: EndedThing
    job: NewJob | None = None  # as it was submitted; None: not on the log any more
    result: bytes = b""  # of a task, or the variables that an instance ended with, if they are kept
    error: str = ""


class FindEnded(Query[FoundEnded | None], frozen=True):
    """Something that ended recently, if the asker may see it."""

    kind: EndedKind
    key: int
    kept: KeptEnded


async def find_ended(reader: Reader, query: FindEnded) -> FoundEnded | None:
    ended = await look(reader, query.kept)
    thing = ended.things[query.kind].get(query.key)
    if thing is None:
        return None
    thing = _completed(reader, query.kind, thing)
    if not _may_read(reader, query.kind, thing):
        return None
    found = FoundEnded(thing, error=thing.error)
    for offset in (thing.created_at, thing.ended_at):
        record = await record_at(reader, offset) if offset >= 0 else None
        if record is not None and record.key == thing.key:
            found = _with_value(found, record.value)
    return found


def _with_value(found: FoundEnded, value: object) -> FoundEnded:
    match value:
        case NewJob():
            return _replace(found, job=value)
        case Completion():
            return _replace(found, result=value.result)
        case Ending() | Incident():
            return _replace(found, error=value.error)
        case ThrowError():
            return _replace(found, error=f"{value.code}: {value.message}")
        case Advance():
            ends = [op for op in value.ops if isinstance(op, ops.Ended)]
            return _replace(found, result=ends[0].result) if ends else found
        case _:
            return found


QUERIES = questions(list_ended, find_ended)
