"""Who owns which partition, as far as a member knows."""

from collections.abc import Callable, Iterable

from holdfast.errors import Moved
from holdfast.partitions.api import Placement

NOBODY = ""  # owns a partition that was never opened


class Placements:
    """The latest known owner of every partition. An owner is superseded by a higher epoch only."""

    def __init__(self, placements: Iterable[Placement]) -> None:
        self._by_partition = {each.partition: each for each in placements}
        self._on_change: list[Callable[[Placement], None]] = []
        count = len(self._by_partition)
        assert sorted(self._by_partition) == list(range(1, count + 1)), "a partition has no owner"

    @classmethod
    def unknown(cls, count: int) -> "Placements":
        """Of partitions whose owners are not known yet."""
        return cls(Placement(each, NOBODY, 0) for each in range(1, count + 1))

    @property
    def count(self) -> int:
        return len(self._by_partition)

    def of(self, partition: int) -> Placement:
        return self._by_partition[partition]

    def all(self) -> list[Placement]:
        return [self._by_partition[each] for each in sorted(self._by_partition)]

    def on_change(self, callback: Callable[[Placement], None]) -> None:
        """Calls back with each placement that superseded another."""
        self._on_change.append(callback)

    def learn(self, placement: Placement) -> bool:
        """Takes a placement if it is newer than the known one; whether it was."""
        if placement.epoch <= self._by_partition[placement.partition].epoch:
            return False
        self._by_partition[placement.partition] = placement
        for callback in self._on_change:
            callback(placement)
        return True

    def moved(self, partition: int) -> Moved:
        """What a member says that does not own a partition: who does, as far as it knows."""
        known = self.of(partition)
        owner = f"it is member {known.member!r}" if known.member else "it has none yet"
        return Moved(
            f"Expected the owner of partition {partition} here, but {owner}",
            partition=partition, member=known.member, epoch=known.epoch,
        )  # fmt: skip

    def learn_from(self, error: Moved) -> bool:
        """Takes what a member said that does not own a partition; whether it was news."""
        fields = error.fields
        if not {"partition", "member", "epoch"} <= fields.keys():
            return False
        partition = int(fields["partition"])
        if partition not in self._by_partition:
            return False
        return self.learn(Placement(partition, str(fields["member"]), int(fields["epoch"])))
