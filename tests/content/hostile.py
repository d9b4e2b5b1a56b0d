"""Packages that somebody made to do harm, by class: no field is left as a publisher writes it.

Each is signed by its maker: its message has the hash and the size that belong to its bytes,
unless that is what is wrong with it. `python hostile.py` imports all of them and prints how much
memory that took.
"""

import resource
import struct
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from holdfast.blobs.memory import MemoryBlobs
from holdfast.content.blobs import BINARIES, PACKAGES, binary_blob, package_blob
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.format import MAGIC, PREFIX
from holdfast.content.package.importing import import_package
from holdfast.content.package.reading import open_package
from holdfast.content.repository.memory import MemoryRepository
from holdfast.errors import HoldfastError

LARGE = b"large" * 20_000
pack = msgspec.msgpack.encode
U32 = struct.Struct(">I")


class Hostile(NamedTuple):
    """A package that must be refused."""

    name: str
    message: Package
    blobs: MemoryBlobs


class Draft:
    """A package before it is signed. Everything about it can be changed."""

    def __init__(self) -> None:
        self.paths: Any = ["/pages"]
        self.deep_paths: Any = ["/pages"]
        self.entries: list[Any] = [
            ["/pages", ["title", "T", "n", 1], []],
            ["/pages/a", [], [["data", sha256(b"hello").digest(), 5, 0]]],
            ["/pages/b", ["n", 1], [["data", sha256(b"xyz").digest(), 3, 0],
                                    ["image", sha256(LARGE).digest(), len(LARGE), 1]]],
        ]  # fmt: skip
        self.bodies = b"helloxyz"
        self.counts: Any = [3, 3, 3, len(self.bodies), len(self.bodies) + len(LARGE)]
        self.head: Any = None  # instead of one that is made of the above
        self.blocks: list[bytes] | None = None  # encoded
        self.magic, self.version = MAGIC, 1
        self.manifest_bytes: int | None = None
        self.binaries: Any = [binary_blob(sha256(LARGE).digest())]
        self.blobs = MemoryBlobs()
        self.blobs.content[binary_blob(sha256(LARGE).digest())] = LARGE

    def content(self) -> bytes:
        head = [self.paths, self.deep_paths, *self.counts] if self.head is None else self.head
        blocks = [pack(self.entries)] if self.blocks is None else self.blocks
        manifest = b"".join(U32.pack(len(each)) + each for each in (pack(head), *blocks))
        size = len(manifest) if self.manifest_bytes is None else self.manifest_bytes
        return PREFIX.pack(self.magic, self.version, size) + manifest + self.bodies

    def signed(self, made: bytes | None = None, /, **changes: Any) -> Package:
        content = self.content() if made is None else made
        end = PREFIX.size + int.from_bytes(content[8 : PREFIX.size])
        message = Package(
            "site", "hostile-1", PackageAction.ADD, self.paths, self.deep_paths, 1, len(content),
            sha256(content[:end]).digest(), content, None, self.binaries,
        )  # fmt: skip
        return msgspec.structs.replace(message, **changes)

    def as_blob(self, content: bytes | None = None) -> Package:
        message = self.signed(content)
        name = package_blob(message.sha256)
        self.blobs.content[name] = message.content or b""
        return msgspec.structs.replace(message, content=None, blob=name)


def hostile_packages() -> Iterator[Hostile]:
    """All classes, each as what comes with its message and as a blob, where both can be."""
    for name, change in _drafts():
        for kind in ("held", "stored"):
            draft = Draft()
            changed = change(draft)
            content = changed if isinstance(changed, bytes) else None
            message = draft.signed(content) if kind == "held" else draft.as_blob(content)
            yield Hostile(f"{name}, {kind}", message, draft.blobs)
    for name, changes in _messages():
        draft = Draft()
        yield Hostile(name, draft.signed(**changes), draft.blobs)
    yield from _altered()
    yield from _endless()


Change = Callable[[Draft], Any]
"""Makes a draft hostile; bytes that it returns are the package."""

