"""The form in which a partition's state travels: one stream of bytes that says what it is.

    holdfast partition\\n            these 19 bytes
    kind, length, CRC-32 | body      blocks: one HEADER, any number of ROWS, one END

HEADER has the version of the form, the partition, and how far in its log the rows stand for it.
ROWS is a list of keys and values in msgpack, deflated, in the order of the keys over the whole
stream. END has the number of rows and the SHA-256 of everything before it. A stream that is cut
short has no END; one that was changed does not match its checksums.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from holdfast.blobs import Blobs
from holdfast.errors import DataLoss, HoldfastError, InvalidArgument
from holdfast.folder_format import FORMAT
from holdfast.limits import EXPORT_BLOCK_BYTES, EXPORT_BLOCK_BYTES_MAX, EXPORT_BLOCK_ROWS, KIB
from holdfast.version import VERSION as PROGRAM

VERSION = 1
_MAGIC = b"holdfast partition\n"
_BLOCK = struct.Struct(">BII")  # kind, length of the body, CRC-32 of both and the body
_CHECKED = struct.Struct(">BI")
_HEADER, _ROWS, _END = 1, 2, 3
_HEADER_BYTES = 64 * KIB  # the header is some 100 bytes of it
_DEFLATE_LEVEL = 1  # 4 us a row less to send for 0.2 us to make it small

Row = tuple[bytes, bytes]
Rows = Sequence[Row]


class Header(msgspec.Struct, frozen=True):
    """What an export is, and what its rows stand for."""

    version: int
    partition: int
    position: int  # the first record that the rows do not have
    offset: int  # where the journal is read on from, by its own count
    progress: bytes  # the partition's progress as it is stored
    # whether nothing of that journal is needed to go on: the partition may begin a log of its own
    is_whole: bool = False
    partitions: int = 0  # of the node; 0: not known
    format: int = 0  # of the folder that it was made from; 0: that had none
    program: str = ""  # the version that made it


class Totals(msgspec.Struct, frozen=True):
    """The end of an export: what came before it."""

    rows: int
    digest: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode_header = msgspec.msgpack.Decoder(Header).decode
_decode_version = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_decode_rows = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]]).decode
_decode_totals = msgspec.msgpack.Decoder(Totals).decode


def pages(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists of a size that is quickly dealt with."""
    page: list[Row] = []
    size_bytes = 0
    for row in rows:
        page.append(row)
        size_bytes += len(row[0]) + len(row[1])
        if len(page) == EXPORT_BLOCK_ROWS or size_bytes >= EXPORT_BLOCK_BYTES:
            yield page
            page, size_bytes = [], 0
    if page:
        yield page


def written(header: Header, found: Iterable[Rows]) -> Iterator[bytes]:
    """The stream of an export, a piece for each page of rows."""
    digest, count = sha256(), 0
    first = _MAGIC + _block(_HEADER, _encode(header))
    digest.update(first)
    yield first
    for page in found:
        block = _block(_ROWS, zlib.compress(_encode(page), _DEFLATE_LEVEL))
        digest.update(block)
        count += len(page)
        yield block
    yield _block(_END, _encode(Totals(count, digest.digest())))


def _block(kind: int, body: bytes) -> bytes:
    assert len(body) <= EXPORT_BLOCK_BYTES_MAX
    crc = zlib.crc32(body, zlib.crc32(_CHECKED.pack(kind, len(body))))
    return _BLOCK.pack(kind, len(body), crc) + body


def header_of(blobs: Blobs, name: str) -> Header:
    """What an export in a blob store says of itself; its rows are not looked at."""
    return ExportReader(blobs.get(name, 0, _HEADER_BYTES), f"{name} in {blobs.url}").header


class ExportReader:
    """Reads an export piece by piece and checks all of it.

    Rows may be used only when `pages` has come to its end: until then it may turn out to be
    DataLoss. `source` is what messages call it.
    """

    def __init__(self, stream: Iterable[bytes], source: str) -> None:
        self.source = source
        self._stream = iter(stream)
        self._left = bytearray()
        self._digest = sha256()
        self.header = self._read_header()
        self.rows = 0  # so far

    def _read_header(self) -> Header:
        magic = self._take(len(_MAGIC), or_less=True)
        if magic != _MAGIC:
            raise InvalidArgument(
                f"Expected an export of a partition in {self.source}, but it begins otherwise",
                source=self.source,
            )
        kind, body = self._read_block()
        try:
            version = msgspec.msgpack.decode(_decode_version(body)["version"], type=int)
            if version != VERSION:
                raise self._refused(
                    f"its version is {version}; use the version of holdfast that wrote it"
                )
            header = _decode_header(body)
        except (msgspec.MsgspecError, KeyError) as error:
            raise self._damaged(f"its header cannot be read: {error}") from error
        if kind != _HEADER:
            raise self._damaged("its header is missing")
        if header.format > FORMAT:
            raise self._refused(
                f"it was written by holdfast {header.program} (format {header.format}); this is"
                f" holdfast {PROGRAM} (format {FORMAT}): upgrade holdfast"
            )
        return header

    def pages(self) -> Iterator[list[Row]]:
        """All rows in the order of their keys. The end comes when everything was checked."""
        last = b""
        while True:
            before = self._digest.copy()
            kind, body = self._read_block()
            try:
                if kind == _END:
                    return self._check_end(_decode_totals(body), before.digest())
                page = _decode_rows(zlib.decompress(body))
            except (msgspec.MsgspecError, zlib.error) as error:
                raise self._damaged(f"a block cannot be read: {error}") from error
            for key, _ in page:
                if key <= last:
                    raise self._damaged("its rows are not in order")
                last = key
            self.rows += len(page)
            yield page

    def _check_end(self, totals: Totals, digest: bytes) -> None:
        if totals != Totals(self.rows, digest):
            raise self._damaged(
                f"its end stands for {totals.rows} rows with another checksum than the"
                f" {self.rows} that were read"
            )
        if self._left or next(self._stream, b""):
            raise self._damaged("something follows behind its end")

    def _read_block(self) -> tuple[int, bytes]:
        kind, length, crc = _BLOCK.unpack(self._take(_BLOCK.size))
        if kind not in (_HEADER, _ROWS, _END) or length > EXPORT_BLOCK_BYTES_MAX:
            raise self._damaged("a block does not begin as one")
        body = self._take(length)
        if zlib.crc32(body, zlib.crc32(_CHECKED.pack(kind, length))) != crc:
            raise self._damaged("a block does not match its checksum")
        return kind, body

    def _take(self, count: int, *, or_less: bool = False) -> bytes:
        """The next bytes of the stream."""
        while len(self._left) < count and (piece := next(self._stream, b"")):
            self._left += piece
        if len(self._left) < count and not or_less:
            raise self._damaged("it ends in the middle")
        taken = bytes(self._left[:count])
        del self._left[:count]
        self._digest.update(taken)
        return taken

    def _damaged(self, reason: str) -> DataLoss:
        return DataLoss(
            f"Expected {self.source} to be a whole export of a partition, but {reason}; export the"
            " partition again",
            source=self.source,
        )

    def _refused(self, reason: str) -> HoldfastError:
        return InvalidArgument(
            f"Expected {self.source} to be an export of version {VERSION}, but {reason}",
            source=self.source,
        )
