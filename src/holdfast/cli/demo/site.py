"""The demo's site: what is published in which order, and what a store has to hold of it."""

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

import msgspec

from holdfast.content.paths import ROOT, parents
from holdfast.content.repository.api import DATA, Binary, Repository

PUBLISHER = "site"
PACKAGES = 40  # enough for a subscriber to be killed between them; published in less than a second
PAGES = 12
FILM = "/film.bin"
MENU = "/menu"  # a file with a node below it: a repository has that, a folder of files cannot
MENU_NUMBER = 3  # of the package that brings it: early, as a folder takes a second for a commit
FILM_BYTES = 2_000_000  # far above what a package carries: it goes to the blob store
_DELETE_EVERY = 9  # packages

Nodes = dict[str, bytes]  # by path, the hash of the file; empty for a folder


class Publication(msgspec.Struct, frozen=True):
    """One package of the site: files that it brings, or a path that it deletes."""

    number: int
    path: str
    files: dict[str, bytes] = {}

    @property
    def is_deletion(self) -> bool:
        return not self.files

    def write(self, folder: Path) -> None:
        """The files become what the package says, as an author would change them."""
        if self.is_deletion:
            (folder / self.path[1:]).unlink()
        for path, content in self.files.items():
            place = folder / path[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)

    def put(self, repository: Repository) -> None:
        """The same in a repository."""
        with repository.change() as changes:
            for path, content in self.files.items():
                binary = Binary(sha256(content).digest(), len(content))
                changes.store(binary, [content])
                changes.put(path, {DATA: binary})
            changes.commit()


def publications() -> list[Publication]:
    """The whole site first; then pages that are written, written anew and deleted, and a menu."""
    film = bytes(range(256)) * (FILM_BYTES // 256)
    whole = {_page(page): _text(page, 1) for page in range(PAGES)} | {FILM: film}
    return [
        Publication(1, ROOT, whole),
        *(_publication(number) for number in range(2, PACKAGES + 1)),
    ]


def _publication(number: int) -> Publication:
    if number == MENU_NUMBER:
        return Publication(number, MENU, {MENU: b"the menu", f"{MENU}/today": b"soup"})
    if number % _DELETE_EVERY == 0:  # a page that the package before has brought
        return Publication(number, _page(number - 1))
    page = number if number % _DELETE_EVERY == _DELETE_EVERY - 1 else number % PAGES
    return Publication(number, _page(page), {_page(page): _text(page, number)})


def _page(page: int) -> str:
    return f"/pages/page-{page}.html"


def _text(page: int, number: int) -> bytes:
    return f"<h1>page {page}</h1> as of package {number}\n".encode()


def site_after(number: int, without: Collection[int] = ()) -> Nodes:
    """What a store holds that has the packages up to a number, apart from some; pure."""
    files: Nodes = {}
    for each in publications()[:number]:
        if each.number in without:
            continue
        if each.is_deletion:
            files.pop(each.path)
        files |= {path: sha256(content).digest() for path, content in each.files.items()}
    folders = {ROOT, *(parent for path in files for parent in parents(path))}
    return dict.fromkeys(folders, b"") | files


def nodes_in(repository: Repository) -> Nodes:
    """What a store holds."""
    found: Nodes = {}
    for node in repository.walk(ROOT):
        data = node.properties.get(DATA)
        found[node.path] = data.sha256 if isinstance(data, Binary) else b""
    return found