_set = setattr


def _drafts() -> Iterator[tuple[str, Change]]:
    yield from _paths()
    yield from _order()
    yield from _types()
    yield from _counts_and_sizes()
    yield from _properties()
    yield from _bombs()


ODD_PATHS = {
    "relative": "pages/x", "empty": "", "upward": "/pages/../x", "far upward": "/pages/../../../x",
    "upward first": "/../pages/x", "only upward": "..", "here": "/pages/.",
    "twice a slash": "/pages//x", "ends with a slash": "/pages/x/", "nul": "/pages/a\0b",
    "line": "/pages/a\nb", "bell": "/pages/\a", "delete": "/pages/a\x7f", "c1": "/pages/a\x85",
    "escape": "/pages/\x1b[2J", "not normal": "/pages/u\u0308",
    "long name": "/pages/" + "x" * 256, "long name in bytes": "/pages/" + "ü" * 128,
    "long": "/pages" + "/xxxxxxxxx" * 300, "deep": "/pages" + "/x" * 100, "elsewhere": "/other",
    "beside": "/pages-x", "above": "/", "as a prefix": "/page", "a URL": "file:///etc/passwd",
    "home": "~/x", "a drive": "C:\\x",
}  # fmt: skip


def _paths() -> Iterator[tuple[str, Change]]:
    for name, path in ODD_PATHS.items():
        yield f"path {name}", lambda draft, path=path: _set_path(draft, path)
        if name not in ("elsewhere", "beside", "above", "as a prefix"):
            yield f"package of a path {name}", lambda draft, path=path: _set_top(draft, path)
    raw = b"\x91\x93" + b"\xa8/pages/\xff" + b"\x90\x90"
    yield "path that is no UTF-8", lambda draft: _set(draft, "blocks", [raw])


def _set_path(draft: Draft, path: str) -> None:
    """In the order of the tree, so that it is the path that is wrong."""
    draft.entries.append([path, [], []])
    draft.entries.sort(key=lambda entry: entry[0].replace("/", "\1"))
    draft.counts[0] += 1


def _set_top(draft: Draft, path: str) -> None:
    draft.paths, draft.deep_paths = [path], [path]
    draft.entries = [[path, [], []]]
    draft.counts, draft.bodies, draft.binaries = [1, 0, 0, 0, 0], b"", []


def _order() -> Iterator[tuple[str, Change]]:
    yield "entry twice", lambda draft: _more(draft, "/pages/c", "/pages/c")
    yield "entries in another order", lambda draft: _more(draft, "/pages/d", "/pages/c")
    yield "entries in the order of text", lambda draft: _more(
        draft, "/pages/c", "/pages/c-d", "/pages/c/e")  # fmt: skip
    yield "child before its parent", lambda draft: draft.entries.insert(1, draft.entries.pop(0))
    yield "without its own path", lambda draft: (
        draft.entries.pop(0), _set(draft, "counts", [2, 1, 3, *draft.counts[3:]]))  # fmt: skip
    yield "without an entry", lambda draft: _set(draft, "entries", draft.entries[:2])
    yield "without entries", lambda draft: _set(draft, "entries", [])
    yield "without blocks", lambda draft: _set(draft, "blocks", [])
    yield "empty block", lambda draft: _set(draft, "blocks", [b"", pack(draft.entries)])
    yield "the same block twice", lambda draft: _set(draft, "blocks", [pack(draft.entries)] * 2)
    yield "another path in the head", lambda draft: _set(
        draft, "head", [["/other"], ["/other"], *draft.counts])  # fmt: skip
    yield "deep in the head alone", lambda draft: (
        _set(draft, "head", [["/pages"], ["/pages"], *draft.counts]),
        _set(draft, "deep_paths", []),
    )  # fmt: skip
    yield "not deep", lambda draft: _set(draft, "deep_paths", [])
    yield "same path twice", lambda draft: _set(draft, "paths", ["/pages", "/pages"])
    yield "deep path that is none", lambda draft: _set(draft, "deep_paths", ["/pages/a"])
    yield "deep path twice", lambda draft: _set(draft, "deep_paths", ["/pages", "/pages"])
    yield "no paths", lambda draft: (_set(draft, "paths", []), _set(draft, "deep_paths", []))
    yield "too many paths", lambda draft: _set(
        draft, "paths", ["/pages", *(f"/pages/{n}" for n in range(1_000))])  # fmt: skip


