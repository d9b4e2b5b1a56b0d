"""The rules of replicated ranges hold in every order of events, and a broken rule is found out."""

import pytest
from tests.journal.cluster.cluster_scopes import (
    LATE_SHORT,
    LATE_WHOLE,
    ONE_ENTRY,
    SHORT,
    WHOLE,
)
from tests.journal.cluster.exploring import Exploration, explore
from tests.journal.cluster.late_syncs import (
    AnswersWhatIsOnItsWay,
    LateSyncs,
    ReportsAfterPromise,
    ReportsBeforeSync,
)
from tests.journal.cluster.planted import Fault, faults

FAULTS = list(faults())
SOAK_SECONDS_MAX = 3_600  # minutes of work, more where others have the machine


@pytest.mark.parametrize("scope", SHORT)
def test_every_order_of_events_keeps_what_was_acknowledged(scope: str) -> None:
    found = explore(Exploration(SHORT[scope]))
    assert found.violation is None, found.story()
    assert found.states > 1_000


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
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


def test_nothing_is_lost_that_is_on_its_way_to_a_disk() -> None:
    found = explore(LateSyncs(LATE_SHORT))
    assert found.violation is None, found.story()
    assert found.states > 1_000


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
@pytest.mark.parametrize("scope", LATE_WHOLE)
def test_nothing_is_lost_that_is_on_its_way_to_a_disk_in_more_orders(scope: str) -> None:
    found = explore(LateSyncs(LATE_WHOLE[scope]))
    assert found.violation is None, found.story()


@pytest.mark.parametrize("fault", [ReportsBeforeSync, AnswersWhatIsOnItsWay, ReportsAfterPromise])
def test_a_disk_that_speaks_too_soon_is_found(fault: type[LateSyncs]) -> None:
    assert explore(fault(ONE_ENTRY)).violation is not None, fault.__doc__
