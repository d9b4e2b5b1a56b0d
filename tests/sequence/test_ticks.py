"""Ticks: the stories of the design as transcripts, and each decision by itself."""

from hashlib import sha256

from holdfast.sequence import ticks
from holdfast.sequence.ring import Ring
from holdfast.sequence.ticks import RingTurn, TickPace

_KEYS = sorted(
    (f"{each:064x}" for each in range(9)), key=lambda k: sha256(bytes.fromhex(k)).digest()
)
SHORTLY = 0.1  # of a tick: how long news takes


def ring_of(order: str) -> Ring:
    return Ring(dict(zip(order, _KEYS, strict=False)))


class Stage:
    """Members around one store, a tick being a second. Each line says what happened at its time."""

    def __init__(self, order: str, delay_ticks: int) -> None:
        self.ring = ring_of(order)
        self.pace = TickPace(tick_seconds=1.0, delay_ticks=delay_ticks)
        self.turns = {member: ticks.read(ticks.begin(0.0), 0.0, 0, None, None) for member in order}
        self.latest: tuple[int, str | None, str | None] = (0, None, None)

    def start(self, member: str, now: float) -> None:
        """A member begins anew at this time."""
        self.turns[member] = ticks.read(ticks.begin(now), now, 0, None, None)

    def tick(self, now: int, deaf: str = "") -> list[str]:
        """All that are due try, those that know most first; who is beaten reads. Then news go."""
        told: list[str] = []
        before, won = self.latest, False
        due = {member: self.due(member) for member in self.turns}
        trying = sorted(
            (member for member in due if due[member] <= now + 1e-9),
            key=lambda member: self.turns[member].number,
            reverse=True,  # the member that knows most writes first
        )
        for member in trying:
            turn = ticks.tried(self.turns[member], now, due[member], f"{member}@{now}")
            if turn.number == self.latest[0]:
                self.latest, won = (turn.number + 1, member, f"{member}@{now}"), True
                self.turns[member] = ticks.written(turn, now, member, self.pace)
                told.append(f"t{now} {member} wrote {self.latest[0]}")
            else:
                read = ticks.read(ticks.beaten(turn, now), now, *self.latest)
                self.turns[member] = read
                told.append(f"t{now} {member} was beaten")
        if won:
            assert self.latest[0] == before[0] + 1
            hearing = [each for each in self.turns if each not in deaf and each != self.latest[1]]
            for member in hearing:
                self.turns[member] = ticks.seen(self.turns[member], now + SHORTLY, *self.latest)
            told.append(f"t{now}~ {','.join(hearing)} saw it")
        return told or [f"t{now} nobody tries"]

    def due(self, member: str) -> float:
        due = ticks.due(self.turns[member], self.ring, member, self.pace)
        assert due is not None
        # News take a moment, and so everybody is that moment later than the tick.
        return due - SHORTLY if due % 1 else due

    def crash(self, member: str) -> None:
        del self.turns[member]


def test_the_table_of_the_design_line_by_line() -> None:
    """The order is B,C,A,D,E, one tick a place; C starts at t1 and does not hear the first two."""
    stage = Stage("BCADE", delay_ticks=1)
    stage.start("C", 1.0)
    assert stage.tick(1, deaf="C") == ["t1 B wrote 1", "t1~ A,D,E saw it"]
    assert stage.tick(2, deaf="C") == ["t2 B wrote 2", "t2~ A,D,E saw it"]
    assert stage.tick(3) == ["t3 B wrote 3", "t3 C was beaten", "t3~ C,A,D,E saw it"]
    stage.crash("B")
    assert stage.tick(4) == ["t4 nobody tries"]
    assert stage.tick(5, deaf="A") == ["t5 C wrote 4", "t5~ D,E saw it"]
    assert stage.tick(6) == ["t6 C wrote 5", "t6 A was beaten", "t6~ A,D,E saw it"]


def test_three_nodes_wait_0_3_and_6_ticks() -> None:
    """The picture of the design: nobody has written, and one after the other does not come."""
    assert _first_write("BCA") == (1, "B")
    assert _first_write("BCA", "B") == (4, "C")
    assert _first_write("BCA", "BC") == (7, "A")


def _first_write(order: str, dead: str = "") -> tuple[int, str | None]:
    stage = Stage(order, delay_ticks=3)
    for member in dead:
        stage.crash(member)
    now = 1
    while stage.tick(now)[0].endswith("nobody tries"):
        now += 1
    return now, stage.latest[1]


