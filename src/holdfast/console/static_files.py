"""Scripts and styles: read once, compressed once, and known by what is in them.

The address of a file has a hash of its content, so browsers keep it for ever; a new version of
holdfast has other addresses.
"""

import gzip
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import PurePosixPath

STATIC_PATH = "/console/static"
_FILES = ("console.css", "console.js", "icon.svg", "vendor/htmx.min.js", "vendor/sse.min.js")
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HASH_CHARS = 12


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file as it is sent."""

    content: bytes
    compressed: bytes
    media_type: str
    url: str


class StaticFiles:
    """All files of the package, by name and by address."""

    def __init__(self) -> None:
        root = files("holdfast.console") / "static"
        self._by_name = {name: _read(root.joinpath(name).read_bytes(), name) for name in _FILES}
        self._by_url = {each.url: each for each in self._by_name.values()}

    def url(self, name: str) -> str:
        """Where browsers find a file."""
        return self._by_name[name].url

    def at(self, path: str) -> StaticFile | None:
        return self._by_url.get(path)


def _read(content: bytes, name: str) -> StaticFile:
    digest = hashlib.sha256(content).hexdigest()[:_HASH_CHARS]
    return StaticFile(
        content, gzip.compress(content, 9, mtime=0), _MEDIA_TYPES[PurePosixPath(name).suffix],
        f"{STATIC_PATH}/{digest}/{name}",
    )  # fmt: skip
