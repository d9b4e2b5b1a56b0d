"""The rules of replicated ranges hold in every order of events, and a broken rule is found out."""

import pytest
from tests.journal.cluster.cluster_scopes import SHORT, WHOLE
from tests.journal.cluster.exploring import Exploration, explore
from tests.journal.cluster.planted import Fault, faults

FAULTS = list(faults())


@pytest.mark.parametrize("scope", SHORT)
def test_every_order_of_events_keeps_what_was_acknowledged(scope: str) -> None:
    found = explore(Exploration(SHORT[scope]))
    assert found.violation is None, found.story()
    assert found.states > 1_000


@pytest.mark.soak
@pytest.mark.parametrize("scope", WHOLE)
def test_every_order_of_more_events_keeps_what_was_acknowledged(scope: str) -> None:
    found = explore(Exploration(WHOLE[scope]))
    assert found.violation is None, found.story()


def test_there_are_as_many_planted_faults_as_the_model_has() -> None:
    assert len(FAULTS) == 22


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_planted_fault_is_found(fault: type[Fault]) -> None:
    found = explore(fault(fault.scope_of))
    assert found.violation is not None, fault.__doc__
