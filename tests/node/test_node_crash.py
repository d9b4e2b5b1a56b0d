"""Power loss at every write, sync and rename of a 200-command script.

A failure names the operation, what became of the unsynced writes, and the seed: call
`check_crash_at(operation, Outcome.TEAR, seed)` to see it again.
"""

import pytest
from script import Ledger, Script, check_ledger, check_same_as_fresh

from holdfast.errors import DataLoss, HoldfastError
from holdfast.state.memory import MemoryStore
from holdfast.testing import DiskOutcome, MemoryNode, SimulatedCrash, SimulatedDisk, run

PARTITIONS = 2
OUTCOMES = [(DiskOutcome.KEEP, 0), (DiskOutcome.DROP, 0), (DiskOutcome.TEAR, 1)]
PARTS = 4  # so that the runner can spread them over its processes


async def until_crash(disk: SimulatedDisk) -> tuple[MemoryStore, Ledger]:
    """Runs the script until the power goes, or to its end; what the store and the ledger have."""
    ledger = Ledger()
    node = MemoryNode(partitions=PARTITIONS, disk=disk)
    try:
        await node.start()
        await Script(node, ledger).run()
        await node.close()
    except (SimulatedCrash, HoldfastError) as error:
        reasons = f"{error} {error.__cause__}"
        assert "power" in reasons or "down" in reasons or isinstance(error, DataLoss), error
    return node.store.crash(), ledger


async def check_survivor(disk: SimulatedDisk, store: MemoryStore, ledger: Ledger) -> None:
    """A node starts on what is left, has all that was acknowledged, and works on."""
    node = MemoryNode(partitions=PARTITIONS, disk=disk)
    node.store = store
    await node.start()
    for processor in node.node.runner.processors.values():
        check_same_as_fresh(processor, node.journal)
    await check_ledger(node, ledger)
    await Script(node, Ledger(), seed=8).run(10)
    for processor in node.node.runner.processors.values():
        check_same_as_fresh(processor, node.journal)
    await node.close()


def check_crash_at(operation: int, *outcomes: tuple[DiskOutcome, int]) -> None:
    disk = SimulatedDisk(crash_at=operation)
    store, ledger = run(until_crash(disk))
    for outcome, seed in outcomes:
        survivor = disk.after_crash(outcome, seed=seed)
        try:
            run(check_survivor(survivor, store.crash(), ledger))
        except Exception as error:
            raise AssertionError(
                f"crash at operation {operation}, unsynced writes {outcome.value}, seed {seed}"
            ) from error


@pytest.fixture(scope="module")
def operations() -> int:
    disk = SimulatedDisk()
    _, ledger = run(until_crash(disk))
    assert len(ledger.submitted) > 60 and len(ledger.completed) > 10 and ledger.canceled
    assert disk.operations > 200
    return disk.operations


@pytest.mark.parametrize("part", range(PARTS))
def test_no_acknowledged_record_is_lost_at_any_operation(operations: int, part: int) -> None:
    # Every second one; those between are crashed at in `make soak`.
    for turn, operation in enumerate(range(1 + part, operations + 1, 2 * PARTS)):
        check_crash_at(operation, OUTCOMES[turn % len(OUTCOMES)])


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_no_acknowledged_record_is_lost_whatever_becomes_of_unsynced_writes(
    operations: int,
) -> None:
    for operation in range(1, operations + 1):
        check_crash_at(operation, *OUTCOMES)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_no_acknowledged_record_is_lost_in_any_of_many_torn_writes(operations: int) -> None:
    for operation in range(1, operations + 1):
        check_crash_at(operation, *((DiskOutcome.TEAR, seed) for seed in range(2, 12)))
    print(f"{operations} operations, torn in ten ways each")
