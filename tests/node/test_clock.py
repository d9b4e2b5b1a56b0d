"""The clock is set while a node runs, and between two runs: spans are as long as they should be."""

import asyncio
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from holdfast import timekeeping
from holdfast.clock import SystemClock
from holdfast.config import Config
from holdfast.engine.jobs.values import JobState
from holdfast.gateway.tasks.shapes import (
    ActivationRequest,
    JobCompletion,
    NewSchedule,
    NewTask,
)
from holdfast.limits import CLOCK_ADOPT_MS
from holdfast.node import LocalNode
from holdfast.steady_clock import Jump, SteadyClock
from holdfast.testing import MemoryNode, VirtualClock, run

HOUR_MS = 3_600_000


class SetClock(VirtualClock):
    """A virtual clock whose hands somebody sets."""

    set_by_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms


def steady(clock: SetClock) -> SteadyClock:
    return SteadyClock(clock, clock.monotonic)


async def start(clock: SetClock) -> MemoryNode:
    hands = steady(clock)
    node = await MemoryNode(clock=hands).start()
    timekeeping.listen(hands, node.node.runner, node.node.metrics)
    return node


# --- the clock --------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.integers(0, 10_000), st.integers(-5_000_000, 5_000_000)), max_size=30)


def test_for_a_quarter_of_a_millisecond_the_other_clock_is_not_looked_at_again() -> None:
    clock = SetClock()
    hands = steady(clock)
    clock.advance(0.0005)
    before = hands.now_ms()
    clock.set_by_ms = HOUR_MS
    clock.advance(0.0002)
    assert hands.now_ms() == before and not hands.jumps
    clock.advance(0.0002)
    assert hands.now_ms() >= before and hands.jumps == 1


@given(STEPS)
def test_time_never_goes_back_and_passes_at_its_speed_whatever_is_done_to_the_clock(
    steps: list[tuple[int, int]],
) -> None:
    clock = SetClock()
    hands = steady(clock)
    for passed_ms, set_by_ms in steps:
        before = hands.now_ms()
        clock.advance(passed_ms / 1000)
        clock.set_by_ms += set_by_ms
        is_far = clock.now_ms() - before > CLOCK_ADOPT_MS
        passed = hands.now_ms() - before
        if not is_far:
            assert passed_ms * 0.9 - 2 <= passed <= passed_ms * 1.1 + 2
        else:
            assert passed >= passed_ms * 0.9 - 2


def test_an_hour_is_made_up_for_in_ten() -> None:
    for set_by_ms in (HOUR_MS, -HOUR_MS):
        clock = SetClock()
        hands = steady(clock)
        clock.set_by_ms = set_by_ms
        for _ in range(9 * 60):
            clock.advance(60)
            hands.now_ms()
        assert abs(hands.now_ms() - clock.now_ms()) > HOUR_MS / 20
        for _ in range(90):
            clock.advance(60)
            hands.now_ms()
        assert abs(hands.now_ms() - clock.now_ms()) <= 1
        assert hands.jumps == 1


def test_small_differences_are_no_jumps_and_large_ones_are_told() -> None:
    clock, told = SetClock(), list[Jump]()
    hands = steady(clock)
    hands.on_jump = told.append
    clock.set_by_ms = 500
    clock.advance(100)
    hands.now_ms()
    assert told == [] and abs(hands.now_ms() - clock.now_ms()) <= 1
    clock.set_by_ms += 2 * HOUR_MS
    now_ms = hands.now_ms()
    assert told == [Jump(2 * HOUR_MS, now_ms, now_ms)]
    clock.set_by_ms += 10 * HOUR_MS
    assert hands.now_ms() == clock.now_ms(), "so much has really passed"
    assert told[-1].after_ms - told[-1].before_ms == 12 * HOUR_MS
    assert hands.jumps == 2


# --- a node -----------------------------------------------------------------------------------


