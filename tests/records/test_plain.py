"""Values of records as JSON: every kind of them, with names, and what is JSON inside as it is."""

from enum import IntEnum

import msgspec
import pytest
from record_examples import EXAMPLES

from holdfast.engine.distribution.values import Distribution
from holdfast.engine.jobs.values import JobIntent
from holdfast.engine.plain import as_json
from holdfast.engine.processes.values import Deployment, ProcessIntent
from holdfast.engine.transactions.values import NewTransaction, TransactionOperation
from holdfast.records import ValueType


@pytest.mark.parametrize("tag", EXAMPLES, ids=lambda tag: f"{tag[0].name}-{tag[1].name}")
def test_every_value_is_told_by_name(tag: tuple[ValueType, IntEnum]) -> None:
    value = EXAMPLES[tag]
    told = msgspec.json.decode(as_json(value))
    assert set(value.__struct_fields__) == told.keys()


def test_json_inside_is_json_outside() -> None:
    told = msgspec.json.decode(as_json(EXAMPLES[ValueType.JOB, JobIntent.CREATE]))
    assert told["payload"] == {"order": 42}
    assert told["backoff"] == {"kind": "linear", "base_ms": 10, "cap_ms": 1000, "jitter_percent": 0}


def test_a_command_inside_is_told_by_name_too() -> None:
    inside = msgspec.msgpack.encode(Deployment("order", b"\x01", b"\x02", 3, b"<xml/>"))
    new = Distribution("deployment", ValueType.PROCESS, ProcessIntent.DEPLOY, inside, None, (2,))
    told = msgspec.json.decode(as_json(new))
    assert (told["value_type"], told["intent"]) == ("PROCESS", "DEPLOY")
    assert told["value"]["process_id"] == "order"
    assert told["value"]["source"] == "<xml/>"


def test_an_operation_of_a_transaction_is_told_by_name_too() -> None:
    inside = msgspec.msgpack.encode(EXAMPLES[ValueType.JOB, JobIntent.CREATE])
    new = TransactionOperation(2, ValueType.JOB, JobIntent.CREATE, 0, inside)
    [told] = msgspec.json.decode(as_json(NewTransaction((new,), 1_000)))["operations"]
    assert (told["value_type"], told["intent"], told["partition"]) == ("JOB", "CREATE", 2)
    assert told["value"]["payload"] == {"order": 42}
