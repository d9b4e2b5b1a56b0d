"""Shapes that clients send, as the messages of content distribution, or a clear error."""

from collections.abc import Sequence, Sized
from typing import Any, TypeVar

import msgspec

from holdfast.content.messages import (
    ImportOutcome,
    Package,
    PackageAction,
    PackageStatus,
    SubscriberProgress,
)
from holdfast.content.topics import ContentTopic
from holdfast.errors import InvalidArgument
from holdfast.gateway import checks
from holdfast.gateway.content.blobs import checked_blob
from holdfast.gateway.content.shapes import NewPackage, ProgressNote, StatusNote
from holdfast.limits import (
    CONTENT_METADATA_CHARS_MAX,
    CONTENT_STATUSES_MAX,
    TIMESTAMP_MS_MAX,
    WHOLE_MAX,
)

M = TypeVar("M", bound=msgspec.Struct)


def agent_name(name: str, what: str) -> str:
    """The name of a publisher or a subscriber: it is a part of paths and of authorizations."""
    if "/" in checks.name(name, what) or name == "*":
        raise InvalidArgument(
            f"Expected the name of a {what} without / and other than *, but found {name!r}"
        )
    return name


def topic_of(word: str) -> ContentTopic:
    """The topic that a word names."""
    if checks.text(word, "topic").upper() not in ContentTopic.__members__:
        words = ", ".join(each.name.lower() for each in ContentTopic)
        raise InvalidArgument(f"Expected one of {words} for topic, but found {word!r}")
    return ContentTopic[word.upper()]


def few(items: Sized, most: int, what: str) -> None:
    """A list that is not too long for one request."""
    if not isinstance(items, list | tuple):
        raise InvalidArgument(f"Expected a list for {what}, but found {items!r:.50}")
    if len(items) > most:
        raise InvalidArgument(
            f"Expected at most {most} {what} in one request, but found {len(items)}"
        )


def message_of(kind: type[M], shape: msgspec.Struct, **others: Any) -> M:
    """The message with the fields of a shape, as it will be read back from the log.

    A program that a node is embedded in may give anything.
    """
    names = [each for each in kind.__struct_fields__ if each not in others]
    given = {name: getattr(shape, name) for name in names if hasattr(shape, name)}
    try:
        return msgspec.msgpack.decode(msgspec.msgpack.encode(kind(**given, **others)), type=kind)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgument(f"Expected a {type(shape).__name__}, but {error}") from error


def package_of(new: NewPackage) -> Package:
    """A package as it goes on the log; its number is given there."""
    # They bring all stores with them: 20 ms of the start of a node.
    from holdfast.content.package.requests import check_message
    from holdfast.content.package.wrong import Wrong

    agent_name(new.publisher, "publisher")
    checks.name(new.package_id, "packageId")
    if new.action not in PackageAction.__members__:
        raise InvalidArgument(f"Expected an action, but found {new.action!r}", field="action")
    if new.blob is not None:
        checked_blob(new.blob)
    _check_metadata(new.metadata)
    action = PackageAction[new.action]
    origin = checks.name(new.origin, "origin") if new.origin else ""
    message = message_of(Package, new, action=action, origin=origin, number=0, user="")
    try:
        check_message(message)
    except Wrong as error:
        raise InvalidArgument(
            f"Package {new.package_id} cannot be published: {error}", package_id=new.package_id
        ) from error
    return message


def _check_metadata(metadata: dict[str, str]) -> None:
    size_bytes = sum(len(name) + len(value) for name, value in metadata.items())
    if size_bytes > CONTENT_METADATA_CHARS_MAX:
        raise InvalidArgument(
            f"Expected metadata of at most {CONTENT_METADATA_CHARS_MAX} characters, but found"
            f" {size_bytes}"
        )


def progress_of(notes: Sequence[ProgressNote]) -> list[SubscriberProgress]:
    """How far a subscriber is, as it goes on the log."""
    found: list[SubscriberProgress] = []
    for each in notes:
        agent_name(each.publisher, "publisher")
        checks.within(each.offset, -1, WHOLE_MAX, "offset")
        checks.within(each.cleared, -1, WHOLE_MAX, "cleared")
        checks.within(each.number, 0, WHOLE_MAX, "number")
        checks.within(each.retries, 0, WHOLE_MAX, "retries")
        checks.within(each.failing_since_ms, 0, TIMESTAMP_MS_MAX, "failingSinceMs")
        reason = checks.shortened(each.reason)
        found.append(message_of(SubscriberProgress, each, reason=reason))
    return found


def statuses_of(notes: Sequence[StatusNote]) -> list[PackageStatus]:
    """What became of packages, as it goes on the log."""
    few(notes, CONTENT_STATUSES_MAX, "statuses")
    found: list[PackageStatus] = []
    for each in notes:
        agent_name(each.subscriber, "subscriber")
        agent_name(each.publisher, "publisher")
        checks.within(each.offset, -1, WHOLE_MAX, "offset")
        checks.within(each.at_ms, 0, TIMESTAMP_MS_MAX, "atMs")
        if each.outcome not in ImportOutcome.__members__:
            raise InvalidArgument(f"Expected an outcome, but found {each.outcome!r}")
        outcome, reason = ImportOutcome[each.outcome], checks.shortened(each.reason)
        found.append(message_of(PackageStatus, each, outcome=outcome, reason=reason))
    return found
