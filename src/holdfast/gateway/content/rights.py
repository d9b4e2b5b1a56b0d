"""Who may see and do what in content distribution: by publisher."""

from collections.abc import Iterable

import msgspec

from holdfast.content.blobs import SNAPSHOTS
from holdfast.content.messages import (
    ClearQueue,
    Discovery,
    PackageDistributed,
    RemovePackage,
    RetryPackage,
    SnapshotTaken,
    TakeSnapshot,
    decode_announcement,
    decode_command,
    decode_event,
)
from holdfast.content.ports import TopicEntries, TopicEntry
from holdfast.content.topics import ContentTopic
from holdfast.engine.identity.queries import FindAllowed
from holdfast.engine.identity.values import Permission, ResourceType
from holdfast.engine.kernel import Required
from holdfast.gateway.access.asking import Asked, asker_now

_CONTENT = ResourceType.CONTENT
PUBLISH = (Permission.PUBLISH,)
SUBSCRIBE = (Permission.SUBSCRIBE,)
ADMINISTER = (Permission.ADMINISTER,)
LOOK = (Permission.ADMINISTER, Permission.PUBLISH)
READ = (Permission.SUBSCRIBE, Permission.ADMINISTER, Permission.PUBLISH)

Allowed = frozenset[str] | None
"""Names of publishers; None: all of them."""


class _OfPublisher(msgspec.Struct, array_like=True, tag=1, gc=False):
    """As much of a package as says whose it is."""

    publisher: str


class _OfSubscriber(msgspec.Struct, array_like=True, tag=2, gc=False):
    """As much of a status as says whose it is."""

    subscriber: str
    publisher: str


_package = msgspec.msgpack.Decoder(_OfPublisher).decode
_status = msgspec.msgpack.Decoder(_OfSubscriber).decode


class ContentRights:
    """What the caller may do with which publishers."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    async def check(self, publishers: Iterable[str], permissions: tuple[Permission, ...]) -> None:
        """Forbidden, unless the caller has one of the permissions for each of the publishers."""
        await self._asked.check(Required(_CONTENT, permissions, tuple(dict.fromkeys(publishers))))

    async def allowed(self, permissions: tuple[Permission, ...]) -> Allowed:
        """For which publishers the caller has one of the permissions."""
        if asker_now() is None:
            return None
        rights = tuple((_CONTENT, each) for each in permissions)
        found = await self._asked.ask_any(FindAllowed(rights))
        if any(each is None for each in found):
            return None
        return frozenset().union(*[each for each in found if each is not None])

    async def shown(self, topic: ContentTopic, found: TopicEntries) -> TopicEntries:
        """The messages of a topic that the caller may read."""
        if asker_now() is None or not found.entries:
            return found
        allowed = await self.allowed(READ)
        if allowed is None:
            return found
        entries = [each for each in found.entries if _is_shown(topic, each, allowed)]
        return found._replace(entries=entries)


def _is_shown(topic: ContentTopic, entry: TopicEntry, allowed: frozenset[str]) -> bool:
    named = _publishers_of(topic, entry.payload)
    return named is not None and allowed.issuperset(named)


def _publishers_of(topic: ContentTopic, payload: bytes) -> list[str] | None:
    """The publishers that a message is about; None: it is about all that there are."""
    match topic:
        case ContentTopic.PACKAGES:
            return [_package(payload).publisher]
        case ContentTopic.STATUSES:
            return [_status(payload).publisher]
        case ContentTopic.DISCOVERIES:
            said = decode_announcement(payload)
            return _of_progress(said) if isinstance(said, Discovery) else None
        case ContentTopic.COMMANDS:
            match decode_command(payload):
                case ClearQueue() | RemovePackage() | RetryPackage() as command:
                    return [command.publisher]
                case TakeSnapshot():  # says nothing of what is published
                    return []
        case ContentTopic.EVENTS:
            event = decode_event(payload)
            if isinstance(event, PackageDistributed):
                return [event.publisher]
            return _of_progress(event)


def _of_progress(message: Discovery | SnapshotTaken) -> list[str]:
    return [each.publisher for each in message.progress]


def is_snapshot(blob: str) -> bool:
    """Whether a blob holds what a subscriber held, of all of its publishers."""
    return blob.startswith(SNAPSHOTS)
