"""The ways to the other members: one connection for each pair, made again whenever it breaks."""

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from holdfast.errors import Forbidden, HoldfastError, Unavailable
from holdfast.limits import RECONNECT_MS_MAX, RECONNECT_MS_MIN
from holdfast.logs import log
from holdfast.transport.api import (
    Address,
    Connection,
    Handler,
    Listener,
    NotSent,
    Sender,
    Take,
    Transport,
)
from holdfast.transport.exchange import settle

QUIET_ATTEMPTS = 9  # to dial a member before it is said that it is not there: about 5 s


class Link(Sender):
    """The way to one other member, whichever connection carries it; `Unavailable` while none does.

    `on_up` is told of each new connection, and `on_down` of its end. A user that needs the
    peer to remember something tells it again in `on_up`: a new connection knows nothing of the
    former one.
    """

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.connection: Connection | None = None
        self._why = "it was not reached yet"
        self._waiting: list[Future[None]] = []
        self._on_up: list[Callable[[], None]] = []
        self._on_down: list[Callable[[], None]] = []

    @property
    def is_up(self) -> bool:
        return self.connection is not None

    def call(self, kind: int, body: bytes, take: Take | None = None) -> Future[Any]:
        if self.connection is None:
            future: Future[Any] = asyncio.get_running_loop().create_future()
            settle(future, take, self._down())
            return future
        return self.connection.call(kind, body, take)

    def tell(self, kind: int, body: bytes, *, at_once: bool = False) -> None:
        if self.connection is None:
            raise self._down()
        self.connection.tell(kind, body, at_once=at_once)

    def on_up(self, callback: Callable[[], None]) -> None:
        """Calls back for every new connection; at once if there is one."""
        self._on_up.append(callback)
        if self.connection is not None:
            callback()

    def on_down(self, callback: Callable[[], None]) -> None:
        """Calls back whenever a connection has ended."""
        self._on_down.append(callback)

    async def up(self) -> None:
        """Waits until the member is reached."""
        if self.connection is None:
            reached: Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(reached)
            await reached

    def adopt(self, connection: Connection) -> None:
        """From now on this connection carries the link; a former one that lingers is closed."""
        former, self.connection = self.connection, connection
        if former is not None:
            self._ended("the member connected anew")
            former.close()
        log.info("member reached", peer=self.peer)
        connection.on_closed(lambda why: self._lost(connection, why))
        for callback in list(self._on_up):
            callback()
        waiting, self._waiting = self._waiting, []
        for reached in waiting:
            if not reached.done():
                reached.set_result(None)

    def end(self, why: str) -> None:
        """Nobody talks to the member any more: closes its connection and tells waiting callers."""
        connection, self.connection = self.connection, None
        if connection is not None:
            self._ended(why)
            connection.close()
        self._why = why
        waiting, self._waiting = self._waiting, []
        for reached in waiting:
            if not reached.done():
                reached.set_exception(self._down())

    def _lost(self, connection: Connection, why: str) -> None:
        if self.connection is connection:
            self.connection = None
            self._ended(why)

    def _ended(self, why: str) -> None:
        self._why = why
        log.info("member lost", peer=self.peer, why=why)
        for callback in list(self._on_down):
            callback()

    def _down(self) -> NotSent:
        return NotSent(
            f"Expected a connection to member {self.peer!r}, but {self._why}; it is tried again",
            member=self.peer,
        )


LinkAnswering = Callable[[Link, Connection], Handler]
"""Asked for each new connection of a link: who answers what comes over it."""


