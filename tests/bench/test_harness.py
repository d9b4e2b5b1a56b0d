"""The arithmetic of the benchmarks: a wrong ratio would make every figure a wrong promise."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import harness, store, table


class Silent:
    """A watcher that remembers the order of what was measured."""

    def __init__(self) -> None:
        self.measured: list[str] = []
        self.planned = 0

    def begin(self, name: str, figure: str, measurements: int) -> None:
        self.planned = measurements

    def measuring(self, what: str) -> None:
        self.measured.append(what)

    def end(self, result: harness.Result) -> None:
        self.result = result


def values(*numbers: float) -> Callable[[], float]:
    each = iter(numbers)
    return lambda: next(each)


def refuse() -> float:
    raise harness.UnmeasurableError("no server here")


def figure(
    ours: Callable[[], float],
    peer: Callable[[], float] | dict[str, Callable[[], float]],
    goal: str = ">= 2",
    warm_up: bool = False,
) -> harness.Figure:
    return harness.Figure("rate", "peer", goal, "tasks/s", ours, peer, warm_up)


def test_the_ratio_is_the_median_of_the_rounds_ratios_and_not_the_ratio_of_the_medians():
    # Ratios 10/1, 4/2, 9/3: median 3; the medians 9 and 2 would give 4.5.
    row = harness.measure("x", figure(values(10, 4, 9), values(1, 2, 3)), 3, Silent()).row()
    assert row["ratio"] == 3
    assert row["spread"] == [2, 10]
    assert (row["ours"], row["peer"], row["rounds"]) == (9, 2, 3)


def test_rounds_are_interleaved_ours_first():
    watcher = Silent()
    harness.measure(
        "x", figure(harness.fixed(1), {"a": harness.fixed(1), "b": harness.fixed(1)}), 2, watcher
    )
    assert watcher.measured == ["ours", "a", "b", "ours", "a", "b"]
    assert watcher.planned == len(watcher.measured)


def test_a_warm_up_round_is_measured_and_not_counted():
    watcher = Silent()
    result = harness.measure("x", figure(values(1000, 4), values(1, 2), warm_up=True), 1, watcher)
    assert result.ratios == [2]
    assert watcher.planned == 4


@pytest.mark.parametrize(
    ("goal", "ratio", "met"),
    [
        (">= 0.85", 0.85, True),
        (">= 0.85", 0.8499, False),
        ("<= 1.2", 1.2, True),
        ("<= 1.2", 1.2001, False),
    ],
)
def test_a_goal_includes_its_own_number(goal: str, ratio: float, met: bool):
    assert harness.Goal(goal).met_by(ratio) is met
    assert (
        harness.measure("x", figure(harness.fixed(ratio), harness.fixed(1), goal), 5, Silent()).met
        is met
    )


@pytest.mark.parametrize("text", ["0.85", "> 2", "=> 2", ">= much", ">=2"])
def test_a_goal_that_says_nothing_clear_is_refused(text: str):
    with pytest.raises(ValueError):
        harness.Goal(text)


def test_of_several_peers_the_best_of_each_round_counts():
    peers = {"a": values(1, 5), "b": values(4, 2)}
    higher = harness.measure("x", figure(harness.fixed(20), peers, ">= 2"), 2, Silent())
    assert higher.peer == [4, 5]
    assert higher.peers == {"a": 3, "b": 3}
    peers = {"a": values(1, 5), "b": values(4, 2)}
    lower = harness.measure("x", figure(harness.fixed(20), peers, "<= 2"), 2, Silent())
    assert lower.peer == [1, 2]


def test_a_figure_without_its_peer_is_skipped_with_the_reason_and_neither_met_nor_missed():
    row = harness.measure("x", figure(harness.fixed(1), refuse), 5, Silent()).row()
    assert (row["ratio"], row["met"], row["spread"], row["rounds"]) == (None, None, None, 0)
    assert "no server here" in row["skipped"]
    assert table.state(row) == "skipped"
    json.dumps(row)


def test_a_missing_peer_among_several_is_left_out_and_named():
    result = harness.measure(
        "x", figure(harness.fixed(8), {"a": refuse, "b": harness.fixed(2)}), 3, Silent()
    )
    assert result.ratio == 4
    assert result.row()["left_out"] == {"a": "no server here"}


def test_a_peer_that_fails_in_a_later_round_counts_in_none():
    def fails_second() -> Callable[[], float]:
        left = [100.0]
        return lambda: left.pop() if left else refuse()

    result = harness.measure(
        "x", figure(harness.fixed(8), {"a": fails_second(), "b": harness.fixed(2)}), 3, Silent()
    )
    assert result.peer == [2, 2, 2]
    assert list(result.row()["peers"]) == ["b"]


def test_a_bug_in_ours_is_not_taken_for_a_missing_peer():
    def broken() -> float:
        raise RuntimeError("bug")

    with pytest.raises(RuntimeError):
        harness.measure("x", figure(broken, harness.fixed(1)), 1, Silent())


def test_what_a_benchmark_opened_is_closed_even_when_a_figure_crashes(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(harness, "BENCHMARKS", {})
    closed: list[bool] = []

    def broken() -> float:
        raise RuntimeError("bug")

    @harness.benchmark("crashing")
    def crashing(run: harness.Run) -> Iterator[harness.Figure]:
        try:
            yield figure(broken, harness.fixed(1))
        finally:
            closed.append(True)

    with pytest.raises(RuntimeError):
        list(harness.run_benchmark("crashing", harness.Run(), Silent()))
    assert closed == [True]


def test_only_figures_whose_names_are_asked_for_are_measured(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(harness, "BENCHMARKS", {})
    one = harness.fixed(1)

    @harness.benchmark("three")
    def three(run: harness.Run) -> Iterator[harness.Figure]:
        for name in ("late ticks", "a cut of 64 logs", "a database"):
            yield harness.Figure(name, "one", "<= 1", "", one, one)

    def measured(*texts: str) -> list[str]:
        run = harness.Run(rounds=1, figures=texts)
        return [each.figure for each in harness.run_benchmark("three", run, Silent())]

    assert measured(" logs", "late") == ["late ticks", "a cut of 64 logs"]
    assert measured("none") == []
    assert len(measured()) == 3


def test_a_name_belongs_to_one_benchmark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(harness, "BENCHMARKS", {"taken": lambda run: iter(())})
    with pytest.raises(ValueError, match="taken"):
        harness.benchmark("taken")(lambda run: iter(()))


def row(name: str, figure: str, ratio: float) -> dict[str, object]:
    return {"name": name, "figure": figure, "ratio": ratio}


def test_a_run_of_some_keeps_the_figures_of_the_others_in_their_places():
    earlier = [row("journal", "a", 1), row("tasks", "b", 2), row("journal", "c", 3)]
    merged = store.merge(earlier, [row("tasks", "b", 9), row("replay", "d", 4)])
    assert [(each["figure"], each["ratio"]) for each in merged] == [
        ("a", 1),
        ("b", 9),
        ("c", 3),
        ("d", 4),
    ]


def test_figures_of_the_same_name_in_two_benchmarks_are_two():
    merged = store.merge([row("journal", "a", 1)], [row("tasks", "a", 2)])
    assert [each["ratio"] for each in merged] == [1, 2]


def test_a_figure_that_its_benchmark_no_longer_has_goes_when_that_benchmark_is_run():
    earlier = [row("journal", "old", 1), row("tasks", "kept", 2)]
    merged = store.merge(earlier, [row("journal", "new", 3)], ["journal"])
    assert [each["figure"] for each in merged] == ["kept", "new"]


def test_rows_survive_the_file_and_a_damaged_file_counts_as_none(tmp_path: Path):
    path = tmp_path / "bench.json"
    assert store.load(path) == []
    store.save([row("journal", "a", 1.5)], path)
    assert store.load(path) == [row("journal", "a", 1.5)]
    path.write_text("{")
    assert store.load(path) == []


def test_a_row_has_the_fields_that_readers_of_the_file_rely_on():
    saved = harness.measure("x", figure(harness.fixed(4), harness.fixed(2)), 5, Silent()).row()
    assert {"name", "figure", "against", "ratio", "goal", "met"} <= saved.keys()
    assert {"spread", "ours", "peer", "unit", "rounds"} <= saved.keys()
    assert saved["met"] is True


@pytest.mark.parametrize(
    ("value", "text"), [(0.8512, "0.851"), (1.2, "1.20"), (12345.6, "12,346"), (0, "0")]
)
def test_numbers_are_short(value: float, text: str):
    assert table.number(value) == text
