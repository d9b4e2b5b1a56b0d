"""Cookies of signing in: which are sent over encrypted connections only, and where they count.

Beyond this machine a cookie is `Secure` and has the prefix `__Host-`, with which browsers take it
from this host alone and only over HTTPS; that is so behind a proxy, too, which speaks HTTP to the
node. On loopback there is nobody between, and browsers differ in what they take there.
"""

import re
from ipaddress import ip_address

from holdfast.console.visitor import PageHead

SESSION, FLOW = "holdfast-session", "holdfast-oidc"
_HOST = re.compile(r"(\[[^\]]+\]|[^:]*)(?::\d+)?")


def is_guarded(head: PageHead) -> bool:
    """Whether cookies of signing in are for encrypted connections only."""
    return head.is_secure or not is_loopback(head.headers.get("host", ""))


def is_loopback(authority: str) -> bool:
    """Whether an address, with a port or without, is one of this machine."""
    found = _HOST.fullmatch(authority)
    name = found[1].strip("[]").removesuffix(".").lower() if found else ""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def found_in(head: PageHead, name: str) -> str:
    """What a cookie has; one with the wrong name for the connection does not count."""
    return head.cookies.get(_name(head, name), "")


def kept(head: PageHead, name: str, value: str, seconds: int) -> tuple[str, str]:
    """A header that keeps a value in the browser for some time."""
    is_safe = is_guarded(head)
    parts = [
        f"{_name(head, name)}={value}", f"Path={'/' if is_safe else '/console'}", "HttpOnly",
        "SameSite=Lax", f"Max-Age={seconds}",
    ]  # fmt: skip
    return "set-cookie", "; ".join([*parts, "Secure"] if is_safe else parts)


def forgotten(head: PageHead, name: str) -> tuple[str, str]:
    """A header that removes it."""
    return kept(head, name, "", 0)


def _name(head: PageHead, name: str) -> str:
    return f"__Host-{name}" if is_guarded(head) else name