def _more(draft: Draft, *paths: str) -> None:
    draft.entries += [[path, [], []] for path in paths]
    draft.counts[0] += len(paths)


ODD_VALUES = (None, -1, 2**64 - 1, 1.5, "x", b"x", [], [[]], {}, {"x": 1}, True,
              msgspec.msgpack.Ext(5, b"x"))  # fmt: skip


def _types() -> Iterator[tuple[str, Change]]:
    """Every field of every struct as every type that it is not."""
    places: dict[str, Callable[[Draft], tuple[list[Any], Any]]] = {
        "entry": lambda draft: (draft.entries, 2),
        **{f"entry[{at}]": lambda draft, at=at: (draft.entries[2], at) for at in range(3)},
        "binary": lambda draft: (draft.entries[2][2], 0),
        **{f"binary[{at}]": lambda draft, at=at: (draft.entries[2][2][0], at) for at in range(4)},
        **{f"head[{at}]": lambda draft, at=at: (_head(draft), at) for at in range(7)},
    }  # fmt: skip
    for place, find in places.items():
        for value in ODD_VALUES:
            if (place, value) in (("entry[2]", []),
                                  ("binary[0]", "x")):  # fmt: skip
                continue  # these are what they should be, or are counted elsewhere

            def change(draft: Draft, find: Any = find, value: Any = value) -> None:
                where, at = find(draft)
                where[at] = value

            yield f"{place} is {type(value).__name__} {value!r:.20}", change
        yield f"{place} is missing", lambda draft, find=find: _drop(*find(draft))
    yield "one field more", lambda draft: draft.entries[1].append(1)
    yield "one field of a binary more", lambda draft: draft.entries[1][2][0].append(1)
    yield "one field of the head more", lambda draft: _head(draft).append(1)
    yield "head is a map", lambda draft: _set(draft, "head", {"paths": ["/pages"]})
    yield "head is a number", lambda draft: _set(draft, "head", 7)


def _head(draft: Draft) -> list[Any]:
    draft.head = draft.head or [draft.paths, draft.deep_paths, *draft.counts]
    return draft.head


def _drop(where: list[Any], at: int) -> None:
    del where[at]


