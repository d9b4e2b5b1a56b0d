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
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        parts, known = None, False
    if parts is None or not known:
        several = f", in {text!r}" if url != text else ""
        raise InvalidArgument(
            f"Expected a URL such as http://127.0.0.1:8080, but found {url!r}{several}"
        )
    return parts


def _without_name(parts: SplitResult) -> str:
    """Who asks is not part of where it is, and not to be shown."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")


def _plain(url: str) -> str:
    return url.rstrip("/") if url.startswith(("http://", "https://")) else ""
