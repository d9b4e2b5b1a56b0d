"""How what members agree on is written under keys of a store. JSON, so that people can read it."""

from typing import TypeVar

import msgspec

from holdfast.errors import DataLoss, InvalidArgument
from holdfast.sequence import cut_codec
from holdfast.sequence.api import Chain, Cut, Range
from holdfast.sequence.keys import Row

SETTINGS = "/cluster"
REGISTERED = "/registeredNodes"
REMOVED = "/removedNodes"
NODES = "/node/"
LATEST = "/latest"
LOG = "/log/"
CHAINS = "/chains/"
DISKS = "/disks/"
TOPICS = "/topics/"

T = TypeVar("T")


class Head(msgspec.Struct, frozen=True):
    """`/latest`: which cut is the last, and whose."""

    number: int
    writer: str
    nonce: str


class Boots(msgspec.Struct, frozen=True):
    """`/disks/…`: how often a disk was started."""

    boots: int
    nonce: str  # of the last start


class _Links(msgspec.Struct, frozen=True):
    """`/chains/…`."""

    ranges: tuple[Range, ...]


def encode(value: object) -> bytes:
    """A value in the form in which it is stored."""
    return msgspec.json.encode(value)


def decode(row: Row, kind: type[T]) -> T:
    """A stored value; DataLoss that names the key if it is none of the kind."""
    try:
        return msgspec.json.decode(row.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _garbled(row, error) from None


def encode_chain(chain: Chain) -> bytes:
    """The ranges of a chain."""
    return encode(_Links(chain.ranges))


def decode_chain(row: Row) -> Chain:
    """The chain that is stored under a key; DataLoss if the key or the value is not a chain's."""
    partition = number_of(row, CHAINS)
    ranges = decode(row, _Links).ranges
    epochs = [each.epoch for each in ranges]
    if not epochs or epochs != sorted(set(epochs)) or epochs[0] < 1:
        raise _garbled(row, f"expected epochs that go up, but got {epochs}")
    return Chain(partition, ranges, row.revision)


def cut_key(number: int) -> str:
    """The key of a cut; the order of keys is that of numbers."""
    return f"{LOG}{number:016}"


def decode_cut(row: Row) -> Cut:
    """The cut that is stored under a key; DataLoss if it is another one or none."""
    try:
        cut = cut_codec.decode_cut(row.value)
    except DataLoss as error:
        raise _garbled(row, error) from None
    if cut.number != number_of(row, LOG):
        raise _garbled(row, f"it is cut {cut.number}")
    return cut


def number_of(row: Row, prefix: str) -> int:
    """The number behind a prefix of a key; DataLoss if there is none."""
    text = row.key[len(prefix) :]
    if not (text.isascii() and text.isdigit()):
        raise _garbled(row, "expected a number at the end of the key")
    return int(text)


def check_name(kind: str, name: str) -> str:
    """A name that is part of a key; InvalidArgument if it would make it another key."""
    if not name or "/" in name or not name.isprintable():
        raise InvalidArgument(f"Expected a {kind} without a slash, but got {name!r}")
    return name


def _garbled(row: Row, reason: object) -> DataLoss:
    return DataLoss(
        f"The value of {row.key} in the store of the cluster cannot be read: {reason}. "
        "Something else than holdfast wrote it; restore the key from a backup of etcd",
        key=row.key,
    )
