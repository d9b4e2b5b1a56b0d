"""Keys carry their partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidArgument
from holdfast.limits import KEY_COUNTER_BITS, PARTITIONS_MAX
from holdfast.records import counter_of, key_of, partition_of

COUNTER_MAX = (1 << KEY_COUNTER_BITS) - 1


@given(st.integers(1, PARTITIONS_MAX), st.integers(0, COUNTER_MAX))
def test_a_key_gives_back_what_it_was_made_of(partition: int, counter: int) -> None:
    key = key_of(partition, counter)
    assert (partition_of(key), counter_of(key)) == (partition, counter)


def test_keys_are_positive_signed_64_bit_integers_and_grow_with_their_counter() -> None:
    assert 0 < key_of(1, 0) < key_of(1, 1) < key_of(1, COUNTER_MAX) < key_of(2, 0)
    assert key_of(PARTITIONS_MAX, COUNTER_MAX) == 2**63 - 1


@pytest.mark.parametrize(
    ("partition", "counter"),
    [(0, 1), (-1, 1), (PARTITIONS_MAX + 1, 1), (1, -1), (1, COUNTER_MAX + 1)],
)
def test_what_fits_no_key_is_refused(partition: int, counter: int) -> None:
    with pytest.raises(InvalidArgument, match="Expected a"):
        key_of(partition, counter)
