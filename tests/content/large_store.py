"""Writes and reads much content in one store, and says by how much its memory grew.

python large_store.py STORE-URL binary|files SIZE
"""

import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from holdfast.content.repository import DATA, Binary, Repository, open_repository

MIB = 1 << 20


def pieces(count: int) -> Iterator[bytes]:
    piece = bytes(range(256)) * (MIB // 256)
    for number in range(count):
        yield number.to_bytes(8, "big") + piece[8:]


def write_binary(repository: Repository, size_mib: int) -> None:
    digest = hashlib.sha256()
    for piece in pieces(size_mib):
        digest.update(piece)
    binary = Binary(digest.digest(), size_mib * MIB)
    with repository.change() as changes:
        changes.store(binary, pieces(size_mib))
        changes.put("/large", {DATA: binary})
        changes.commit()
    again = hashlib.sha256()
    for piece in repository.read(binary):
        again.update(piece)
    assert again.digest() == binary.sha256


def write_files(repository: Repository, count: int) -> None:
    with repository.change() as changes:
        for number in range(count):
            body = b"%d " % number * 50
            binary = Binary(hashlib.sha256(body).digest(), len(body))
            changes.store(binary, [body])
            changes.put(f"/tree/{number % 1_000}/{number}", {DATA: binary, "n": number}, number)
        changes.commit()
    assert sum(1 for _ in repository.walk("/tree")) == count + 1_001
    with repository.change() as changes:
        changes.put("/one", {"more": True})
        changes.commit()


def memory() -> int:
    """The most that this program had; getrusage would count the one that started it as well."""
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1_024


def main(url: str, what: str, size: str) -> None:
    repository = open_repository(url)
    with repository.change() as changes:
        changes.put("/first", {})
        changes.commit()
    before, begun = memory(), time.perf_counter()
    (write_binary if what == "binary" else write_files)(repository, int(size))
    repository.close()
    print(f"{(memory() - before) // MIB} MiB more, {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main(*sys.argv[1:])
