"""Where a node or the members of a cluster are, as a client is told and as it learns."""

from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from holdfast.errors import InvalidArgument


class Addresses:
    """One address, or several of which any will do; the next one is taken when one is away."""

    def __init__(self, text: str) -> None:
        """`text` has addresses with commas between them; a name and a password in the first."""
        found = [_parts(each.strip(), text) for each in text.split(",")]
        self.first = found[0]  # with who asks
        self._urls = [_without_name(each) for each in found]
        self.url = self._urls[0]  # where requests go at the moment
        self.are_several = len(self._urls) > 1

    @property
    def count(self) -> int:
        return len(self._urls)

    def failed(self, url: str) -> None:
        """Nobody answered there: the next address is taken, unless it has been already."""
        if url == self.url:
            following = self._urls.index(url) + 1
            self.url = self._urls[following % len(self._urls)]

    def learn(self, urls: Iterable[str]) -> None:
        """Further members, which a member named."""
        self._urls += [each for each in map(_plain, urls) if each and each not in self._urls]
        self.are_several = len(self._urls) > 1


def _parts(url: str, text: str) -> SplitResult:
    several = f", in {text!r}" if url != text else ""
    expected = "Expected a URL such as http://127.0.0.1:8080"
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        parts, known = None, False
    if parts is None or not known:
        raise InvalidArgument(f"{expected}, but found {url!r}{several}")
    if problem := _problem(parts):
        raise InvalidArgument(f"{expected}, but {problem}{several}")
    return parts


def _problem(parts: SplitResult) -> str:
    """What is wrong with a URL that has a host; nothing if it can be asked."""
    shown = parts.netloc.rpartition("@")[2]
    try:
        port = parts.port
    except ValueError:
        port = -1
    if port is not None and not 0 < port <= 65_535:
        return f"the port in {shown!r} is not a number from 1 to 65535"
    if any(each.isspace() or not each.isprintable() for each in shown):
        return f"{shown!r} is not the name of a host"
    if parts.query or parts.fragment:
        return f"found something behind its path: {(parts.query or parts.fragment)!r}"
    return ""


def _without_name(parts: SplitResult) -> str:
    """Who asks is not part of where it is, and not to be shown."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def _plain(url: str) -> str:
    return url.rstrip("/") if url.startswith(("http://", "https://")) else ""