class Links:
    """All links of one member. Of each pair, the one whose name sorts first dials the other.

    Members may come, go and change their addresses while it runs. Others are refused, and a member
    that is removed loses its connection at once.
    """

    def __init__(
        self,
        member: str,
        transport: Transport,
        addresses: Mapping[str, Address | None],
        answering: LinkAnswering,
    ) -> None:
        """`addresses` has the members that are known so far, and this one with where it listens."""
        own = addresses[member]
        assert own is not None, "a member knows where it listens"
        self._member = member
        self._transport = transport
        self._address: Address = own
        self._addresses = {name: each for name, each in addresses.items() if name != member}
        self._answering = answering
        self._links = {name: Link(name) for name in self._addresses}
        self._listener: Listener | None = None
        self._dialing: dict[str, asyncio.Task[None]] = {}

    def __getitem__(self, member: str) -> Link:
        return self._links[member]

    def __contains__(self, member: object) -> bool:
        return member in self._links

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._links.values()))

    @property
    def address(self) -> Address:
        """Where this member is reached: once it has started, with the port that it got."""
        return self._address if self._listener is None else self._listener.address

    async def start(self) -> None:
        """Listens, and begins to dial; it does not wait for anybody."""
        self._listener = await self._transport.listen(self._address, self._handler)
        for name in self._links:
            self._dial_from_now(name)

    def add(self, member: str, address: Address | None) -> Link:
        """The link to a member that joined, or has another address now; None: it has none yet."""
        assert member != self._member, "nobody has a link to itself"
        link = self._links.get(member)
        if link is None:
            link = self._links[member] = Link(member)
        if self._addresses.get(member) != address or member not in self._addresses:
            self._addresses[member] = address
            if not link.is_up:  # a connection that works is kept: its end leads to the new address
                self._dial_from_now(member)
        return link

    def remove(self, member: str) -> None:
        """Ends the link to a member that has left."""
        self._addresses.pop(member, None)
        self._stop_dialing(member)
        link = self._links.pop(member, None)
        if link is not None:
            link.end("it was removed from the members")

    async def close(self) -> None:
        """Ends everything; calls under way fail."""
        dialing, self._dialing = self._dialing, {}
        for task in dialing.values():
            task.cancel()
        await asyncio.gather(*dialing.values(), return_exceptions=True)
        if self._listener is not None:
            await self._listener.close()
        for link in self._links.values():
            if link.connection is not None:
                link.connection.close()

    def _handler(self, connection: Connection) -> Handler:
        link = self._links.get(connection.peer)
        if link is None:
            raise Forbidden(
                f"Expected one of the members, but found {connection.peer!r}; register it first",
                member=connection.peer,
            )
        handler = self._answering(link, connection)
        link.adopt(connection)
        return handler

    # --- dialing ------------------------------------------------------------------------------

    def _dial_from_now(self, member: str) -> None:
        """Dials where the member is said to be, from now on and without a pause before."""
        self._stop_dialing(member)
        if self._listener is not None and self._member < member and self._addresses[member]:
            keeping = self._keep(self._links[member])
            self._dialing[member] = asyncio.get_running_loop().create_task(keeping)

    def _stop_dialing(self, member: str) -> None:
        task = self._dialing.pop(member, None)
        if task is not None:
            task.cancel()

    async def _keep(self, link: Link) -> None:
        """Dials until it is told to stop."""
        while True:
            connection = await self._dial(link)
            ended = asyncio.Event()
            connection.on_closed(lambda _, ended=ended: ended.set())
            await ended.wait()
            await asyncio.sleep(RECONNECT_MS_MIN / 1_000)

    async def _dial(self, link: Link) -> Connection:
        told: set[str] = set()

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome is not None else None
            if state.attempt_number < QUIET_ATTEMPTS and isinstance(error, Unavailable):
                return  # members that start together do not find each other at once
            if isinstance(error, HoldfastError) and error.message not in told:
                told.add(error.message)  # once, not at every attempt
                log.warning("member not reached", peer=link.peer, why=error.message)

        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(HoldfastError),
            wait=wait_exponential(RECONNECT_MS_MIN / 1_000, max=RECONNECT_MS_MAX / 1_000),
            before_sleep=tell,
        ):
            with attempt:
                address = self._addresses[link.peer]
                assert address is not None, "it is dialed where it is said to be"
                return await self._transport.connect(address, link.peer, self._handler)
        raise AssertionError("it is tried for ever")
