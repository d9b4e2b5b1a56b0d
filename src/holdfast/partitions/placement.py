"""Who owns which partition, as far as a member knows."""

from collections.abc import Callable, Iterable

from holdfast.errors import Moved
from holdfast.partitions.api import Placement


class Placements:
    """The latest known owner of every partition. An owner is superseded by a higher epoch only."""

    def __init__(self, placements: Iterable[Placement]) -> None:
        self._by_partition = {each.partition: each for each in placements}
        self._on_change: list[Callable[[Placement], None]] = []
        count = len(self._by_partition)
        assert sorted(self._by_partition) == list(range(1, count + 1)), "a partition has no owner"

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
        return Moved(
            f"Expected the owner of partition {partition} here, but it is member {known.member!r}",
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
