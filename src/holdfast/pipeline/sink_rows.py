"""Rows of a DataFrame as what a node is sent: tasks, process instances or messages."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from holdfast.errors import InvalidArgument
from holdfast.gateway.processes.shapes import NewMessage, NewProcessInstance
from holdfast.gateway.tasks.shapes import NewTask

Request = NewTask | NewProcessInstance | NewMessage

MESSAGE_TTL_MS = 3_600_000  # by default: a message's id is known for as long as it is kept

_TEXTS = frozenset({"string"})
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})


class Target(NamedTuple):
    """What rows become, and which columns say how; they are named as in the API."""

    shape: type[Any]
    name: str  # which task, process or message; the column has to be there, or an option
    key: str  # keeps a row from being taken twice; the column has to be there
    content: str  # the JSON; without the column it is an object of all other columns
    numbers: tuple[str, ...]  # each is a column, or an option for all rows
    texts: tuple[str, ...] = ()
    is_object: bool = True  # the content has to be one


TARGETS = {
    "task": Target(
        NewTask, "type", "key", "payload", ("priority", "delayMs", "windowMs"), is_object=False
    ),
    "process": Target(
        NewProcessInstance, "processId", "key", "variables", ("version", "windowMs")
    ),
    "message": Target(
        NewMessage, "name", "messageId", "variables", ("ttlMs",), ("correlationKey",)
    ),
}  # fmt: skip


class SinkPlan(NamedTuple):
    """How the rows of one DataFrame are read; it travels to the executors."""

    what: str
    key: str  # the column of the key
    content: str | None  # the column of the content, if there is one
    is_json: bool  # that column is JSON already
    body: tuple[str, ...]  # the columns of the content otherwise
    settings: dict[str, str]  # the fields that other columns set, by column
    defaults: dict[str, Any]  # the fields that options set

    @property
    def target(self) -> Target:
        return TARGETS[self.what]


class Row(NamedTuple):
    """One row, ready to be sent."""

    number: int  # in its partition of the DataFrame, from 0
    key: str
    request: Request
    content_bytes: int


def plan_of(options: Mapping[str, str], columns: Mapping[str, str]) -> SinkPlan:
    """How rows with these columns (by their type in Spark) are read; or what is wrong with them."""
    what = options.get("what", "task")
    if what not in TARGETS:
        raise InvalidArgument(
            f"Expected {', '.join(TARGETS)} as `what`, but found {what!r}", field="what"
        )
    target = TARGETS[what]
    fields = {each.encode_name: each.name for each in msgspec.structs.fields(target.shape)}
    settings = {target.name: _TEXTS, **dict.fromkeys(target.numbers, _NUMBERS)}
    settings |= dict.fromkeys(target.texts, _TEXTS)
    for name, kinds in settings.items():
        _check_kind(name, columns, kinds)
    if target.name not in columns and not options.get(target.name):
        raise InvalidArgument(
            f"Expected a column or an option `{target.name}`, but found neither", field=target.name
        )
    key = _key_column(what, options, columns)
    others = tuple(name for name in columns if name not in settings and name != target.key)
    content = target.content if target.content in columns else None
    if content is not None and (more := [name for name in others if name not in (content, key)]):
        raise InvalidArgument(
            f"Expected {content} or columns that it is made of, but found both {content} and"
            f" {more[0]}",
            field=more[0],
        )
    return SinkPlan(
        what,
        key,
        content,
        content is not None and columns[content] in _TEXTS,
        others,
        {name: fields[name] for name in settings if name in columns},
        {
            fields[name]: _option(name, options[name], kinds)
            for name, kinds in settings.items()
            if name in options
        }
        | ({"ttl_ms": MESSAGE_TTL_MS} if what == "message" and "ttlMs" not in options else {}),
    )


def rows_of(plan: SinkPlan, batch: pa.RecordBatch, first: int) -> Iterator[Row]:
    """The rows of a batch; `first` is the number of its first row."""
    keys = batch.column(plan.key).to_pylist()
    contents = _contents(plan, batch)
    settings = [(field, batch.column(name).to_pylist()) for name, field in plan.settings.items()]
    target = plan.target
    fields = {each.encode_name: each.name for each in msgspec.structs.fields(target.shape)}
    key_field, content_field, name_field = (
        fields[target.key], fields[target.content], fields[target.name],
    )  # fmt: skip
    for index in range(batch.num_rows):
        number = first + index
        given = dict(plan.defaults)
        for field, values in settings:
            if (value := values[index]) is not None:
                given[field] = value
        key = keys[index]
        if key is None or key == "":
            raise InvalidArgument(f"Expected a {target.key} in row {number}, but found none")
        if not given.get(name_field):
            raise InvalidArgument(f"Expected a {target.name} in row {number}, but found none")
        if given.get("ttl_ms") == 0:
            raise InvalidArgument(
                f"Expected ttlMs of 1 or more in row {number}, but found 0: the id of a message is"
                " known for as long as the message is kept"
            )
        given[key_field] = key = str(key)
        size_bytes = 0
        if (content := contents[index]) is not None:
            given[content_field] = raw = _checked(plan, content, number)
            size_bytes = len(bytes(raw))
        yield Row(number, key, target.shape(**given), size_bytes)


_encode = msgspec.json.Encoder().encode
_decode_raw = msgspec.json.Decoder(msgspec.Raw).decode


def _contents(plan: SinkPlan, batch: pa.RecordBatch) -> list[Any]:
    if plan.content is not None:
        return batch.column(plan.content).to_pylist(maps_as_pydicts="strict")
    if not plan.body:
        return [None] * batch.num_rows
    return batch.select(list(plan.body)).to_pylist(maps_as_pydicts="strict")


def _checked(plan: SinkPlan, content: Any, number: int) -> msgspec.Raw:
    """The content as JSON that can be put into a request as it is."""
    if not plan.is_json:
        return msgspec.Raw(_encode(content))
    try:
        raw = _decode_raw(content)
    except msgspec.DecodeError as error:
        raise InvalidArgument(
            f"Expected JSON as {plan.content} of row {number}, but found {content[:50]!r}: {error}"
        ) from error
    if plan.target.is_object and not content.lstrip().startswith("{"):
        raise InvalidArgument(
            f"Expected a JSON object as {plan.content} of row {number}, but found {content[:50]!r}"
        )
    return raw


def _key_column(what: str, options: Mapping[str, str], columns: Mapping[str, str]) -> str:
    target = TARGETS[what]
    key = options.get("keyColumn") or target.key
    if key not in columns:
        raise InvalidArgument(
            f"Expected a column {key}, but found {', '.join(columns)}: what Spark sends twice is"
            f" taken once only by its key. Add a column `{target.key}` or name one by the option"
            " `keyColumn`",
            field=key,
        )
    _check_kind(key, columns, _TEXTS | _NUMBERS)
    return key


def _check_kind(name: str, columns: Mapping[str, str], kinds: frozenset[str]) -> None:
    if name in columns and columns[name] not in kinds:
        raise InvalidArgument(
            f"Expected {' or '.join(sorted(kinds))} in column {name}, but found {columns[name]}",
            field=name,
        )


def _option(name: str, text: str, kinds: frozenset[str]) -> Any:
    if kinds is _TEXTS:
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidArgument(
            f"Expected a whole number as option {name}, but found {text!r}", field=name
        ) from None