def _counts_and_sizes() -> Iterator[tuple[str, Change]]:
    for at, name in enumerate(("entries", "properties", "binaries", "bodies", "total")):
        for more in (-1, 1, 1_000, 2**31, 2**40, 2**62):

            def count(draft: Draft, at: int = at, more: int = more) -> None:
                draft.counts[at] += more

            yield f"count of {name} {more:+}", count
    for size in (0, 2, 4, 1_000, 2**32, 2**40, 2**63 - 1):

        def lie(draft: Draft, size: int = size) -> None:
            draft.entries[2][2][0][2] = size

        yield f"inline binary says {size}", lie

        def agree(draft: Draft, size: int = size) -> None:
            draft.entries[2][2][0][2] = size
            draft.counts[3:] = [5 + size, 5 + size + len(LARGE)]

        yield f"inline binary says {size}, and the head agrees", agree

        def blob(draft: Draft, size: int = size) -> None:
            draft.entries[2][2][1][2] = size
            draft.counts[4] = len(draft.bodies) + size

        yield f"binary in a blob says {size}", blob
    for size in (0, 1, 2**16, 2**31, 2**32 - 1):
        yield f"manifest of {size}", lambda draft, size=size: _set(draft, "manifest_bytes", size)
        yield f"block of {size}", lambda draft, size=size: _with_length(draft, 0, size)
        yield f"last block of {size}", lambda draft, size=size: _with_length(draft, 1, size)
    for version in (0, 2, 255):
        yield f"version {version}", lambda draft, version=version: _set(draft, "version", version)
    for magic in (b"\0" * 7, b"PK\3\4abc", MAGIC.lower(), MAGIC[::-1]):
        yield f"magic {magic!r}", lambda draft, magic=magic: _set(draft, "magic", magic)
    for more in (b"\0", b"x" * 1_000, MAGIC):
        yield f"{len(more)} bytes behind it", lambda draft, more=more: draft.content() + more
    yield "bodies twice", lambda draft: draft.content() + draft.bodies
    yield "no bodies", lambda draft: _set(draft, "bodies", b"")
    yield "bodies in another order", lambda draft: _set(draft, "bodies", b"xyzhello")
    yield "another body", lambda draft: _set(draft, "bodies", b"helloxyZ")
    yield "another hash", lambda draft: _set_in(draft.entries[1][2][0], 1, b"\0" * 32)
    yield "a blob with another hash", lambda draft: _set_in(draft.entries[2][2][1], 1, b"\0" * 32)
    yield "a large one inside that is said to be a blob", lambda draft: _set_in(
        draft.entries[1][2][0], 3, 1)  # fmt: skip
    yield "a large binary that is no blob", _large_inside
    yield "a third place", lambda draft: _set_in(draft.entries[1][2][0], 3, 2)
    yield "another blob", lambda draft: _blob(draft, LARGE[::-1])
    yield "a blob that is cut off", lambda draft: _blob(draft, LARGE[:-1])
    yield "a blob with more behind it", lambda draft: _blob(draft, LARGE + b"x")
    yield "an empty blob", lambda draft: _blob(draft, b"")


def _set_in(where: list[Any], at: int, value: Any) -> None:
    where[at] = value


def _blob(draft: Draft, content: bytes) -> None:
    draft.blobs.content[draft.binaries[0]] = content


def _large_inside(draft: Draft) -> None:
    draft.bodies = b"hello" + LARGE
    draft.entries[2][2] = [["data", sha256(LARGE).digest(), len(LARGE), 0]]
    draft.counts[2:] = [2, len(draft.bodies), len(draft.bodies)]
    draft.binaries = []


def _with_length(draft: Draft, block: int, size: int) -> bytes:
    """The bytes with another length before a block."""
    content = bytearray(draft.content())
    at = PREFIX.size
    for _ in range(block):
        at += U32.size + U32.unpack(content[at : at + U32.size])[0]
    content[at : at + U32.size] = U32.pack(size)
    return bytes(content)


def _properties() -> Iterator[tuple[str, Change]]:
    odd: dict[str, Any] = {
        "none": None, "a map": {"a": 1}, "a list of lists": [[1]], "a list of none": [None],
        "a type of its own": msgspec.msgpack.Ext(1, b"x" * 40), "too large": 2**63,
        "no number": float("nan"),
        "a list with no number": [1.0, float("nan")], "a list with a map": [{}],
    }  # fmt: skip
    for name, value in odd.items():

        def change(draft: Draft, value: Any = value) -> None:
            draft.entries[0][1][3] = value

        yield f"property {name}", change
    for name, key in {"empty": "", "long": "x" * 256, "long in bytes": "ü" * 128}.items():

        def rename(draft: Draft, key: str = key) -> None:
            draft.entries[0][1][2] = key

        yield f"property with a name that is {name}", rename

        def rename_binary(draft: Draft, key: str = key) -> None:
            draft.entries[1][2][0][0] = key

        yield f"binary with a name that is {name}", rename_binary
    yield (
        "binary with the name of a property",
        lambda draft: _set_in(draft.entries[2][2][0], 0, "n"),
    )
    yield "binary with the name of another", lambda draft: _set_in(
        draft.entries[2][2][0], 0, "image")  # fmt: skip
    yield "property twice", lambda draft: _set_in(draft.entries[0][1], 2, "title")
    yield "property twice, counted once", lambda draft: (
        _set_in(draft.entries[0][1], 2, "title"), _set_in(draft.counts, 1, 2))  # fmt: skip
    yield "property without a value", lambda draft: draft.entries[0][1].append("more")
    for key in (1, None, b"n", ["n"], {}):
        yield f"property called {key!r}", lambda draft, key=key: _set_in(
            draft.entries[0][1], 2, key)  # fmt: skip
    far = msgspec.msgpack.Ext(-1, struct.pack(">Iq", 0, 2**62))
    yield "time that no calendar has", lambda draft: _set_in(draft.entries[0][1], 3, far)
    half = msgspec.msgpack.Ext(-1, b"123")
    yield "half a time", lambda draft: _set_in(draft.entries[0][1], 3, half)


