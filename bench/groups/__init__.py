"""Groups: how soon orphans are owned again, what the sync log takes, what a message costs."""

import time
from collections.abc import Callable, Iterator

from bench.groups.full_state import json_bytes, msgpack_bytes
from bench.groups.programs import owned_again_ms
from bench.groups.virtual import VirtualGroup
from bench.harness import Figure, Run, benchmark, fixed
from holdfast.groups.api import MemberId
from holdfast.groups.core import GroupCore
from holdfast.groups.merge import merge
from holdfast.groups.messages import Committed, NewEpoch, Regular, SyncMessage, decode, encode
from holdfast.groups.snapshot import load_epoch, snapshot_of
from holdfast.groups.state import GroupState
from holdfast.limits import GROUP_TICK_MS

PARTITIONS, FEW = 1_000, 10
MEMBERS = 8
CHANGES = 2_000  # commits of single partitions, one at a time
FOLDS = 20_000
EPOCHS = 50
OWNED_AGAIN_MS = 3 * GROUP_TICK_MS + 100

Size = Callable[[GroupState, MemberId], int]


@benchmark("groups")
def groups(run: Run) -> Iterator[Figure]:
    yield Figure(
        name="orphans of a dead member owned again after the epoch, 1,000 partitions, virtual time",
        against="3 ticks and 100 ms",
        goal="<= 1",
        unit="ms",
        ours=_owned_again_ms,
        peer=fixed(OWNED_AGAIN_MS),
        warm_up=False,
        rounds_max=2,
    )
    yield Figure(
        name="orphans of a killed program owned again after the epoch, 3 processes at a node",
        against="3 ticks and 100 ms",
        goal="<= 1",
        unit="ms",
        ours=lambda: owned_again_ms(run),
        peer=fixed(OWNED_AGAIN_MS),
        warm_up=False,
        rounds_max=3,
    )
    changes = run.scaled(CHANGES)
    for name, size in (("JSON", json_bytes), ("msgpack", msgpack_bytes)):
        yield Figure(
            name=f"changes in a MB of sync log, with a join and a death, full states as {name}",
            against="full-state messages",
            goal=">= 50",
            unit="changes/MB",
            ours=lambda: changes / _megabytes(changes, None),
            peer=lambda size=size: changes / _megabytes(changes, size),
            warm_up=False,
            rounds_max=1,
        )
    yield Figure(
        name="bytes of a change with 1,000 partitions",
        against="with 10",
        goal="<= 1.2",
        unit="B",
        ours=lambda: _bytes_of_change(PARTITIONS, changes),
        peer=lambda: _bytes_of_change(FEW, changes),
        warm_up=False,
        rounds_max=1,
    )
    folds = run.scaled(FOLDS)
    yield Figure(
        name="processor time of reading a change with 1,000 partitions",
        against="with 10",
        goal="<= 1.5",
        unit="µs",
        ours=lambda: _fold_us(PARTITIONS, folds),
        peer=lambda: _fold_us(FEW, folds),
    )
    yield Figure(
        name="processor time of reading a NEW_EPOCH with 1,000 partitions",
        against="a tenth of a tick",
        goal="<= 1",
        unit="ms",
        ours=lambda: _new_epoch_ms(run.scaled(EPOCHS)),
        peer=fixed(GROUP_TICK_MS / 10),
    )


def _owned_again_ms() -> float:
    """A member dies; from its NEW_EPOCH in the log to the start of the last of its partitions."""
    group = VirtualGroup(PARTITIONS, MEMBERS)
    group.leave([*group.cores][-1])
    group.generation()
    group.run(1_000)
    owned = sum(len(core.running) for core in group.cores.values())
    assert owned == PARTITIONS, f"{owned} of {PARTITIONS} run"
    return group.started_ms - group.epoch_ms


def _megabytes(changes: int, size: Size | None) -> float:
    """All bytes of a stretch of life; with `size`, each message carries the state of all."""
    group = VirtualGroup(PARTITIONS, MEMBERS)
    sizes: list[int] = []
    if size is not None:
        group.on_message = lambda message, sender: sizes.append(size(sender.state, message.member))
    first = len(group.log)
    _commit(group, changes // 2)
    group.join("member-8/77b0e1")
    group.generation()
    group.run(2_000)
    _commit(group, changes - changes // 2)
    group.leave("member-3/4f2a9c")
    group.generation()
    group.run(2_000)
    total = sum(sizes) if size is not None else sum(map(len, group.log[first:]))
    return total / 1e6


def _commit(group: VirtualGroup, count: int) -> None:
    """Partitions in turn come further, each alone in its message."""
    for number in range(count):
        token = group.declared[number * 7 % len(group.declared)].token
        owner = group.owner(token)
        owner.committed(token, 1_000_000 + number, watermark=1_790_000_000_000 + number)
        group.run(GROUP_TICK_MS + 1)


def _bytes_of_change(partitions: int, changes: int) -> float:
    group = VirtualGroup(partitions, 2)
    first = len(group.log)
    _commit(group, changes)
    return sum(map(len, group.log[first:])) / changes


def _fold_us(partitions: int, count: int) -> float:
    """Reading and folding a change of one partition, as every member does."""
    group = VirtualGroup(partitions, 2)
    core = next(iter(group.cores.values()))
    bodies = [_change(core, number) for number in range(count)]
    offset = len(group.log)
    began = time.process_time()
    for body in bodies:
        offset += 1
        merge(core.state, offset, decode(body))
    return (time.process_time() - began) / count * 1e6


def _change(core: GroupCore, number: int) -> bytes:
    owned = sorted(core.state.owned[core.member])
    member = core.state.members[core.member]
    counter = (member.counter or 0) + 1 + number
    change = Committed(owned[number % len(owned)], 1_000 + number, 1_790_000_000_000 + number)
    return encode(Regular(core.epoch, core.member, counter, False, (change,)))


def _new_epoch_ms(count: int) -> float:
    """Decoding a NEW_EPOCH and taking all of its state."""
    group = VirtualGroup(PARTITIONS, MEMBERS)
    bodies = [body for body, each in zip(group.log, group.messages, strict=True) if _is_epoch(each)]
    state = GroupState()
    began = time.process_time()
    for _ in range(count):
        message = decode(bodies[-1])
        assert isinstance(message, NewEpoch), "an epoch is an epoch"
        load_epoch(state, message.snapshot)
    spent = time.process_time() - began
    assert len(snapshot_of(state).partitions) == PARTITIONS, "all of them are there"
    return spent / count * 1e3


def _is_epoch(message: SyncMessage) -> bool:
    return isinstance(message, NewEpoch)
