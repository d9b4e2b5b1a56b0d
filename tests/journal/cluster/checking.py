"""What must hold in a simulated cluster at every moment. A violation ends the simulation."""

from collections.abc import Mapping, Sequence

from holdfast.journal.api import Entry
from holdfast.journal.cluster.messages import Stretch
from holdfast.sequence.api import Chain, CutPositions, LogKey
from holdfast.sequence.keys import Row
from holdfast.sequence.stored_values import CHAINS, decode_chain


class Violation(AssertionError):
    """An invariant does not hold."""


class LogChecker:
    """Acknowledged is present and unchanged, in one order on all members."""

    def __init__(self) -> None:
        self.entries: dict[LogKey, dict[int, bytes]] = {}  # as acknowledged, or read by anybody
        self.refused: set[bytes] = set()  # what certainly never reached a log
        self.acknowledged = 0

    def append_acknowledged(self, key: LogKey, first: int, entries: Sequence[bytes]) -> None:
        self.acknowledged += len(entries)
        for offset, entry in enumerate(entries, first):
            self._is(key, offset, entry, "acknowledged")

    def append_refused(self, entries: Sequence[bytes]) -> None:
        self.refused.update(entries)

    def read(self, key: LogKey, entries: Sequence[Entry], member: str) -> None:
        for each in entries:
            self._is(key, each.offset, each.payload, f"read by {member}")

    def _is(self, key: LogKey, offset: int, entry: bytes, how: str) -> None:
        there = self.entries.setdefault(key, {}).setdefault(offset, entry)
        if there != entry:
            raise Violation(f"{key} has {there!r} at {offset}, but {entry!r} was {how}")
        if entry in self.refused:
            raise Violation(f"{entry!r} was refused, but {how} at {offset} of {key}")

    def all_read(self, key: LogKey, read: Mapping[int, bytes], earliest: int, member: str) -> None:
        """A member has read a whole log: nothing may be missing."""
        for offset, entry in self.entries.get(key, {}).items():
            if offset >= earliest and read.get(offset) != entry:
                raise Violation(f"{member} lacks {entry!r} at {offset} of {key}")


class AppendChecker:
    """At most one owner's append has a place in a range."""

    def __init__(self) -> None:
        self._sent: dict[tuple[int, int, str, int], tuple[str, bytes]] = {}

    def sent(self, member: str, stretch: Stretch) -> None:
        for number, entry in enumerate(stretch.entries, stretch.number):
            place = (stretch.partition, stretch.epoch, stretch.topic, number)
            there = self._sent.setdefault(place, (member, entry))
            if there != (member, entry):
                raise Violation(f"{place} was sent as {there} and as {(member, entry)}")


class ChainChecker:
    """The chain only grows: by one range at its end, while the oldest leave it."""

    def __init__(self) -> None:
        self.chains: dict[str, Chain] = {}

    def look(self, rows: Mapping[str, Row]) -> None:
        for key, row in rows.items():
            if key.startswith(CHAINS):
                known = self.chains.get(key)
                if known is None or known.revision != row.revision:
                    self._follow(key, known, decode_chain(row))

    def _follow(self, key: str, known: Chain | None, chain: Chain) -> None:
        self.chains[key] = chain
        epochs = [each.epoch for each in chain.ranges]
        if epochs != list(range(epochs[0], epochs[0] + len(epochs))):
            raise Violation(f"{key} has gaps: {epochs}")
        for each, following in zip(chain.ranges, chain.ranges[1:], strict=False):
            if any(following.starts.get(t, 0) < start for t, start in each.starts.items()):
                raise Violation(f"{key} shrinks: {each} {following}")
        if known is None:
            return
        if chain.epoch not in (known.epoch, known.epoch + 1) or epochs[0] > known.epoch:
            raise Violation(f"{key} went from epoch {known.epoch} to {epochs}")
        before = {each.epoch: each for each in known.ranges}
        for each in chain.ranges:
            there = before.get(each.epoch)
            if there is not None and (there.owner, there.nonce, there.starts) != (
                each.owner,
                each.nonce,
                each.starts,
            ):
                raise Violation(f"{key} was rewritten: {there} {each}")
        last, open_now = before.get(known.epoch), chain.ranges[-1]
        if open_now.epoch == known.epoch and last and last.replicas != open_now.replicas:
            raise Violation(f"{key} changed the set of its open range: {last} {open_now}")


class CutChecker:
    """Cuts only grow, and name only what stays."""

    def __init__(self) -> None:
        self.positions = CutPositions()

    def published(self, positions: CutPositions) -> None:
        for key, offset in self.positions.offsets.items():
            if positions.offsets.get(key, 0) < offset:
                raise Violation(f"cut {positions.number} goes back in {key}")
        self.positions = positions

    def all_named(self, marks: Mapping[LogKey, int]) -> None:
        for key, offset in self.positions.offsets.items():
            if marks.get(key, 0) < offset:
                raise Violation(f"a cut names {offset} of {key}, which ends at {marks.get(key)}")