def test_the_writer_goes_on_and_when_it_dies_the_next_in_the_ring_comes_three_ticks_later() -> None:
    stage = Stage("BCA", delay_ticks=3)
    assert [stage.tick(now)[0] for now in (1, 2)] == ["t1 B wrote 1", "t2 B wrote 2"]
    stage.crash("B")
    assert [stage.tick(now)[0] for now in (3, 4, 5)] == [
        f"t{now} nobody tries" for now in (3, 4, 5)
    ]
    assert [stage.tick(now)[0] for now in (6, 7)] == ["t6 C wrote 3", "t7 C wrote 4"]


# --- single decisions ---------------------------------------------------------------------------

PACE = TickPace(tick_seconds=1.0, delay_ticks=3)
RING = ring_of("BCA")


def ready(since: float = 0.0, number: int = 0, writer: str | None = None) -> RingTurn:
    return RingTurn(since, number, writer, nonce=writer and "x", must_read=False)


def due(turn: RingTurn, member: str) -> float | None:
    return ticks.due(turn, RING, member, PACE)


def test_every_cut_that_is_seen_starts_the_wait_anew() -> None:
    turn = ready()
    assert due(turn, "C") == 4.0
    turn = ticks.seen(turn, 3.5, 1, "B", "b1")
    assert due(turn, "C") == 7.5
    turn = ticks.seen(turn, 4.0, 2, "C", "c2")
    assert (due(turn, "C"), due(turn, "A"), due(turn, "B")) == (5.0, 8.0, 11.0)


def test_news_that_come_late_or_twice_start_nothing_anew() -> None:
    turn = ticks.seen(ready(), 3.0, 5, "B", "b5")
    assert ticks.seen(turn, 9.0, 5, "B", "b5") == turn
    assert ticks.seen(turn, 9.0, 4, "A", "a4") == turn


def test_the_writer_keeps_its_beat_however_long_the_write_took() -> None:
    turn = ticks.tried(ready(), 1.2, 1.0, "n")
    assert due(ticks.written(turn, 1.7, "B", PACE), "B") == 2.0


def test_ticks_that_were_slept_through_are_not_made_up_for() -> None:
    turn = ticks.written(ticks.tried(ready(), 61.0, 1.0, "n"), 61.5, "B", PACE)
    assert due(turn, "B") == 61.5
    turn = ticks.written(ticks.tried(turn, 61.5, 61.5, "o"), 61.6, "B", PACE)
    assert due(turn, "B") == 62.5


def test_a_member_that_was_beaten_or_does_not_know_reads_before_it_tries_again() -> None:
    trying = ticks.tried(ready(), 4.0, 4.0, "n")
    assert due(trying, "C") is None
    for turn in (ticks.beaten(trying, 4.2), ticks.unknown(trying, 4.2)):
        assert turn.must_read
        assert turn.since == 4.2
        assert not ticks.read(turn, 4.3, 1, "B", "b1").must_read


def test_an_unknown_write_that_took_place_is_found_by_its_nonce() -> None:
    turn = ticks.unknown(ticks.tried(ready(), 1.0, 1.0, "mine"), 3.0)
    turn = ticks.read(turn, 3.1, 1, "B", "mine")
    assert (turn.number, turn.writer, turn.nonce, due(turn, "B")) == (1, "B", "mine", 4.1)


def test_an_unknown_write_that_did_not_take_place_is_tried_a_tick_later() -> None:
    turn = ticks.unknown(ticks.tried(ready(), 1.0, 1.0, "mine"), 3.0)
    turn = ticks.read(turn, 3.1, 0, None, None)
    assert (turn.number, due(turn, "B")) == (0, 4.0)


def test_an_answer_that_comes_after_the_next_cut_changes_nothing() -> None:
    turn = ticks.tried(ready(), 1.0, 1.0, "mine")
    turn = ticks.seen(turn, 5.0, 2, "C", "c2")
    turn = ticks.written(turn, 6.0, "B", PACE)
    assert (turn.number, turn.writer, turn.since, turn.trying) == (2, "C", 5.0, None)


def test_a_store_that_went_back_is_noticed() -> None:
    turn = ticks.seen(ready(), 1.0, 5, "B", "b5")
    assert not ticks.is_rolled_back(turn, 5, "b5")
    assert not ticks.is_rolled_back(turn, 6, "c6")
    assert ticks.is_rolled_back(turn, 5, "another")
    assert ticks.is_rolled_back(turn, 4, "b4")


def test_a_tick_is_late_when_the_order_comes_more_than_a_tick_after_it_was_due() -> None:
    attempt = ticks.tried(ready(), 1.5, 1.0, "n").trying
    assert attempt is not None
    assert ticks.lateness(attempt, 1.75) == 0.75
    assert not ticks.is_late(attempt, 2.0, PACE)
    assert ticks.is_late(attempt, 2.1, PACE)


def test_who_is_not_in_the_ring_never_tries() -> None:
    assert ticks.due(ready(), Ring({}), "B", PACE) is None
