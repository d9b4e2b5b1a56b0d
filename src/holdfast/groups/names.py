"""Names of groups, members and partitions, and what is refused as one."""

import re

from holdfast.errors import InvalidArgument
from holdfast.limits import (
    GROUP_CARD_BYTES_MAX,
    GROUP_MEMBER_CHARS_MAX,
    GROUP_NAME_CHARS_MAX,
    GROUP_TOKEN_CHARS_MAX,
)

_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)  # a part of the name of a topic


def check_group(name: str) -> str:
    """The name of a group."""
    if not isinstance(name, str) or not _GROUP.fullmatch(name) or len(name) > GROUP_NAME_CHARS_MAX:
        raise InvalidArgument(
            "Expected the name of a group: letters, digits, '.', '_' and '-', beginning with a"
            f" letter or digit, at most {GROUP_NAME_CHARS_MAX} long, but found {name!r:.80}",
            group=str(name)[:80],
        )
    return name


def check_token(token: str) -> str:
    """The token of a partition."""
    if (
        not isinstance(token, str)
        or not 0 < len(token) <= GROUP_TOKEN_CHARS_MAX
        or not token.isprintable()
    ):
        raise InvalidArgument(
            f"Expected a partition's token of 1 to {GROUP_TOKEN_CHARS_MAX} printable characters,"
            f" but found {token!r:.80}"
        )
    return token


def check_name(name: str) -> str:
    """The name of a member, without its incarnation."""
    if (
        not isinstance(name, str)
        or not 0 < len(name) <= GROUP_MEMBER_CHARS_MAX
        or not name.isprintable()
        or "/" in name
    ):
        raise InvalidArgument(
            f"Expected the name of a member: 1 to {GROUP_MEMBER_CHARS_MAX} printable characters"
            f" without '/', but found {name!r:.80}"
        )
    return name


def check_member(member: str) -> str:
    """A member with its incarnation: NAME/INCARNATION."""
    name, slash, incarnation = member.partition("/") if isinstance(member, str) else ("", "", "")
    if not slash or not incarnation:
        raise InvalidArgument(f"Expected a member as NAME/INCARNATION, but found {member!r:.80}")
    check_name(name)
    check_name(incarnation)
    return member


def check_card(card: bytes) -> bytes:
    """What a member says of itself."""
    if not isinstance(card, bytes) or len(card) > GROUP_CARD_BYTES_MAX:
        raise InvalidArgument(
            f"Expected a card of at most {GROUP_CARD_BYTES_MAX} bytes, but found {card!r:.50}"
        )
    return card