def _bombs() -> Iterator[tuple[str, Change]]:
    before = b"\x91\x93" + pack("/pages") + b"\x92\xa1n"  # a value follows
    bombs = {
        "list in list": b"\x91" * 250_000,
        "map in map": b"\x81\xa1x" * 100_000,
        "list that says 4 billion": b"\xdd\xff\xff\xff\xff",
        "map that says 4 billion": b"\xdf\xff\xff\xff\xff",
        "text that says 4 GB": b"\xdb\xff\xff\xff\xff",
        "bytes that say 4 GB": b"\xc6\xff\xff\xff\xff",
        "type of its own that says 4 GB": b"\xc9\xff\xff\xff\xff\x05",
        "half a million empty maps": b"\xdd\x00\x07\x00\x00" + b"\x80" * 0x70000,
        "half a million empty lists": b"\xdd\x00\x07\x00\x00" + b"\x90" * 0x70000,
        "many types of their own": b"\xdd\x00\x02\x00\x00" + b"\xc7\x00\x05" * 0x20000,
        "a reserved byte": b"\xc1",
    }
    for name, bomb in bombs.items():
        block = before + bomb
        yield f"bomb: {name}", lambda draft, block=block: _set(draft, "blocks", [block + b"\x90"])
    yield "bomb: entries that say 4 billion", lambda draft: _set(
        draft, "blocks", [b"\xdd\xff\xff\xff\xff" + pack(draft.entries[0])])  # fmt: skip
    yield "bomb: block of a megabyte", lambda draft: _set_in(
        draft.entries[0][1], 1, "x" * 1_000_000)  # fmt: skip
    yield "bomb: many blocks", lambda draft: _many_blocks(draft)
    yield "bomb: one blob a thousand times", lambda draft: _one_blob(draft)
    yield "bomb: the paths of the head", lambda draft: _set(
        draft, "head", [["/pages"] * 100_000, ["/pages"], *draft.counts])  # fmt: skip


def _many_blocks(draft: Draft) -> None:
    one = pack([["/pages", ["title", "x" * 60_000], []]])
    draft.blocks = [one] * 100


def _one_blob(draft: Draft) -> None:
    """Sizes that add up to more than a package may have: 1,000 times what is there once."""
    large = [sha256(LARGE).digest(), 2**38, 1]
    draft.entries = [["/pages", [], [[f"b{number}", *large] for number in range(1_000)]]]
    draft.counts, draft.bodies = [1, 0, 1_000, 0, 1_000 * 2**38], b""


