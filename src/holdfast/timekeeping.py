"""A node and its clock: where time goes on after a restart, and what is done about jumps."""

from holdfast.engine.kernel.runner import TOPIC, Runner
from holdfast.engine.state import EngineState
from holdfast.journal.local import LocalJournal
from holdfast.limits import CLOCK_JUMP_MS
from holdfast.logs import log
from holdfast.metrics import ClockNumbers, Metrics
from holdfast.steady_clock import Jump, SteadyClock


def go_on_from(clock: SteadyClock, journal: LocalJournal) -> None:
    """Time does not go back behind what was written before, though the clock was set back."""
    newest_ms = max(_newest_ms(journal, each) for each in range(1, journal.topics()[TOPIC] + 1))
    wall_ms = clock.now_ms()
    clock.not_before(newest_ms)
    if newest_ms - wall_ms > CLOCK_JUMP_MS:
        log.warning(
            "the clock is behind the log: the node's time goes on from the log",
            behind_ms=newest_ms - wall_ms,
        )


def _newest_ms(journal: LocalJournal, partition: int) -> int:
    bounds = journal.bounds(TOPIC, partition)
    if bounds.next == bounds.earliest:
        return 0
    return journal.read_now(TOPIC, partition, bounds.next - 1)[-1].timestamp_ms


def listen(clock: SteadyClock, runner: Runner[EngineState], metrics: Metrics) -> None:
    """Jumps are logged and counted; what the node follows at once ends no lease."""

    def jumped(jump: Jump) -> None:
        log.warning(
            "the machine's clock was set",
            by_ms=jump.by_ms,
            node_follows="at once" if jump.after_ms - jump.before_ms > CLOCK_JUMP_MS else "slowly",
        )
        if jump.after_ms > jump.before_ms + CLOCK_JUMP_MS:
            runner.clock_jumped(jump.before_ms, jump.after_ms)

    clock.on_jump = jumped
    metrics.clock = lambda: ClockNumbers(clock.jumps, clock.ahead_ms / 1000)


def warnings(metrics: Metrics) -> list[str]:
    """A clock that is far from the node's time."""
    ahead = metrics.clock().ahead_seconds
    if abs(ahead) * 1000 <= CLOCK_JUMP_MS:
        return []
    side = "ahead of" if ahead > 0 else "behind"
    return [f"The machine's clock is {abs(ahead):,.0f} s {side} the time of the node"]
