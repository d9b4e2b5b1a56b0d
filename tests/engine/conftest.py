"""Fixtures of the engine's tests."""

from collections.abc import Iterator

import pytest
from process_talk import Talk


@pytest.fixture
def talk() -> Iterator[Talk]:
    """A partition to talk to; what has to hold after every story is checked behind each."""
    partition = Talk()
    yield partition
    partition.check()
