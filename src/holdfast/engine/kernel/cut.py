"""How much of the log may be given up: behind the slowest of snapshot and readers, within a cap."""

from collections.abc import Iterable, Mapping

Positions = Mapping[int, int]


def cut_before(
    snapshot: Positions, readers: Iterable[Positions], log_bytes: int, log_bytes_max: int
) -> dict[int, int]:
    """The position of each partition below which the log is not needed any more.

    `snapshot` and `readers` map a partition to the first position that they still need. A reader
    that does not name a partition needs all of it. Past `log_bytes_max` readers are no longer
    waited for: one that is stuck must not fill the disk. The snapshot always is, for without it
    nothing can be recovered.
    """
    if log_bytes > log_bytes_max:
        return dict(snapshot)
    known = list(readers)
    return {
        partition: min([position, *(reader.get(partition, 0) for reader in known)])
        for partition, position in snapshot.items()
    }
