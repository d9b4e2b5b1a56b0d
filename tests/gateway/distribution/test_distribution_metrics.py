"""The numbers about distribution: counted by target, measured from the state."""

import asyncio

import pytest
from tests.gateway.distribution.dark_partitions import deploy, deployed_on, go_dark, metrics

from holdfast.limits import DISTRIBUTION_PAUSE_MS
from holdfast.testing import MemoryNode, SimulatedDisk, run


def by_target(numbers: dict[str, float], name: str) -> list[float]:
    """One number for each of the partitions 1 to 3; what was never counted is 0."""
    return [numbers.get(f'{name}{{target="{each}"}}', 0) for each in (1, 2, 3)]


def gauges(numbers: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in numbers.items() if name.startswith("distributions_")}


def test_sendings_retries_and_acknowledgements_are_counted_by_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 3)
        node = await MemoryNode(partitions=3).start()
        await deploy(node, "a", "b")
        await asyncio.sleep(DISTRIBUTION_PAUSE_MS / 1000)
        numbers = await metrics(node)
        assert by_target(numbers, "distribution_sent_total") == [0, 2, 2], "b waits behind a"
        assert by_target(numbers, "distribution_retries_total") == [0, 0, 1]
        assert by_target(numbers, "distribution_acknowledgements_sent_total") == [0, 2, 0]
        assert by_target(numbers, "distribution_acknowledgements_received_total") == [0, 2, 0]
        assert by_target(numbers, "distributions_pending") == [0, 0, 2]
        assert by_target(numbers, "distributions_in_flight") == [0, 0, 1]
        assert numbers['distributions_active{partition="1"}'] == 2

        dark.clear()
        await asyncio.sleep(2 * DISTRIBUTION_PAUSE_MS / 1000)
        numbers = await metrics(node)
        assert by_target(numbers, "distribution_sent_total") == [0, 2, 4]
        assert by_target(numbers, "distribution_retries_total") == [0, 0, 2]
        assert by_target(numbers, "distribution_acknowledgements_received_total") == [0, 2, 2]
        assert set(gauges(numbers).values()) == {0}
        await node.close()

    run(story())


def test_an_acknowledgement_that_does_not_arrive_is_sent_but_not_received(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 1)
        node = await MemoryNode(partitions=3).start()
        await deploy(node, "order")
        assert deployed_on(node) == {each: ["order"] for each in (1, 2, 3)}
        numbers = await metrics(node)
        assert by_target(numbers, "distribution_acknowledgements_sent_total") == [0, 1, 1]
        assert by_target(numbers, "distribution_acknowledgements_received_total") == [0, 0, 0]
        assert by_target(numbers, "distributions_pending") == [0, 1, 1]

        dark.clear()
        await asyncio.sleep(DISTRIBUTION_PAUSE_MS / 1000)
        numbers = await metrics(node)
        assert by_target(numbers, "distribution_acknowledgements_sent_total") == [0, 2, 2]
        assert by_target(numbers, "distribution_acknowledgements_received_total") == [0, 1, 1]
        assert set(gauges(numbers).values()) == {0}
        await node.close()

    run(story())


@pytest.mark.parametrize("told", [True, False], ids=["stopped", "killed"])
def test_after_a_restart_the_gauges_are_what_they_were(
    monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    async def story() -> None:
        dark = go_dark(monkeypatch, 2, 3)
        node = await MemoryNode(partitions=3, disk=SimulatedDisk()).start()
        await deploy(node, "a", "b", "c")
        before = gauges(await metrics(node))
        assert by_target(before, "distributions_pending") == [0, 3, 3]
        assert by_target(before, "distributions_in_flight") == [0, 1, 1]

        await (node.close() if told else node.crash())
        await node.restart()
        assert gauges(await metrics(node)) == before
        dark.clear()
        await node.gateway.distributions.resume(2)
        await node.gateway.distributions.resume(3)
        await asyncio.sleep(0.001)
        assert set(gauges(await metrics(node)).values()) == {0}
        await node.close()

    run(story())