def _messages() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong with the message, and not with the package."""
    other = binary_blob(b"\0" * 32)
    large = Draft().binaries[0]
    size = len(Draft().content())
    for name in ("", "x", "partitions/7/120.export", "../../etc/passwd", "content/packages/x",
                 package_blob(b"\0" * 32), other, large):  # fmt: skip
        yield f"package in the blob {name[:30]!r}", {"content": None, "blob": name}
    for name in ("", "x", "partitions/7/120.export", f"{large}/../x", large.upper(), large[:-1],
                 package_blob(b"\0" * 32), f"{large}\n"):  # fmt: skip
        yield f"binary in the blob {name[:40]!r}", {"binaries": [name]}
    yield "without the blob of its binary", {"binaries": []}
    yield "with one blob more", {"binaries": [large, other]}
    yield "with the same blob twice", {"binaries": [large, large]}
    yield "with too many blobs", {"binaries": [large] * 9_001}
    yield "neither here nor there", {"content": None}
    yield "here and there", {"blob": package_blob(Draft().signed().sha256)}
    for digest in (b"", b"\0" * 31, b"\0" * 32, b"\0" * 33):
        yield f"hash of {len(digest)} zeros", {"sha256": digest}
    for wrong in (-1, 0, size - 1, size + 1, 2**40, 2**63):
        yield f"says {wrong} bytes", {"size_bytes": wrong}
    for action in (PackageAction.DELETE, PackageAction.INVALIDATE, PackageAction.TEST):
        yield f"{action.name} with content", {"action": action}
        no_content = {"action": action, "content": None, "binaries": [], "size_bytes": 0}
        yield f"{action.name} with a hash", no_content
        no_content = no_content | {"sha256": b""}
        yield f"{action.name} with a size", no_content | {"size_bytes": 7}
        yield f"{action.name} with a blob", no_content | {"blob": package_blob(b"\0" * 32)}
        yield f"{action.name} with binaries", no_content | {"binaries": [large]}
        for name, path in ODD_PATHS.items():
            if name not in ("elsewhere", "beside", "above", "as a prefix"):
                yield f"{action.name} of a path {name}", no_content | {
                    "paths": [path], "deep_paths": []}  # fmt: skip
    yield "empty content", {"content": b"", "size_bytes": 0}
    for at in range(1, PREFIX.size):
        yield f"only {at} bytes", {"content": Draft().content()[:at], "size_bytes": at}


def _altered() -> Iterator[Hostile]:
    """A walk over the bytes: cut off, with one bit turned, or with one byte put in or taken out."""
    draft = Draft()
    message = draft.signed()
    content = message.content
    assert content is not None

    def altered(name: str, changed: bytes) -> Iterator[Hostile]:
        yield Hostile(
            f"{name}, held", msgspec.structs.replace(message, content=changed), draft.blobs
        )
        blobs = MemoryBlobs()
        blobs.content = draft.blobs.content | {package_blob(message.sha256): changed}
        stored = msgspec.structs.replace(message, content=None, blob=package_blob(message.sha256))
        yield Hostile(f"{name}, stored", stored, blobs)

    for at in range(0, len(content), 3):
        yield from altered(f"cut off at {at}", content[:at])
        bit = 1 << at % 8
        turned = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        yield from altered(f"bit {bit} turned at {at}", turned)
        yield from altered(f"one byte more at {at}", content[:at] + b"\0" + content[at:])
        yield from altered(f"one byte less at {at}", content[:at] + content[at + 1 :])


class EndlessBlobs(MemoryBlobs):
    """Blobs of which some go on for ever behind their end."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        yield from super().get(name, start, end)
        for _ in range(32) if name.startswith(self._prefix) else ():
            yield b"\0" * 1_000_000
        assert not name.startswith(self._prefix), "read far behind its end"


def _endless() -> Iterator[Hostile]:
    for prefix in (PACKAGES, BINARIES):
        draft = Draft()
        draft.blobs = EndlessBlobs(prefix)
        _blob(draft, LARGE)
        yield Hostile(f"one of {prefix} without an end", draft.as_blob(), draft.blobs)


def _memory_kib() -> int:
    """The most memory that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Imports all of them; prints how many there are, how many were refused, and the memory."""
    repository = MemoryRepository()
    refused = total = 0
    before_kib = _memory_kib()
    for each in hostile_packages():
        total += 1
        try:
            with repository.change() as changes:
                import_package(changes, open_package(each.message, each.blobs), 1)
                changes.commit()
        except HoldfastError:
            refused += 1
    print(total, refused, _memory_kib() - before_kib)


if __name__ == "__main__":
    main()
