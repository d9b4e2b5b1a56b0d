"""What a member of a cluster may be called: a name that is part of keys, addresses and commands."""

import re

from holdfast.errors import InvalidArgument

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", re.ASCII)


def check_member_name(name: str, field: str = "member") -> None:
    """InvalidArgument unless it is one; `field` is the setting or argument that it came from."""
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"Expected {field} to be the name of a member: 1 to 64 letters, digits, '.', '_' and"
            f" '-', not beginning with a dot, but found {name!r}",
            field=field,
        )
