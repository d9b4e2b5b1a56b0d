"""Virtual time and the simulated network."""

import asyncio

import pytest

import holdfast.testing
from holdfast.testing import (
    DeadlockError,
    SimulatedNetwork,
    VirtualClock,
    VirtualLoop,
    Weather,
    run,
)


def test_time_jumps_to_the_next_timer() -> None:
    clock, seen = VirtualClock(start_ms=0), []

    async def wake_up(seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append((seconds, clock.now_ms()))

    async def story() -> None:
        await asyncio.gather(*(wake_up(seconds) for seconds in (86_400, 0.3, 7)))

    run(story(), clock)
    assert seen == [(0.3, 300), (7, 7_000), (86_400, 86_400_000)]


def test_everybody_waiting_for_nothing_is_an_error() -> None:
    with pytest.raises(DeadlockError, match="no timer is set"):
        run(asyncio.Event().wait())


def test_a_loop_runs_for_as_long_as_it_is_told() -> None:
    loop, seen = VirtualLoop(VirtualClock(start_ms=0)), []
    for seconds in (1, 2, 3):
        loop.call_later(seconds, seen.append, seconds)
    loop.run_for(2)
    assert (seen, loop.clock.now_ms()) == ([1, 2], 2_000)
    loop.run_for(0)
    assert seen == [1, 2]
    loop.run_for(10)
    assert (seen, loop.clock.now_ms()) == ([1, 2, 3], 12_000)
    loop.close()


def chatter(seed: int, weather: Weather) -> list[tuple[str, int]]:
    """What b hears when a counts to a hundred."""
    heard: list[tuple[str, int]] = []

    async def story() -> None:
        network = SimulatedNetwork(seed=seed, weather=weather)
        network.attach("b", lambda sender, message: heard.append((sender, message)))
        for number in range(100):
            network.send("a", "b", number)
        await asyncio.sleep(10)

    run(story())
    return heard


def test_fair_weather_delivers_everything_in_another_order() -> None:
    heard = [number for _, number in chatter(1, Weather())]
    assert sorted(heard) == list(range(100))
    assert heard != sorted(heard)


def test_bad_weather_loses_and_doubles() -> None:
    heard = [number for _, number in chatter(1, Weather(loss=0.3, duplication=0.3))]
    assert 50 < len(set(heard)) < 95
    assert len(heard) > len(set(heard))


def test_the_same_seed_is_the_same_weather() -> None:
    weather = Weather(loss=0.3, duplication=0.3)
    assert chatter(5, weather) == chatter(5, weather)
    assert chatter(5, weather) != chatter(6, weather)


def test_a_split_keeps_sides_apart_until_it_heals() -> None:
    async def story() -> None:
        heard: list[str] = []
        network = SimulatedNetwork()
        for name in "abc":
            network.attach(name, lambda sender, message: heard.append(message))
        network.split(["a", "b"])
        network.send("a", "b", "a to b")
        network.send("a", "c", "lost")
        await asyncio.sleep(1)
        assert heard == ["a to b"]
        network.send("a", "b", "cut while it was on its way")
        network.cut("a", "b")
        await asyncio.sleep(1)
        assert heard == ["a to b"]
        network.heal()
        network.send("a", "c", "a to c")
        network.send("a", "b", "b is down")
        network.detach("b")
        await asyncio.sleep(1)
        assert heard == ["a to b", "a to c"]
        assert (network.sent, network.delivered) == (5, 2)

    run(story())


def test_the_public_names_of_the_kit_are_there() -> None:
    assert all(hasattr(holdfast.testing, name) for name in holdfast.testing.__all__)
