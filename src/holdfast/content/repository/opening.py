"""A repository from the text that names it."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.content.repository.api import Repository
from holdfast.content.repository.directory import DirectoryRepository
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.repository.sqlite import SqliteRepository
from holdfast.errors import InvalidArgument, NotFound

_DATABASES = (".sqlite", ".sqlite3", ".db")
_FORMS = (
    "a folder, a file that ends in .sqlite, sqlite:FILE, postgresql://HOST/DATABASE?schema=NAME, or"
    " memory:"
)


def open_repository(where: str | Path | Repository, *, create: bool = True) -> Repository:
    """Opens what is named, or makes it; a repository is itself.

    Without `create`, NotFound if there is none yet: what is read must not be made by reading it.

    `./www` is a directory of plain files, `site.sqlite` and `sqlite:FILE` a file of SQLite,
    `postgresql://HOST/DATABASE?schema=NAME` a schema of PostgreSQL, and `memory:` is gone with the
    process.
    """
    if isinstance(where, Path):
        return _open_path(where, create)
    if not isinstance(where, str):
        return where
    scheme, _, rest = where.partition(":")
    if where == "memory:":
        return MemoryRepository()
    if scheme == "sqlite" and rest:
        path = unquote(urlsplit(where).path) if rest.startswith("//") else rest
        return SqliteRepository(_there(Path(path), create))
    if scheme in ("postgresql", "postgres") and rest.startswith("//"):
        return _open_postgres(where, create)
    if not where or "://" in where or scheme in ("memory", "sqlite"):
        raise _unknown(where)
    return _open_path(Path(where), create)


def _open_path(path: Path, create: bool) -> Repository:
    if path.suffix in _DATABASES:
        return SqliteRepository(_there(path, create))
    if not path.name or path.name == "..":
        raise _unknown(str(path))
    return DirectoryRepository(_there(path, create))


def _open_postgres(url: str, create: bool) -> Repository:
    try:
        from holdfast.content.repository.postgres import PostgresRepository
    except ImportError as error:
        raise InvalidArgument(
            f"Expected psycopg for a content repository in PostgreSQL, but {error}:"
            " pip install 'holdfast[postgres]'"
        ) from error
    return PostgresRepository(url, create=create)


def _there(path: Path, create: bool) -> Path:
    path = path.expanduser().absolute()
    if not create and not path.exists():
        raise NotFound(
            f"There is no content repository and no folder at {path}; check the path",
            path=str(path),
        )
    return path


def _unknown(where: str) -> InvalidArgument:
    shown = urlsplit(where)._replace(query="", fragment="")
    shown = shown._replace(netloc=shown.netloc.rpartition("@")[2]).geturl()
    return InvalidArgument(f"Expected a content repository as {_FORMS}, but found {shown!r}")
