"""What a handler may not do with distributions, and how many there may be."""

import pytest
from distribution_checks import check_end
from distribution_cluster import Cluster
from distribution_domain import MISUSES, NOTES, Note, NoteIntent
from distribution_transcript import transcript

from holdfast.engine.distribution import receiving
from holdfast.engine.distribution.values import Refusal
from holdfast.engine.kernel import Command
from holdfast.errors import Code


def test_beyond_the_limit_nothing_new_is_distributed_until_something_is_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(receiving, "DISTRIBUTIONS_MAX", 2)
    cluster = Cluster(2)
    cluster.note(1, 1)
    cluster.note(1, 2)
    refused = cluster.ask(1, Command(NOTES, NoteIntent.NOTE, 0, Note(3)))
    assert refused.rejection is not None
    assert refused.rejection.code == Code.RESOURCE_EXHAUSTED
    assert "fewer than 2 distributions" in refused.rejection.reason
    cluster.run()
    cluster.note(1, 4)
    cluster.run()
    assert cluster.nodes[2].notes() == [1, 2, 4]
    check_end(cluster)


@pytest.mark.parametrize("how", MISUSES)
def test_a_handler_that_distributes_wrongly_is_a_bug_and_changes_nothing(how: str) -> None:
    cluster = Cluster(3)
    cluster.note(1, 7)
    cluster.run()
    rows = cluster.nodes[1].dump()
    before, posted = len(cluster.nodes[1].log), len(cluster.posted)
    reply = cluster.ask(1, Command(NOTES, NoteIntent.MISUSE, 0, Note(8, how=how)))
    assert reply.rejection is not None and reply.rejection.code == Code.INTERNAL
    assert transcript(cluster, 1)[before:] == ["> MISUSE = 8", "! MISUSE INTERNAL"]
    assert cluster.nodes[1].dump() == rows
    assert len(cluster.posted) == posted
    check_end(cluster)


def test_what_was_distributed_cannot_be_distributed_again() -> None:
    cluster = Cluster(3)
    reply = cluster.ask(1, Command(NOTES, NoteIntent.RELAY, 0, Note(7, to=(2,))))
    cluster.run(5)
    for receiver in (2, 3):
        assert transcript(cluster, receiver) == ["> RELAY 1.1 = 7", "! RELAY 1.1 INTERNAL"]
        assert cluster.nodes[receiver].view.distributions.count() == 0
    told = [each.command.value for each in cluster.posted if not each.command.delivery]
    assert {type(each) for each in told} == {Refusal}, "it is not acknowledged"
    assert "not distributed again" in told[0].reason
    cluster.cancel(reply.key)
    check_end(cluster)
