"""A repository from the text that names it."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.content.repository.api import Repository
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.repository.sqlite import SqliteRepository
from holdfast.errors import InvalidArgument

_FILES = (".sqlite", ".sqlite3", ".db")
_FORMS = "sqlite:FILE, a file that ends in .sqlite, or memory:"


def open_repository(where: str | Path | Repository) -> Repository:
    """Opens what is named, or makes it; a repository is itself."""
    if not isinstance(where, str | Path):
        return where
    if isinstance(where, Path):
        return _open_path(where)
    scheme, _, rest = where.partition(":")
    if scheme == "memory":
        return MemoryRepository()
    if scheme == "sqlite":
        path = unquote(urlsplit(where).path) if rest.startswith("//") else rest
        return SqliteRepository(_absolute(path, where))
    if "://" in where or not where:
        raise _unknown(where)
    return _open_path(Path(where))


def _open_path(path: Path) -> Repository:
    if path.suffix in _FILES:
        return SqliteRepository(path.expanduser().absolute())
    raise _unknown(str(path))


def _absolute(path: str, where: str) -> Path:
    if not path:
        raise _unknown(where)
    return Path(path).expanduser().absolute()


def _unknown(where: str) -> InvalidArgument:
    shown = urlsplit(where)._replace(query="", fragment="")
    shown = shown._replace(netloc=shown.netloc.rpartition("@")[2]).geturl()
    return InvalidArgument(f"Expected a content repository as {_FORMS}, but found {shown!r}")
