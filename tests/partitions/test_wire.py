"""How the port travels: everything comes back as the type that it was."""

import sys
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import asdict
from tests.partitions.members import activation, create

from holdfast.engine.asker import Asker
from holdfast.engine.identity.values import OwnerType
from holdfast.engine.jobs.queries import FindStandings, FindTask, ListTasks
from holdfast.engine.jobs.values import ActivatedJob, HeadedJob, JobEnded, JobState, Outcome
from holdfast.engine.kernel import Command, Reply
from holdfast.engine.partition import DISPATCH, QUESTIONS
from holdfast.engine.processes.values import HeadedInstance
from holdfast.errors import Code, InvalidArgument
from holdfast.partitions import wire
from holdfast.partitions.api import EffectTopic
from holdfast.records import Delivery, Rejection, ValueType

sys.path.insert(0, str(Path(__file__).parents[1] / "records"))
from record_examples import EXAMPLES

COMMANDS = [
    (value_type, intent) for value_type, intent in EXAMPLES
    if (value_type, intent) in DISPATCH.handlers
]  # fmt: skip


def test_a_command_travels_with_all_of_its_fields() -> None:
    assert wire._Command.__struct_fields__ == Command.__struct_fields__
    assert wire._Reply.__struct_fields__ == Reply.__struct_fields__


def test_every_command_has_an_example_here() -> None:
    assert {(int(a), int(b)) for a, b in COMMANDS} == set(DISPATCH.handlers)


@pytest.mark.parametrize("tag", COMMANDS, ids=lambda tag: f"{tag[0].name}.{tag[1].name}")
def test_every_command_comes_back_as_it_was(tag: tuple[ValueType, IntEnum]) -> None:
    value_type, intent = tag
    claims: dict[str, Any] = {"sub": "alice", "groups": ["g"]}
    commands = [
        Command(value_type, intent, 7, EXAMPLES[tag]),
        Command(value_type, intent, 8, EXAMPLES[tag], claims, Delivery("q", 3), "request 1"),
    ]
    body = wire.encode_commands(3, commands, 99)
    submitted = wire.decode_commands(body)
    assert submitted == (3, commands, 99)
    assert [type(each.intent) for each in submitted.commands] == [type(intent)] * 2
    assert type(submitted.commands[0].value_type) is ValueType


def test_commands_with_headers_come_back_as_they_were() -> None:
    commands = [
        Command(value_type, intent, 7, variant(**asdict(example), headers={"tenant": "red"}))
        for value_type, intent in COMMANDS
        if (variant := DISPATCH.variants.get(type(example := EXAMPLES[value_type, intent])))
    ]
    assert {type(each.value) for each in commands} == {HeadedJob, HeadedInstance}
    submitted = wire.decode_commands(wire.encode_commands(3, commands, 99))
    assert submitted == (3, commands, 99)
    assert [type(each.value) for each in submitted.commands] == [type(c.value) for c in commands]


def test_a_value_of_another_intent_is_refused() -> None:
    forged = Command(ValueType.JOB, activation().intent, 0, activation().value)
    with pytest.raises(InvalidArgument, match="Activation"):
        wire.decode_commands(wire.encode_commands(1, [forged], 0))


def test_replies_come_back_with_the_values_that_their_domains_declare() -> None:
    job = ActivatedJob(5, "mail", b"{}", 9, 100, 1, 3, False)
    refused = Reply(4, None, Rejection(Code.NOT_FOUND, "there is none"))
    commands, replies = [create(), create(), activation()], [Reply(3), refused, Reply(9, [job])]
    assert wire.decode_replies(commands, wire.encode_replies(replies)) == replies
    plain = [Reply(3), refused]
    assert wire.decode_replies([create(), create()], wire.encode_replies(plain)) == plain
    nothing = [Reply(0, None, Rejection(Code.NOT_FOUND, "no job"))]
    assert wire.decode_replies([activation()], wire.encode_replies(nothing)) == nothing
    assert wire.decode_replies([activation()], wire.encode_replies([Reply(9, [])])) == [
        Reply(9, [])
    ]


@pytest.mark.parametrize("question", QUESTIONS.all, ids=lambda question: question.name)
def test_every_query_and_answer_has_a_type_that_can_be_decoded(question: Any) -> None:
    msgspec.msgpack.Decoder(question.query)
    msgspec.msgpack.Decoder(question.answer)


@pytest.mark.parametrize(
    "query", [FindTask(5), ListTasks(3, 10, state=JobState.WAITING), FindStandings((1, 2))]
)
def test_a_query_comes_back_with_its_asker(query: Any) -> None:
    asker = Asker("alice", OwnerType.USER, ("g",))
    asked = wire.decode_query(wire.encode_query(3, query, asker))
    assert (asked.partition, asked.query, asked.asker) == (3, query, asker)
    assert type(asked.query) is type(query)
    assert wire.decode_query(wire.encode_query(3, query, None)).asker is None


def test_topics_and_effects_come_back() -> None:
    for topic in (
        EffectTopic(JobEnded),
        EffectTopic(JobEnded, 5, 3),
        EffectTopic(JobEnded, "mail"),
    ):
        assert wire.decode_topic(wire.encode_topic(topic)) == topic
    effect = JobEnded(7, Outcome(JobState.COMPLETED, b"1", "", 5, "mail", is_job=True))
    back = wire.decode_effect(wire.encode_effect(effect))
    assert (back, type(back)) == (effect, JobEnded)
    with pytest.raises(InvalidArgument, match="'int'"):
        wire.decode_topic(wire.encode_topic(EffectTopic(int)))
