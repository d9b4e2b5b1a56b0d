"""What is refused of publishers and subscribers before anything is done."""

import msgspec

from holdfast.content.messages import Discovery, Package, SubscriberProgress
from holdfast.content.publisher.state import ContentState
from holdfast.errors import InvalidArgument, ResourceExhausted
from holdfast.limits import (
    CONTENT_MESSAGE_BYTES_MAX,
    CONTENT_PUBLISHERS_MAX,
    CONTENT_REASON_CHARS_MAX,
    CONTENT_REMEMBER_MS,
    CONTENT_SUBSCRIBERS_MAX,
    NAME_CHARS_MAX,
)


def check_package(package: Package, state: ContentState) -> None:
    """Refuses a package that cannot be published."""
    _check_name(package.publisher, "publisher")
    _check_name(package.package_id, "package")
    size_bytes = len(package.content or b"") + sum(
        len(each) for each in (*package.paths, *package.deep_paths, *package.binaries)
    )
    if size_bytes > CONTENT_MESSAGE_BYTES_MAX:
        raise InvalidArgument(
            f"Expected package {package.package_id} of {package.publisher} to have"
            f" {CONTENT_MESSAGE_BYTES_MAX:,} bytes of content and paths at most, but found"
            f" {size_bytes:,}; put its content into a blob, or publish fewer paths at once",
            package_id=package.package_id,
        )
    if (
        package.publisher not in state.publishers
        and len(state.publishers) >= CONTENT_PUBLISHERS_MAX
    ):
        raise ResourceExhausted(
            f"Expected at most {CONTENT_PUBLISHERS_MAX} publishers on a node, but"
            f" {package.publisher} is another one; use a second node",
            publisher=package.publisher,
        )


def checked_discovery(discovery: Discovery, state: ContentState) -> Discovery:
    """A discovery that can be kept: its texts are cut to their limit."""
    _check_name(discovery.subscriber, "subscriber")
    if not 1 <= discovery.interval_ms <= CONTENT_REMEMBER_MS:
        raise InvalidArgument(
            f"Expected subscriber {discovery.subscriber} to announce itself every 1 to"
            f" {CONTENT_REMEMBER_MS} ms, but found {discovery.interval_ms}",
            subscriber=discovery.subscriber,
        )
    known = state.topology.known
    if discovery.subscriber not in known and len(known) >= CONTENT_SUBSCRIBERS_MAX:
        raise ResourceExhausted(
            f"Expected at most {CONTENT_SUBSCRIBERS_MAX} subscribers on a node, but"
            f" {discovery.subscriber} is another one; forget those that will not return, or use a"
            " second node",
            subscriber=discovery.subscriber,
        )
    if len(discovery.progress) > CONTENT_PUBLISHERS_MAX:
        raise InvalidArgument(
            f"Expected subscriber {discovery.subscriber} to have at most {CONTENT_PUBLISHERS_MAX}"
            f" publishers, but found {len(discovery.progress)}",
            subscriber=discovery.subscriber,
        )
    if all(len(each.reason) <= CONTENT_REASON_CHARS_MAX for each in discovery.progress):
        return discovery
    return msgspec.structs.replace(discovery, progress=[_cut(each) for each in discovery.progress])


def _cut(progress: SubscriberProgress) -> SubscriberProgress:
    return msgspec.structs.replace(progress, reason=progress.reason[:CONTENT_REASON_CHARS_MAX])


def _check_name(name: str, of: str) -> None:
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        raise InvalidArgument(
            f"Expected the name of a {of} to have 1 to {NAME_CHARS_MAX} characters, but found"
            f" {name[:50]!r}",
            field=of,
        )
