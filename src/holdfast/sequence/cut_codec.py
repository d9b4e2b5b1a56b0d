"""Cuts as bytes: growth as varints, the logs by columns, compressed. It needs `holdfast[cluster]`.

    version | compressed or not | body
    body: number | time_ms | writer | nonce | grown | positions
    logs: count of topics | for each: name, count, partitions (gaps), values

Whatever is read may come from somebody who means harm: every length is checked before it is used,
and bytes that are not exactly a cut are refused.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

import zstandard

from holdfast.errors import DataLoss
from holdfast.limits import (
    CUT_BYTES_MAX,
    CUT_LOGS_MAX,
    CUT_NAME_BYTES_MAX,
    CUT_SHARES,
    CUT_SMALL_BYTES,
    PARTITIONS_MAX,
    WHOLE_MAX,
)
from holdfast.sequence.api import Cut, LogKey
from holdfast.sequence.cuts import share_of

_VERSION = 1
_PLAIN, _COMPRESSED = 0, 1
_LEVEL = 3  # 60 us for 4,096 logs; higher levels gain nothing on varints
_VARINT_BYTES_MAX = 9  # 63 bits


def encode_cut(cut: Cut) -> bytes:
    """A cut as it is kept in etcd and sent to other members."""
    body = bytearray()
    _put(body, (cut.number, cut.time_ms))
    for text in (cut.writer, cut.nonce):
        _put_text(body, text)
    _put_logs(body, cut.grown)
    _put_logs(body, cut.positions)
    assert len(body) <= CUT_BYTES_MAX, len(body)
    if len(body) < CUT_SMALL_BYTES:
        return bytes((_VERSION, _PLAIN)) + body
    return bytes((_VERSION, _COMPRESSED)) + zstandard.ZstdCompressor(_LEVEL).compress(body)


def decode_cut(data: bytes) -> Cut:
    """The cut that these bytes are; DataLoss if they are none."""
    try:
        return _decode(data)
    except (ValueError, IndexError, zstandard.ZstdError) as error:
        raise DataLoss(
            f"Expected an encoded cut, but {len(data)} bytes cannot be decoded: {error}"
        ) from error


def _decode(data: bytes) -> Cut:
    if len(data) < 2 or data[0] != _VERSION or data[1] not in (_PLAIN, _COMPRESSED):
        raise ValueError(f"they begin with {data[:2].hex() or 'nothing'}; is this member older?")
    read = _Reader(_inflate(data[2:]) if data[1] == _COMPRESSED else data[2:])
    number, time_ms = read.number(), read.number()
    writer, nonce = read.text(), read.text()
    grown, positions = read.logs(), read.logs()
    if not read.is_done or number == 0:
        raise ValueError("they are not a whole body")
    share = number % CUT_SHARES
    if any(share_of(key) != share or positions[key] < grown.get(key, 0) for key in positions):
        raise ValueError("it says where logs stand that it knows nothing of")
    if any(share_of(key) == share and key not in positions for key in grown):
        raise ValueError("it does not say where a log of its share stands")
    return Cut(number, writer, nonce, time_ms, grown, positions)


def _inflate(data: bytes) -> bytes:
    size = zstandard.get_frame_parameters(data).content_size
    if size > CUT_BYTES_MAX:  # also of a frame that does not say its size
        raise ValueError(f"the body is larger than {CUT_BYTES_MAX} bytes")
    body = zstandard.ZstdDecompressor().decompress(
        data, max_output_size=CUT_BYTES_MAX, allow_extra_data=False
    )
    if len(body) < CUT_SMALL_BYTES:
        raise ValueError("the body is too small to be compressed")
    return body


# --- writing ------------------------------------------------------------------------------------


def _varint(number: int) -> bytes:
    body = bytearray()
    while number > 0x7F:
        body.append(number & 0x7F | 0x80)
        number >>= 7
    body.append(number)
    return bytes(body)


_SMALL = tuple(map(_varint, range(2_048)))  # what a log mostly grows by in a tick: 32,000/s


def _put(body: bytearray, numbers: Sequence[int]) -> None:
    """A cut in which all logs moved has thousands of numbers, nearly all of them small."""
    if not numbers:
        return
    largest = max(numbers)
    assert min(numbers) >= 0 and largest <= WHOLE_MAX, (min(numbers), largest)
    if largest <= 0x7F:
        body += bytes(numbers)
    elif largest < len(_SMALL):
        body += b"".join(map(_SMALL.__getitem__, numbers))
    else:
        body += b"".join(map(_varint, numbers))


def _put_text(body: bytearray, text: str) -> None:
    encoded = text.encode()
    assert len(encoded) <= CUT_NAME_BYTES_MAX, text
    _put(body, (len(encoded),))
    body += encoded


def _put_logs(body: bytearray, logs: Mapping[LogKey, int]) -> None:
    assert len(logs) <= CUT_LOGS_MAX, len(logs)
    layout = _layout(tuple(logs))
    values = list(map(logs.__getitem__, layout.order) if layout.order else logs.values())
    body += layout.head
    for columns, first, end in layout.topics:
        body += columns
        _put(body, values[first:end])


class _Layout(NamedTuple):
    """All of a cut's logs but their values."""

    head: bytes
    topics: list[tuple[bytes, int, int]]  # name, count and partitions; the places of its values
    order: tuple[LogKey, ...]  # empty: as they are


