"""Paths of content: `/pages/home`. What they may be, what is above them, and their order.

In the order of paths `/` comes before every other character, so that a node stands directly before
all that is below it, and a subtree is one range. Stores sort by `key_of` for that.
"""

import re
import unicodedata

from holdfast.errors import InvalidArgument
from holdfast.limits import CONTENT_DEPTH_MAX, CONTENT_NAME_BYTES_MAX, CONTENT_PATH_BYTES_MAX

ROOT = "/"
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_PLAIN = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[!-.0-~]{1,200}){1,100}")
_SEPARATOR, _BEHIND = "\x01", "\x02"  # sort before all that a path may contain


def checked_path(text: str) -> str:
    """The path, if it can be one in every store; InvalidArgument says what is wrong with it."""
    if len(text) <= CONTENT_PATH_BYTES_MAX and _PLAIN.fullmatch(text):
        return text
    if text == ROOT:
        return text
    if wrong := _wrong_with(text):
        raise InvalidArgument(
            f"Expected a content path such as /pages/home, but {text[:200]!r} {wrong}",
            path=text[:200],
        )
    return text


def _wrong_with(text: str) -> str:
    if not text.startswith(ROOT):
        return "does not begin with a slash"
    if _ODD.search(text):
        return "has a control character or half a surrogate pair in it"
    if len(text.encode()) > CONTENT_PATH_BYTES_MAX:
        return f"has more than {CONTENT_PATH_BYTES_MAX} bytes"
    if not unicodedata.is_normalized("NFC", text):
        return "is not in Unicode's normal form C"
    names = text.split(ROOT)[1:]
    if len(names) > CONTENT_DEPTH_MAX:
        return f"has more than {CONTENT_DEPTH_MAX} parts"
    for name in names:
        if name in ("", ".", ".."):
            return f"has the part {name!r}"
        if len(name.encode()) > CONTENT_NAME_BYTES_MAX:
            return f"has a part of more than {CONTENT_NAME_BYTES_MAX} bytes"
    return ""


def parents(path: str) -> list[str]:
    """What is above a path, from the top on, without `/`: for `/a/b/c` it is `/a`, `/a/b`."""
    found: list[str] = []
    at = path.find(ROOT, 1)
    while at > 0:
        found.append(path[:at])
        at = path.find(ROOT, at + 1)
    return found


def is_below(path: str, top: str) -> bool:
    """Whether a path is somewhere below another one, which it is not itself."""
    return path != top and (top == ROOT or path.startswith(f"{top}/"))


def key_of(path: str) -> str:
    """What a path is sorted by, as code points or as bytes in UTF-8."""
    return "" if path == ROOT else path.replace(ROOT, _SEPARATOR)


def path_of(key: str) -> str:
    """The path that has this key."""
    return key.replace(_SEPARATOR, ROOT) or ROOT


def keys_from(path: str) -> tuple[str, str]:
    """The range of keys, without its end, that a node and all below it have."""
    key = key_of(path)
    return key, key + _BEHIND


def child_key(key: str, parent: str) -> str:
    """The key of the child of `parent` that has `key` in its subtree."""
    at = key.find(_SEPARATOR, len(parent) + 1)
    return key if at < 0 else key[:at]
