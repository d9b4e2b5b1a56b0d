"""Who is in a group, by leases in etcd.

Each member has a key under its lease, with its card. The generation is a key of its own without a
lease: the first member to see that it does not name the members that are there writes the next
one, guarded by what it has read. So all members read the same list under the same number, and
numbers go on where all members were away.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote

import msgspec

from holdfast.errors import HoldfastError, Unknown
from holdfast.groups.api import Generation, MemberId
from holdfast.limits import COORDINATION_ATTEMPTS_MAX, GROUP_LOOK_MS, GROUP_PAUSE_MS
from holdfast.logs import log
from holdfast.sequence.keys import KeySpan, KeyStore, Put, Row, Unchanged, Write, under


class _Joined(msgspec.Struct, frozen=True):
    """The value of a member's key."""

    member: MemberId
    card: bytes


class _Stored(msgspec.Struct, frozen=True):
    """The value of the generation's key."""

    number: int = 0
    leader: MemberId = ""
    members: tuple[MemberId, ...] = ()
    cards: dict[MemberId, bytes] = {}


_encode = msgspec.msgpack.Encoder().encode
_joined = msgspec.msgpack.Decoder(_Joined).decode
_stored = msgspec.msgpack.Decoder(_Stored).decode


class EtcdMembership:
    """Keeps the port `Membership` on a store of keys, which is closed with it."""

    def __init__(self, store: KeyStore, group: str, member: MemberId) -> None:
        self.member = member
        self._store = store
        self._folder = f"/groups/{quote(group, safe='')}/"
        self._key = f"{self._folder}members/{quote(member, safe='')}"
        self._card: bytes | None = None
        self._known = _Stored()
        self._change = asyncio.Event()
        self._is_left = False
        self._watching: asyncio.Task[None] | None = None
        store.on_lapsed = self._lapsed

    @property
    def cards(self) -> Mapping[MemberId, bytes]:
        """What the members of the present generation say of themselves."""
        return self._known.cards

    async def join(self, card: bytes) -> None:
        """Writes this member's key, and keeps its lease."""
        self._card, self._is_left = card, False
        await self._say()
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())
        self._change.set()

    async def generations(self) -> AsyncIterator[Generation]:
        """The present generation and all that follow."""
        known = 0
        while not self._is_left:
            self._change.clear()
            try:
                found = await self._agreed()
            except HoldfastError as error:
                log.debug("group: etcd did not tell who is there", reason=error.message)
                await self._pause(GROUP_PAUSE_MS)
                continue
            if found.number > known and self._card is not None:
                known, self._known = found.number, found
                yield Generation(found.number, found.leader, found.members)
            else:
                await self._pause(GROUP_LOOK_MS)

    @property
    def is_held(self) -> bool:
        """Whether etcd has renewed the lease in time."""
        return self._store.is_leased

    async def leave(self) -> None:
        """Deletes this member's key; the others see it at once."""
        self._is_left, self._card = True, None
        self._change.set()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        with contextlib.suppress(HoldfastError):  # then its lease runs out
            await self._store.write(Write((), (), (KeySpan(self._key),)))
        await self._store.close()

    # --- inside ---------------------------------------------------------------------------

    async def _say(self) -> None:
        if self._card is None:
            return
        value = _encode(_Joined(self.member, self._card))
        for attempt in range(COORDINATION_ATTEMPTS_MAX):
            try:
                await self._store.write(Write((), (Put(self._key, value, is_leased=True),)))
                return
            except Unknown:  # the same bytes may be written again
                if attempt == COORDINATION_ATTEMPTS_MAX - 1:
                    raise

    async def _agreed(self) -> _Stored:
        """The generation that names exactly those who are there; written here if need be."""
        while True:
            reading = await self._store.read(
                under(f"{self._folder}members/"), KeySpan(f"{self._folder}generation")
            )
            rows, kept = reading.rows
            stored = _stored(kept[0].value) if kept else _Stored()
            there = {each.member: each.card for each in map(_value, rows)}
            if self._card is not None and self.member not in there:
                await self._say()  # its lease ran out, or its key was lost
                continue
            if there == stored.cards:
                return stored
            following = _following(stored, rows)
            key = f"{self._folder}generation"
            guards = (
                Unchanged(key, kept[0].revision if kept else 0),
                *(Unchanged(each.key, each.revision) for each in rows),
            )
            put = Put(key, _encode(following))
            if (await self._store.write(Write(guards, (put,)))).is_done:
                return following

    async def _watch(self) -> None:
        async for hint in self._store.hints():
            if not hint or hint.startswith(self._folder):
                self._change.set()

    def _lapsed(self) -> None:
        log.warning("group: the lease of this member ran out", member=self.member)
        self._change.set()

    async def _pause(self, pause_ms: int) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1_000):
                await self._change.wait()


def _value(row: Row) -> _Joined:
    return _joined(row.value)


def _following(stored: _Stored, rows: list[Row]) -> _Stored:
    """The next generation: those who stay in their order, and then the new ones as they came."""
    there = {
        each.member: each.card
        for each in map(_value, sorted(rows, key=lambda row: (row.revision, row.key)))
    }
    stay = [each for each in stored.members if each in there]
    members = (*stay, *(each for each in there if each not in stay))
    leader = stored.leader if stored.leader in there else members[0] if members else ""
    return _Stored(stored.number + 1, leader, members, there)
