"""What members ask of one another about the cluster itself: to drain, to move, how they are."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.errors import HoldfastError, InvalidArgument, NotFound, Unavailable
from holdfast.limits import CLUSTER_MEET_MS_MAX, CLUSTER_TICK_MS
from holdfast.logs import log
from holdfast.sequence.api import Chain, Cut
from holdfast.sequence.cut_codec import decode_cut, encode_cut
from holdfast.sequence.knowledge import Knowledge
from holdfast.transport import Answer, Handler, Links

# Kinds of messages between members of a cluster, beside those of journals.
CHAIN, DRAIN, MOVE, REPORT, CUTS, KNOW = 120, 121, 122, 123, 125, 126

_encode = msgspec.msgpack.Encoder().encode
_decode_chain = msgspec.msgpack.Decoder(Chain).decode
_decode_drain = msgspec.msgpack.Decoder(bool).decode
_decode_span = msgspec.msgpack.Decoder(tuple[int, int]).decode
_decode_cuts = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_move = msgspec.msgpack.Decoder(tuple[int, str]).decode


class MemberReport(msgspec.Struct, frozen=True, array_like=True):
    """How a member is, as it says itself. Later versions may add fields, and only at the end."""

    owned: list[int]  # partitions that are open there
    lags: dict[int, dict[str, int]]  # of those, by replica: entries that it does not have yet
    standby_lags: dict[int, int]  # records that its standbys have not applied yet
    problems: list[str]
    cut: int = 0  # the last that it has read


_decode_knowledge = msgspec.msgpack.Decoder(Knowledge).decode
_decode_report = msgspec.msgpack.Decoder(MemberReport).decode


class Errands(Protocol):
    """What a member does when another member asks."""

    def learned(self, chain: Chain) -> None: ...

    async def set_draining(self, is_draining: bool) -> None: ...

    async def move_away(self, partition: int, to: str) -> None: ...

    def report(self) -> MemberReport: ...

    async def kept_cuts(self, first: int, last: int) -> Sequence[Cut]: ...

    async def knowledge(self) -> Knowledge: ...


class ErrandHandler:
    """Answers one connection of one other member; what is about something else goes to `rest`."""

    def __init__(self, errands: Errands, rest: Handler) -> None:
        self._errands = errands
        self._rest = rest

    def called(self, kind: int, body: bytes) -> Answer:
        """Answers what is asked about the cluster itself."""
        if kind == REPORT:
            return _encode(self._errands.report())
        if kind == KNOW:
            return self._knowledge()
        try:
            if kind == DRAIN:
                return self._drain(_decode_drain(body))
            if kind == MOVE:
                return self._move(*_decode_move(body))
            if kind == CUTS:
                return self._cuts(*_decode_span(body))
        except msgspec.DecodeError as error:
            raise InvalidArgument(f"Expected a call of this version, but {error}") from error
        return self._rest.called(kind, body)

    async def _drain(self, is_draining: bool) -> bytes:
        await self._errands.set_draining(is_draining)
        return b""

    async def _move(self, partition: int, to: str) -> bytes:
        await self._errands.move_away(partition, to)
        return b""

    async def _knowledge(self) -> bytes:
        return _encode(await self._errands.knowledge())

    async def _cuts(self, first: int, last: int) -> bytes:
        return _encode([encode_cut(each) for each in await self._errands.kept_cuts(first, last)])

    def told(self, kind: int, body: bytes) -> None:
        if kind == CHAIN:
            self._errands.learned(_decode_chain(body))
        else:
            self._rest.told(kind, body)


class Messenger:
    """Asks errands of members, this one included."""

    def __init__(self, me: str, links: Links, errands: Errands) -> None:
        self._me = me
        self._links = links
        self._errands = errands

    def tell_chain(self, chain: Chain) -> None:
        """Tells all others of a chain that was written here."""
        body = _encode(chain)
        for link in self._links:
            if link.is_up:
                try:
                    link.tell(CHAIN, body)
                except HoldfastError as error:  # it reads etcd, too
                    log.debug("chain not told", peer=link.peer, why=error.message)

    async def drain(self, member: str, is_draining: bool) -> None:
        """Has a member give its partitions away, or keep them again."""
        if member == self._me:
            await self._errands.set_draining(is_draining)
        else:
            await self._call(member, DRAIN, _encode(is_draining))

    async def move(self, owner: str, partition: int, to: str) -> None:
        """Has the owner of a partition hand it to another member."""
        if owner == self._me:
            await self._errands.move_away(partition, to)
        else:
            await self._call(owner, MOVE, _encode((partition, to)))

    async def report(self, member: str) -> MemberReport:
        if member == self._me:
            return self._errands.report()
        return _decode_report(await self._call(member, REPORT, b""))

    async def knowledge(self, member: str) -> Knowledge:
        """What a member knows of the cluster."""
        if member == self._me:
            return await self._errands.knowledge()
        return _decode_knowledge(await self._call(member, KNOW, b""))

    async def cuts_of(self, member: str, first: int, last: int) -> Sequence[Cut]:
        """Cuts that one member keeps."""
        if member == self._me:
            return await self._errands.kept_cuts(first, last)
        answer = _decode_cuts(await self._call(member, CUTS, _encode((first, last))))
        return [decode_cut(each) for each in answer]

    async def cuts(self, first: int, last: int) -> Sequence[Cut]:
        """Cuts that etcd no longer keeps, from a member that has the first of them.

        After a start or a pause no member is reached for a moment, which is waited for.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLUSTER_MEET_MS_MAX / 1_000):
                while (found := await self._cuts_of_any(first, last)) is None:  # noqa: ASYNC110
                    await asyncio.sleep(CLUSTER_TICK_MS / 1_000)
                return found
        return ()

    async def _cuts_of_any(self, first: int, last: int) -> Sequence[Cut] | None:
        """None: nobody has answered, though there are others."""
        links = list(self._links)
        is_answered = not links
        for link in links:
            if not link.is_up:
                continue
            try:
                answer = _decode_cuts(await link.call(CUTS, _encode((first, last))))
                found = [decode_cut(each) for each in answer]
            except (HoldfastError, msgspec.MsgspecError) as error:
                log.debug("cuts not given", peer=link.peer, why=str(error))
                continue
            if found:
                return found
            is_answered = True
        return () if is_answered else None

    async def _call(self, member: str, kind: int, body: bytes) -> bytes:
        if member not in self._links:
            raise NotFound(f"The cluster has no member {member!r}", member=member)
        link = self._links[member]
        if not link.is_up:
            raise Unavailable(
                f"Member {member!r} is down; the others take over what it owned",
                member=member,
            )
        return await link.call(kind, body)
