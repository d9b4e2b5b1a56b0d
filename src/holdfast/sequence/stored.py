"""Coordination on a store of keys: the same for etcd and for the memory of the simulation.

Nothing here writes twice: where a guard does not hold, everything is read again first, and where an
outcome is unknown the caller is told.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence

from holdfast.errors import DataLoss, Forbidden, HoldfastError, InvalidState, NotFound, Unavailable
from holdfast.limits import (
    COORDINATION_ATTEMPTS_MAX,
    COORDINATION_COMPACT_CUTS,
    COORDINATION_CUTS_KEPT,
    COORDINATION_RETRY_MS,
)
from holdfast.logs import log
from holdfast.sequence import stored_values as values
from holdfast.sequence.api import (
    Beaten,
    Chain,
    ClusterSettings,
    Cut,
    LiveMember,
    Registered,
    Replica,
)
from holdfast.sequence.cut_codec import encode_cut
from holdfast.sequence.keys import (
    Guard,
    Holds,
    KeySpan,
    KeyStore,
    Put,
    Reading,
    Row,
    Unchanged,
    Write,
    WriteAnswer,
    under,
)
from holdfast.sequence.known import KnownStore

_KINDS = ("registered", "live", "topics", "chains", "latest")
# Everything but the cuts: `/latest` changes with each of them, and they are read then.
_HINTED = (KeySpan("/", values.LOG), KeySpan(under(values.LOG).end or "", "0"))


class StoredCoordination:
    """Keeps the port `Coordination` on a `KeyStore`."""

    def __init__(self, store: KeyStore, nonce: str) -> None:
        self.on_lapsed: list[Callable[[], None]] = []
        self._store = store
        self._nonce = nonce  # of this start
        self._known = KnownStore()
        self.on_rolled_back = self._known.on_rolled_back
        self._live: LiveMember | None = None
        self._announcing: asyncio.Task[None] | None = None
        self._compacting: asyncio.Task[None] | None = None
        store.on_lapsed = self._lapsed

    # --- the cluster and its members ---

    async def settle(self, wanted: ClusterSettings) -> ClusterSettings:
        for _ in range(COORDINATION_ATTEMPTS_MAX):
            row = await self._get(values.SETTINGS)
            if row is not None:
                return values.decode(row, ClusterSettings)
            put = Put(values.SETTINGS, values.encode(wanted))
            if (await self._write((Unchanged(values.SETTINGS, 0),), put)).is_done:
                return wanted
        raise _contended(values.SETTINGS)

    async def register(self, member: Registered) -> None:
        """Members and removed keys are two lists, each the value of one key."""
        values.check_name("member", member.member)
        for _ in range(COORDINATION_ATTEMPTS_MAX):
            members, removed, guards = await self._membership()
            if member.key in removed:
                raise Forbidden(
                    f"The key of member {member.member} was removed from the cluster. Start it "
                    "with a new folder, or with a new key",
                    member=member.member,
                )
            if member in members:
                return
            for each in members:
                if member.member == each.member or member.key == each.key:
                    raise InvalidState(
                        f"Expected a new name and a new key, but member {each.member} is "
                        f"registered with the key {each.key}. Choose another name, or remove it",
                        member=each.member,
                    )
            put = Put(values.REGISTERED, values.encode([*members, member]))
            if (await self._write(guards, put)).is_done:
                return
        raise _contended(values.REGISTERED)

    async def registered(self) -> dict[str, Registered]:
        members, _, _ = await self._membership()
        return {each.member: each for each in members}

    async def remove(self, member: str) -> None:
        for _ in range(COORDINATION_ATTEMPTS_MAX):
            members, removed, guards = await self._membership()
            keys = [each.key for each in members if each.member == member]
            if not keys:
                raise NotFound(f"There is no member {member} in the cluster", member=member)
            left = [each for each in members if each.member != member]
            puts = (
                Put(values.REGISTERED, values.encode(left)),
                Put(values.REMOVED, values.encode([*removed, *keys])),
            )
            if (await self._write(guards, *puts)).is_done:
                return
        raise _contended(values.REGISTERED)

    async def begin_disk(self, replica: Replica, boots: int) -> bool:
        """A start that is noted already is this one if it has this member's nonce."""
        member = values.check_name("member", replica.member)
        key = f"{values.DISKS}{member}/{values.check_name('disk', replica.disk)}"
        for _ in range(COORDINATION_ATTEMPTS_MAX):
            row = await self._get(key)
            if row is not None:
                known = values.decode(row, values.Boots)
                if known.boots == boots + 1 and known.nonce == self._nonce:
                    return True
                if known.boots > boots:
                    return False
            put = Put(key, values.encode(values.Boots(boots + 1, self._nonce)))
            if (await self._write((_as_read(key, row),), put)).is_done:
                return True
        raise _contended(key)

    async def announce(self, live: LiveMember) -> int:
        """The seed's way: find oneself in the order, or else come behind the last of it.

        A write that arrives late may give a member a second place. It gives up all but the first.
        """
        values.check_name("member", live.member)
        self._live = live
        for _ in range(COORDINATION_ATTEMPTS_MAX):
            places = _places((await self._read(under(values.NODES))).rows[0])
            mine = sorted(
                number
                for number, row in places.items()
                if (each := _live_of(row)) is not None and each.member == live.member
            )
            number = mine[0] if mine else max(places, default=0) + 1
            key = f"{values.NODES}{number}"
            guard = _as_read(key, places.get(number))
            put = Put(key, values.encode(live), is_leased=True)
            doubles = tuple(KeySpan(places[each].key) for each in mine[1:])
            if (await self._write((guard,), put, deletes=doubles)).is_done:
                return number
        raise _contended(values.NODES)

    async def live(self) -> dict[int, LiveMember]:
        places = _places((await self._read(under(values.NODES))).rows[0])
        members = {number: _live_of(row) for number, row in sorted(places.items())}
        found = {number: each for number, each in members.items() if each is not None}
        if self._live is not None:
            mine = [each for each in found.values() if each.member == self._live.member]
            if mine != [self._live] and all(each.nonce == self._live.nonce for each in mine):
                self._announce_soon()  # its place is lost, or a late write gave it another
        return found

    # --- ranges ---

    async def chains(self) -> dict[int, Chain]:
        reading = await self._read(under(values.CHAINS))
        found = {chain.partition: chain for chain in map(values.decode_chain, reading.rows[0])}
        for partition in sorted(self._known.partitions() | found.keys()):
            self._known.saw_chain(found.get(partition, Chain(partition)), reading.revision)
        return found

    async def chain(self, partition: int) -> Chain:
        reading = await self._read(KeySpan(f"{values.CHAINS}{partition}"))
        rows = reading.rows[0]
        chain = values.decode_chain(rows[0]) if rows else Chain(partition)
        self._known.saw_chain(chain, reading.revision)
        return chain

    async def replace(self, chain: Chain) -> Chain | Beaten:
        assert chain.ranges, "a chain is never emptied"
        key = f"{values.CHAINS}{chain.partition}"
        put = Put(key, values.encode_chain(chain))
        written = await self._write((Unchanged(key, chain.revision),), put)
        if not written.is_done:
            return Beaten()
        replaced = Chain(chain.partition, chain.ranges, written.revision)
        self._known.saw_chain(replaced, written.revision)
        return replaced

    # --- cuts ---

    async def latest(self) -> Cut | None:
        log_end = under(values.LOG)._replace(is_last_only=True)
        reading = await self._read(KeySpan(values.LATEST), log_end)
        heads, ends = reading.rows
        head = values.decode(heads[0], values.Head) if heads else None
        self._known.saw_head(head, reading.revision)
        if head is None:
            return None
        cut = values.decode_cut(ends[0]) if ends else None
        if cut is None or (cut.number, cut.nonce) != (head.number, head.nonce):
            raise DataLoss(
                f"Expected cut {head.number} at the end of {values.LOG}, but there is "
                f"{'none' if cut is None else cut.number}. Restore etcd from a backup",
                key=values.LOG,
            )
        return cut

    async def publish(self, cut: Cut) -> bool:
        """Guarded by the whole of `/latest`: behind that very cut, not any one of its number."""
        if self._known.number != cut.number - 1:
            await self.latest()  # the caller has the cut before it from somebody else
        if self._known.number != cut.number - 1:
            return False
        before = self._known.head
        head = values.Head(cut.number, cut.writer, cut.nonce)
        puts = (
            Put(values.LATEST, values.encode(head)),
            Put(values.cut_key(cut.number), encode_cut(cut)),
        )
        guard: Guard = (
            Unchanged(values.LATEST, 0)
            if before is None
            else Holds(values.LATEST, values.encode(before))
        )
        old = ()
        if cut.number > COORDINATION_CUTS_KEPT:
            old = (KeySpan(values.LOG, values.cut_key(cut.number - COORDINATION_CUTS_KEPT + 1)),)
        written = await self._write((guard,), *puts, deletes=old)
        if written.is_done:
            self._known.saw_head(head, written.revision)
            self._compact_now_and_then(cut.number, written.revision)
        return written.is_done

    async def cuts(self, first: int, last: int) -> Sequence[Cut]:
        if last < first:
            return []
        span = KeySpan(values.cut_key(max(first, 0)), values.cut_key(last + 1))
        return [values.decode_cut(row) for row in (await self._read(span)).rows[0]]

    # --- the rest ---

    async def topics(self) -> dict[str, bytes]:
        rows = (await self._read(under(values.TOPICS))).rows[0]
        return {row.key.removeprefix(values.TOPICS): row.value for row in rows}

    async def put_topic(self, topic: str, settings: bytes, expected: bytes | None) -> bool:
        key = values.TOPICS + values.check_name("topic", topic)
        guard: Guard = Unchanged(key, 0) if expected is None else Holds(key, expected)
        return (await self._write((guard,), Put(key, settings))).is_done

    async def changes(self) -> AsyncIterator[str]:
        async for key in self._store.hints(*_HINTED):
            for name in _KINDS if not key else _hint_of(key):
                yield name

    @property
    def available(self) -> bool:
        return self._store.available

    @property
    def rolled_back(self) -> str:
        return self._known.contradiction

    async def close(self) -> None:
        self._live = None
        for task in (self._announcing, self._compacting):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self._store.close()

    # --- reading and writing ---

    async def _read(self, *spans: KeySpan) -> Reading:
        self._known.check()
        before = self._known.revision
        reading = await self._store.read(*spans)
        self._known.answered(before, reading.revision)
        return reading

    async def _get(self, key: str) -> Row | None:
        rows = (await self._read(KeySpan(key))).rows[0]
        return rows[0] if rows else None

    async def _write(
        self, guards: tuple[Guard, ...], *puts: Put, deletes: tuple[KeySpan, ...] = ()
    ) -> WriteAnswer:
        self._known.check()
        before = self._known.revision
        written = await self._store.write(Write(guards, puts, deletes))
        self._known.answered(before, written.revision)
        return written

    async def _membership(self) -> tuple[list[Registered], list[str], tuple[Guard, ...]]:
        """Members, the keys that were removed, and guards that nobody changes them meanwhile."""
        reading = await self._read(KeySpan(values.REGISTERED), KeySpan(values.REMOVED))
        registered, removed = (rows[0] if rows else None for rows in reading.rows)
        guards = (_as_read(values.REGISTERED, registered), _as_read(values.REMOVED, removed))
        return (
            [] if registered is None else values.decode(registered, list[Registered]),
            [] if removed is None else values.decode(removed, list[str]),
            guards,
        )

    def _compact_now_and_then(self, number: int, revision: int) -> None:
        if number % COORDINATION_COMPACT_CUTS or (
            self._compacting is not None and not self._compacting.done()
        ):
            return
        self._compacting = asyncio.create_task(self._store.compact(revision))

    # --- a lease that ran out ---

    def _lapsed(self) -> None:
        if self._live is None:
            return
        log.warning("the lease of this member ran out; it is taken anew", member=self._live.member)
        for tell in self.on_lapsed:
            tell()
        self._announce_soon()

    def _announce_soon(self) -> None:
        if self._announcing is None or self._announcing.done():
            self._announcing = asyncio.create_task(self._announce_again())

    async def _announce_again(self) -> None:
        while self._live is not None and not self.rolled_back:
            try:
                await self.announce(self._live)
                return
            except HoldfastError as error:
                log.warning("this member's place was not taken yet", reason=error.message)
            await asyncio.sleep(COORDINATION_RETRY_MS / 1_000)


def _as_read(key: str, row: Row | None) -> Unchanged:
    return Unchanged(key, 0 if row is None else row.revision)


def _places(rows: list[Row]) -> dict[int, Row]:
    """Rows by their number; a key without one is nobody's place."""
    found: dict[int, Row] = {}
    for row in rows:
        with contextlib.suppress(DataLoss):
            found[values.number_of(row, values.NODES)] = row
    return found


def _live_of(row: Row) -> LiveMember | None:
    """None for what is no member: a place is lost, but nobody stops because of it."""
    try:
        return values.decode(row, LiveMember)
    except DataLoss as error:
        log.warning("a place in the order of members is not readable", reason=error.message)
        return None


def _hint_of(key: str) -> tuple[str, ...]:
    if key.startswith(values.CHAINS):
        return (f"chain/{key.removeprefix(values.CHAINS)}",)
    if key.startswith(values.NODES):
        return ("live",)
    if key.startswith(values.TOPICS):
        return ("topics",)
    if key in (values.REGISTERED, values.REMOVED):
        return ("registered",)
    return ("latest",) if key == values.LATEST else ()


def _contended(key: str) -> Unavailable:
    return Unavailable(f"Others kept changing {key} of the cluster's store; try again", key=key)
