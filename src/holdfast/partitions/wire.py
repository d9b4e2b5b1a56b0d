"""How the port travels between members: every call of it as bytes, by the types that are declared.

Commands, replies, queries, answers and effects are msgpack. A value comes back as the type that its
domain declares, so a partition that is asked from elsewhere sees what it would see from here.
"""

from collections.abc import Callable, Sequence
from functools import cache, reduce
from operator import or_
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from holdfast.engine.asker import Asker
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.kernel.query import Query, Question
from holdfast.engine.partition import DISPATCH, QUESTIONS
from holdfast.errors import InvalidArgument
from holdfast.partitions.api import EffectTopic
from holdfast.records import ValueType
from holdfast.records.record import Delivery, Rejection

V = TypeVar("V")

# Kinds of messages. A number is never used for something else.
SUBMIT, ACTIVATE, ASK, FOLLOW, UNFOLLOW, EFFECT, MISSED = range(1, 8)

_encode = msgspec.msgpack.Encoder().encode


class _Command(msgspec.Struct, Generic[V], frozen=True, array_like=True, gc=False):
    """A command as it travels: the fields of `Command`, in their order."""

    value_type: int
    intent: int
    key: int
    value: V
    claims: dict[str, Any] | None = None
    delivery: Delivery | None = None
    request_id: str | None = None


class _Reply(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A reply whose value is decoded by what was asked."""

    key: int
    value: msgspec.Raw
    rejection: Rejection | None = None


class ReceivedQuery(NamedTuple):
    """A query that came from another member."""

    question: Question
    partition: int
    query: Query[Any]
    asker: Asker | None
    may_be_stale: bool


class Submitted(NamedTuple):
    """Commands that came from another member."""

    partition: int
    commands: list[Command]
    size_bytes: int


def _kinds(kind: type[msgspec.Struct]) -> tuple[type[msgspec.Struct], ...]:
    """The struct of a value, and the one that stands for it where there are headers."""
    variant = DISPATCH.variants.get(kind)
    return (kind,) if variant is None else (kind, variant)


# each command by its numbers: their names, and the structs of its value
_KNOWN = {
    numbers: (ValueType(numbers[0]), DISPATCH.intent(*numbers), _kinds(DISPATCH.values[numbers]))
    for numbers in DISPATCH.handlers
}  # fmt: skip
_value: Any = reduce(or_, dict.fromkeys(kind for known in _KNOWN.values() for kind in known[2]))
_submitted = msgspec.msgpack.Decoder(tuple[int, int, list[_Command[_value]]]).decode
_plain_replies = msgspec.msgpack.Decoder(list[Reply]).decode
_replies = msgspec.msgpack.Decoder(list[_Reply]).decode
_asked = msgspec.msgpack.Decoder(tuple[str, int, msgspec.Raw, Asker | None, bool]).decode
_topic = msgspec.msgpack.Decoder(tuple[str, int | str | None, int]).decode
_named = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw]).decode


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    return msgspec.msgpack.Decoder(kind).decode


# --- commands and replies ---------------------------------------------------------------------


def encode_commands(partition: int, commands: Sequence[Command], size_bytes: int) -> bytes:
    """Commands for a partition."""
    return _encode((partition, size_bytes, commands))


def decode_commands(body: bytes) -> Submitted:
    """The commands in a message, each with the value that its intent declares."""
    try:
        partition, size_bytes, commands = _submitted(body)
    except msgspec.ValidationError as error:
        raise InvalidArgument(
            f"Expected commands of this version, but {error}; upgrade all members"
        ) from error
    return Submitted(partition, [_command(each) for each in commands], size_bytes)


def _command(asked: "_Command[Any]") -> Command:
    known = _KNOWN.get((asked.value_type, asked.intent))
    if known is None or type(asked.value) not in known[2]:
        raise InvalidArgument(
            f"Expected a command of this version, but found {type(asked.value).__name__} for intent"
            f" {asked.intent} of value type {asked.value_type}"
        )
    return Command(
        known[0], known[1], asked.key, asked.value, asked.claims, asked.delivery, asked.request_id
    )


encode_replies: Callable[[list[Reply]], bytes] = _encode


def decode_replies(commands: Sequence[Command], body: bytes) -> list[Reply]:
    """The replies to these commands."""
    answers = [DISPATCH.answers.get((each.value_type, each.intent)) for each in commands]
    if not any(answers):
        return _plain_replies(body)  # a key or a rejection is all that they tell
    return [_reply(answer, reply) for answer, reply in zip(answers, _replies(body), strict=True)]


def _reply(answer: Any, reply: _Reply) -> Reply:
    kind = None if answer is None else answer | None  # a rejected command has no value
    return Reply(reply.key, _decoder(kind)(reply.value), reply.rejection)


# --- queries and answers ----------------------------------------------------------------------


def encode_query(
    partition: int, query: Query[Any], asker: Asker | None, may_be_stale: bool = False
) -> bytes:
    """A query to a partition, in the asker's name."""
    return _encode((type(query).__name__, partition, query, asker, may_be_stale))


def decode_query(body: bytes) -> ReceivedQuery:
    """The query in a message."""
    name, partition, query, asker, may_be_stale = _asked(body)
    question = QUESTIONS.by_name.get(name)
    if question is None:
        raise InvalidArgument(f"Expected a query of this version, but found {name!r}")
    decoded = _decoder(question.query)(query)
    return ReceivedQuery(question, partition, decoded, asker, may_be_stale)


encode_answer: Callable[[Any], bytes] = _encode


def decode_answer(query: Query[Any], body: bytes) -> Any:
    """What a query was answered."""
    return _decoder(QUESTIONS.by_name[type(query).__name__].answer)(body)


# --- topics and effects -----------------------------------------------------------------------


def encode_topic(topic: EffectTopic) -> bytes:
    return _encode((topic.effect.__name__, topic.about, topic.partition))


def decode_topic(body: bytes) -> EffectTopic:
    """What another member wants to be told of, or may have missed."""
    name, about, partition = _topic(body)
    return EffectTopic(_followed(name), about, partition)


def encode_effect(effect: Any) -> bytes:
    return _encode((type(effect).__name__, effect))


def decode_effect(body: bytes) -> Any:
    """What happened on a partition elsewhere."""
    name, effect = _named(body)
    return _decoder(_followed(name))(effect)


def _followed(name: str) -> type[Any]:
    effect = DISPATCH.followed.get(name)
    if effect is None:
        raise InvalidArgument(f"Expected an effect that can be followed, but found {name!r}")
    return effect
