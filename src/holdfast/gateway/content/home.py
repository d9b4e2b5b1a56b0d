"""Where the topics are: in this process, or in the one of the node's that has the first partition.

A call from another process is the name of a method and its arguments in MessagePack; both sides
decode by the types that the port declares.
"""

from collections.abc import Awaitable, Callable
from functools import cache
from types import NoneType
from typing import Any, Protocol, get_type_hints

import msgspec

from holdfast.content.messages import Discovery, Package, PackageStatus, SnapshotTaken
from holdfast.content.ports import Published, TopicEntries
from holdfast.content.publisher.retention import ContentNeeds
from holdfast.errors import InvalidArgument
from holdfast.gateway.content.shapes import (
    CleanUpView,
    CommandReceipt,
    EventPage,
    EventQuery,
    FailedPackages,
    FarmView,
    QueuePage,
    QueueQuery,
    SnapshotView,
    SubscriberView,
    TopicQuery,
)


class ContentHome(Protocol):
    """What is asked of the process that has the topics; who may ask was checked before."""

    async def publish(self, package: Package) -> Published: ...

    async def missing(self, blobs: list[str]) -> list[str]: ...

    async def read(self, query: TopicQuery) -> TopicEntries: ...

    async def announce(self, discovery: Discovery) -> None: ...

    async def report(self, statuses: list[PackageStatus]) -> None: ...

    async def snapshot_taken(self, event: SnapshotTaken) -> None: ...

    async def publishers(self) -> list[FarmView]: ...

    async def publishers_of(self, subscriber: str) -> list[str]: ...

    async def subscribers(self, publisher: str) -> list[SubscriberView]: ...

    async def farm(self, publisher: str) -> FarmView: ...

    async def queue(self, publisher: str, subscriber: str, query: QueueQuery) -> QueuePage: ...

    async def errors(
        self, publisher: str, subscriber: str, query: QueueQuery
    ) -> FailedPackages: ...

    async def clear(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt: ...

    async def remove(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt: ...

    async def retry(self, publisher: str, subscriber: str, offset: int) -> CommandReceipt: ...

    async def events(self, publisher: str, query: EventQuery) -> EventPage: ...

    async def take_snapshot(self, subscriber: str) -> CommandReceipt: ...

    async def snapshots(self) -> list[SnapshotView]: ...

    async def forget(self, subscriber: str) -> None: ...

    async def clean_up(self) -> CleanUpView: ...

    async def needs(self) -> ContentNeeds:
        """What of the topics no member may drop."""
        ...


# --- between processes ------------------------------------------------------------------------

Call = Callable[[bytes], Awaitable[bytes]]
"""Takes a call to the process that has the topics, and gives the answer."""

_encode = msgspec.msgpack.Encoder().encode
_called = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw]).decode


class _Method:
    """How the arguments and the answer of a method of the port are read."""

    def __init__(self, declared: Callable[..., Any]) -> None:
        hints = get_type_hints(declared)
        given = hints.pop("return")
        self.arguments = msgspec.msgpack.Decoder(tuple[*hints.values()]).decode
        self.answer = msgspec.msgpack.Decoder(None if given is NoneType else given).decode


@cache
def _methods() -> dict[str, _Method]:
    return {
        name: _Method(declared)
        for name, declared in vars(ContentHome).items()
        if callable(declared) and not name.startswith("_")
    }


def far_content(call: Call) -> ContentHome:
    """The port for a process that does not have the topics."""
    far: Any = _FarContent(call)
    return far


class _FarContent:
    """Asks the process that has the topics."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = _methods().get(name)
        if method is None:
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

        async def ask(*arguments: Any) -> Any:
            return method.answer(await self._call(_encode((name, arguments))))

        setattr(self, name, ask)
        return ask


async def answer_call(home: ContentHome, call: bytes) -> bytes:
    """Answers a call from another process."""
    name, arguments = _called(call)
    method = _methods().get(name)
    if method is None:
        raise InvalidArgument(f"Expected a call of this version, but found {name!r}")
    return _encode(await getattr(home, name)(*method.arguments(arguments)))
