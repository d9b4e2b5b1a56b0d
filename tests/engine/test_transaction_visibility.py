"""Which effects of transactions count as of some positions."""

from itertools import product

from transaction_cluster import TransactionCluster, submit

from holdfast.engine.transactions.values import TransactionDecision
from holdfast.engine.transactions.visibility import Applied, applied_in, consistent, is_visible


def test_a_transaction_counts_if_its_decision_does() -> None:
    decision = TransactionDecision(True, 1, 7)
    assert not is_visible(decision, {})
    assert not is_visible(decision, {1: 7, 2: 100})
    assert is_visible(decision, {1: 8})
    assert not is_visible(TransactionDecision(False, 1, 7), {1: 8})


def test_positions_without_the_decision_are_taken_back_to_before_its_effects() -> None:
    applied = [Applied(2, 20, TransactionDecision(True, 1, 7))]
    assert consistent({1: 8, 2: 30}, applied) == {1: 8, 2: 30}
    assert consistent({1: 7, 2: 30}, applied) == {1: 7, 2: 20}
    assert consistent({1: 7, 2: 20}, applied) == {1: 7, 2: 20}


def test_what_depends_on_a_hidden_effect_is_hidden_as_well() -> None:
    applied = [
        Applied(2, 20, TransactionDecision(True, 1, 7)),
        Applied(3, 5, TransactionDecision(True, 2, 25)),  # decided after the first was applied
    ]
    assert consistent({1: 7, 2: 30, 3: 9}, applied) == {1: 7, 2: 20, 3: 5}


def test_at_every_cut_all_of_a_transaction_counts_or_nothing_does() -> None:
    """Of all positions that two logs can be read up to, on append boundaries."""
    cluster = TransactionCluster(2)
    for n in range(3):
        home = 1 + n % 2
        cluster.outcome(home, submit(1, f"tx{n}-1"), submit(2, f"tx{n}-2"))
        cluster.run(1)
    logs = {number: node.records() for number, node in cluster.nodes.items()}
    applied = [each for number, log in logs.items() for each in applied_in(number, log)]
    assert len(applied) == 3
    seen = set()
    for ends in product(range(len(logs[1]) + 1), range(len(logs[2]) + 1)):
        cut = consistent(dict(zip(logs, ends, strict=True)), applied)
        assert all(cut[number] <= end for number, end in zip(logs, ends, strict=True))
        for each in applied:
            if each.source_position < cut[each.partition]:
                assert is_visible(each.decision, cut)
        seen.add(sum(is_visible(each.decision, cut) for each in applied))
    assert seen == {0, 1, 2, 3}
