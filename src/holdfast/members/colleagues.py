"""What members tell one another about themselves: how they are, and their numbers."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from holdfast.errors import HoldfastError, Unavailable
from holdfast.gateway.node.shapes import Health
from holdfast.limits import COLLEAGUE_MS_MAX
from holdfast.metrics import merged
from holdfast.transport import Answer, Handler, Link

# Kinds of calls between members that are not about partitions, which have the small numbers.
_HEALTH, _METRICS, CONTENT = 64, 65, 66

_encode = msgspec.msgpack.Encoder().encode
_decode_health = msgspec.msgpack.Decoder(Health).decode
# How bad it is: the node is as its worst member is.
_ORDER = ("UP", "CHECKING", "DEGRADED", "REBUILDING", "DOWN")


async def _nothing() -> bytes:
    return b""


async def _no_content(_: bytes) -> bytes:
    raise Unavailable("The member is still starting; try again")


class Colleagues:
    """The other members, for a member that is asked about the whole node."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.own_health: Callable[[], Health] = lambda: Health("CHECKING")
        self.own_metrics: Callable[[], Coroutine[Any, Any, bytes]] = _nothing
        self.own_content: Callable[[bytes], Coroutine[Any, Any, bytes]] = _no_content

    async def reached(self, seconds: float) -> bool:
        """Waits until all are reached, for so long; whether they are."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(link.up() for link in self.links))
        except TimeoutError:
            return False
        return True

    async def health(self) -> Health:
        """How the node is: as its worst member."""
        found = {"": self.own_health()}
        for link, answer in zip(self.links, await self._ask(_HEALTH), strict=True):
            if isinstance(answer, bytes):
                found[link.peer] = _decode_health(answer)
            else:  # its partitions are away, those of the others are not
                found[link.peer] = Health("DEGRADED", [f"process {link.peer}: {answer.message}"])
        return Health(
            max((each.status for each in found.values()), key=_ORDER.index),
            [text for each in found.values() for text in each.damage],
            [text for each in found.values() for text in each.warnings],
        )

    async def metrics(self) -> bytes:
        """The numbers of all members that can be reached, added up."""
        answers = await self._ask(_METRICS)
        others = [each for each in answers if isinstance(each, bytes)]
        return merged([await self.own_metrics(), *others])

    async def _ask(self, kind: int) -> list[bytes | HoldfastError]:
        return await asyncio.gather(*(_asked(link, kind) for link in self.links))

    def answering(self, handler: Handler) -> Handler:
        """Who answers another member: what is about partitions goes to who knows them."""
        return _Answering(self, handler)


async def _asked(link: Link, kind: int) -> bytes | HoldfastError:
    try:
        async with asyncio.timeout(COLLEAGUE_MS_MAX / 1_000):
            return await link.call(kind, b"")
    except TimeoutError:
        return HoldfastError(f"it did not answer within {COLLEAGUE_MS_MAX} ms")
    except HoldfastError as error:
        return error


class _Answering:
    """Answers one connection of one other member."""

    def __init__(self, colleagues: Colleagues, handler: Handler) -> None:
        self._colleagues = colleagues
        self._handler = handler
        self.told = handler.told

    def called(self, kind: int, body: bytes) -> Answer:
        if kind == _HEALTH:
            return _encode(self._colleagues.own_health())
        if kind == _METRICS:
            return self._colleagues.own_metrics()
        if kind == CONTENT:
            return self._colleagues.own_content(body)
        return self._handler.called(kind, body)
