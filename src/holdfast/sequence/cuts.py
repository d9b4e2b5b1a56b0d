"""Cuts: made from what owners say is acknowledged, and followed from one to the next.

The member whose turn it is makes a cut, which counts only once it was read back. Positions never
go back: a mark that is older than the last cut adds nothing.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from zlib import crc32

from holdfast.errors import DataLoss
from holdfast.limits import CUT_SHARES
from holdfast.sequence.api import Cut, CutPositions, LogKey

START = CutPositions()


def make_cut(
    before: CutPositions, marks: Mapping[LogKey, int], writer: str, nonce: str, now_ms: int
) -> Cut:
    """The cut behind `before`: what has grown by the marks."""
    at = before.offsets.get
    moved = [(key, mark - had) for key, mark in marks.items() if mark > (had := at(key, 0))]
    grown = dict(sorted(moved))
    number = before.number + 1
    positions = _share(number, _sum(before.offsets, grown))
    return Cut(number, writer, nonce, max(now_ms, before.time_ms), grown, positions)


def follow(before: CutPositions, cut: Cut) -> CutPositions:
    """Where all logs stand as of a cut, from where they stood as of the one before it.

    DataLoss where the cut contradicts what was read before: the store was put back to an older copy
    or was changed by somebody else.
    """
    assert cut.number == before.number + 1, (before.number, cut.number)
    offsets = _sum(before.offsets, cut.grown)
    if dict(cut.positions) != _share(cut.number, offsets):
        raise DataLoss(
            f"Cut {cut.number} by {cut.writer} contradicts the cuts before it. "
            "Was etcd restored from a backup? See the how-to on restoring a cluster",
            cut=cut.number,
        )
    return CutPositions(cut.number, max(cut.time_ms, before.time_ms), offsets)


def rewind(after: CutPositions, cut: Cut, time_ms: int) -> CutPositions:
    """Where all logs stood before a cut, from where they stand behind it; the time of then."""
    assert cut.number == after.number, (cut.number, after.number)
    offsets = {key: at - cut.grown.get(key, 0) for key, at in after.offsets.items()}
    left = {key: at for key, at in offsets.items() if at}
    return CutPositions(cut.number - 1, time_ms, left)


def restore(cuts: Sequence[Cut]) -> CutPositions | None:
    """Where all logs stand as of the last of these cuts, which are in a row; None if too few.

    All since the first are enough, and so are as many as there are shares.
    """
    if not cuts or (cuts[0].number > 1 and len(cuts) < CUT_SHARES):
        return None
    numbers = [cut.number for cut in cuts]
    assert numbers == list(range(numbers[0], numbers[0] + len(cuts))), "cuts in a row"
    offsets: dict[LogKey, int] = {}
    known = set(range(CUT_SHARES)) if numbers[0] == 1 else set[int]()
    for cut in cuts:
        offsets = _sum(offsets, {key: n for key, n in cut.grown.items() if share_of(key) in known})
        share = cut.number % CUT_SHARES
        if share not in known:
            known.add(share)
            offsets.update(cut.positions)
    return CutPositions(cuts[-1].number, cuts[-1].time_ms, offsets)


def share_of(key: LogKey) -> int:
    """Which share of the logs a log belongs to; a cut's own is its number modulo all shares."""
    return (_topic_hash(key.topic) + key.partition) % CUT_SHARES


@lru_cache(maxsize=256)
def _topic_hash(topic: str) -> int:
    return crc32(topic.encode())


def follows(latest: int, cut: Cut) -> bool:
    """The guard of every publication: a cut goes right behind the latest one, or nowhere."""
    return cut.number == latest + 1


def _share(number: int, offsets: Mapping[LogKey, int]) -> dict[LogKey, int]:
    # The same as asking `share_of` for each, in a third of the time: there may be thousands.
    first = {
        topic: (number - _topic_hash(topic)) % CUT_SHARES for topic in {key[0] for key in offsets}
    }
    return {key: at for key, at in offsets.items() if key[1] % CUT_SHARES == first[key[0]]}


def _sum(offsets: Mapping[LogKey, int], grown: Mapping[LogKey, int]) -> dict[LogKey, int]:
    after = dict(offsets)
    for key, count in grown.items():
        after[key] = after.get(key, 0) + count
    return after
