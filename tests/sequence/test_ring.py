"""The ring: who is first, and how long the others wait, wherever the last writer stands."""

from hashlib import sha256

import pytest

from holdfast.sequence.ring import Ring

# Names by the order of their hashed keys: P comes first.
_KEYS = sorted(
    (f"{each:064x}" for each in range(5)), key=lambda k: sha256(bytes.fromhex(k)).digest()
)
KEYS = dict(zip("PQRST", _KEYS, strict=True))


def delays(ring: Ring, writer: str | None) -> str:
    return " ".join(f"{member}{ring.delay_ticks(member, writer)}" for member in ring.order)


@pytest.mark.parametrize(
    ("case", "writer", "expected"),
    [
        ("no writer yet", None, "P0 Q3 R6 S9 T12"),
        ("the first wrote", "P", "P0 Q3 R6 S9 T12"),
        ("one in the middle wrote", "R", "P9 Q12 R0 S3 T6"),
        ("the last wrote", "T", "P3 Q6 R9 S12 T0"),
        ("somebody unknown wrote", "X", "P0 Q3 R6 S9 T12"),
    ],
)
def test_delays_count_from_the_last_writer(case: str, writer: str | None, expected: str) -> None:
    assert delays(Ring(KEYS), writer) == expected, case


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        ("P", "Q0 R3 S6 T9"),
        ("R", "P6 Q9 S0 T3"),
        ("T", "P0 Q3 R6 S9"),  # behind the last comes the first
    ],
)
def test_a_writer_that_is_gone_is_followed_by_the_one_behind_its_place(
    gone: str, expected: str
) -> None:
    left = {name: key for name, key in KEYS.items() if name != gone}
    assert delays(Ring(left, former={gone: KEYS[gone]}), gone) == expected


def test_three_nodes_have_the_delays_of_the_picture() -> None:
    """Keys 1, 2 and 3 in the ring's order are those of B, C and A."""
    key_1, key_2, key_3 = _KEYS[:3]
    ring = Ring({"A": key_3, "B": key_1, "C": key_2})
    assert ring.order == ("B", "C", "A")
    assert delays(ring, None) == "B0 C3 A6"


def test_all_members_see_one_ring_however_they_came_to_know_it() -> None:
    assert Ring(dict(reversed(KEYS.items()))).order == Ring(KEYS).order == tuple("PQRST")


def test_who_is_not_in_the_ring_has_no_turn() -> None:
    assert Ring(KEYS).delay_ticks("X", "P") is None
    assert Ring({}).delay_ticks("P", None) is None


def test_the_step_is_a_setting() -> None:
    assert Ring(KEYS).delay_ticks("R", "P", 1) == 2
