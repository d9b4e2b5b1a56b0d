"""Which requests a node takes: by the host that they name, and by the web page that sent them.

A page of any site can make a browser send requests to a node on the same machine. Two things give
it away: the `Host` header carries the page's own name when DNS was made to point that name at the
node, and the browser says in `Origin` or `Sec-Fetch-Site` that another site asks.
"""

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address

from litestar.exceptions import HTTPException

from holdfast.errors import InvalidArgument

ANY_HOST = "*"
READING = ("GET", "HEAD", "OPTIONS")
REQUESTED_WITH = b"x-requested-with"

_Headers = Iterable[tuple[bytes, bytes]]

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(https?)://(.+)", re.ASCII)
_DEFAULT_PORT = {"http": "80", "https": "443"}
_OWN_SITE = (b"same-origin", b"none")  # none: a person typed the address
_BROWSER = (
    b"mozilla/"  # how every browser's User-Agent begins; a page can neither change nor drop it
)
_ACCEPTED_KEPT_MAX = 64  # Host headers that were accepted: clients send the same few all the time


class Origins:
    """The names of a node, and the web pages that may send it requests."""

    def __init__(self, host: str, allowed_hosts: str = "", allowed_origins: str = "") -> None:
        names = _listed(allowed_hosts)
        self._any_name = ANY_HOST in names
        self._names = {"localhost", host.lower(), *map(_listed_name, names - {ANY_HOST})}
        self._any_address = False
        if _is_wildcard(host):  # all addresses of the machine: a page cannot rebind an address
            self._any_address = True
            self._names.add(socket.gethostname().lower())
        self._origins = frozenset(map(_listed_origin, _listed(allowed_origins)))
        self._accepted: set[bytes] = set()

    def check(self, method: str, http_version: str, headers: _Headers) -> bytes | None:
        """Raises unless the request is for this node and from no foreign page.

        Gives the origin of a page of another site that is allowed, to be answered as such.
        """
        host = origin = site = mode = None
        for name, value in headers:
            if name == b"host":
                if host is not None:
                    raise HTTPException("Expected one Host header, but found two", status_code=400)
                host = value
            elif name == b"origin":
                origin = value if origin is None else b"null"  # two are none that can be trusted
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"sec-fetch-mode":
                mode = value
        if host not in self._accepted:
            self._check_host(host, http_version)
        if origin is None and (site is None or site in _OWN_SITE):
            return None
        return self._check_page(method, host or b"", origin, site, mode)

    def _check_host(self, host: bytes | None, http_version: str) -> None:
        if host is None:
            if http_version == "1.0":  # has no such header, and no browser speaks it
                return
            raise HTTPException("There is no Host header", status_code=400)
        if not self._is_ours(host.decode("latin-1").lower()):
            raise HTTPException(
                f"Expected a request for this node, but it is for {_shown(host)}; if clients call"
                " the node by that name, add it to allowed_hosts",
                status_code=421,
            )
        if len(self._accepted) < _ACCEPTED_KEPT_MAX:
            self._accepted.add(host)

    def _is_ours(self, authority: str) -> bool:
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        name = found[1].strip("[]").removesuffix(".")
        if self._any_name or name in self._names:
            return True
        address = _address(name)
        return address is not None and (self._any_address or address.is_loopback)

    def _check_page(
        self, method: str, host: bytes, origin: bytes | None, site: bytes | None, mode: bytes | None
    ) -> bytes | None:
        if origin is not None:
            said = _origin(origin.decode("latin-1").lower())
            if said in self._origins:
                return origin
            if said is not None and said[1:] == _parts(host.decode("latin-1").lower(), said[0]):
                return None  # a page that this host itself served, such as a proxy before the node
        elif method in READING and mode == b"navigate":
            return None  # a person followed a link; the page with the link learns nothing
        asker = _shown(origin) if origin is not None else f"a page of another site ({_shown(site)})"
        raise HTTPException(
            f"Expected a request of a program, but {asker} sent it; if it is to use this"
            " node, add its origin to allowed_origins",
            status_code=403,
        )


def is_from_program(headers: dict[bytes, bytes]) -> bool:
    """Whether a request without JSON has a header that a page's form cannot send.

    A page may send such a header to another site only after that site allowed it. `Basic` is no
    proof, because a browser adds it by itself. A page that is allowed has its origin checked.
    """
    return (
        REQUESTED_WITH in headers
        or b"origin" in headers
        or headers.get(b"authorization", b"").lower().startswith(b"bearer ")
        or not headers.get(b"user-agent", _BROWSER).lower().startswith(_BROWSER)
    )


def _listed(text: str) -> set[str]:
    return {each.strip().lower() for each in text.split(",") if each.strip()}


def _listed_name(text: str) -> str:
    if _address(text.strip("[]")) is None and not re.fullmatch(r"[a-z0-9_.-]+", text):
        raise InvalidArgument(
            f"Expected names without a port in allowed_hosts, but found {text!r};"
            " write them as in 'holdfast.example.org, db-1'"
        )
    return text.strip("[]").removesuffix(".")


def _listed_origin(text: str) -> tuple[str, str, str]:
    found = _origin(text)
    if found is None:
        raise InvalidArgument(
            f"Expected origins in allowed_origins, but found {text!r};"
            " write them as in 'https://ui.example.org, http://127.0.0.1:3000'"
        )
    return found


def _origin(text: str) -> tuple[str, str, str] | None:
    """Scheme, name and port of an origin; None for `null` and whatever else is none."""
    found = _ORIGIN.fullmatch(text)
    parts = _parts(found[2], found[1]) if found else None
    return (found[1], *parts) if found and parts else None


def _parts(authority: str, scheme: str) -> tuple[str, str] | None:
    found = _AUTHORITY.fullmatch(authority)
    return (found[1], found[2] or _DEFAULT_PORT[scheme]) if found else None


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None


def _is_wildcard(host: str) -> bool:
    address = _address(host)
    return host == "" or (address is not None and address.is_unspecified)


def _shown(value: bytes | None) -> str:
    return repr((value or b"")[:100].decode("latin-1"))
