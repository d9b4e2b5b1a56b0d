"""Which transactions count as of some positions, and where a reader ends so that all are whole."""

from itertools import product

from transaction_cluster import TransactionCluster, submit

from holdfast.engine.transactions.values import TransactionDecision, TransactionIntent
from holdfast.engine.transactions.visibility import (
    TransactionSpan,
    is_visible,
    spans_in,
    whole,
)
from holdfast.records import RecordKind, ValueType


def test_a_transaction_counts_if_its_decision_does() -> None:
    decision = TransactionDecision(True, 1, 7)
    assert not is_visible(decision, {})
    assert not is_visible(decision, {1: 7, 2: 100})
    assert is_visible(decision, {1: 8})
    assert not is_visible(TransactionDecision(False, 1, 7), {1: 8})


HOME, PART = TransactionSpan(5, 1, 6, 8, (2,)), TransactionSpan(5, 2, 20, 23)


def test_positions_end_before_what_is_not_wholly_within() -> None:
    both = [HOME, PART]
    assert whole({1: 8, 2: 23}, both) == {1: 8, 2: 23}
    assert whole({1: 7, 2: 23}, both) == {1: 6, 2: 20}, "without the decision"
    assert whole({1: 9, 2: 22}, both) == {1: 6, 2: 20}, "without the other part"
    assert whole({1: 9, 2: 20}, [HOME]) == {1: 6, 2: 20}, "it was not applied yet"
    assert whole({1: 5, 2: 10}, both) == {1: 5, 2: 10}
    assert whole({1: 5, 2: 10}, []) == {1: 5, 2: 10}


def test_what_came_after_a_hidden_part_is_hidden_as_well() -> None:
    later = [TransactionSpan(9, 2, 25, 26, (3,)), TransactionSpan(9, 3, 5, 7)]
    assert whole({1: 7, 2: 30, 3: 9}, [HOME, PART, *later]) == {1: 6, 2: 20, 3: 5}


def test_at_all_positions_of_logs_each_transaction_is_whole() -> None:
    """Wherever two logs are cut off, what is left has all of a transaction or nothing of it."""
    cluster = TransactionCluster(2)
    for n in range(4):
        cluster.outcome(1 + n % 2, submit(1, f"tx{n}-1"), submit(2, f"tx{n}-2"))
    cluster.run(1)
    logs = {number: node.records() for number, node in cluster.nodes.items()}
    spans = [
        span
        for number, log in logs.items()
        for span in spans_in(number, ((each.position, each) for each in log))
    ]
    assert len(spans) == 8
    seen = set()
    for ends in product(range(len(logs[1]) + 1), range(len(logs[2]) + 1)):
        cut = whole(dict(zip(logs, ends, strict=True)), spans)
        assert all(cut[number] <= end for number, end in zip(logs, ends, strict=True))
        made = [_made(logs[number][: cut[number]]) for number in logs]
        assert made[0] == made[1], "the same transactions on both"
        seen.add(len(made[0]))
        for number, log in logs.items():
            for record in log[: cut[number]]:
                if _is(record, TransactionIntent.APPLIED):
                    assert is_visible(record.value, cut)
    assert seen == {0, 1, 2, 3, 4}


def _made(log: list) -> set[bytes]:
    """The transactions whose tasks a log has."""
    created = [
        each.value.payload
        for each in log
        if each.value_type == ValueType.JOB and each.kind == RecordKind.EVENT
    ]
    return {each.partition(b"-")[0] for each in created}


def _is(record, intent: TransactionIntent) -> bool:
    return (record.value_type, record.intent, record.kind) == (
        ValueType.TRANSACTION, intent, RecordKind.EVENT,
    )  # fmt: skip