@lru_cache(maxsize=2 * CUT_SHARES)  # the logs that grow, and those of each share, change rarely
def _layout(keys: tuple[LogKey, ...]) -> _Layout:
    order = tuple(sorted(keys))
    topics: list[tuple[bytes, int, int]] = []
    end = 0
    for topic, several in groupby(order, itemgetter(0)):
        partitions = [partition for _, partition in several]
        body = bytearray()
        _put_text(body, topic)
        _put(body, (len(partitions), partitions[0]))
        _put(body, [after - before - 1 for before, after in pairwise(partitions)])
        first, end = end, end + len(partitions)
        topics.append((bytes(body), first, end))
    return _Layout(_varint(len(topics)), topics, () if order == keys else order)


# --- reading ------------------------------------------------------------------------------------


class _Reader:
    """Goes through a body, and raises ValueError or IndexError where it is not one."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    @property
    def is_done(self) -> bool:
        return self._at == len(self._body)

    def number(self) -> int:
        return self.numbers(1)[0]

    def numbers(self, count: int) -> tuple[int, ...]:
        """So many in a row; the loop is one for all, for a large cut has thousands."""
        body, at = self._body, self._at
        found: list[int] = []
        append = found.append
        for _ in range(count):
            byte = body[at]
            at += 1
            if byte > 0x7F:
                byte, at = _long(body, at)
            append(byte)
        self._at = at
        return tuple(found)

    def text(self) -> str:
        length = self.number()
        encoded = self._body[self._at : self._at + length]
        if length > CUT_NAME_BYTES_MAX or len(encoded) < length:
            raise ValueError("a name is too long")
        self._at += length
        return encoded.decode()  # UnicodeDecodeError is a ValueError

    def logs(self) -> dict[LogKey, int]:
        found: dict[LogKey, int] = {}
        previous: str | None = None
        for _ in range(self._count()):
            topic = self.text()
            if previous is not None and topic <= previous:
                raise ValueError("topics are not in order")
            previous = topic
            count = self._count()
            if not count:
                raise ValueError("a topic is named that has nothing")
            keys = _keys(topic, self.numbers(count))
            found.update(zip(keys, self.numbers(count), strict=True))
        if not all(found.values()):
            raise ValueError("a log is named that has nothing")
        return found

    def _count(self) -> int:
        """A count of things that take a byte each at least: it fits what is left."""
        count = self.number()
        if count > min(CUT_LOGS_MAX, len(self._body) - self._at):
            raise ValueError("more is announced than there is")
        return count


def _long(body: bytes, at: int) -> tuple[int, int]:
    """A number of several bytes whose first one was just read; and what comes behind it."""
    value, shift = body[at - 1] & 0x7F, 7
    for _ in range(_VARINT_BYTES_MAX - 1):
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if byte == 0:
                raise ValueError("a number is longer than it needs to be")
            return value, at
        shift += 7
    raise ValueError("a number is too large")


@lru_cache(maxsize=64)  # where the same logs grow all the time, it is the same keys
def _keys(topic: str, gaps: tuple[int, ...]) -> list[LogKey]:
    partitions = [each + number for number, each in enumerate(accumulate(gaps))]
    if partitions[-1] > PARTITIONS_MAX:
        raise ValueError(f"there is no partition {partitions[-1]}")
    return [LogKey(topic, each) for each in partitions]
