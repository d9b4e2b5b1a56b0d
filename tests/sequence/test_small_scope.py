"""Every run of three members: never two cuts with one number, never two orders, never back."""

from collections.abc import Callable, Iterator

import msgspec
import pytest
from tests.sequence import test_ticks
from tests.sequence.small_scope import Explorer, Rules, Sent, Violation

from holdfast.sequence import cuts
from holdfast.sequence.api import Cut, CutPositions, LogKey
from holdfast.sequence.order import Ordered, ordered
from holdfast.sequence.ring import Ring
from holdfast.sequence.ticks import RingTurn


def test_no_run_of_three_ticks_with_a_crash_breaks_the_order() -> None:
    explorer = Explorer(Rules(), ticks_max=3, crashes_max=1)
    explorer.explore()
    assert explorer.cuts_max == 3
    assert explorer.count > 20_000  # it went through them


@pytest.mark.soak
@pytest.mark.timeout(1_800)
def test_no_run_of_four_ticks_with_a_crash_breaks_the_order() -> None:
    explorer = Explorer(Rules(), ticks_max=4, crashes_max=1)
    explorer.explore()
    print(f"{explorer.count} states")
    assert explorer.cuts_max == 4


# --- planted faults -----------------------------------------------------------------------------


def _unguarded(latest: int, cut: Cut) -> bool:
    return True


def _guarded_by_less(latest: int, cut: Cut) -> bool:
    return cut.number >= latest


def _assumed(turn: RingTurn, now: float) -> RingTurn:
    assert turn.trying is not None
    return RingTurn(now, turn.trying.number, "P", turn.trying.nonce, must_read=False)


def _going_back(
    before: CutPositions, marks: dict[LogKey, int], writer: str, nonce: str, now_ms: int
) -> Cut:
    cut = cuts.make_cut(before, marks, writer, nonce, now_ms)
    grown = {key: marks[key] - before.offsets.get(key, 0) for key in sorted(marks)}
    return msgspec.structs.replace(cut, grown=grown)


def _beyond_marks(
    before: CutPositions, marks: dict[LogKey, int], writer: str, nonce: str, now_ms: int
) -> Cut:
    return cuts.make_cut(before, {key: at + 1 for key, at in marks.items()}, writer, nonce, now_ms)


def _as_it_arrives(number: int, log: tuple[Sent, ...]) -> tuple[Sent, ...]:
    return log[number:][-1:]


def _another_for_each_caller() -> Callable[[CutPositions, Cut], Iterator[Ordered]]:
    calls = iter(range(10**9))

    def by_arrival(before: CutPositions, cut: Cut) -> Iterator[Ordered]:
        spans = list(ordered(before, cut))
        return iter(spans if next(calls) % 2 else spans[::-1])

    return by_arrival


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (Rules(follows=_unguarded), "two cuts with the number"),
        (Rules(follows=_guarded_by_less), "two cuts with the number"),
        (Rules(unknown=_assumed), "believes in a cut that is not"),
        (Rules(make_cut=_going_back), "positions go back"),
        (Rules(make_cut=_beyond_marks), "more than was acknowledged"),
        (Rules(missed=_as_it_arrives), "was read back, but"),
        (Rules(ordered=_another_for_each_caller()), "two orders"),
    ],
    ids=[
        "unguarded publish", "guard too weak", "outcome assumed", "positions go back",
        "not acknowledged", "cuts as they are heard", "order by arrival",
    ],
)  # fmt: skip
def test_a_planted_fault_is_found(rules: Rules, found: str) -> None:
    with pytest.raises(Violation, match=found):
        Explorer(rules, ticks_max=3, crashes_max=0).explore()


def test_a_last_writer_that_waits_is_found_by_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks no order. It makes every cut late, and so the stories of the design fail."""

    def by_place(ring: Ring, member: str, writer: str | None, step_ticks: int = 3) -> int:
        return ring.order.index(member) * step_ticks

    monkeypatch.setattr(Ring, "delay_ticks", by_place)
    for story in (
        test_ticks.test_the_table_of_the_design_line_by_line,
        test_ticks.test_every_cut_that_is_seen_starts_the_wait_anew,
    ):
        with pytest.raises(AssertionError):
            story()
