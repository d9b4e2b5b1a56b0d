"""Writes back to a store what it lacks of what members know. Guarded: nothing newer is replaced.

It goes around the checks of `StoredCoordination`: those refuse a store that was rolled back.
"""

from collections.abc import Sequence

from holdfast.errors import Unavailable
from holdfast.sequence import stored_values as values
from holdfast.sequence.api import ClusterSettings, Cut, Registered, Replica
from holdfast.sequence.cut_codec import encode_cut
from holdfast.sequence.keys import Guard, KeySpan, KeyStore, Put, Row, Unchanged, Write, under
from holdfast.sequence.knowledge import RepairPlan, StoredHead, StoredState

CUTS_WRITTEN_MAX = 100  # of the last cuts: a reader needs 64, and etcd takes 128 keys in a write


async def read_stored(keys: KeyStore) -> StoredState:
    """What the store has now, at one moment."""
    reading = await keys.read(
        KeySpan(values.SETTINGS), KeySpan(values.REGISTERED), KeySpan(values.REMOVED),
        KeySpan(values.LATEST), under(values.CHAINS), under(values.DISKS),
    )  # fmt: skip
    settings, registered, removed, heads, chains, disks = reading.rows
    head = values.decode(heads[0], values.Head) if heads else None
    return StoredState(
        values.decode(settings[0], ClusterSettings) if settings else None,
        values.decode(registered[0], list[Registered]) if registered else [],
        values.decode(removed[0], list[str]) if removed else [],
        {chain.partition: chain for chain in map(values.decode_chain, chains)},
        {_replica(row): values.decode(row, values.Boots).boots for row in disks},
        StoredHead() if head is None else StoredHead(head.number, head.nonce),
    )


def _replica(row: Row) -> Replica:
    member, _, disk = row.key.removeprefix(values.DISKS).partition("/")
    return Replica(member, disk)


async def write_back(keys: KeyStore, plan: RepairPlan, cuts: Sequence[Cut]) -> None:
    """Writes all of a plan; `cuts` end with the plan's. Unavailable if the store has changed.

    What was written before that stays: it is what members know. The next plan begins there.
    """
    assert not plan.problems, "a plan with problems is not carried out"
    if plan.settings is not None:
        await _put(keys, values.SETTINGS, values.encode(plan.settings), is_new=True)
    if plan.registered is not None:
        await _put(keys, values.REGISTERED, values.encode(plan.registered))
    if plan.removed is not None:
        await _put(keys, values.REMOVED, values.encode(plan.removed))
    for replica, (boots, nonce) in plan.boots.items():
        key = f"{values.DISKS}{replica.member}/{replica.disk}"
        await _put(keys, key, values.encode(values.Boots(boots, nonce)))
    for chain in plan.chains:
        key = f"{values.CHAINS}{chain.partition}"
        guard = Unchanged(key, chain.revision)
        await _write(keys, guard, Put(key, values.encode_chain(chain)))
    if plan.cut is not None:
        await _write_cuts(keys, plan.cut, cuts)


async def _write_cuts(keys: KeyStore, wanted: StoredHead, cuts: Sequence[Cut]) -> None:
    last = cuts[-1] if cuts else None
    if last is None or (last.number, last.nonce) != wanted:
        raise Unavailable(f"Expected cut {wanted.number} from a member, but none gives it")
    head = values.Head(last.number, last.writer, last.nonce)
    puts = [Put(values.cut_key(each.number), encode_cut(each)) for each in cuts]
    older = KeySpan(values.LOG, values.cut_key(cuts[0].number))
    row = await _get(keys, values.LATEST)
    guard = Unchanged(values.LATEST, 0 if row is None else row.revision)
    await _write(keys, guard, Put(values.LATEST, values.encode(head)), *puts, deletes=(older,))


async def _put(keys: KeyStore, key: str, value: bytes, *, is_new: bool = False) -> None:
    row = None if is_new else await _get(keys, key)
    await _write(keys, Unchanged(key, 0 if row is None else row.revision), Put(key, value))


async def _get(keys: KeyStore, key: str) -> Row | None:
    rows = (await keys.read(KeySpan(key))).rows[0]
    return rows[0] if rows else None


async def _write(
    keys: KeyStore, guard: Guard, *puts: Put, deletes: tuple[KeySpan, ...] = ()
) -> None:
    written = await keys.write(Write((guard,), puts, deletes))
    if not written.is_done:
        raise Unavailable(
            f"Another process has changed {guard.key} of the cluster's store; start again"
        )
