"""Who is let in: a pure decision over two greetings and a key."""

from collections.abc import Mapping

from holdfast.errors import Forbidden, HoldfastError, InvalidState
from holdfast.transport.api import Identity

Keys = Mapping[str, bytes]
"""The registered public key of each member."""


def common_version(mine: Identity, theirs: Identity) -> int | None:
    """The newest version of the protocol that both speak; None if there is none."""
    version = min(mine.version, theirs.version)
    return version if version >= max(mine.oldest, theirs.oldest) else None


def refusal(
    mine: Identity, theirs: Identity, expected: str | None, key: bytes | None, keys: Keys | None
) -> HoldfastError | None:
    """Why a peer is not taken; None if it is.

    `expected` is the member that was dialed. `key` is what the peer has proved to hold, and counts
    where `keys` are registered; without, the address itself is what is trusted.
    """
    if common_version(mine, theirs) is None:
        return InvalidState(
            f"Expected version {mine.oldest} to {mine.version} of the protocol between members, but"
            f" {theirs.member!r} has {theirs.oldest} to {theirs.version}; upgrade by versions of"
            " holdfast that understand each other",
            field="version", expected=mine.version, found=theirs.version,
        )  # fmt: skip
    if theirs.cluster != mine.cluster:
        return InvalidState(
            f"Expected a member of {mine.cluster!r}, but {theirs.member!r} belongs to"
            f" {theirs.cluster!r}; look at the addresses of the members",
            field="cluster", expected=mine.cluster, found=theirs.cluster,
        )  # fmt: skip
    if theirs.member == mine.member or expected not in (None, theirs.member):
        return Forbidden(
            f"Expected {'another member' if expected is None else repr(expected)}, but"
            f" {theirs.member!r} is there; look at the addresses of the members",
            field="member", expected=expected, found=theirs.member,
        )  # fmt: skip
    if keys is not None and theirs.member not in keys:
        return Forbidden(
            f"Expected a member whose key is registered, but {theirs.member!r} has none here, or"
            " not yet",
            field="key", found=theirs.member,
        )  # fmt: skip
    if keys is not None and (key is None or keys[theirs.member] != key):
        return Forbidden(
            f"Expected the key that is registered for {theirs.member!r}, but found another; if the"
            " member was made anew, register its new key",
            field="key", found=theirs.member,
        )  # fmt: skip
    return None