def test_set_back_schedules_delays_and_leases_go_on() -> None:
    clock = SetClock()

    async def story() -> None:
        node = await start(clock)
        api = node.gateway
        await api.schedules.put("often", NewSchedule(NewTask("tick"), interval_ms=1_000))
        (held,) = await api.tasks.submit([NewTask("held")])
        await api.jobs.activate(ActivationRequest(["held"], lease_ms=10_000))
        (delayed,) = await api.tasks.submit([NewTask("later", delay_ms=10_000)])
        clock.set_by_ms = -HOUR_MS
        await asyncio.sleep(12)
        assert (await api.tasks.get(held.task_key)).state == JobState.WAITING
        assert (await api.tasks.get(delayed.task_key)).state == JobState.WAITING
        (schedule,) = await api.schedules.all()
        assert 10 <= schedule.fired <= 12
        assert b"holdfast_clock_jumps_total 1.0" in await api.node.metrics()
        await node.close()

    run(story(), clock)


def test_set_forward_living_workers_keep_their_leases_and_schedules_fire_in_time() -> None:
    for set_by_ms in (HOUR_MS, 30 * HOUR_MS):
        clock = SetClock()

        async def story(clock: SetClock, set_by_ms: int) -> None:
            node = await start(clock)
            api = node.gateway
            await api.schedules.put("often", NewSchedule(NewTask("tick"), interval_ms=2_000))
            await api.tasks.submit([NewTask("held")])
            (job,) = await api.jobs.activate(ActivationRequest(["held"], lease_ms=30_000))
            clock.set_by_ms = set_by_ms
            for _ in range(4):
                await asyncio.sleep(10)
                (answer,) = await api.jobs.extend([job.lease], 30_000)
                assert answer.code is None
            (answer,) = await api.jobs.complete([JobCompletion(job.job_key, job.lease)])
            assert answer.code is None
            (schedule,) = await api.schedules.all()
            assert 18 <= schedule.fired <= 24
            await node.close()

        run(story(clock, set_by_ms), clock)


def test_far_forward_the_lease_of_a_dead_worker_ends_after_the_span_that_it_had_left() -> None:
    clock = SetClock()

    async def story() -> None:
        node = await start(clock)
        api = node.gateway
        (held,) = await api.tasks.submit([NewTask("held")])
        await api.jobs.activate(ActivationRequest(["held"], lease_ms=30_000))
        clock.set_by_ms = 30 * HOUR_MS
        await api.tasks.submit([NewTask("other")])  # somebody looks at the clock
        await asyncio.sleep(28)
        assert (await api.tasks.get(held.task_key)).state == JobState.ACTIVE
        await asyncio.sleep(4)
        assert (await api.tasks.get(held.task_key)).state == JobState.WAITING
        await node.close()

    run(story(), clock)


class ShiftedClock(SystemClock):
    """The machine's clock, set."""

    shift_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.shift_ms


def test_after_a_restart_with_the_clock_set_back_time_goes_on_from_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        clock, config = ShiftedClock(), Config(partitions=2)
        node = await LocalNode.open(tmp_path, config, clock)
        (delayed,) = await node.gateway.tasks.submit([NewTask("later", delay_ms=600)])
        created = (await node.gateway.tasks.get(delayed.task_key)).created
        assert created is not None
        await node.close()
        clock.shift_ms = -HOUR_MS - 60_000  # it may take a minute to open it again
        node = await LocalNode.open(tmp_path, config, clock)
        (warning,) = (await node.gateway.node.health()).warnings
        assert "clock is 3,6" in warning and "behind the time of the node" in warning
        (job,) = await node.gateway.jobs.activate(ActivationRequest(["later"], wait_ms=20_000))
        assert job.job_key == delayed.task_key
        (after,) = await node.gateway.tasks.submit([NewTask("after")])
        created_after = (await node.gateway.tasks.get(after.task_key)).created
        assert created_after is not None and created_after > created
        await node.close()

    asyncio.run(story())
