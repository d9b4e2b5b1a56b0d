"""The chain of ranges: where entries stand, where ranges end, what the next chain looks like.

A range is closed where the next one starts, topic by topic. An entry at or beyond the end of its
closed range is void: it was never acknowledged, and everybody skips it by this rule.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from holdfast.sequence.api import Chain, Range, Replica


class EntryPlace(NamedTuple):
    """Where an entry stands in the chain."""

    epoch: int
    number: int


class Opening(NamedTuple):
    """For whom a range is opened."""

    owner: str
    nonce: str  # of the owner's start
    replicas: tuple[Replica, ...]


def range_of(chain: Chain, epoch: int) -> Range | None:
    """The range of an epoch; None if it was pruned, or was never opened."""
    for each in reversed(chain.ranges):
        if each.epoch <= epoch:
            return each if each.epoch == epoch else None
    return None


def closed_end(chain: Chain, epoch: int, topic: str) -> int | None:
    """The offset at which a range was closed; None while it is open, or if it is not there."""
    for each, following in zip(chain.ranges, chain.ranges[1:], strict=False):
        if each.epoch == epoch:
            return following.starts.get(topic, 0)
    return None


def closed_count(chain: Chain, epoch: int, topic: str) -> int | None:
    """How many entries a closed range has; None while it is open, or if it is not there."""
    end, closed = closed_end(chain, epoch, topic), range_of(chain, epoch)
    return None if end is None or closed is None else end - closed.starts.get(topic, 0)


def closed_counts(chain: Chain, epoch: int) -> dict[str, int]:
    """By topic, how many entries a closed range has; topics without any are left out."""
    ends = {}
    for each, following in zip(chain.ranges, chain.ranges[1:], strict=False):
        if each.epoch == epoch:
            ends = {
                topic: end - each.starts.get(topic, 0) for topic, end in following.starts.items()
            }
    return {topic: count for topic, count in ends.items() if count}


def offset_of(chain: Chain, topic: str, place: EntryPlace) -> int | None:
    """The offset of an entry; None if it is void, or its range is not in the chain."""
    found = range_of(chain, place.epoch)
    if found is None:
        return None
    offset = found.starts.get(topic, 0) + place.number
    end = closed_end(chain, place.epoch, topic)
    return offset if end is None or offset < end else None


def place_of(chain: Chain, topic: str, offset: int) -> EntryPlace | None:
    """Where the entry of an offset stands; None if it is older than the chain.

    An offset that was not written yet stands in the open range.
    """
    for each in reversed(chain.ranges):
        start = each.starts.get(topic, 0)
        if start <= offset:
            return EntryPlace(each.epoch, offset - start)
    return None


def earliest(chain: Chain, topic: str) -> int:
    """The first offset that the chain knows of."""
    return chain.ranges[0].starts.get(topic, 0) if chain.ranges else 0


def extended(chain: Chain, tail: Mapping[str, int], opening: Opening) -> Chain:
    """The chain with its last range closed behind so many entries, and the next one opened.

    It is written in the place of the chain that was read.
    """
    starts = dict(chain.last.starts) if chain.last else {}
    for topic, count in tail.items():
        assert count >= 0, "a range does not shrink"
        starts[topic] = starts.get(topic, 0) + count
    opened = Range(chain.epoch + 1, opening.owner, opening.nonce, opening.replicas, starts)
    return msgspec.structs.replace(chain, ranges=(*chain.ranges, opened))


def is_opened_by(chain: Chain, epoch: int, opening: Opening) -> bool:
    """Whether a range was opened for this start of this owner: the nonce says so, nothing else."""
    found = range_of(chain, epoch)
    return found is not None and (found.owner, found.nonce) == (opening.owner, opening.nonce)


def resettled(chain: Chain, epoch: int, replicas: tuple[Replica, ...]) -> Chain:
    """The chain with another replica set of a closed range. All of the set must hold the range."""
    assert range_of(chain, epoch) is not None, f"the chain has no range of epoch {epoch}"
    assert epoch < chain.epoch, "the set of the open range changes only by closing it"
    assert replicas, "a range has a replica"
    ranges = tuple(
        msgspec.structs.replace(each, replicas=replicas) if each.epoch == epoch else each
        for each in chain.ranges
    )
    return msgspec.structs.replace(chain, ranges=ranges)


def pruned(chain: Chain, needed: Mapping[str, int]) -> Chain:
    """The chain without the oldest closed ranges that end where nobody needs them.

    `needed` has, by topic, the first offset that somebody may still ask for. A topic that is not
    named is needed from its first entry on.
    """
    keep = 0
    for each, following in zip(chain.ranges, chain.ranges[1:], strict=False):
        ends = following.starts.items()
        if any(
            end > each.starts.get(topic, 0) and end > needed.get(topic, 0) for topic, end in ends
        ):
            break
        keep += 1
    return msgspec.structs.replace(chain, ranges=chain.ranges[keep:]) if keep else chain


def is_older(read: Chain, known: Chain) -> bool:
    """Whether a linearizable read gave less than was known before: the store was rolled back."""
    return read.revision < known.revision or read.epoch < known.epoch


def is_rolled_back(chain: Chain, promise: int, newest: int) -> bool:
    """Whether a disk has seen more than the chain, which was read after the disk was asked.

    A promise names at most the epoch after the last one, and entries are of epochs that were
    opened. Where a disk has more, the store of the chains was put back to an older copy.
    """
    return promise > chain.epoch + 1 or newest > chain.epoch
