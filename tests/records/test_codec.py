"""Every record survives its bytes; bytes that are no record are an error that carries them."""

from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_examples import EXAMPLES

from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.partition import DISPATCH, DOMAINS
from holdfast.errors import Code, DataLoss
from holdfast.records import Delivery, Record, RecordKind, Rejection, ValueType

CODEC = DISPATCH.codec
TAGS = [(domain.value_type, intent) for domain in DOMAINS for intent in domain.intents]


def example(value_type: ValueType, intent: IntEnum) -> Record:
    command = (value_type, intent) in DISPATCH.handlers
    kind = RecordKind.COMMAND if command else RecordKind.EVENT
    value = EXAMPLES[value_type, intent]
    claims = {"tenant": "blue", "roles": ["admin"]} if command else None
    delivery = Delivery("deployment", 2) if (value_type, intent) in DISPATCH.distributed else None
    return Record(
        17, kind, value_type, intent, 2**51 + 3, 16, 1_700_000_000_000, value, claims, None,
        delivery,
    )  # fmt: skip


def assert_decodes_or_says_what_it_saw(payload: bytes) -> None:
    """Both ways of decoding give a record or DataLoss with the bytes, and nothing else."""
    neighbour = CODEC.encode(example(*TAGS[0]))
    for decode in (CODEC.decode, lambda each: CODEC.decode_many([neighbour, each])):
        try:
            decode(payload)
        except DataLoss as error:
            assert error.fields["payload"] == payload


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: f"{tag[0].name}-{tag[1].name}")
def test_every_record_comes_back_as_it_was(tag: tuple[ValueType, IntEnum]) -> None:
    record = example(*tag)
    decoded = CODEC.decode(CODEC.encode(record))
    assert decoded == record
    assert type(decoded.value) is type(record.value)


def test_every_example_is_of_the_struct_that_its_domain_names() -> None:
    structs = {
        (domain.value_type, intent): kind
        for domain in DOMAINS
        for intent, kind in domain.values.items()
    }
    assert {tag: type(value) for tag, value in EXAMPLES.items()} == structs


@pytest.mark.parametrize("code", list(Code))
def test_a_rejection_comes_back_with_its_code(code: Code) -> None:
    record = Record(
        5, RecordKind.REJECTION, 1, 2, 9, 4, 1, None, None, Rejection(code, "Expected, but found")
    )
    assert CODEC.decode(CODEC.encode(record)) == record


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: f"{tag[0].name}-{tag[1].name}")
def test_a_cut_off_record_is_data_loss_with_its_bytes(tag: tuple[ValueType, IntEnum]) -> None:
    payload = CODEC.encode(example(*tag))
    for length in range(len(payload)):
        with pytest.raises(DataLoss) as caught:
            CODEC.decode(payload[:length])
        assert caught.value.fields["payload"] == payload[:length]


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: f"{tag[0].name}-{tag[1].name}")
def test_no_flipped_bit_does_worse_than_data_loss(tag: tuple[ValueType, IntEnum]) -> None:
    payload = CODEC.encode(example(*tag))
    for bit in range(len(payload) * 8):
        damaged = bytearray(payload)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_decodes_or_says_what_it_saw(bytes(damaged))


@given(st.binary(max_size=200))
def test_no_garbage_does_worse_than_data_loss(payload: bytes) -> None:
    assert_decodes_or_says_what_it_saw(payload)


@pytest.mark.parametrize(
    "payload",
    [
        CODEC.encode(example(*TAGS[0]))[:-20] + b"\x91" * 100_000,
        b"\x91" * 100_000,
        b"\x9a\x00\x00\x01\x00\x00\x00\x00" + b"\x91" * 100_000 + b"\xc0",
        b"\x9a\x00\x00\x01\x00\x00\x00\x00\xdd\xff\xff\xff\xff",
        b"\x9a\x00\x00\x01\x00\x00\x00\x00\xc0\x81\xa1x\xdd\xff\xff\xff\xff",
        b"\x9a\x00\x00\x01\x00\x00\x00\x00\xc0\x81\xa1x" + b"\x91" * 100_000 + b"\xc0",
    ],
    ids=["deep tail", "deep", "deep value", "huge value", "huge claims", "deep claims"],
)
def test_hostile_bytes_are_data_loss(payload: bytes) -> None:
    with pytest.raises(DataLoss):
        CODEC.decode(payload)
    assert_decodes_or_says_what_it_saw(payload)


def test_an_unknown_kind_of_value_is_data_loss() -> None:
    record = example(*TAGS[0])
    unknown = Record(record.position, record.kind, 999, 0, 1, -1, 0, record.value)
    with pytest.raises(DataLoss, match="could not be decoded"):
        CODEC.decode(CODEC.encode(unknown))


def test_fields_that_a_later_version_adds_are_skipped() -> None:
    payload = CODEC.encode(example(*TAGS[0]))
    assert payload[0] == 0x9B, "eleven fields"
    longer = b"\x9c" + payload[1:] + b"\xa5later"
    assert CODEC.decode(longer) == CODEC.decode(payload)


def test_many_are_decoded_as_each_alone() -> None:
    records = [example(*tag) for tag in TAGS]
    assert CODEC.decode_many([CODEC.encode(record) for record in records]) == records
    assert CODEC.decode_many([]) == []


def test_a_value_of_another_intent_is_data_loss() -> None:
    fail = example(ValueType.JOB, JobIntent.FAIL)
    wrong = Record(
        fail.position, fail.kind, fail.value_type, JobIntent.CREATE, 1, -1, 0, fail.value
    )
    with pytest.raises(DataLoss, match="its value is no NewJob"):
        CODEC.decode(CODEC.encode(wrong))
